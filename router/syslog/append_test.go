package syslog

import (
	"testing"
	"time"
)

func TestFieldsAreWrittenAsTheRFCsHaveThem(t *testing.T) {
	m := Message{Timestamp: newYear - 1_000_000_001, Facility: 20, Severity: 5, Hostname: []byte("web 1"), AppName: []byte("shop:d"), ProcID: []byte("8710"),
		Structured: []Element{{ID: []byte("a]b"), Params: []Param{{[]byte("k=v"), []byte(`"\]`)}}}, {ID: []byte("empty")}}, Text: []byte("done")}
	if got, want := string(AppendRFC5424(nil, &m)), `<165>1 2026-01-01T00:00:03.999999Z web_1 shop:d 8710 - [a_b k_v="\"\\\]"][empty] done`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(AppendRFC3164(nil, &m, berlin)), `<165>Jan  1 01:00:03 web_1 shop_d[8710]: done`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	none := Message{Timestamp: NoTime, Facility: 1, Severity: 5}
	if got, want := string(AppendRFC5424(nil, &none)), `<13>1 - - - - - -`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	none.Text = []byte("x")
	if got, want := string(AppendRFC3164(nil, &none, time.UTC)), `<13>x`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	dst := make([]byte, 0, 512)
	if n := testing.AllocsPerRun(100, func() { AppendRFC3164(AppendRFC5424(dst, &m), &m, berlin) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestSeveritiesAndFacilitiesHaveTheirWords(t *testing.T) {
	severity := func(word string, want int) {
		t.Helper()
		if n, ok := ParseSeverity(word); ok != (want >= 0) || ok && int(n) != want {
			t.Errorf("severity %q: %d %v", word, n, ok)
		}
	}
	facility := func(word string, want int) {
		t.Helper()
		if n, ok := ParseFacility(word); ok != (want >= 0) || ok && int(n) != want {
			t.Errorf("facility %q: %d %v", word, n, ok)
		}
	}
	severity("panic", 0)
	severity("Error", 3)
	severity("WARN", 4)
	severity("7", 7)
	severity("8", -1)
	severity("", -1)
	severity("+1", -1)
	severity("loud", -1)
	facility("security", 4)
	facility("authpriv", 10)
	facility("LOCAL7", 23)
	facility("23", 23)
	facility("24", -1)
	for n := range uint8(24) {
		facility(FacilityName(n), int(n))
		if n < 8 {
			severity(SeverityName(n), int(n))
		}
	}
}
