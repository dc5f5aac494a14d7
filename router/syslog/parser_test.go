package syslog

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unsafe"
)

const newYear = int64(1767225605) * 1e9 // 2026-01-01T00:00:05Z

// pool is a Memory that a batch could be: handed out once, then reset.
type pool struct {
	elements []Element
	params   []Param
	bytes    []byte
}

func (p *pool) NewElements(n int) []Element {
	if len(p.elements)+n > cap(p.elements) {
		return nil
	}
	p.elements = p.elements[:len(p.elements)+n]
	return p.elements[len(p.elements)-n : len(p.elements)-n : len(p.elements)]
}

func (p *pool) NewParams(n int) []Param {
	if len(p.params)+n > cap(p.params) {
		return nil
	}
	p.params = p.params[:len(p.params)+n]
	return p.params[len(p.params)-n : len(p.params)-n : len(p.params)]
}

func (p *pool) Bytes(n int) []byte {
	if len(p.bytes)+n > cap(p.bytes) {
		return nil
	}
	p.bytes = p.bytes[:len(p.bytes)+n]
	return p.bytes[len(p.bytes)-n:]
}

func (p *pool) reset() { p.elements, p.params, p.bytes = p.elements[:0], p.params[:0], p.bytes[:0] }

func newPool() *pool {
	return &pool{make([]Element, 0, 64), make([]Param, 0, 64), make([]byte, 0, 4096)}
}

var shapes = map[string]string{
	"5424":          "<165>1 2026-01-01T00:00:04.003Z web1.example.com shopd 8710 ID47 - checkout done" + filler(180),
	"5424-sd":       `<165>1 2026-01-01T00:00:04.003Z web1.example.com shopd 8710 ID47 [cart@32473 items="3" total="17.50"][meta sequenceId="118"] checkout done` + filler(120),
	"5424-escapes":  `<14>1 2026-01-01T00:00:04Z nas1 files - - [syn@32473 user="corp\\mira" q="say \"hi\""] read`,
	"5424-repeated": `<14>1 2026-01-01T00:00:04Z web1 evt - - [dupe e="1"][id1][dupe class="l"] up`,
	"3164":          "<34>Dec 31 23:59:58 web1 sshd[4711]: session opened for tobin" + filler(190),
	"3164-iso":      "<190>2026-01-01T00:00:04.605850+00:00 web1 logd: start",
	"cisco":         "<189>29: rtr1: *Jan  1 00:00:04.411: %SYS-5-CONFIG_I: Configured from console",
	"text":          "no header at all",
}

func filler(n int) string { return strings.Repeat(" lorem", n/6) }

