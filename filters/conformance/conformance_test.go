package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sdks build the script guest of each SDK.
var sdks = map[string]func(t *testing.T) (module string){
	"c": func(t *testing.T) string {
		return buildC(t, "filters/conformance/script_c/script.c", "-std=c99", "-Wpedantic")
	},
	"c++": func(t *testing.T) string {
		return buildC(t, "filters/conformance/script_c/script.c", "-x", "c++", "-std=c++17", "-Wpedantic")
	},
	"go":             func(t *testing.T) string { return buildGo(t, "filters/conformance/script_go") },
	"rust":           func(t *testing.T) string { return buildRust(t, "filters/conformance/script_rust/script.rs") },
	"assemblyscript": func(t *testing.T) string { return buildAS(t, "filters/conformance/script_as/script.ts") },
}

// script is the script guest of an SDK, built once for all tests.
func script(t *testing.T, sdk string) (module string) {
	t.Helper()
	module = filepath.Join(filepath.Dir(compiled), "script-"+sdk+".wasm")
	if _, err := os.Stat(module); err == nil {
		return module
	}
	if err := os.Rename(sdks[sdk](t), module); err != nil {
		t.Fatal(err)
	}
	return module
}

func TestSDKsPassTheCases(t *testing.T) {
	for name := range sdks {
		t.Run(name, func(t *testing.T) { runCases(t, script(t, name), "sdk.jsonl") })
	}
}

// TestRustSDKOutsideOfWeir runs the SDK's own tests, which its readers of JSON and settings have.
func TestRustSDKOutsideOfWeir(t *testing.T) {
	dir := t.TempDir() // cargo writes beside the manifest
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "filters/sdk/rust"))); err != nil {
		t.Fatal(err)
	}
	tool(t, []string{"RUSTC=" + rustc, "RUSTDOC=/usr/bin/rustdoc", "CARGO_NET_OFFLINE=true", "CARGO_TARGET_DIR=" + filepath.Join(dir, "target")},
		"/usr/bin/cargo", "test", "--quiet", "--manifest-path", filepath.Join(dir, "Cargo.toml"))
}

func TestHostKeepsTheContractWithRawCalls(t *testing.T) {
	runCases(t, buildC(t, "filters/conformance/raw/raw.c"), "raw.jsonl")
}

// TestPanicsTellTheAuthorsPlace looks for the text, the place, and the author's function in what weir says of a panic.
func TestPanicsTellTheAuthorsPlace(t *testing.T) {
	for sdk, want := range map[string][]string{
		"c":              {"run("},
		"go":             {"panic: as the script says", "script_go/main.go:", "main.run("},
		"rust":           {"panicked at 'as the script says'", "script_rust/script.rs:", "Script3run"},
		"assemblyscript": {"abort: as the script says at filters/conformance/script_as/script.ts:", "script/run("},
	} {
		t.Run(sdk, func(t *testing.T) {
			r := newRunner(t)
			got := r.run(t, r.load(t, script(t, sdk), nil), []byte(`{"message":"m","do":[["trap"]]}`))
			logged, told := r.log.take()
			all := strings.Join(append(append(logged, told...), got.fail), "\n")
			for _, w := range want {
				if !strings.Contains(all, w) {
					t.Errorf("%q is not in:\n%s", w, all)
				}
			}
		})
	}
}

func TestGoGetsAllocateOnlyTheString(t *testing.T) {
	r := newRunner(t)
	g := r.load(t, script(t, "go"), nil)
	got := r.run(t, g, []byte(`{"message":"a text that is longer than what Go keeps without allocating","a":1,"b":1,"do":[["allocations","message"]]}`))
	// Get, Append, Int, Set, SetInt
	if want := `"did":["allocations message = [1 0 0 0 0]"]`; !strings.Contains(got.out, want) {
		t.Errorf("%s is not in %s", want, got.out)
	}
}

func TestSDKsRunOnWithinTheirMemory(t *testing.T) {
	text := strings.Repeat("x", 8<<10)
	in := []byte(`{"message":"` + text + `","do":[["get","message"],["set","a","` + text + `"],["names"]]}`)
	for name := range sdks {
		t.Run(name, func(t *testing.T) {
			r := newRunner(t)
			g := r.load(t, script(t, name), nil) // with 16 MiB, a third of what goes through
			for i := range 1000 {
				if o, err := g.Try(t.Context(), in); err != nil || o.Verdict != Keep {
					t.Fatalf("message %d: %+v %v\n%s", i, o, err, r.said())
				}
			}
		})
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
	{"weir_tick of another type", guest(`(func (export "weir_tick") (result i32) (i32.const 0))`), "weir_tick"},
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
}
