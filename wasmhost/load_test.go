package wasmhost

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestModulesAreRefusedWithTheReason(t *testing.T) {
	const process = `(func (export "weir_process") (result i32) (i32.const 0))`
	const memory = `(memory (export "memory") 1)`
	check := func(text string, parts ...string) {
		t.Helper()
		contains(t, refused(t, wat(t, "(module "+text+")")), parts...)
	}
	check(process, `exports no memory named "memory"`)
	check(memory+process+`(func (export "_start"))`,
		"_start beside weir_process", "-buildmode=c-shared", "-mexec-model=reactor", "--crate-type cdylib")
	check(memory+`(func (export "weir_process") (param i32) (result i64) (i64.const 0))`,
		"weir_process has the type (i32) -> i64, but must have () -> i32")
	check(memory+process+`(func (export "weir_init"))`, "weir_init has the type () -> (), but must have () -> i32")
	check(memory+process+`(func (export "_initialize") (result i32) (i32.const 0))`, "_initialize has the type () -> i32, but must have () -> ()")
	check(memory+process+`(func (export "weir_tick") (param i32))`, "weir_tick has the type (i32) -> (), but must have () -> ()")
	check(memory+process+`(func (export "weir_proces"))`, "exports weir_proces, which is not in weir_v1")
	check(memory+process+`(global (export "weir_init") i32 (i32.const 0))`, "exports weir_init as a global")
	check(memory+`(global (export "weir_process") i32 (i32.const 0))`, "exports weir_process as a global")

	imports := func(text string, parts ...string) {
		t.Helper()
		check(text+memory+process, parts...)
	}
	imports(`(import "weir_v1" "field_got" (func (param i32)))`, "imports weir_v1.field_got (i32) -> (), which this version of weir does not have")
	imports(`(import "weir_v1" "field_get" (func (param i32 i64) (result i32)))`,
		"weir_v1.field_get has the type (i32, i64) -> i32, but must have (i32, i32, i32, i32) -> i32")
	imports(`(import "weir_meter" "tick" (func (param i32) (result i32)))`, "weir_meter")
	imports(`(import "wasi_snapshot_preview1" "fd_what" (func))`, "wasi_snapshot_preview1.fd_what, which WASI preview 1 does not have")
	imports(`(import "wasi_snapshot_preview1" "proc_exit" (func))`, "proc_exit has the type () -> (), but must have (i32) -> ()")
	imports(`(import "mine" "f" (func))`, "imports mine.f () -> (), and there is no module mine")
	imports(`(import "env" "puts" (func (param i32) (result i32)))`, "imports env.puts", "import_module")
	imports(`(import "weir_v1" "g" (global i32))`, "imports the global weir_v1.g")
	imports(`(import "env" "t" (table 1 funcref))`, "imports the table env.t")
	check(`(import "env" "memory" (memory 1))`+process+`(export "memory" (memory 0))`, "imports the memory env.memory")

	imports(`(import "\1b[2Jm" "f" (func))`, `"\x1b[2Jm".f`)
	check(strings.Repeat(`(import "weir_v1" "f" (func))`, 1000)+memory+process, "and 990 more")

	// All that is wrong is told at once.
	check(`(import "mine" "f" (func))(import "weir_v1" "emit" (func))`+process, "mine.f", "weir_v1.emit has the type", "exports no memory")
}

func TestOtherSystemsModulesAreRefusedByName(t *testing.T) {
	check := func(text string, parts ...string) {
		t.Helper()
		contains(t, refused(t, wat(t, "(module "+text+")")), parts...)
	}
	check(`(import "env" "extism_input_length" (func (result i64)))`, "an Extism plug-in for a version before 1.0")
	check(`(func (export "proxy_abi_version_0_2_1"))`, "proxy-wasm")
	check(`(import "http_handler" "log" (func))`, "http-wasm")
	check(`(import "env" "copy_records" (func (param i32 i32)))`, "Fluvio")
	check(`(import "__wbindgen_placeholder__" "x" (func))`, "wasm-bindgen")
	check(`(import "gojs" "runtime.wasmExit" (func (param i32)))`, "GOOS=js", "GOOS=wasip1")
	check(`(import "env" "invoke_vi" (func (param i32 i32)))`, "Emscripten")
	check(`(func (export "f"))`, "no filter: it exports no weir_process")

	file := func(content, want string) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "m.wasm")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		contains(t, refused(t, path), want)
	}
	file("\x00asm\x0d\x00\x01\x00", "component")
	file("(module)", "no WebAssembly module: it is WebAssembly text (wat2wasm")
	file("\x00aot\x00\x00\x00\x00", "WAMR AOT")
	file("", "empty")
	file("\x7fELF", "no WebAssembly module: it is a program")
}