func TestParseAllocatesNothing(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for name, shape := range shapes {
		raw, mem := []byte(shape), newPool()
		p := Parser{Zone: zone}
		var m Message
		if n := testing.AllocsPerRun(100, func() {
			mem.reset()
			p.Parse(&m, raw, newYear, mem)
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestFormatsRecogniseTheirOwnHeaderOnly(t *testing.T) {
	check := func(f Format, in, text string) {
		t.Helper()
		var m Message
		p := Parser{Format: f}
		p.Parse(&m, []byte(in), newYear, Heap{})
		if string(m.Text) != text {
			t.Errorf("%q as %d: text %q", in, f, m.Text)
		}
		if len(text) == len(in)-4 && (m.Hostname != nil || m.AppName != nil || m.Timestamp != NoTime || m.Facility != 4) {
			t.Errorf("%q as %d: %+v", in, f, m)
		}
	}
	const modern, old, mixed = "<34>1 2026-01-01T00:00:04Z web1 su - ID47 - text", "<34>Jan  1 00:00:04 web1 su: text", "<34>1 Jan  1 00:00:04 web1 su: text"
	const nil5424, tagged, epoch = "<34>1 - web1 su - - - text", "<34>su: text", "<34>1 1767225604.77 web1 text"
	check(Auto, modern, "text")
	check(Auto, old, "text")
	check(Auto, "<34>  "+modern[4:], "text")
	check(RFC5424, modern, "text")
	check(RFC5424, nil5424, "text")
	check(RFC5424, epoch, "text")
	check(RFC5424, old, old[4:])
	check(RFC5424, mixed, mixed[4:])
	check(RFC5424, tagged, tagged[4:])
	check(RFC3164, modern, modern[4:])
	check(RFC3164, nil5424, nil5424[4:])
	check(RFC3164, epoch, epoch[4:])
	check(RFC3164, old, "text")
	check(RFC3164, mixed, "text")
	check(Raw, "\ufeff <34>1 x \r\n\x00", "\ufeff <34>1 x ")
}

func TestPRIOnlyLeavesThePayloadAlone(t *testing.T) {
	check := func(in string, facility, severity uint8, text string) {
		t.Helper()
		var m Message
		p := Parser{Format: PRIOnly}
		p.Parse(&m, []byte(in), newYear, Heap{})
		if m.Facility != facility || m.Severity != severity || string(m.Text) != text {
			t.Errorf("%q: %d.%d %q", in, m.Facility, m.Severity, m.Text)
		}
	}
	check("<34>{\"a\":1}\n", 4, 2, `{"a":1}`)
	check("<34> app: x", 4, 2, " app: x")
	check("{\"a\":1}\x00", 1, 5, `{"a":1}`)
	check("\ufeff{}", 1, 5, "{}")
	check(" 12 <34>{}", 4, 2, "{}")
	check("<192>{}", 1, 5, "<192>{}")
}

func TestWithoutMemoryStructuredDataStaysText(t *testing.T) {
	var m Message
	var p Parser
	p.Parse(&m, []byte(shapes["5424-repeated"]), newYear, &pool{})
	if m.Structured != nil || !strings.HasPrefix(string(m.Text), "[dupe") {
		t.Errorf("%q %v", m.Text, m.Structured)
	}
}

func TestManyRepeatedElementsMerge(t *testing.T) {
	var raw bytes.Buffer
	raw.WriteString("<14>1 - - - - - ")
	for i := range 5000 {
		fmt.Fprintf(&raw, `[e%d n%d="%d"]`, i%100, i, i)
	}
	var m Message
	var p Parser
	p.Parse(&m, raw.Bytes(), newYear, Heap{})
	if len(m.Structured) != 100 || len(m.Text) != 0 {
		t.Fatalf("%d elements, text of %d bytes", len(m.Structured), len(m.Text))
	}
	for i, e := range m.Structured {
		if string(e.ID) != fmt.Sprint("e", i) || len(e.Params) != 50 {
			t.Fatalf("element %d: %s with %d parameters", i, e.ID, len(e.Params))
		}
		for j, q := range e.Params {
			if want := fmt.Sprint(i + 100*j); string(q.Value) != want || string(q.Name) != "n"+want {
				t.Fatalf("element %d: %s=%s", i, q.Name, q.Value)
			}
		}
	}
	if cap(p.sd.elements) > sdKeep {
		t.Error("the scratch of a rare message is kept")
	}
}

func TestTimesNearChangesOfTheClock(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	p := Parser{Zone: berlin}
	check := func(received, stamp, want string) {
		t.Helper()
		r, err := time.Parse(time.RFC3339, received)
		if err != nil {
			t.Fatal(err)
		}
		var m Message
		p.Parse(&m, []byte("<13>"+stamp+" h t: x"), r.UnixNano(), Heap{})
		got := "none"
		if m.Timestamp != NoTime {
			got = time.Unix(0, m.Timestamp).UTC().Format(time.RFC3339)
		}
		if got != want {
			t.Errorf("%s received %s: %s, want %s", stamp, received, got, want)
		}
	}
	check("2026-10-25T00:30:02Z", "Oct 25 02:30:00", "2026-10-25T00:30:00Z") // the first 02:30
	check("2026-10-25T01:30:02Z", "Oct 25 02:30:00", "2026-10-25T01:30:00Z") // the second
	check("2026-10-25T01:30:02Z", "Oct 25 01:59:59", "2026-10-24T23:59:59Z")
	check("2026-10-25T01:30:02Z", "Oct 25 03:00:00", "2026-10-25T02:00:00Z")
	check("2026-03-29T01:00:02Z", "Mar 29 02:30:00", "2026-03-29T01:30:00Z") // skipped by the clocks
	check("2026-03-29T01:00:02Z", "Mar 29 03:00:00", "2026-03-29T01:00:00Z")
	check("2026-07-01T00:00:00Z", "Jul  1 02:00:00", "2026-07-01T00:00:00Z")
	check("2026-07-01T00:00:00Z", "Jan  1 00:00:00", "2025-12-31T23:00:00Z")
	check("2026-01-01T00:00:05Z", "Feb 29 00:00:00", "none")
	check("2025-01-01T00:00:05Z", "Feb 29 00:00:00", "2024-02-28T23:00:00Z")
	check("1970-01-01T00:00:05Z", "Jul  1 02:00:00", "none")
	check("1970-01-01T00:00:05Z", "Jul  1 2026 02:00:00", "2026-07-01T00:00:00Z")
	check("2026-01-01T00:00:05Z", "2262-01-01T00:00:00Z", "2262-01-01T00:00:00Z")
	check("2026-01-01T00:00:05Z", "2262-12-01T00:00:00Z", "none")
	check("2026-01-01T00:00:05Z", "1677-12-01T00:00:00Z", "none")
	check("2026-01-01T00:00:05Z", "0000-01-01T00:00:00Z", "none")
	check("2026-01-01T00:00:05Z", "2026-01-01T00:00:00+01:60", "none")
	check("2026-01-01T00:00:05Z", "2026-01-01T24:00:00Z", "none")
	check("2026-01-01T00:00:05Z", "Jan  1 00:00:61", "none")
}

func TestCapitalsBeforeAColonAreATagUnlessAZone(t *testing.T) {
	check := func(in, app, text string) {
		t.Helper()
		var m Message
		var p Parser
		p.Parse(&m, []byte(in), newYear, Heap{})
		if string(m.AppName) != app || string(m.Text) != text {
			t.Errorf("%q: app %q, text %q", in, m.AppName, m.Text)
		}
	}
	check("<13>Jan  1 00:00:04 CRON: job", "CRON", "job")
	check("<13>Jan  1 00:00:04 CEST: %SYS-5-X: job", "%SYS-5-X", "job")
	check("<13>Jan  1 00:00:04 XYZ: %SYS-5-X: job", "%SYS-5-X", "job")
	check("<13>*Jan  1 00:00:04 XYZ: %SYS-5-X: job", "%SYS-5-X", "job")
}

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

func BenchmarkParse(b *testing.B) {
	for name, shape := range shapes {
		b.Run("shape="+name, func(b *testing.B) {
			raw, mem := []byte(shape), newPool()
			var p Parser
			var m Message
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				mem.reset()
				p.Parse(&m, raw, newYear, mem)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/msg")
		})
	}
}
