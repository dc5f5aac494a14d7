package router

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// A Glob is a pattern for a whole text: `*` stands for any characters, none
// among them, `?` for exactly one; everything else stands for itself. A byte that is
// no UTF-8 is a character. The zero Glob fits the empty text.
//
// Matching takes no memory, and time in proportion to the text, at worst times the length
// of the pattern.
type Glob struct {
	pattern string
	text    string   // what stands for itself, for all shapes but mixed
	parts   []string // mixed: what stands between the stars
	shape   shape
	fold    bool // letters of ASCII fit in either case; text and parts are lower case
}

// A shape is what a pattern looks like; each but mixed is one comparison.
type shape uint8

const (
	exact  shape = iota // text
	prefix              // text*
	suffix              // *text
	inside              // *text*
	all                 // *
	mixed
)

// NewGlob reads a pattern of valid UTF-8.
func NewGlob(pattern string) Glob { return newGlob(pattern, false) }

// NewFoldGlob reads a pattern that does not tell a from A, as host names do (RFC 4343:
// letters of ASCII alone).
func NewFoldGlob(pattern string) Glob { return newGlob(pattern, true) }

func newGlob(pattern string, fold bool) Glob {
	g := Glob{pattern: pattern, fold: fold}
	text := pattern
	if fold {
		text = strings.Map(lowerRune, text)
	}
	parts := cutStars(text)
	switch n := len(parts); {
	case strings.Contains(text, "?") || n > 3 || n == 3 && (parts[0] != "" || parts[2] != ""):
		g.shape, g.parts = mixed, parts
	case n == 1:
		g.shape, g.text = exact, text
	case n == 3:
		g.shape, g.text = inside, parts[1]
	case parts[0] == "" && parts[1] == "":
		g.shape = all
	case parts[1] == "":
		g.shape, g.text = prefix, parts[0]
	case parts[0] == "":
		g.shape, g.text = suffix, parts[1]
	default:
		g.shape, g.parts = mixed, parts
	}
	return g
}

// cutStars is what stands between the stars. Among neighbours a `?` goes first (`*?` is `?*`), so that
// each part but the first one begins with what stands for itself, and none but the outer ones is empty.
func cutStars(pattern string) []string {
	parts := []string{""}
	star := false
	for _, c := range pattern {
		switch {
		case c == '*':
			star = true
			continue
		case c != '?' && star:
			parts = append(parts, "")
			star = false
		}
		parts[len(parts)-1] += string(c)
	}
	if star {
		parts = append(parts, "")
	}
	return parts
}

// String is the pattern as it was written.
func (g Glob) String() string { return g.pattern }

// Plain reports whether the pattern is a text that only itself fits, but for the case of letters.
func (g Glob) Plain() bool { return g.shape == exact }

// Everything reports whether every text fits.
func (g Glob) Everything() bool { return g.shape == all }

// Matches reports whether all of v fits the pattern.
func (g *Glob) Matches(v []byte) bool {
	n := len(g.text)
	switch g.shape {
	case exact:
		return len(v) == n && g.same(v, g.text)
	case prefix:
		return len(v) >= n && g.same(v[:n], g.text)
	case suffix:
		return len(v) >= n && g.same(v[len(v)-n:], g.text)
	case inside:
		return g.index(v, g.text) >= 0
	case all:
		return true
	}
	return g.mixed(v)
}

// mixed takes the first part from the front, the last one from the end, and each
// part between where it stands first: as a part has always as many characters,
// that leaves most for those behind it.
func (g *Glob) mixed(v []byte) bool {
	n := g.begins(v, g.parts[0])
	if n < 0 {
		return false
	}
	v = v[n:]
	if len(g.parts) == 1 {
		return len(v) == 0
	}
	last := g.parts[len(g.parts)-1]
	end := len(v)
	for range utf8.RuneCountInString(last) {
		if end == 0 {
			return false
		}
		_, size := utf8.DecodeLastRune(v[:end])
		end -= size
	}
	if n := g.begins(v[end:], last); n != len(v)-end {
		return false
	}
	v = v[:end]
	for _, part := range g.parts[1 : len(g.parts)-1] {
		_, to := g.find(v, part)
		if to < 0 {
			return false
		}
		v = v[to:]
	}
	return true
}

// find is where a part stands first.
func (g *Glob) find(v []byte, part string) (from, to int) {
	head, _, _ := strings.Cut(part, "?")
	for {
		i := g.index(v[from:], head)
		if i < 0 {
			return -1, -1
		}
		from += i
		if n := g.begins(v[from:], part); n >= 0 {
			return from, from + n
		}
		from++
	}
}

// begins is how many bytes at the front of v a part takes, or -1.
func (g *Glob) begins(v []byte, part string) int {
	at := 0
	for part != "" {
		literal, rest, more := strings.Cut(part, "?")
		if len(v)-at < len(literal) || !g.same(v[at:at+len(literal)], literal) {
			return -1
		}
		at += len(literal)
		part = rest
		if more {
			if at == len(v) {
				return -1
			}
			_, size := utf8.DecodeRune(v[at:])
			at += size
		}
	}
	return at
}

// same compares texts of one length, the last byte first: names of a series (web-01, web-02) differ there.
func (g *Glob) same(v []byte, text string) bool {
	if last := len(text) - 1; last >= 0 {
		c := v[last]
		if g.fold {
			c = lower[c]
		}
		if c != text[last] {
			return false
		}
	}
	if !g.fold {
		return string(v) == text
	}
	for i, c := range v {
		if lower[c] != text[i] {
			return false
		}
	}
	return true
}

// index is where text stands first in v, or -1.
func (g *Glob) index(v []byte, text string) int {
	if !g.fold {
		return bytes.Index(v, bytesOf(text))
	}
	for i := 0; i+len(text) <= len(v); i++ {
		if g.same(v[i:i+len(text)], text) {
			return i
		}
	}
	return -1
}

// lower has the lower case of each letter of ASCII, and everything else as it is.
var lower = func() (t [256]byte) {
	for i := range t {
		t[i] = byte(lowerRune(rune(i)))
	}
	return t
}()

func lowerRune(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + ('a' - 'A')
	}
	return r
}
