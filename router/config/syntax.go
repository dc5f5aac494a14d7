package config

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// parse reads the text of a file into its tree.
func (d *Document) parse(f *file, text []byte) {
	before := len(d.mistakes)
	defer func() { f.broken = len(d.mistakes) > before }()
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	f.findSecretBlocks()
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		d.add(Mistake{Place: Place{file: f}, What: "the file is in UTF-16", Hint: "save it as UTF-8"})
		return
	}
	for i, line := range f.lines {
		if at := unreadable(line); at >= 0 {
			if m, is := d.notOurs(f, text, nil); is {
				d.add(m)
				return
			}
			what, hint := tellUnreadable(line[at:])
			d.add(Mistake{Place: Place{f, i + 1, utf8.RuneCountInString(line[:at]) + 1}, What: what, Hint: hint})
			return
		}
	}
	if len(text) > largest {
		d.add(Mistake{Place: Place{file: f}, What: fmt.Sprintf("larger than %d MiB: no configuration file", largest>>20)})
		return
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	root, err := next(dec)
	if err == io.EOF {
		return
	}
	if err != nil {
		m, is := d.notOurs(f, text, nil)
		if !is {
			m = d.explain(f, text, err)
		}
		d.add(m)
		return
	}
	top := root.Content[0]
	f.findSecretAnchors(top)
	if m, is := d.notOurs(f, text, top); is {
		d.add(m)
		return
	}
	if second, err := next(dec); err == nil {
		d.add(Mistake{Place: f.at(second), What: "a second document in one file", Hint: "put it into a file of its own and give that with a further -c"})
	} else if err != io.EOF {
		d.add(d.explain(f, text, err))
	}
	if top.Kind == yaml.AliasNode || top.Style&yaml.TaggedStyle != 0 || top.Kind == yaml.ScalarNode && top.Tag != "!!null" || top.Kind == yaml.SequenceNode {
		hint := ""
		if top.Kind == yaml.ScalarNode && strings.Contains(f.lines[top.Line-1], "=") {
			hint = "key: value in place of key = value"
		}
		d.add(Mistake{Place: f.at(top), What: "want settings (key: value) at the top of the file, got " + describe(top), Hint: hint})
		return
	}
	if top.Kind == yaml.MappingNode {
		f.root = top
	}
}

// split parts a text into lines.
func (f *file) split(text []byte) {
	f.lines = strings.Split(strings.TrimPrefix(string(text), "\ufeff"), "\n")
	for i, line := range f.lines {
		f.lines[i] = strings.TrimSuffix(line, "\r")
	}
}

// next reads one document. The library panics where its own books do not balance.
func next(dec *yaml.Decoder) (n *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()
	n = new(yaml.Node)
	if err := dec.Decode(n); err != nil {
		return nil, err
	}
	return n, nil
}

// tellUnreadable says what is unreadable in what a line begins with.
func tellUnreadable(s string) (what, hint string) {
	r, size := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && size == 1 {
		return "here is a byte that is no UTF-8: the file is probably in Latin-1 or Windows-1252", "save the file as UTF-8"
	}
	return fmt.Sprintf("here is a control character (U+%04X), which no text has", r), fmt.Sprintf(`remove it, or write "\x%02x", with the quotes`, r)
}

// unreadable is where a line has what YAML forbids, or -1.
func unreadable(line string) int {
	for i, r := range line {
		bad := r < ' ' && r != '\t' || r >= 0x7f && r < 0xa0 && r != 0x85 || r == 0xfffe || r == 0xffff
		if r == utf8.RuneError {
			_, size := utf8.DecodeRuneInString(line[i:])
			bad = size == 1
		}
		if bad {
			return i
		}
	}
	return -1
}

var yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(?s:(.*))$`)

// explain tells a syntax error in the words and at the place of who wrote it.
// The library names the line where the surrounding construct began, if any, and
// no column.
func (d *Document) explain(f *file, text []byte, err error) Mistake {
	said, line := err.Error(), 0
	if m := yamlError.FindStringSubmatch(said); m != nil {
		line, _ = strconv.Atoi(m[1])
		said = m[2]
	}
	if at, is := f.conflict(); is {
		return Mistake{Place: at, What: "a conflict of a merge is left in the file", Hint: "one of the two halves, without the lines of <<<<<<<, ======= and >>>>>>>"}
	}
	if name, ok := strings.CutPrefix(said, "unknown anchor '"); ok {
		name = strings.TrimSuffix(name, "' referenced")
		m := Mistake{Place: f.first("*" + name), What: "no anchor is named " + name, Hint: "&" + name + " before the value it means"}
		if !bytes.Contains(text, []byte("&")) { // there are no anchors: it is a pattern
			m.Hint = "quotes around it: \"*" + name + "\"; or &" + name + " before the value it means"
		}
		if m.Other = d.anchored(f, name); m.Other.file != nil {
			m.What = "no anchor is named " + name + " in this file, and those of other files do not count"
			m.Hint = "the value itself, or &" + name + " before it in this file"
		} else if near := f.anchorLike(name); near != "" {
			m.Hint = "*" + near
		}
		return m
	}
	switch {
	case strings.Contains(said, "unexpected end of stream"):
		return f.openQuote(line)
	case strings.Contains(said, "',' or ']'"):
		return f.open(line, "[", "]")
	case strings.Contains(said, "',' or '}'"):
		return f.open(line, "{", "}")
	}
	line = min(f.firstBad(text, said), len(f.lines))
	src := f.lines[line-1]
	column := 1 + indent(src)
	if i := strings.Index(src, "\t"); i >= 0 && strings.TrimLeft(src[:i], " -") == "" {
		return Mistake{Place: Place{f, line, i + 1}, What: "a tab in the indentation", Hint: "spaces"}
	}
	if i := strings.IndexFunc(src, oddSpace); i >= 0 {
		r, _ := utf8.DecodeRuneInString(src[i:])
		return Mistake{Place: Place{f, line, utf8.RuneCountInString(src[:i]) + 1}, What: fmt.Sprintf("a space that is none to YAML (U+%04X, as word processors and web pages have it)", r), Hint: "an ordinary space"}
	}
	if before := f.before(line); before > 0 && strings.Contains(said, "mapping values are not allowed") && !strings.Contains(f.lines[before-1], ": ") && (indent(f.lines[before-1]) >= indent(src) || !strings.Contains(f.lines[before-1], ":")) {
		src = f.lines[before-1]
		if i := strings.Index(src, ":"); i >= 0 && !strings.HasSuffix(strings.TrimSpace(src), ":") {
			return Mistake{Place: Place{f, before, utf8.RuneCountInString(src[:i]) + 2}, What: "no space behind the colon", Hint: "key: value"}
		}
		return Mistake{Place: Place{f, before, indent(src) + 1}, What: "a line without a colon", Hint: "key: value"}
	}
	column, what, hint := retell(src, column, said)
	return Mistake{Place: Place{f, line, column}, What: what, Hint: hint}
}

// retell turns the library's words into ours.
func retell(src string, column int, said string) (int, string, string) {
	at := func(sub string, otherwise int) int {
		if i := strings.Index(src, sub); i >= 0 {
			return utf8.RuneCountInString(src[:i]) + 1
		}
		return otherwise
	}
	switch {
	case strings.Contains(said, "mapping values are not allowed"):
		first := strings.Index(src, ":")
		if i := strings.LastIndex(src, ": "); i > first {
			return utf8.RuneCountInString(src[:i]) + 1, "a colon inside a value", "quotes around the value"
		}
		return column, "this line is indented deeper than the one before it allows", "the indentation of the line before, or : at the end of that"
	case strings.Contains(said, "did not find expected key"):
		return column, "the indentation fits no line above, or a key: is missing", "the column of its neighbours"
	case strings.Contains(said, "could not find expected ':'"):
		return column, "a key without its colon", "key: value, with a space after the colon"
	case strings.Contains(said, "did not find expected '-' indicator"):
		return column, "a line among list items that starts with no -", "- before it, or less indentation"
	case strings.Contains(said, "expected alphabetic or numeric"):
		for _, c := range []string{"*", "&"} {
			if i := begins(src, c); i >= 0 {
				return utf8.RuneCountInString(src[:i]) + 1, "a value cannot begin with " + c + ", which makes an alias or an anchor of it", inQuotes(src[i:])
			}
		}
		return column, "a value cannot begin with * or &, which make an alias or an anchor of it", "quotes around the value"
	case strings.Contains(said, "unknown escape character"):
		return at(`\`, column), `an escape that YAML does not know in "…"`, `'…', where a backslash is just a backslash`
	case strings.Contains(said, "cannot start any token"):
		for _, c := range []string{"@", "`", "%", ">", "|"} {
			if i := begins(src, c); i >= 0 {
				return utf8.RuneCountInString(src[:i]) + 1, "a value cannot begin with " + c, inQuotes(src[i:])
			}
		}
		return column, "a value cannot begin with this character", "quotes around the value"
	case strings.Contains(said, "expected comment or line break"): // behind > or |, which begin a text of several lines
		for _, c := range []string{">", "|"} {
			if i := begins(src, c); i >= 0 {
				return utf8.RuneCountInString(src[:i]) + 1, "a value cannot begin with " + c + ", which makes a text of several lines of it", inQuotes(src[i:])
			}
		}
		return column, "something stands behind the > or | that begins a text of several lines", "quotes around the value"
	case strings.Contains(said, "did not find expected node content"):
		if i := begins(src, "?"); i >= 0 {
			return utf8.RuneCountInString(src[:i]) + 1, "in [ ] and { } a value cannot begin with ?", inQuotes(src[i:])
		}
		return column, "YAML: " + said, ""
	case strings.Contains(said, "exceeded max depth"):
		return column, "nested too deep", ""
	}
	return column, "YAML: " + said, ""
}

