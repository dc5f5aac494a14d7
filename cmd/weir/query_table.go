package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weirlog/weir/router/sqlstore"
)

// tableRows shows a result in columns. Its first rows say how wide they are, and are held
// back until that is known; then each row is written as it comes.
type tableRows struct {
	w    io.Writer
	fit  int  // as wide as a line may be: longer values are cut; 0: nothing is cut
	list bool // a line for each value, whole; also where the columns do not fit

	names   []string
	held    [][]string
	bytes   int    // of held
	number  []bool // columns with nothing but numbers
	widths  []int  // nil: not known yet
	written int    // rows, of a list
}

const (
	heldRows  = 1000 // what is shown when nothing else is said
	heldBytes = 4 << 20
	narrowest = 8    // a column is made no narrower than that
	longest   = 4096 // bytes of a value that a terminal gets at most
)

func (t *tableRows) Columns(names []string) error {
	t.number = make([]bool, len(names))
	for i, name := range names {
		t.names = append(t.names, printable(name))
		t.number[i] = true
	}
	return nil
}

func (t *tableRows) Row(values []sqlstore.Value) error {
	row := make([]string, len(values))
	for i, v := range values {
		row[i] = t.shown(v)
		t.bytes += len(row[i])
		t.number[i] = t.number[i] && (v.Kind == sqlstore.NumberValue || v.Kind == sqlstore.NullValue)
	}
	if t.widths != nil {
		return t.write(row)
	}
	t.held = append(t.held, row)
	if len(t.held) < heldRows && t.bytes < heldBytes {
		return nil
	}
	return t.settle()
}

func (t *tableRows) End() error {
	if t.widths != nil {
		return nil
	}
	return t.settle()
}

// shown is a value on one line, without what would harm a terminal.
func (t *tableRows) shown(v sqlstore.Value) string {
	if v.Kind == sqlstore.NullValue {
		return "NULL"
	}
	if t.fit > 0 && len(v.Text) > longest {
		v.Text = v.Text[:longest]
		return printable(string(shownBytes(v))) + "…"
	}
	return printable(string(shownBytes(v)))
}

// settle says how wide the columns are and writes what was held back.
func (t *tableRows) settle() error {
	t.widths = make([]int, len(t.names))
	for i, name := range t.names {
		t.widths[i] = cells(name)
		for _, row := range t.held {
			t.widths[i] = max(t.widths[i], cells(row[i]))
		}
	}
	t.list = t.list || !t.squeeze()
	if !t.list {
		rule := make([]string, len(t.names))
		for i, w := range t.widths {
			rule[i] = strings.Repeat("-", w)
		}
		for _, row := range [][]string{t.names, rule} {
			if err := t.write(row); err != nil {
				return err
			}
		}
	}
	for _, row := range t.held {
		if err := t.write(row); err != nil {
			return err
		}
	}
	t.held = nil
	return nil
}

// squeeze makes the widest columns narrower until all fit, and reports whether they do.
func (t *tableRows) squeeze() bool {
	if t.fit <= 0 {
		return true
	}
	room := t.fit - 2*(len(t.widths)-1)
	sum := func(most int) (n int) {
		for _, w := range t.widths {
			n += min(w, most)
		}
		return n
	}
	most := slices.Max(t.widths)
	for most > narrowest && sum(most) > room {
		most--
	}
	if sum(most) > room {
		return false
	}
	for i := range t.widths {
		t.widths[i] = min(t.widths[i], most)
	}
	return true
}

func (t *tableRows) write(row []string) error {
	var b bytes.Buffer
	if t.list {
		t.writeList(&b, row)
	} else {
		for i, text := range row {
			if t.fit > 0 && !t.number[i] {
				text = cut(text, t.widths[i])
			}
			pad := strings.Repeat(" ", max(0, t.widths[i]-cells(text)))
			switch {
			case t.number[i]:
				text = pad + text
			case i < len(row)-1:
				text += pad
			}
			if i > 0 {
				b.WriteString("  ")
			}
			b.WriteString(text)
		}
		b.WriteByte('\n')
	}
	_, err := t.w.Write(b.Bytes())
	return err
}

// writeList writes a line for each value, and an empty one between two rows.
func (t *tableRows) writeList(b *bytes.Buffer, row []string) {
	if t.written++; t.written > 1 {
		b.WriteByte('\n')
	}
	width := 0
	for _, name := range t.names {
		width = max(width, cells(name))
	}
	for i, text := range row {
		fmt.Fprintf(b, "%s%s  %s\n", t.names[i], strings.Repeat(" ", width-cells(t.names[i])), text)
	}
}

// cut is s in at most width cells of a terminal.
func cut(s string, width int) string {
	if len(s) <= width || cells(s) <= width {
		return s
	}
	n := 0
	for i, r := range s {
		if n += cellsOf(r); n > width-1 {
			return s[:i] + "…"
		}
	}
	return s
}

// cells is how many columns of a terminal s takes.
func cells(s string) (n int) {
	for _, r := range s {
		n += cellsOf(r)
	}
	return n
}

// cellsOf is 2 for what East Asian scripts and emoji are written with, and 0 for
// marks above and below other characters (Unicode annex 11, and what terminals do).
func cellsOf(r rune) int {
	switch {
	case r < 0x300 || r == utf8.RuneError:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0x303e, r >= 0x3041 && r <= 0xa4cf, r >= 0xa960 && r <= 0xa97f, r >= 0xac00 && r <= 0xd7a3,
		r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6,
		r >= 0x1f300 && r <= 0x1f64f, r >= 0x1f680 && r <= 0x1f6ff, r >= 0x1f900 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}
