package main

import (
	"os"
	"strings"
	"unicode/utf8"
)

// A hue is how a text is told from others on a terminal (ECMA-48, SGR).
type hue string

const (
	plain  hue = ""
	bold   hue = "1"
	faint  hue = "2"
	red    hue = "1;31"
	yellow hue = "33"
	green  hue = "32"
)

// in is text in this hue, where there are any.
func (h hue) in(text string, colors bool) string {
	if !colors || h == plain || text == "" {
		return text
	}
	return "\x1b[" + string(h) + "m" + text + "\x1b[0m"
}

// coloured reports whether those who read a terminal want colours (NO_COLOR: no-color.org).
func coloured() bool { return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" }

// A cell is a text of a table. Numbers stand at the right.
type cell struct {
	text string
	hue  hue
	left bool
}

// A table is drawn in columns as wide as their widest cell. Notes stand below their row and take no part in that.
type table struct {
	head  []cell
	rows  [][]cell
	notes map[int][]cell // by row
}

func (t *table) row(cells ...cell) { t.rows = append(t.rows, cells) }

// note adds lines below the last row.
func (t *table) note(h hue, text string) {
	if t.notes == nil {
		t.notes = map[int][]cell{}
	}
	i := len(t.rows) - 1
	for _, line := range wrap(text, pageWidth-noteIndent) {
		t.notes[i] = append(t.notes[i], cell{text: line, hue: h})
	}
}

const (
	pageWidth  = 100
	noteIndent = 4
)

func (t *table) draw(b *strings.Builder, colors bool) {
	widths := make([]int, len(t.head))
	all := append([][]cell{t.head}, t.rows...)
	for _, cells := range all {
		for i, c := range cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	for k, cells := range all {
		line := ""
		pad := 0
		for i, c := range cells {
			free := widths[i] - utf8.RuneCountInString(c.text)
			if i > 0 {
				pad += 2
			}
			if !c.left {
				pad += free
			}
			if c.text != "" {
				line += strings.Repeat(" ", pad) + c.hue.in(c.text, colors)
				pad = 0
			}
			if c.left {
				pad += free
			}
		}
		b.WriteString(line + "\n")
		for _, n := range t.notes[k-1] {
			b.WriteString(strings.Repeat(" ", noteIndent) + n.hue.in(n.text, colors) + "\n")
		}
	}
}
