package wasmhost

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router"
)

// try gives a message with this text to a filter and returns what became of it: the verdict with the code and reason of
// a rejection, then record JSON of the message and of those that were created, without what no test looks at.
func try(t *testing.T, g *Guest, text string) string {
	t.Helper()
	b := batch(t, text)
	defer b.Discard()
	m := b.Messages()[0]
	m.Hostname = []byte("web1")
	before := string(router.AppendRecord(nil, m))
	if held := g.Filter(0).Apply(t.Context(), b); held != nil {
		t.Fatalf("held: %v", held.Cause)
	}
	o := b.Outcome(m)
	out := o.Verdict
	if o.Code != "" {
		out += " " + o.Code + ": " + o.Reason
	}
	short := func(record string) string {
		record = strings.Replace(record, `,"source":"s","listener":"udp://127.0.0.1:514","peer":"192.0.2.7"`, "", 1)
		return strings.Replace(record, `"received_at":"2023-11-14T22:13:20Z",`, "", 1)
	}
	if after := string(router.AppendRecord(nil, m)); after != before {
		out += "\n" + short(after)
	}
	for _, e := range o.Emitted {
		out += "\n+" + short(string(router.AppendRecord(nil, e)))
	}
	return out
}

func TestExtismOutputBecomesTheMessage(t *testing.T) {
	g, _ := loadFile(t, "extism.c", func(c *Config) {
		c.Time = time.Minute
		c.Config = []byte(`{"name":"sh\u006fp","n":12345678901234567890,"nothing":null}`)
	})
	check := func(text, want string) {
		t.Helper()
		if diff := cmp.Diff(want, try(t, g, text)); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	check("keep", "keep")
	check("empty", "keep")
	check("replace", "keep\n"+`{"facility":1,"severity":5,"hostname":"h","message":"new","n":1}`)
	check("split", "keep\n"+`{"facility":1,"severity":5,"message":"one","secret":1}`+
		"\n+"+`{"facility":1,"severity":5,"message":"two ]}\""}`+"\n+"+`{"facility":1,"severity":5,"message":"three"}`)
	check("none", "drop")
	check("null", "drop")
	check("refuse", "drop")
	check("why", "reject failed: because")
	check("taken back", "keep")
	check("error but 0", "reject failed: because")
	check("seven", "reject failed: the plug-in returned 7 and gave no reason")
	check("number", `reject failed: the output is no JSON object, array or null: "17"`)
	check("half", `reject failed: item 2 of the output array is no JSON object: "{\"message\":"`)
	check("tail", `reject failed: the output array goes on with "]x" after item 1`)
	check("items", `reject failed: item 2 of the output array is no JSON object: "2]"`)
	check("config", "keep\n"+`{"facility":1,"severity":5,"message":"shop"}`)
	check("absent", "keep")
	check("numeric", "keep\n"+`{"facility":1,"severity":5,"message":"","n":12345678901234567000.0}`)
	check("status", "keep")
}

func TestExtismVariablesLiveWithTheInstance(t *testing.T) {
	g, _ := loadFile(t, "extism.c", func(c *Config) { c.Time = time.Minute })
	check := func(text, want string) {
		t.Helper()
		if diff := cmp.Diff(want, try(t, g, text)); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	n := func(n string) string { return "keep\n" + `{"facility":1,"severity":5,"message":"","n":` + n + `}` }
	check("count", n("1"))
	check("count", n("2"))
	check("forget", "keep")
	check("count", n("1"))
	check("over", "keep") // what is set again does not add up
	check("count", n("2"))
	check("fill", "reject trap: var_set: the plug-in's variables would take more than 1 MiB")
	check("count", n("1"))
}

func TestExtismGuestsCannotReachBeyondTheirMemory(t *testing.T) {
	g, log := loadFile(t, "extism.c", func(c *Config) { c.Time = time.Minute })
	check := func(text, want string) {
		t.Helper()
		if got := try(t, g, text); got != want && (!strings.HasSuffix(want, "…") || !strings.HasPrefix(got, strings.TrimSuffix(want, "…"))) {
			t.Errorf("%s: %s", text, got)
		}
	}
	check("much", "reject trap: the plug-in allocates more of Extism's memory than memory: allows")
	check("huge", "reject trap: the plug-in allocates more of Extism's memory than memory: allows")
	check("again", "keep")
	if n := len(g.lanes[0].in.talk.(*extismTalk).memory.mem); n != page {
		t.Errorf("%d bytes for lines that were freed", n)
	}
	check("wild store", "reject trap: store_u64 was given 8 bytes at 0x10000000000, outside of Extism's memory, which has 65536")
	check("zero store", "reject trap: store_u8 was given 1 bytes at 0x0, outside of Extism's memory, which has 65536")
	check("wild load", "reject trap: load_u64 was given 8 bytes at 0xfffffffffffffffc…")
	check("wild output", "reject trap: output_set was given 1073741824 bytes at…")
	check("no block", "reject trap: config_get was given 0x3039, which is no block of Extism's memory")
	check("hold", "keep")
	check("old block", "keep")
	check("http", "reject trap: http_request: filters have no network…")
	check("log", "keep")
	spin, _ := loadFile(t, "extism.c", func(c *Config) { c.Time = 20 * time.Millisecond })
	if got := try(t, spin, "spin"); got != "reject time: guest stopped: its time (20ms) is used up" {
		t.Error(got)
	}
	contains(t, log.String(), "level=DEBUG-4 msg=t", "level=INFO msg=said", "level=WARN msg=warned")
}

func TestExtismMemoryIsGivenBack(t *testing.T) {
	g, _ := loadFile(t, "extism.c", func(c *Config) { c.Time = time.Minute })
	if got := try(t, g, strings.Repeat("much ", 1<<15)); !strings.HasPrefix(got, "reject trap") { // longer than the guest takes
		t.Error(got)
	}
	x := extismMemory{limit: 16 << 20}
	x.put(make([]byte, 1<<20))
	x.reset()
	if x.shrink(); len(x.mem) != 0 || x.limit != 16<<20 {
		t.Errorf("%d bytes are kept", len(x.mem))
	}
	small, _ := loadFile(t, "extism.c", func(c *Config) { c.Memory = 256 << 10 })
	if got := try(t, small, "keep"+strings.Repeat("x", 300<<10)); !strings.HasPrefix(got, "reject failed: the message is 3") {
		t.Error(got)
	}
}

func TestExtismPluginsOfEveryShapeStart(t *testing.T) {
	check := func(text, want string, edit ...func(*Config)) {
		t.Helper()
		h, _ := open(t)
		g := load(t, h, settings(wat(t, "(module "+text+")"), edit...))
		if got := try(t, g, "x"); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
	const imports = `(import "extism:host/env" "input_length" (func $n (result i64)))
		(import "extism:host/env" "output_set" (func $out (param i64 i64)))(import "extism:host/env" "input_offset" (func $in (result i64)))`
	check(imports+`(func (export "f") (result i32) (call $out (call $in) (call $n)) (i32.const 0))`, "keep")
	check(imports+`(func (export "f") (result i32) (i32.const 1))(func (export "g") (result i32) (i32.const 0))`, "keep",
		func(c *Config) { c.Function = "g" })
	check(imports+`(func (export "f")) `, "keep", func(c *Config) { c.Function = "f" })
	check(`(func (export "f") (result i32) (i32.const 1))`, "drop", func(c *Config) { c.ABI = "extism" })
	// What starts a language runs once, and is not taken for the plug-in's function.
	const started = imports + `(global $g (mut i32) (i32.const 100)) (func (export "f") (result i32) (global.get $g))`
	one := `(global.set $g (i32.sub (global.get $g) (i32.const 50)))`
	check(started+`(func (export "_initialize") `+one+one+`)(func (export "__wasm_call_ctors") `+one+`)`, "keep")
	check(started+`(func (export "__wasm_call_ctors") `+one+one+`)`, "keep")
	check(started+`(func (export "hs_init") (param i32 i32) `+one+`)(func (export "_initialize") `+one+`)(func (export "hs_x") (result i32) (i32.const 9))`, "keep")
	check(started+`(func (export "__wasm_call_ctors") `+one+one+`)(func (export "asyncify_get_state") (result i32) (i32.const 9))`, "keep") // TinyGo
	check(imports+`(func (export "f"))(func (export "_start"))`, "keep")                                                                    // Haskell
	check(imports+`(func (export "f") (result i64) (i64.const 1))`, "drop", func(c *Config) { c.Function = "f" })
	// Functions of the host work in a start function.
	check(imports+`(func $s (call $out (call $in) (call $n))) (start $s) (func (export "f") (result i32) (i32.const 0))`, "keep")
	// WASI without a memory is the guest's mistake.
	check(imports+`(import "wasi_snapshot_preview1" "random_get" (func $r (param i32 i32) (result i32)))
		(func (export "f") (result i32) (call $r (i32.const 0) (i32.const 8)))`, "reject trap: random_get was called by a guest without memory")
}

func TestExtismRefusalsNameTheCause(t *testing.T) {
	check := func(text, want string, edit ...func(*Config)) {
		t.Helper()
		h, _ := open(t)
		_, err := h.Load(t.Context(), "f", settings(wat(t, "(module "+text+")"), edit...))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	const env = `(import "extism:host/env" "input_length" (func $n (result i64)))`
	const f = `(func (export "f") (result i32) (i32.const 0))`
	check(env+`(func (export "a") (result i32) (i32.const 0))(func (export "b") (result i32) (i32.const 0))`+f,
		"exports several functions that may be called for each message, so function: must say which one: there are a, b and f")
	check(env+`(func (export "g") (param i64))`, "exports no function () -> i32, which would be called for each message")
	check(env+`(func (export "g"))(func (export "h"))`, "so function: must say which one: there are g and h")
	check(env+`(func (export "_start"))`, "only _start: built as a program")
	check(env+f, "exports no function g (there is f)", func(c *Config) { c.Function = "g" })
	check(env+`(func (export "g") (param i32))`+f, "g (i32) -> () cannot be called for each message: that must be a function () -> i32", func(c *Config) { c.Function = "g" })
	check(env+f+`(func (export "_initialize") (param i32))`, "_initialize has the type (i32) -> (), but must have () -> ()")
	check(`(import "extism:host/user" "lookup" (func (param i64) (result i64)))`+env+f,
		"imports extism:host/user.lookup (i64) -> i64, which this version of weir does not have (it is a function of the program that this plug-in was written for")
	check(`(import "extism:host/env" "read" (func (param i32 i64) (result i64)))`+f, "imports extism:host/env.read (i32, i64) -> i64, which this version of weir does not have")
	check(`(import "extism:host/env" "alloc" (func (param i32) (result i32)))`+f, "extism:host/env.alloc has the type (i32) -> i32, but must have (i64) -> i64")
	check(env+f, "config: an Extism plug-in takes a map of names to values", func(c *Config) { c.Config = []byte(`[1]`) })
}

func TestForeignGuestsCostNoAllocation(t *testing.T) {
	for _, source := range []string{"extism.c", "benthos.c"} {
		g, _ := loadFile(t, source, func(c *Config) { c.Time = time.Minute })
		b := batch(t, "keep")
		l, m := g.lanes[0], b.Messages()[0]
		if n := testing.AllocsPerRun(1000, func() {
			if ok, _ := l.message(b, m); !ok {
				t.Fatal("the guest failed")
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations a message", source, n)
		}
		b.Discard()
	}
}
