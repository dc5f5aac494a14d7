package conformance

import (
	"strings"
	"testing"
)

// sdks build the script guest of each SDK.
var sdks = map[string]func(t *testing.T) (module string){
	"c": func(t *testing.T) string { return buildC(t, "filters/conformance/script_c/script.c") },
	"c++": func(t *testing.T) string {
		return buildC(t, "filters/conformance/script_c/script.c", "-x", "c++", "-std=c++20")
	},
	"go": func(t *testing.T) string { return buildGo(t, "filters/conformance/script_go") },
}

func TestSDKsPassTheCases(t *testing.T) {
	for name, build := range sdks {
		t.Run(name, func(t *testing.T) { runCases(t, build(t), "sdk.jsonl") })
	}
}

func TestHostKeepsTheContractWithRawCalls(t *testing.T) {
	runCases(t, buildC(t, "filters/conformance/raw/raw.c"), "raw.jsonl")
}

func TestGoGetsAllocateOnlyTheString(t *testing.T) {
	r := newRunner(t)
	g := r.load(t, buildGo(t, "filters/conformance/script_go"), nil)
	got := r.run(t, g, []byte(`{"message":"a text that is longer than what Go keeps without allocating","a":1,"b":1,"do":[["allocations","message"]]}`))
	// Get, Append, Int, Set, SetInt
	if want := `"did":["allocations message = [1 0 0 0 0]"]`; !strings.Contains(got.out, want) {
		t.Errorf("%s is not in %s", want, got.out)
	}
}

func TestSDKsRunOnWithinTheirMemory(t *testing.T) {
	r := newRunner(t)
	text := strings.Repeat("x", 8<<10)
	in := []byte(`{"message":"` + text + `","do":[["get","message"],["set","a","` + text + `"],["names"]]}`)
	for name, build := range sdks {
		g := r.load(t, build(t), nil) // with 16 MiB, a third of what goes through
		for i := range 1000 {
			if o, _, err := g.Try(t.Context(), in); err != nil || o.Verdict != Keep {
				t.Fatalf("%s: message %d: %+v %v\n%s", name, i, o, err, strings.Join(r.log.take(), "\n"))
			}
		}
	}
}

// A module that may not start, as WebAssembly text, and what the refusal says.
var refused = []struct{ name, wat, why string }{
	{"without memory", `(module (func (export "weir_process") (result i32) (i32.const 0)))`, "memory"},
	{"without weir_process", `(module (import "weir_v1" "time_now" (func (result i64))) (memory (export "memory") 1))`, "weir_process"},
	{"weir_process of another type", `(module (memory (export "memory") 1) (func (export "weir_process")))`, "weir_process"},
	{"weir_init of another type", guest(`(func (export "weir_init") (param i32) (result i32) (i32.const 0))`), "weir_init"},
	{"weir_close of another type", guest(`(func (export "weir_close") (result i32) (i32.const 0))`), "weir_close"},
	{"a program", guest(`(func (export "_start"))`), "-buildmode=c-shared"},
	{"an unknown function", `(module (import "weir_v1" "nosuch" (func)) ` + guest("")[len("(module "):], "nosuch"},
	{"a known function of another type", `(module (import "weir_v1" "field_count" (func (result i64))) ` + guest("")[len("(module "):], "field_count"},
	{"imported memory", `(module (import "env" "memory" (memory 1)) (export "memory" (memory 0)) (func (export "weir_process") (result i32) (i32.const 0)))`, "memory"},
	{"an imported table", `(module (import "env" "t" (table 1 funcref)) ` + guest("")[len("(module "):], "table"},
	{"an imported global", `(module (import "env" "g" (global i32)) ` + guest("")[len("(module "):], "global"},
	{"the meter's module", `(module (import "weir_meter" "tick" (func (param i32) (result i32))) ` + guest("")[len("(module "):], "weir_meter"},
	{"weir_tick", guest(`(func (export "weir_tick"))`), "weir_tick"},
	{"a start function that traps", guest(`(func $s unreachable) (start $s)`), "unreachable"},
	{"a weir_init that traps", guest(`(func (export "weir_init") (result i32) unreachable)`), "unreachable"},
	{"more memory than allowed", `(module (memory (export "memory") 1000) (func (export "weir_process") (result i32) (i32.const 0)))`, "memory"},
}

// guest is a module that keeps everything, with more in it.
func guest(more string) string {
	return `(module (memory (export "memory") 1) (func (export "weir_process") (result i32) (i32.const 0)) ` + more + `)`
}

func TestModulesThatMayNotStart(t *testing.T) {
	r := newRunner(t)
	check := func(name, wat, why string) {
		t.Run(name, func(t *testing.T) {
			g, err := r.open(t.Context(), buildWAT(t, wat), nil)
			if err == nil {
				g.Close(t.Context())
				t.Fatal("it started")
			}
			if !strings.Contains(err.Error(), why) {
				t.Errorf("%q is not in: %v", why, err)
			}
		})
	}
	for _, m := range refused {
		check(m.name, m.wat, m.why)
	}
	for _, f := range []string{"emit", "route", "kv_get", "kv_set", "kv_del", "kv_add", "metric_add", "metric_set"} {
		check(f, `(module (import "weir_v1" "`+f+`" (func (param i32 i32) (result i32))) `+guest("")[len("(module "):], f)
	}
}
