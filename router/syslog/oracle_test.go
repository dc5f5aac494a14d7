package syslog

import (
	"bytes"
	"regexp"
	"testing"
	"unsafe"
)

// leftover is what may stand in front of the text besides the bytes that became
// fields: PRI, timestamps, separators. H, A, P, M, S stand for fields.
var leftover = regexp.MustCompile(`^(?s:(\x{feff})?[ \t\r\n]*([0-9]{1,10} )?(<[0-9]{1,3}>)?` +
	`( *[0-9]{1,3} (\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d([.,]\d+)?([Zz]|[+-]\d\d:?\d\d)?|-)( (H|-)?( (A|-)?( (P|-)?( (M|-)?( (S|-)?)?)?)?)?)? ?(\x{feff})?` +
	`|1 \d{10}[.,]\d+ *\[?(H|-)?\]? ?` +
	`| *(1 )?:? *(S: )?(H: )?([0-9]+: |S: )?[*.]?` +
	`(([A-Za-z]{3}  ?\d\d?( \d{4})?|\d{4} [A-Za-z]{3}  ?\d\d?|\d{4}-\d\d-\d\d)[Tt ]\d\d:\d\d:\d\d([.,]\d+)?([Zz]|[+-]\d\d:?\d\d)?( \d{4})?( [A-Z]{1,5})?:?)?` +
	` *(Message forwarded from H:|\[?H\]?|-)? *:? *(A( ?:|\[P\]:?|\t)?)? ?` +
	`))$`)

// checkParse is the oracle: the text is the end of the input, every field lies in
// front of it, and what is left there is nothing but header.
func checkParse(t *testing.T, format Format, raw []byte, received int64) {
	t.Helper()
	var m Message
	p := Parser{Format: format}
	before := bytes.Clone(raw)
	ok := p.Parse(&m, raw, received, Heap{})
	if !bytes.Equal(before, raw) {
		t.Fatalf("%q: the input was changed", before)
	}
	s := trimEnd(raw)
	if ok == blank(s) {
		t.Fatalf("%q: message: %v", raw, ok)
	}
	if !ok {
		return
	}
	if m.Text == nil || !bytes.HasSuffix(s, m.Text) || len(m.Text) > 0 && !within(s, m.Text) {
		t.Fatalf("%q: text %q is not its end", raw, m.Text)
	}
	if m.Facility > 23 || m.Severity > 7 {
		t.Fatalf("%q: %d.%d", raw, m.Facility, m.Severity)
	}
	head := bytes.Clone(s[:len(s)-len(m.Text)])
	put := func(field []byte, mark byte) {
		if len(field) == 0 {
			return
		}
		if !within(s, field) {
			t.Fatalf("%q: %q lies outside", raw, field)
		}
		at := int(uintptr(unsafe.Pointer(&field[0])) - uintptr(unsafe.Pointer(&s[0])))
		if at+len(field) > len(head) {
			t.Fatalf("%q: %q overlaps the text", raw, field)
		}
		for i := range field {
			head[at+i] = 1 // removed below
		}
		head[at] = mark
	}
	put(m.Hostname, 'H')
	put(m.AppName, 'A')
	put(m.ProcID, 'P')
	put(m.MsgID, 'M')
	sd, from, to := 0, len(head), 0
	for _, e := range m.Structured {
		for _, b := range append([][]byte{e.ID}, paramBytes(e)...) {
			sd++
			if len(b) > 0 && within(s, b) {
				at := int(uintptr(unsafe.Pointer(&b[0])) - uintptr(unsafe.Pointer(&s[0])))
				from, to = min(from, at), max(to, at+len(b))
			}
		}
	}
	if to > 0 {
		if from > 0 && head[from-1] == '[' { // RFC 5424: all of it becomes one mark
			from--
			to = len(head)
			for to > from && head[to-1] != ']' {
				to--
			}
		}
		put(s[from:to:to], 'S')
	}
	rest := bytes.ReplaceAll(head, []byte{1}, nil)
	if !bytes.Contains(s[:len(head)], []byte{1}) && !leftover.Match(rest) {
		t.Fatalf("%q: lost in %q (%q)", raw, rest, head)
	}
	// Formatted and read again it is the same.
	again := AppendRFC5424(nil, &m)
	var back Message
	if p.Format = Auto; !p.Parse(&back, again, received, Heap{}) {
		t.Fatalf("%q: unreadable as %q", raw, again)
	}
	if len(back.Structured) != len(m.Structured) || !bytes.Equal(trimEnd(bytes.TrimPrefix(m.Text, bom)), back.Text) {
		t.Fatalf("%q: came back from %q as %+v", raw, again, back)
	}
}

func paramBytes(e Element) (all [][]byte) {
	for _, p := range e.Params {
		all = append(all, p.Name, p.Value)
	}
	return all
}

func within(s, b []byte) bool {
	from, at := uintptr(unsafe.Pointer(unsafe.SliceData(s))), uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return at >= from && at+uintptr(len(b)) <= from+uintptr(len(s))
}

func TestNoByteOfTheCasesIsLost(t *testing.T) {
	for _, c := range conformanceCases(t) {
		for f := Auto; f <= Raw; f++ {
			checkParse(t, f, c.Input, c.ReceiveTime.UnixNano())
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range conformanceCases(f) {
		f.Add(c.Input, byte(0))
	}
	f.Fuzz(func(t *testing.T, raw []byte, format byte) {
		checkParse(t, Format(format%5), raw, newYear)
	})
}
