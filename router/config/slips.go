package config

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// begins is where a value begins with c, or -1.
func begins(src, c string) int {
	at := regexp.MustCompile(`(?:^|[\s,\[{:-])(` + regexp.QuoteMeta(c) + `)`).FindStringSubmatchIndex(src)
	if at == nil {
		return -1
	}
	return at[2]
}

// inQuotes is the way out for the value that s begins with.
func inQuotes(s string) string {
	end := len(s)
	if i := strings.IndexAny(s, ",]}"); i >= 0 {
		end = i
	}
	if i := strings.Index(s, " #"); i >= 0 {
		end = min(end, i)
	}
	value := strings.TrimSpace(s[:end])
	if value == "" || len(value) > 40 || strings.ContainsAny(value, `"\\`) {
		return "quotes around the value"
	}
	return `quotes around it: "` + value + `"`
}

// What people write in brackets and braces without the quotes it needs.
var (
	reference = regexp.MustCompile(`[:,\[{]\s+([^\s,\[\]{}"'#]*\$\{)`)
	question  = regexp.MustCompile(`(?:[,\[{]\s*|:\s+)([^\s,\[\]{}"'#?]+\?)`)
	comment   = regexp.MustCompile(`\s(#)`)
	address   = regexp.MustCompile(`[,\[{:]\s*(\w+://\[[^\],]*\])`)
	colons    = regexp.MustCompile(`[{,]\s*[\w-]+:\s+([^\s"'\[\]{},#&*][^"'\[\]{},#]*:\s)`)
	noSpace   = regexp.MustCompile(`[{,]\s*[\w-]+(:)["'\[{]`)
	noSpaceIn = regexp.MustCompile(`[{,]\s*[\w-]+(:)[\w.]+\s*[,}]`)
)

var (
	addressEnd = regexp.MustCompile(`^\w+://\[[^\],]*\][^\s,\]}]*`)
	anchor     = regexp.MustCompile(`(?:^|[\s\[{,])&([\w.-]+)`)
	halves     = regexp.MustCompile(`^(?:<{7}|>{7})(?: |$)`) // of a file that a version control could not merge
)

// conflict is the first line of a merge that was left to its user.
func (f *file) conflict() (at Place, is bool) {
	for i, line := range f.lines {
		if halves.MatchString(line) {
			return Place{f, i + 1, 1}, true
		}
	}
	return at, false
}

// anchorLike is an anchor of the file whose name is nearly that; "": there is none.
func (f *file) anchorLike(name string) string {
	var names []string
	for _, line := range f.lines {
		for _, m := range anchor.FindAllStringSubmatch(unquoted(line), -1) {
			names = append(names, m[1])
		}
	}
	return Typo(name, names)
}

// slip finds why a bracket seems never to be closed, from its line on: what makes
// something else of the rest of it.
func (f *file) slip(line int, bracket string) (m Mistake, is bool) {
	for ; line <= len(f.lines); line++ {
		src := unquoted(f.lines[line-1])
		for _, s := range []struct {
			pattern    *regexp.Regexp
			what, hint string
			behind     int
		}{
			{reference, "in [ ] and { } a value with ${…} needs quotes", "", 0},
			{question, "in [ ] and { } a value with ? needs quotes", "", 0},
			{address, "in [ ] and { } a value with [ ] needs quotes", "", 0},
			{colons, "in { } a value with a colon and a space needs quotes", "", 0},
			{noSpace, "no space behind the colon", "key: value", 1},
			{noSpaceIn, "no space behind the colon", "key: value", 1},
			{comment, "from # on this line is a comment, and what closes the " + bracket + " is in it", "quotes around the #, or a line of its own for the comment", 0},
		} {
			at := s.pattern.FindStringSubmatchIndex(src)
			if at == nil || s.pattern == comment && !strings.ContainsAny(src[at[2]:], "]}") {
				continue
			}
			if s.hint == "" {
				s.hint = inQuotesAround(f.lines[line-1][at[2]:])
			}
			if s.pattern == address {
				s.hint = `quotes around it: "` + addressEnd.FindString(src[at[2]:]) + `"`
			}
			return Mistake{Place: Place{f, line, utf8.RuneCountInString(src[:at[2]]) + 1 + s.behind}, What: s.what, Hint: s.hint}, true
		}
		if strings.TrimSpace(src) != "" && indent(src) == 0 && line > 1 {
			break // the next section
		}
	}
	return m, false
}

// inQuotesAround is inQuotes for a value with references in it.
func inQuotesAround(s string) string {
	open := 0
	for i, r := range s {
		switch {
		case r == '{':
			open++
		case r == '}' && open > 0:
			open--
		case strings.ContainsRune(",]}", r):
			if value := strings.TrimSpace(s[:i]); len(value) <= 60 && !strings.ContainsAny(value, `"\\`) {
				return `quotes around it: "` + value + `"`
			}
			return "quotes around the value"
		}
	}
	return "quotes around the value"
}

// unquoted blanks what stands in quotes. Bytes keep their places.
func unquoted(src string) string {
	b := []byte(src)
	var open, last byte = 0, ' '
	for i, c := range b {
		switch {
		case open == 0 && (c == '"' || c == '\'') && strings.IndexByte(" \t[{,:-", last) >= 0:
			open = c
		case open != 0 && c == open && last != '\\':
			open = 0
		case open != 0:
			b[i] = '_'
		}
		last = c
	}
	return string(b)
}
