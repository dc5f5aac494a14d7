package config

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Mistake is what is wrong at a place in a file, told so that it can be mended.
// Those of a Document hold no secrets.
type Mistake struct {
	Place   Place
	What    string // the fact, in lower case
	Hint    string // the way out; may be empty
	Other   Place  // where the other half is, such as the first of two; the zero Place: none
	Warning bool   // nothing is refused for it
}

// String is the mistake as a person reads it: file:line:column: what, the line,
// a caret, the way out. It ends without a newline.
func (m Mistake) String() string {
	var b strings.Builder
	if m.Place.file != nil {
		b.WriteString(m.Place.String() + ": ")
	}
	if m.Warning {
		b.WriteString("warning: ")
	}
	b.WriteString(m.What)
	m.Place.quote(&b)
	if m.Other.file != nil {
		b.WriteString("\n  the other one is " + m.Other.String())
		m.Other.quote(&b)
	}
	if m.Hint != "" {
		b.WriteString("\n  try: " + m.Hint)
	}
	return b.String()
}

// Of a long line so many bytes are shown, on a narrow terminal fewer.
const (
	widest    = 120
	narrowest = 24
	margins   = 6 // columns of a quoted line beside them: four blanks, … at both ends
)

// quote writes the line and a caret under the column.
func (p Place) quote(b *strings.Builder) {
	if p.file == nil || p.Line < 1 || p.Line > len(p.file.lines) {
		return
	}
	widest := widest
	if p.file.width > 0 {
		widest = min(widest, max(narrowest, p.file.width-margins))
	}
	line := p.file.lines[p.Line-1]
	before := len(line) // bytes before the caret
	for i, n := 0, 1; i <= len(line); n++ {
		if n >= p.Column {
			before = i
			break
		}
		_, size := utf8.DecodeRuneInString(line[i:])
		i += max(size, 1)
	}
	line, before = hideIn(line, before, p.file.secret[p.Line-1], p.file.secrets)
	if before > widest*2/3 { // keep the place in sight
		cut := before - widest/3
		for cut > 0 && !utf8.RuneStart(line[cut]) {
			cut--
		}
		line, before = "…"+line[cut:], before-cut+len("…")
	}
	if len(line) > widest {
		cut := max(widest, before)
		for cut < len(line) && !utf8.RuneStart(line[cut]) {
			cut++
		}
		if cut < len(line) {
			line = line[:cut] + "…"
		}
	}
	var pad strings.Builder
	for _, r := range printable(line[:before]) {
		pad.WriteString(blanks(r))
	}
	fmt.Fprintf(b, "\n    %s\n    %s^", printable(strings.TrimRight(line, " \t\r")), pad.String())
}

// wide are the characters that take two columns of a terminal.
var wide = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, {
	R16: []unicode.Range16{{Lo: 0x3001, Hi: 0x303e, Stride: 1}, {Lo: 0xff01, Hi: 0xff60, Stride: 1}, {Lo: 0xffe0, Hi: 0xffe6, Stride: 1}},
	R32: []unicode.Range32{{Lo: 0x1f300, Hi: 0x1f64f, Stride: 1}, {Lo: 0x1f900, Hi: 0x1f9ff, Stride: 1}},
}}

// blanks are as wide as a character.
func blanks(r rune) string {
	switch {
	case r == '\t':
		return "\t"
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return ""
	case unicode.In(r, wide...):
		return "  "
	}
	return " "
}

// printable keeps control characters of a file off the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '�'
		}
		return r
	}, s)
}
