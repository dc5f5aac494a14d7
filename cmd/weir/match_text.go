package main

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
)

// longestPattern is how many bytes a pattern may have: no name is longer, and the time that one takes is in proportion.
const longestPattern = 1024

// glob is a pattern for a whole text, with * and ?.
type glob struct {
	text  string
	place config.Place
}

func (g *glob) UnmarshalConfig(v *config.Value) {
	g.place = v.Place()
	if !v.Decode(&g.text) {
		return
	}
	switch {
	case strings.ContainsAny(g.text, "\n\r"):
		v.Errorf("one line", "a pattern of several lines")
	case len(g.text) > longestPattern:
		v.Errorf("a shorter one", "a pattern of %d bytes: at most %d", len(g.text), longestPattern)
	}
}

// String is the text that UnmarshalConfig reads.
func (g glob) String() string { return doubleDollars(g.text) }

func (g glob) exact() router.Glob  { return router.NewGlob(g.text) }
func (g glob) folded() router.Glob { return router.NewFoldGlob(g.text) }

// ofListener makes the path of a socket what it is in the source: relative to its file.
func (g glob) ofListener() router.Glob {
	if p := g.exact(); !p.Plain() {
		return p
	}
	return router.NewGlob(resolveSocket(g.place, g.text))
}

// resolve does that for good.
func (g *glob) resolve() {
	if g.exact().Plain() {
		g.text, g.place = resolveSocket(g.place, g.text), config.Place{} // and not once more
	}
}

// piece is a text that a message holds.
type piece struct {
	text  string
	place config.Place
}

func (p *piece) UnmarshalConfig(v *config.Value) {
	p.place = v.Place()
	if v.Decode(&p.text) && p.text == "" {
		v.Errorf("the text to look for", "an empty text is in every message")
	}
}

// String is the text that UnmarshalConfig reads.
func (p piece) String() string { return doubleDollars(p.text) }

// odd says what somebody who wrote this may have meant otherwise.
func (p piece) odd() (what, hint string) {
	if len(p.text) > 2 && strings.HasPrefix(p.text, "*") && strings.HasSuffix(p.text, "*") {
		return "contains looks for these stars, too", strings.Trim(p.text, "*")
	}
	return "", ""
}

// expression is an RE2.
type expression struct {
	text  string
	re    *regexp.Regexp
	place config.Place
}

func (e *expression) UnmarshalConfig(v *config.Value) {
	e.place = v.Place()
	if !v.Decode(&e.text) {
		return
	}
	switch {
	case e.text == "":
		v.Errorf("the expression to look for", "an empty expression fits every message")
		return
	case strings.ContainsRune(e.text, '\b'):
		v.Errorf(`single quotes: '\b'`, `a backspace: between double quotes, YAML makes one of \b`)
		return
	}
	re, err := regexp.Compile(e.text)
	if err != nil {
		part := ""
		if s, ok := errors.AsType[*syntax.Error](err); ok {
			part = s.Expr
			err = errors.New(s.Code.String() + ": " + s.Expr)
		}
		v.ErrorfIn(part, expressionHint(e.text, part), "no regular expression (RE2): %v", err)
		return
	}
	e.re = re
}

// String is the text that UnmarshalConfig reads.
func (e expression) String() string { return doubleDollars(e.text) }

// expressionHint is the way out for what RE2 does not read.
func expressionHint(text, part string) string {
	switch {
	case strings.HasPrefix(part, "(?!") || strings.HasPrefix(part, "(?<!"):
		return "not: {message: {regex: …}}: RE2 does not look ahead or behind"
	case strings.HasPrefix(part, "(?="), strings.HasPrefix(part, "(?<="):
		return "a second match, by any or not: RE2 does not look ahead or behind"
	case len(part) == 2 && part[0] == '\\' && part[1] >= '1' && part[1] <= '9':
		return "RE2 has no references to groups"
	case strings.HasPrefix(text, "*"):
		return "contains: …, or .* for any characters"
	case strings.HasPrefix(part, "(") || part == text && strings.Count(text, "(") > strings.Count(text, ")"):
		return `a ) for each (, or \( for the character itself`
	case strings.HasPrefix(part, "["):
		return `a ] behind, or \[ for the character itself`
	case part == ")" || strings.Count(text, ")") > strings.Count(text, "("):
		return `a ( for each ), or \) for the character itself`
	}
	return ""
}

// odd says what somebody who wrote this may have meant otherwise.
func (e expression) odd() (what, hint string) {
	if len(e.text) > 2 && strings.HasPrefix(e.text, "/") && strings.HasSuffix(e.text, "/") {
		return "the slashes are looked for, too", strings.Trim(e.text, "/")
	}
	return "", ""
}

// doubleDollars makes a text what the file has to say for it.
func doubleDollars(s string) string { return strings.ReplaceAll(s, "$", "$$") }
