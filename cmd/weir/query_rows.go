package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/sqlstore"
)

// A rowWriter shows a result.
type rowWriter interface {
	sqlstore.Rows
	// End writes what is still held back.
	End() error
}

// limited ends a result after most rows, and knows whether there were more; 0: all are shown.
type limited struct {
	rowWriter
	most, shown int
	more        bool
}

func (l *limited) Row(values []sqlstore.Value) error {
	if l.most > 0 && l.shown == l.most {
		l.more = true
		return sqlstore.ErrEnough
	}
	l.shown++
	return l.rowWriter.Row(values)
}

// jsonRows writes one object a line, its members in the order of the columns.
type jsonRows struct {
	w     io.Writer
	names [][]byte // as JSON, with the colon
	line  []byte
}

func (j *jsonRows) Columns(names []string) error {
	for _, name := range unique(names) {
		j.names = append(j.names, append(appendJSONString(nil, []byte(name)), ':'))
	}
	return nil
}

// unique puts _2, _3 … behind names that were there already: an object has each name once.
func unique(names []string) []string {
	taken := map[string]bool{}
	for _, name := range names {
		taken[name] = true
	}
	seen, out := map[string]bool{}, make([]string, len(names))
	for i, name := range names {
		for n := 2; seen[name]; n++ {
			if other := fmt.Sprintf("%s_%d", names[i], n); !taken[other] {
				name = other
			}
		}
		seen[name], taken[name], out[i] = true, true, name
	}
	return out
}

func (j *jsonRows) Row(values []sqlstore.Value) error {
	b := append(j.line[:0], '{')
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendJSONValue(append(b, j.names[i]...), v)
	}
	j.line = append(b, '}', '\n')
	_, err := j.w.Write(j.line)
	return err
}

func (j *jsonRows) End() error { return nil }

// appendJSONValue writes numbers digit by digit as the database has them. Those that are none in JSON (NaN, Infinity) are strings.
func appendJSONValue(b []byte, v sqlstore.Value) []byte {
	switch v.Kind {
	case sqlstore.NullValue:
		return append(b, "null"...)
	case sqlstore.BoolValue:
		return append(b, v.Text...)
	case sqlstore.NumberValue:
		if n := len(v.Text); n > 0 && v.Text[n-1] <= '9' {
			return append(b, v.Text...)
		}
	case sqlstore.JSONValue:
		var line bytes.Buffer
		if json.Compact(&line, v.Text) == nil {
			return appendSafe(b, line.Bytes())
		}
	}
	return appendJSONString(b, shownBytes(v))
}

// shownBytes is the text of a value; bytes are \x and their digits.
func shownBytes(v sqlstore.Value) []byte {
	if v.Kind == sqlstore.BytesValue {
		return hex.AppendEncode([]byte(`\x`), v.Text)
	}
	return v.Text
}

// appendJSONString writes s so that it harms no terminal: what cannot be seen is escaped.
func appendJSONString(b, s []byte) []byte { return appendSafe(b, router.AppendString(nil, s)) }

// appendSafe writes JSON without what would move a cursor or turn text around, which can be in its strings only.
func appendSafe(b, text []byte) []byte {
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && n == 1: // a lone byte, which a terminal may take for an escape
			b = utf8.AppendRune(b, r)
		case r < utf8.RuneSelf && r != 0x7f || unicode.IsPrint(r):
			b = append(b, text[:n]...)
		case r > 0xffff:
			r -= 0x10000
			b = fmt.Appendf(b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
		text = text[n:]
	}
	return b
}

// csvRows writes RFC 4180 with a header. NULL is nothing, and the empty text two quotes.
type csvRows struct {
	w        io.Writer
	terminal bool // what cannot be seen is escaped
	line     []byte
}

func (c *csvRows) Columns(names []string) error {
	c.line = c.line[:0]
	for i, name := range names {
		c.add(i, name)
	}
	return c.end()
}

func (c *csvRows) Row(values []sqlstore.Value) error {
	c.line = c.line[:0]
	for i, v := range values {
		if v.Kind != sqlstore.NullValue {
			c.add(i, string(shownBytes(v)))
		} else if i > 0 {
			c.line = append(c.line, ',')
		}
	}
	return c.end()
}

func (c *csvRows) add(i int, s string) {
	if i > 0 {
		c.line = append(c.line, ',')
	}
	if c.terminal {
		s = printable(s)
	}
	if s != "" && !strings.ContainsAny(s, ",\"\r\n") && s[0] != ' ' && s[len(s)-1] != ' ' {
		c.line = append(c.line, s...)
		return
	}
	c.line = append(append(append(c.line, '"'), strings.ReplaceAll(s, `"`, `""`)...), '"')
}

func (c *csvRows) end() error {
	c.line = append(c.line, '\n')
	_, err := c.w.Write(c.line)
	return err
}

func (c *csvRows) End() error { return nil }
