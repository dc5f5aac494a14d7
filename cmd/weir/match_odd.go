package main

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/weirlog/weir/router/config"
)

// How patterns are written elsewhere, and what in them is not of this world.
var (
	regexpish = regexp.MustCompile(`^\^|.\$$|^\.[*+]|\.\+|\\\.|\\[dwsSDWb](?:[+*?{$\\\[.]|$)|\[[^]]*-[^]]*\][+*]?|\{\d+(?:,\d*)?\}`)
	oneOf     = regexp.MustCompile(`\[[^]]+\]`)
	slashed   = regexp.MustCompile(`^/([^/]+)/[imsx]*$`)
	withPID   = regexp.MustCompile(`^([^\[\]]+)\[([^\[\]]*)\]:?$`)
	anyOne    = regexp.MustCompile(`\\[dwS]|\[[^]\[^]+\]`) // one character, in a regular expression
)

const (
	quoteMarks   = `"'“”„‟‘’‚«»`
	curlyQuotes  = "“”„‟‘’‚«»"
	otherPattern = "* for any characters, ? for one, and a list for alternatives"
)

// odd says what somebody who wrote this pattern for a key may have meant otherwise. never: as
// it stands it fits nothing that a program sends; if it does after all, ? stands for any character.
func (g glob) odd(key string) (what, hint string, never bool) {
	text := g.text
	inner := strings.Trim(text, quoteMarks)
	switch {
	case text == "-":
		return "a dash is how RFC 5424 writes that there is none, and it is not in the message then", `""`, false
	case len(text) < 2:
		return "", "", false
	case inner != "" && strings.ContainsAny(text, curlyQuotes):
		return "its quotes are typographic ones, which are a part of it", strconv.Quote(inner), true
	case inner != "" && strings.ContainsAny(text[:1], quoteMarks) && strings.ContainsAny(text[len(text)-1:], quoteMarks):
		return "these quotes inside of quotes are a part of it", strconv.Quote(inner), true
	case strings.HasPrefix(text, "!"):
		return "a match says what it takes, and not: says what it does not", "not: {" + key + ": " + strings.TrimLeft(text, "!= ") + "}", true
	case slashed.MatchString(text):
		return aRegexp, globOf(slashed.FindStringSubmatch(text)[1], true), true
	case strings.Contains(text, "|"):
		return "a | stands for itself in a pattern, and alternatives are a list", alternativesOf(text), true
	case regexpish.MatchString(text), key != "app_name" && oneOf.MatchString(text):
		return aRegexp, globOf(text, strings.HasPrefix(text, "^") || strings.HasSuffix(text, "$")), true
	case strings.TrimSpace(text) != text:
		return "no " + key + " has a space in it", strconv.Quote(strings.TrimSpace(text)), true
	case strings.ContainsAny(text, ",; ") && listed(text) != "":
		return "one text is one pattern, and several are a list", listed(text), true
	case key == "app_name" && withPID.MatchString(text):
		m := withPID.FindStringSubmatch(text)
		if strings.Trim(m[2], "*") == "" {
			return "what stands in brackets behind a name is proc_id, a key of its own", m[1], false
		}
		return "what stands in brackets behind a name is proc_id, a key of its own", "app_name: " + m[1] + " and proc_id: " + strconv.Quote(m[2]), false
	case key == "app_name" && strings.HasSuffix(text, ":"):
		return "the colon behind a name is not a part of it", strings.TrimRight(text, ":"), false
	case key != "hostname" && strings.HasSuffix(text, ".*") && strings.Count(text, ".") == 1:
		name := strings.TrimSuffix(text, ".*")
		return "in a pattern the . is a dot, and this fits only what has one there", strconv.Quote(name+"*") + `, or, with the dot, ` + strconv.Quote(name+".?*"), false
	}
	return "", "", false
}

const aRegexp = "a regular expression, and here stands a pattern for the whole text, with * and ?"

// alternativesOf is a list of what a|b or (a|b) takes.
func alternativesOf(text string) string {
	var all []string
	for one := range strings.SplitSeq(strings.Trim(text, "^$()"), "|") {
		if one = strings.TrimSpace(one); one == "" || strings.ContainsAny(one, `\[](){}+^$`) {
			return otherPattern
		} else if strings.ContainsAny(one, "*?%:, ") {
			one = strconv.Quote(one)
		}
		all = append(all, one)
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// globOf is the pattern that takes what a simple regular expression takes; of others, a word
// about how. anywhere: without ^ and $ it is looked for in the text.
func globOf(re string, anywhere bool) string {
	text := re
	if anywhere && !strings.HasPrefix(text, "^") {
		text = ".*" + text
	}
	if anywhere && !strings.HasSuffix(text, "$") {
		text += ".*"
	}
	text = strings.TrimSuffix(strings.TrimPrefix(text, "^"), "$")
	text = anyOne.ReplaceAllString(text, "?")
	text = strings.NewReplacer(`\.`, ".", ".*", "*", ".+", "?*", "?+", "?*", "?*", "*").Replace(text)
	for strings.Contains(text, "**") {
		text = strings.ReplaceAll(text, "**", "*")
	}
	if text == "" || strings.ContainsAny(text, `\[](){}+|^$`) {
		return otherPattern
	}
	return `"` + text + `"`
}

// asWritten is a text as the file has it, in quotes, without what a terminal would obey.
func asWritten(text string) string {
	escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text)
	switch {
	case strconv.Quote(text) != `"`+escaped+`"`:
		return strconv.Quote(text)
	case strings.Contains(text, `"`):
		return "'" + text + "'"
	}
	return `"` + text + `"`
}

// odd tells what in m, and in the matches in it, may not mean what it looks like, and what in it can never be.
func (m *match) odd(tell func(at config.Place, never bool, what, hint string)) {
	for _, key := range []struct {
		name string
		list some[glob]
	}{{"hostname", m.Hostname}, {"app_name", m.AppName}, {"proc_id", m.ProcID}, {"msg_id", m.MsgID}} {
		for _, g := range key.list {
			if what, hint, never := g.odd(key.name); what != "" {
				tell(g.place, never, asWritten(g.text)+": "+what, hint)
			}
		}
	}
	if m.Message != nil {
		for _, p := range m.Message.Contains {
			if what, hint := p.odd(); what != "" {
				tell(p.place, false, asWritten(p.text)+": "+what, hint)
			}
		}
		for _, e := range m.Message.Regex {
			if what, hint := e.odd(); what != "" {
				tell(e.place, false, asWritten(e.text)+": "+what, hint)
			}
		}
	}
	for i := range m.Not {
		m.Not[i].odd(tell)
	}
	for i := range m.Any {
		m.Any[i].odd(tell)
	}
}
