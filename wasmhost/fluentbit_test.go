package wasmhost

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router"
)

// outcome is what becomes of one message with that text: the verdict, and the record that is left.
func outcome(t *testing.T, g *Guest, text string) string {
	t.Helper()
	b := batch(t, text)
	defer b.Discard()
	m := b.Messages()[0]
	m.Timestamp = 1_700_000_001_000_000_002
	if held := g.Filter(0).Apply(t.Context(), b); held != nil {
		t.Fatalf("held: %v", held.Cause)
	}
	o := b.Outcome(m)
	if o.Verdict == "drop" {
		return "drop"
	}
	if o.Verdict != "keep" {
		return o.Verdict + " " + o.Code + " " + o.Reason
	}
	return string(router.AppendRecord(nil, m))
}

// usual is the record that outcome gives to a filter.
func usual(text, more string) string {
	return `{"timestamp":"2023-11-14T22:13:21.000000002Z","received_at":"2023-11-14T22:13:20Z","facility":1,"severity":5,"app_name":"app","message":` + text + `,"source":"s","listener":"udp://127.0.0.1:514","peer":"192.0.2.7"` + more + `}`
}

func TestFluentBitFilters(t *testing.T) {
	h, _ := open(t)
	module := wasmOf(t, "testdata/fluentbit/filters.c")
	check := func(function, text, want string) {
		t.Helper()
		g := load(t, h, settings(module, func(c *Config) { c.Function = function }))
		for range 2 { // the second call meets what the first left
			if d := cmp.Diff(want, outcome(t, g, text)); d != "" {
				t.Errorf("%s: %s", function, d)
			}
		}
	}
	check("unchanged", "a \"b\" \n", usual(`"a \"b\" \n"`, ""))
	check("append_tag", "text", usual(`"text"`, `,"tag":"s","tag_len":1,"record_len":208`))
	check("modify_record", "text 1", usual(`"TEXT 1"`, ""))
	check("numeric", "text", usual(`"text"`, `,"sec":1700000001,"nsec":2,"half":0.5,"ints":[1,-1,9007199254740993]`))
	check("say_hello", "text", `{"received_at":"2023-11-14T22:13:20Z","facility":1,"severity":5,"message":"hello","source":"s","listener":"udp://127.0.0.1:514","peer":"192.0.2.7"}`)
	check("drop_null", "text", "drop")
	check("drop_empty", "text", "drop")
	check("not_an_object", "text", `reject failed the filter returned no JSON object but "[1,2]"`)
	check("not_json", "text", `reject failed the filter returned no JSON object but "{\"a\":"`)
	check("nowhere", "text", "reject trap the filter returned the address 0xfffffff0, which is outside of its memory of 131072 bytes")
	check("trapping", "text", "reject trap unreachable")
}

func TestMessagePackFilters(t *testing.T) {
	h, _ := open(t)
	module := wasmOf(t, "testdata/fluentbit/filters.c")
	check := func(function, text, want string) {
		t.Helper()
		g := load(t, h, settings(module, func(c *Config) { c.Function, c.EventFormat = function, "msgpack" }))
		if d := cmp.Diff(want, outcome(t, g, text)); d != "" {
			t.Errorf("%s: %s", function, d)
		}
	}
	check("unchanged", "a \"b\" \n", usual(`"a \"b\" \n"`, ""))
	check("packed", "text", usual(`"text"`, `,"zero":"a\u0000b"`))
	check("drop_null", "text", "drop")
	check("drop_empty", "text", "drop")
	check("not_an_object", "text", "reject failed the filter returned no MessagePack map: it begins with the byte 0x5b")
}

func TestFluentBitFiltersGetATime(t *testing.T) {
	g, _ := loadFile(t, "fluentbit/filters.c", func(c *Config) { c.Function = "numeric" })
	check := func(timestamp int64, want string) {
		t.Helper()
		b := batch(t, "m")
		defer b.Discard()
		m := b.Messages()[0]
		m.Timestamp, m.Received = timestamp, 5_000_000_007
		g.Filter(0).Apply(t.Context(), b)
		contains(t, string(router.AppendRecord(nil, m)), want)
	}
	check(1_700_000_001_000_000_002, `"sec":1700000001,"nsec":2,`)
	check(router.NoTime, `"sec":5,"nsec":7,`) // the time of receipt
	check(-1, `"sec":4294967295,"nsec":999999999,`)
}

func TestAFluentBitFilterThatNeverReturnsIsStopped(t *testing.T) {
	g, _ := loadFile(t, "fluentbit/filters.c", func(c *Config) { c.Function, c.Time = "endless", 5*time.Millisecond })
	if got := outcome(t, g, "m"); !strings.HasPrefix(got, "reject time ") {
		t.Error(got)
	}
}

func TestPrintfGoesToTheLog(t *testing.T) {
	g, log := loadFile(t, "fluentbit/filters.c", func(c *Config) { c.Function = "say_hello" })
	outcome(t, g, "m")
	contains(t, log.String(), `level=INFO msg="hello from s"`)
}

func TestAFilterThatLeaksDoesNotDropWhenItsMemoryIsUsedUp(t *testing.T) {
	g, _ := loadFile(t, "fluentbit/filters.c", func(c *Config) { c.Function, c.Memory = "append_tag", 1<<20 })
	text := strings.Repeat("x", 50_000)
	whole, faults := 0, 0
	for range 60 {
		switch got := outcome(t, g, text); {
		case strings.Contains(got, `"tag":"s"`):
			whole++
		case strings.HasPrefix(got, "reject memory the filter returned 0, which may be its allocator's answer, with 1048576 of at most 1048576 bytes of memory in use"):
			faults++
		default:
			t.Fatal(got)
		}
	}
	if whole < 50 || faults < 2 {
		t.Errorf("%d went well, %d failed", whole, faults)
	}
}

func TestTheManualsFluentBitFilter(t *testing.T) {
	page, err := os.ReadFile("../docs/filters/fluentbit.md")
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(t.TempDir(), "site.c")
	_, text, _ := strings.Cut(string(page), "```c\n")
	text, _, _ = strings.Cut(text, "```")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	h, _ := open(t)
	g := load(t, h, settings(wasmOf(t, source)))
	for text, want := range map[string]string{
		"pump on":                  usual(`"pump on"`, `,"site":"plant-7"`),
		`"severity":7,`:            usual(`"\"severity\":7,"`, `,"site":"plant-7"`), // in the text it is another thing
		strings.Repeat("x", 1<<16): `reject failed the filter returned no JSON object but "too long"`,
		strings.Repeat("x", 1<<15): usual(`"`+strings.Repeat("x", 1<<15)+`"`, `,"site":"plant-7"`),
	} {
		if got := outcome(t, g, text); got != want {
			t.Errorf("%.50q: %.300s", text, got)
		}
	}
	b := batch(t, "debug")
	defer b.Discard()
	b.Messages()[0].Severity = 7
	g.Filter(0).Apply(t.Context(), b)
	if got := outcomes(b); got[0] != "drop debug" {
		t.Error(got)
	}
}
