package syslog

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
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
