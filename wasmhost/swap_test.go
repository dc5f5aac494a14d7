package wasmhost

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/routertest"
)

// version is a guest that sets the message's field v to a letter, and says good-bye with it.
func version(t testing.TB, letter string) string {
	return effects(t, map[string]string{"k": "v", "v": letter, "bye": `{"message":"bye ` + letter + `"}`}, `
		(func (export "weir_process") (result i32) (call $set {k} {k_n} {v} {v_n}))
		(func (export "weir_close") (drop (call $emit {bye} {bye_n})))`)
}

// put makes the file path what from is, as a careful program does: in one step.
func put(t testing.TB, path, from string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(path+".new", b, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func versionOf(t testing.TB, f router.Filter) string {
	t.Helper()
	b := batch(t, "m")
	defer b.Discard()
	if held := f.Apply(t.Context(), b); held != nil {
		t.Fatal(held)
	}
	return string(b.Messages()[0].Field([]byte("v")).Value.Bytes)
}

func TestAChangedModuleTakesOverAtTheNextBatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.wasm")
	put(t, path, version(t, "A"))
	h, log := open(t)
	g := load(t, h, settings(path))
	f := g.Filter(0)
	if changed, err := g.Reload(t.Context()); changed || err != nil {
		t.Fatal("nothing has changed", err)
	}
	put(t, path, version(t, "B"))
	if v := versionOf(t, f); v != "A" {
		t.Errorf("before the reload: %s", v)
	}
	if changed, err := g.Reload(t.Context()); !changed || err != nil {
		t.Fatal(changed, err)
	}
	if v := versionOf(t, f); v != "B" {
		t.Errorf("after the reload: %s", v)
	}
	if n := g.counts.instances.Load(); n != 2 {
		t.Errorf("%d instances, want the new one and the old one that waits for its last words", n)
	}
	b := router.NewBatch(1<<20, 0)
	defer b.Discard()
	f.(router.Ticker).Tick(t.Context(), b)
	if b.Len() != 1 || string(b.Messages()[0].Text) != "bye A" {
		t.Errorf("last words: %d", b.Len())
	}
	if n := g.counts.instances.Load(); n != 1 {
		t.Errorf("%d instances after the tick", n)
	}
	contains(t, log.String(), "module changed")
}

func TestABrokenChangeLeavesTheOldModuleAtWork(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.wasm")
	put(t, path, version(t, "A"))
	h, log := open(t)
	g := load(t, h, settings(path))
	broken := func(module string, want string) {
		t.Helper()
		put(t, path, module)
		for range 2 {
			if changed, err := g.Reload(t.Context()); changed || err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, %v, want %q", changed, err, want)
			}
		}
		if v := versionOf(t, g.Filter(0)); v != "A" {
			t.Errorf("version %s", v)
		}
		if p := g.part(); !p.Ready || !strings.Contains(p.Reason, want) || !strings.Contains(p.Trouble, want) {
			t.Errorf("%+v", p)
		}
	}
	broken(wat(t, `(module (memory (export "memory") 1) (func (export "weir_process") (result i32) (i32.const 0)) (func (export "weir_init") (result i32) (i32.const 5)))`), "weir_init refused")
	broken(wat(t, `(module)`), "no filter")
	if n := strings.Count(log.String(), "changed module refused"); n != 2 {
		t.Errorf("told %d times:\n%s", n, log)
	}
	put(t, path, version(t, "A"))
	if changed, err := g.Reload(t.Context()); changed || err != nil {
		t.Error(changed, err)
	}
	if p := g.part(); p.Reason != "" || p.Trouble != "" {
		t.Errorf("%+v", p)
	}
}

// Under load nothing is lost, done twice or overtaken, and nothing is left behind.
func TestAnInstanceOfAModuleThatHasGoneIsOneOfTheNext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.wasm")
	put(t, path, version(t, "A"))
	h, _ := open(t)
	g := load(t, h, settings(path))
	old := g.program.Load() // as a lane that is about to make an instance
	put(t, path, version(t, "B"))
	if _, err := g.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	versionOf(t, g.Filter(0))
	b := batch(t)
	defer b.Discard()
	g.lanes[0].bury(t.Context(), b) // the last of the old ones
	in, err := g.newInstance(t.Context(), old)
	if err != nil {
		t.Fatal(err)
	}
	defer in.leave()
	if in.program != g.program.Load() {
		t.Error("it is of the module that has gone")
	}
}

func TestAModuleForWholeBatchesGetsTheRestOfTheBatchOfAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.wasm")
	put(t, path, wasmOf(t, "testdata/state.wat"))
	h, _ := open(t)
	g := load(t, h, settings(path))
	put(t, path, wat(t, `(module (memory (export "memory") 1) (func (export "_start") unreachable))`))
	if _, err := g.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := batch(t, "a", "trap", "b")
	defer b.Discard()
	// As when the module changes while the batch is at work: the lane has seen the old one.
	if held := g.lanes[0].filter(t.Context(), b, b.Messages(), time.Now()); held != nil {
		t.Fatal(held)
	}
	if got := strings.Join(outcomes(b), ", "); got != "keep a, reject(trap) trap, reject(trap) b" {
		t.Error(got)
	}
}