// oddSpace reports whether a character looks like a space, or like nothing, and is no space to YAML.
func oddSpace(r rune) bool {
	return r > 0x7f && unicode.IsSpace(r) || r >= 0x200b && r <= 0x200f || r == 0x2060 || r == 0xfeff
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// before is the number of the last line before one that is not blank or a
// comment; 0: there is none.
func (f *file) before(line int) int {
	for line--; line > 0; line-- {
		if t := strings.TrimSpace(f.lines[line-1]); t != "" && t[0] != '#' {
			return line
		}
	}
	return 0
}

// openQuote finds the quote that is never closed. The library says its line,
// unless that is the first one, for which it says the last.
func (f *file) openQuote(line int) Mistake {
	if line < 1 || line > len(f.lines) || !strings.ContainsAny(f.lines[line-1], `"'`) {
		line = 1
	}
	column, open := indent(f.lines[line-1])+1, rune(0)
	last, at := ' ', 0
	for _, r := range f.lines[line-1] {
		at++
		switch {
		case open == 0 && (r == '"' || r == '\'') && strings.ContainsRune(" \t[{,:-", last):
			open, column = r, at
		case r == open && last != '\\':
			open = 0
		}
		last = r
	}
	return Mistake{Place: Place{f, line, column}, What: "this quote is never closed", Hint: "the same quote at the end of the value"}
}

// open finds the bracket that is never closed. The library counts its line from
// 0, unless that is the first one, for which it says another.
func (f *file) open(line int, bracket, closing string) Mistake {
	if line++; line > len(f.lines) || !strings.Contains(f.lines[line-1], bracket) {
		line = 1
	}
	src := f.lines[line-1]
	if m, is := f.slip(line, bracket); is {
		return m
	}
	column := indent(src) + 1
	if i := strings.LastIndex(src, bracket); i >= 0 {
		for j := i; j >= 0 && strings.Count(src[j:], bracket) <= strings.Count(src[j:], closing); j = strings.LastIndex(src[:j], bracket) {
			i = j
		}
		column = utf8.RuneCountInString(src[:i]) + 1
	}
	return Mistake{Place: Place{f, line, column}, What: "this " + bracket + " is never closed, or a comma is missing behind it", Hint: closing + " at the end, commas between"}
}

// first is where a text stands first.
func (f *file) first(text string) Place {
	for i, line := range f.lines {
		if at := strings.Index(line, text); at >= 0 {
			return Place{f, i + 1, utf8.RuneCountInString(line[:at]) + 1}
		}
	}
	return Place{f, 1, 1}
}

// firstBad is the line with which the library begins to say what it says: its
// parser reads ahead by little, so a file cut behind that line fails the same way.
func (f *file) firstBad(text []byte, said string) int {
	ends := make([]int, 0, len(f.lines))
	for i, c := range text {
		if c == '\n' {
			ends = append(ends, i+1)
		}
	}
	ends = append(ends, len(text))
	return 1 + sort.Search(len(ends)-1, func(i int) bool {
		dec := yaml.NewDecoder(bytes.NewReader(text[:ends[i]]))
		for {
			_, err := next(dec)
			if err == nil {
				continue
			}
			m := yamlError.FindStringSubmatch(err.Error())
			return m != nil && m[2] == said
		}
	})
}
