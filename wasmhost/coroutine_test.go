package wasmhost

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/routertest"
)

// programOf builds a guest of testdata as a program, whose _start is run: .c, or a folder with a Go program.
func programOf(t testing.TB, name string) string {
	t.Helper()
	built.mu.Lock()
	defer built.mu.Unlock()
	source := filepath.Join("testdata", name)
	if path, ok := built.path["program "+source]; ok {
		return path
	}
	out := filepath.Join(built.dir, strconv.Itoa(len(built.path))+".wasm")
	cmd := exec.Command("clang-14", "--target=wasm32-wasi", "-O2", "-s", "-Wall", "-Werror", "-Wl,-z,stack-size=65536,--stack-first", "-o", out, source)
	if filepath.Ext(source) != ".c" {
		cmd = exec.Command("go", "build", "-o", out, "./"+filepath.ToSlash(source))
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	}
	if _, err := exec.LookPath(cmd.Args[0]); err != nil {
		t.Skipf("%s is not installed", cmd.Args[0])
	}
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", source, err, msg)
	}
	built.path["program "+source] = out
	return out
}

// loadProgram builds and loads a program of testdata on a host of its own.
func loadProgram(t testing.TB, name string, edit ...func(*Config)) (*Guest, *routertest.Transcript) {
	t.Helper()
	h, log := open(t)
	return load(t, h, settings(programOf(t, name), edit...)), log
}

func TestGuestsThatStandStillAreReleased(t *testing.T) {
	path := programOf(t, "redpanda.c")
	h, _ := open(t)
	once := func() {
		g, err := h.Load(t.Context(), "f", settings(path))
		if err != nil {
			t.Fatal(err)
		}
		apply(t, g.Filter(0), "a")
		apply(t, g.Filter(1), "trap", "b")
		in, err := g.newInstance(t.Context(), g.program.Load())
		if err != nil {
			t.Fatal(err)
		}
		in.discard() // without a last word
		g.Close(t.Context())
	}
	once()
	before := runtime.NumGoroutine()
	for range 20 {
		once()
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines, and %d before", after, before)
	}
}

func TestGuestsThatStandStillAreRecycled(t *testing.T) {
	for name, mode := range map[string]string{"redpanda.c": "", "stdio.c": ModeStream} {
		g, log := loadProgram(t, name, func(c *Config) { c.Recycle, c.Mode = &Recycle{Messages: 2}, cmp.Or(mode, c.Mode) })
		before := runtime.NumGoroutine()
		tick := func() {
			b := router.NewBatch(1<<20, 10)
			defer b.Discard()
			g.lanes[0].Tick(t.Context(), b)
		}
		for range 10 {
			if got := apply(t, g.Filter(0), "a 1", "b 2"); got[0] != "keep a #" || got[1] != "keep b #" {
				t.Errorf("%s: %s", name, got)
			}
			tick()
		}
		tick() // the one that was replaced last is ended
		if after := runtime.NumGoroutine(); after > before || g.counts.instances.Load() != 1 || g.faulty() != 0 {
			t.Errorf("%s: %d goroutines, and %d before; %d instances, %d faults\n%s", name, after, before, g.counts.instances.Load(), g.faulty(), log)
		}
	}
}

// A start function runs before _start, which alone may wait.
func TestAStartFunctionThatAsksForMessagesIsRefused(t *testing.T) {
	check := func(module string) {
		t.Helper()
		h, _ := open(t)
		_, err := h.Load(t.Context(), "f", settings(module, func(c *Config) { c.Mode = ModeStream }))
		if err == nil || !strings.Contains(err.Error(), "before _start") {
			t.Error(err)
		}
	}
	check(wat(t, `(module (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32))) (memory (export "memory") 1)
		(data (i32.const 0) "\10\00\00\00\10\00\00\00")
		(func $first (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))) (start $first) (func (export "_start")))`))
}

func TestAStartFunctionMayNotTransform(t *testing.T) {
	const zero = ` (i32.const 0)`
	for name, params := range map[string]int{"read_batch_header": 10, "read_next_record": 5, "write_record": 2, "write_record_with_options": 4, "read_batch_metadata": 3} {
		module := wat(t, `(module (import "redpanda_transform" "`+name+`" (func $f (param`+strings.Repeat(" i32", params)+`) (result i32))) (memory (export "memory") 1)
			(func $first (drop (call $f`+strings.Repeat(zero, params)+`))) (start $first) (func (export "_start")))`)
		if why := refused(t, module); strings.Contains(why, "BUG") {
			t.Errorf("%s: %s", name, why)
		}
	}
}