func TestSwapsUnderLoad(t *testing.T) {
	swaps := 1000
	if testing.Short() || raceDetector {
		swaps = 100
	}
	path := filepath.Join(t.TempDir(), "m.wasm")
	versions := []string{version(t, "A"), version(t, "B")}
	put(t, path, versions[0])
	h, _ := open(t)
	g := load(t, h, settings(path))
	sent := 0
	f := routertest.Start(t, routertest.Func(func(ctx context.Context, in router.Inlet) error {
		for ctx.Err() == nil {
			b, err := in.Take(ctx, 1000, 50)
			if err != nil {
				return nil
			}
			for range 20 {
				b.Add(&router.Origin{Source: "src"}).Text = b.Copy(fmt.Appendf(nil, "%08d", sent))
				sent++
			}
			in.Deliver(b)
			if sent%2000 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		return nil
	}), g.Filter(0))
	var before, after runtime.MemStats
	goroutines := 0
	for i := range swaps {
		put(t, path, versions[(i+1)%2])
		if changed, err := g.Reload(t.Context()); !changed || err != nil {
			t.Fatal(changed, err)
		}
		if i == swaps/10 {
			runtime.GC()
			runtime.ReadMemStats(&before)
			goroutines = runtime.NumGoroutine()
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if n := runtime.NumGoroutine(); n > goroutines+3 {
		t.Errorf("%d goroutines, %d after a tenth", n, goroutines)
	}
	if after.HeapAlloc > before.HeapAlloc+64<<20 { // what flows is a part of it
		t.Errorf("heap of %d bytes, %d after a tenth", after.HeapAlloc, before.HeapAlloc)
	}
	var rows []string
	for _, row := range f.Stop(t) {
		if !strings.HasPrefix(row, "bye") {
			rows = append(rows, row)
		}
	}
	if len(rows) != sent {
		t.Errorf("%d rows of %d messages", len(rows), sent)
	}
	for i, row := range rows {
		if row != fmt.Sprintf("%08d", i) {
			t.Fatalf("row %d is %s", i, row)
		}
	}
	if n := g.counts.instances.Load(); n > 1 {
		t.Errorf("%d instances are left", n)
	}
}

func TestAnInstanceIsRecycledBetweenBatches(t *testing.T) {
	path := version(t, "A")
	h, _ := open(t)
	g := load(t, h, settings(path, func(c *Config) { c.Recycle = &Recycle{Messages: 3} }))
	f := g.Filter(0)
	l := g.lanes[0]
	first := l.in
	apply(t, f, "1", "2")
	apply(t, f, "3", "4")
	if l.in != first {
		t.Error("recycled inside of a batch or too early")
	}
	apply(t, f, "5")
	if l.in == first {
		t.Error("not recycled")
	}
	second := l.in
	apply(t, f, "6", "7", "8")
	apply(t, f, "9")
	if l.in != second {
		t.Error("recycled before the one before had its last words")
	}
	b := router.NewBatch(1<<20, 0)
	defer b.Discard()
	f.(router.Ticker).Tick(t.Context(), b)
	if l.in == second || b.Len() != 1 {
		t.Errorf("after the tick: %v, %d last words", l.in == second, b.Len())
	}
}

func TestAnInstanceGoesOnWhileItHasNoSuccessor(t *testing.T) {
	h, log := open(t)
	g := load(t, h, settings(wat(t, `(module (import "weir_v1" "kv_add" (func $add (param i32 i32 i64 i32) (result i32))) (memory (export "memory") 1)
		(data (i32.const 0) "made")
		(func (export "weir_init") (result i32) (drop (call $add (i32.const 0) (i32.const 4) (i64.const 1) (i32.const 8))) (i64.ne (i64.load (i32.const 8)) (i64.const 1)))
		(func (export "weir_process") (result i32) (i32.const 0)))`), func(c *Config) { c.Recycle = &Recycle{Messages: 1} }))
	for range 3 * mostUnmade {
		apply(t, g.Filter(0), "m")
	}
	if g.breaker.isOpen() {
		t.Error("a filter that works was given up")
	}
	contains(t, log.String(), "weir_init refused")
}

func TestReloadsAreSafeBesideEverything(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.wasm")
	versions := []string{version(t, "A"), version(t, "B"), wat(t, `(module)`)}
	put(t, path, versions[0])
	h, _ := open(t)
	g := load(t, h, settings(path, func(c *Config) { c.Instances = One }))
	var all sync.WaitGroup
	for n := range 3 {
		f := g.Filter(n)
		all.Go(func() {
			for range 200 {
				versionOf(t, f)
			}
		})
	}
	all.Go(func() {
		for i := range 30 {
			put(t, path, versions[i%3])
			g.Reload(t.Context())
		}
	})
	all.Wait()
}

func TestAReloadBesideACloseLeavesNothingBehind(t *testing.T) {
	slow := wat(t, `(module (import "weir_v1" "log" (func $log (param i32 i32 i32))) (memory (export "memory") 1) (data (i32.const 0) "begins")
		(func (export "weir_init") (result i32) (local $i i32)
			(call $log (i32.const 2) (i32.const 0) (i32.const 6))
			(loop $on (br_if $on (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 50000000))))
			(i32.const 0))
		(func (export "weir_process") (result i32) (i32.const 0)))`)
	path := filepath.Join(t.TempDir(), "m.wasm")
	put(t, path, version(t, "A"))
	h, log := open(t)
	g := load(t, h, settings(path))
	put(t, path, slow)
	done := make(chan struct{})
	go func() { defer close(done); g.Reload(t.Context()) }()
	until(t, "the new module is started", func() bool { return strings.Contains(log.String(), "begins") })
	g.Close(t.Context())
	<-done
	if n, refs := g.counts.instances.Load(), g.program.Load().refs.Load(); n != 0 || refs != 0 {
		t.Errorf("%d instances are left, and the module is held %d times", n, refs)
	}
}