func TestSettingsWithoutEffectAreRefused(t *testing.T) {
	h, _ := open(t)
	for setting, edit := range map[string]func(*Config){
		"function": func(c *Config) { c.Function = "filter" }, "mode": func(c *Config) { c.Mode = ModeStream }, "event_format": func(c *Config) { c.EventFormat = formatMsgpack },
	} {
		_, err := h.Load(t.Context(), "f", settings("stock:severity", edit))
		if err == nil || !strings.Contains(err.Error(), setting+" has no effect on a module of the ABI weir") {
			t.Errorf("%s: %v", setting, err)
		}
	}
}

func TestBrokenStartIsRefused(t *testing.T) {
	const memory = `(memory (export "memory") 1)(func (export "weir_process") (result i32) (i32.const 0))`
	check := func(text string, parts ...string) {
		t.Helper()
		contains(t, refused(t, wat(t, "(module "+text+")")), parts...)
	}
	check(memory+`(func (export "weir_init") (result i32) unreachable)`, "weir_init failed: trap: unreachable")
	check(memory+`(func (export "_initialize") unreachable)`, "_initialize failed: trap: unreachable")
	check(memory+`(func $s unreachable) (start $s)`, "start failed: trap: unreachable")
	check(memory+`(func (export "weir_init") (result i32) (i32.const 5))`, "weir_init refused with 5 and gave no reason")
	check(`(import "weir_v1" "fail" (func $fail (param i32 i32)))`+memory+`(data (i32.const 0) "no card number")
		(func (export "weir_init") (result i32) (call $fail (i32.const 0) (i32.const 14)) (i32.const 5))`, "weir_init refused: no card number")
	check(`(import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))`+memory+`(func (export "weir_init") (result i32) (call $exit (i32.const 0)) (i32.const 0))`,
		"weir_init failed: exit", "proc_exit(0)")
}

func TestStartIsOnTheLeash(t *testing.T) {
	for _, where := range []string{`(func $s (loop $l (br $l))) (start $s)`, `(func (export "_initialize") (loop $l (br $l)))`, `(func (export "weir_init") (result i32) (loop $l (br $l)) (unreachable))`} {
		h, _ := open(t)
		path := wat(t, `(module (memory (export "memory") 1)(func (export "weir_process") (result i32) (i32.const 0))`+where+`)`)
		_, err := h.Load(t.Context(), "f", settings(path, func(c *Config) { c.InitTime = 20 * time.Millisecond }))
		if err == nil || !strings.Contains(err.Error(), "time") {
			t.Errorf("%s: %v", where, err)
		}
		// A stop of weir ends it too.
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Millisecond, cancel)
		if _, err = h.Load(ctx, "f", settings(path, func(c *Config) { c.InitTime = time.Minute })); err == nil || !strings.Contains(err.Error(), "interrupted") {
			t.Errorf("%s: %v", where, err)
		}
	}
}

func TestOtherFileThanSHA256IsRefused(t *testing.T) {
	h, _ := open(t)
	path := wasmOf(t, "testdata/mask.c")
	good := load(t, h, settings(path)).Report().SHA256
	load(t, h, settings(path, func(c *Config) { c.SHA256 = strings.ToUpper(good) }))
	_, err := h.Load(t.Context(), "f", settings(path, func(c *Config) { c.SHA256 = strings.Repeat("0", 64) }))
	if err == nil || !strings.Contains(err.Error(), good) {
		t.Error(err)
	}
}

func TestMemoryOverTheLimitIsRefused(t *testing.T) {
	h, _ := open(t)
	path := wat(t, `(module (memory (export "memory") 100) (func (export "weir_process") (result i32) (i32.const 0)))`)
	_, err := h.Load(t.Context(), "f", settings(path, func(c *Config) { c.Memory = 1 << 20 }))
	if err == nil || !strings.Contains(err.Error(), "memory") {
		t.Error(err)
	}
}

func TestCompiledModulesAreKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "compiled")
	path := wasmOf(t, "testdata/mask.c")
	files := 0
	for i := range 3 {
		if i == 2 { // the disk has eaten them
			filepath.WalkDir(dir, func(path string, d os.DirEntry, _ error) error {
				if !d.IsDir() {
					files++
					os.WriteFile(path, []byte("WAZEVO?"), 0o600)
				}
				return nil
			})
		}
		h, err := Open(t.Context(), Options{CacheDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		g, err := h.Load(t.Context(), "f", settings(path))
		if err != nil {
			t.Fatal(err)
		}
		if got := apply(t, g.Filter(0), "1"); got[0] != "keep #" {
			t.Error(got)
		}
		g.Close(t.Context())
		h.Close(t.Context())
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 || files == 0 {
		t.Errorf("%d files, %v, %v", files, info.Mode(), err)
	}
	if err := os.Chmod(dir, 0o770); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{CacheDir: dir}); err == nil || !strings.Contains(err.Error(), "mode 0770") {
		t.Errorf("a cache that others may write to: %v", err)
	}
}

func TestInterpreterRunsTheSame(t *testing.T) {
	h, err := Open(t.Context(), Options{Interpret: true})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(t.Context())
	g := load(t, h, settings(wasmOf(t, "testdata/mask.c")))
	if got := apply(t, g.Filter(0), "1"); got[0] != "keep #" {
		t.Error(got)
	}
	if g.time != 20*50*time.Millisecond {
		t.Errorf("time is %v", g.time)
	}
	spin := load(t, h, settings(wasmOf(t, "testdata/hostile/spin.wat"), func(c *Config) { c.Time = time.Millisecond }))
	if got := apply(t, spin.Filter(0), "1"); got[0] != "reject(time) 1" {
		t.Error(got)
	}
	g.Close(t.Context())
	spin.Close(t.Context())
}

func TestConfigIsChecked(t *testing.T) {
	bad := settings("stock:severty", func(c *Config) {
		c.SHA256, c.Memory, c.Time, c.InitTime, c.OnError, c.Instances = "xyz", 1, 0, time.Hour, "ignore", "two"
	})
	var paths []string
	for _, p := range bad.Check() {
		paths = append(paths, p.Path)
	}
	if got := strings.Join(paths, " "); got != "module sha256 memory time init_time on_error instances" {
		t.Error(got)
	}
	if good := settings("x.wasm"); len(good.Check()) > 0 {
		t.Error(good.Check())
	}
}

func TestMetricsTellCallsAndFaults(t *testing.T) {
	h, _ := open(t)
	g := load(t, h, settings(wasmOf(t, "testdata/hostile/trap.wat")))
	apply(t, g.Filter(0), "a", "b", "c")
	err := testutil.CollectAndCompare(h, strings.NewReader(`
# HELP weir_filter_calls_total Messages given to the filter's guest.
# TYPE weir_filter_calls_total counter
weir_filter_calls_total{filter="f"} 3
# HELP weir_filter_instances Instances of the filter's guest that exist.
# TYPE weir_filter_instances gauge
weir_filter_instances{filter="f"} 0
# HELP weir_filter_memory_bytes Linear memory of all instances of the filter's guest.
# TYPE weir_filter_memory_bytes gauge
weir_filter_memory_bytes{filter="f"} 0
`), "weir_filter_calls_total", "weir_filter_instances", "weir_filter_memory_bytes")
	if err != nil {
		t.Error(err)
	}
	if n := testutil.CollectAndCount(h, "weir_filter_faults_total"); n != causes {
		t.Errorf("%d causes", n)
	}
}

func TestFiltersAreToldInTheOrderOfTheirNames(t *testing.T) {
	h, _ := open(t)
	for _, name := range []string{"b", "c", "a"} {
		g, err := h.Load(t.Context(), name, settings("stock:severity"))
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close(t.Context())
	}
	parts, reloaded := "", ""
	for _, p := range h.Parts() {
		parts += p.Name
	}
	for _, r := range h.Reload(t.Context()) {
		reloaded += r.Filter
	}
	if parts != "abc" || reloaded != "abc" {
		t.Errorf("readiness tells %s, a reload %s", parts, reloaded)
	}
}
