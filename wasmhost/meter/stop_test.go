package meter

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// hostile are guests that never return by themselves; testdata/NAME.wat.
var hostile = []string{"spin", "calls", "indirect", "bulk", "tables", "grow", "skip", "values", "hostcalls", "start",
	"tail", "tails", "tail table", "tail reference", "reference", "throws", "rethrows", "tries", "deep tries", "hidden throws"}

// assembled are those among them that wat2wasm does not know, for assemble.
var assembled = map[string]string{
	"tail":           "type -> \n func 0 f ; return_call 0",
	"tails":          "type -> \n func 0 f ; return_call 1 \n func 0 _ ; return_call 2 \n func 0 _ ; return_call 0",
	"tail table":     "type -> \n table funcref 2 \n elem active ; ref.func 0 ; ref.func 1 \n func 0 f ; i32.const 1 return_call_indirect 0 0 \n func 0 _ ; i32.const 0 return_call_indirect 0 0",
	"tail reference": "type -> \n elem funcref ; ref.func 0 ; ref.func 1 \n func 0 f ; ref.func 1 return_call_ref 0 \n func 0 _ ; ref.func 0 return_call_ref 0",
	// A call tree of 2^60 leaves.
	"reference": "type i32 -> \n type -> \n elem funcref ; ref.func 0 \n " +
		"func 0 _ ; local.get 0 if void local.get 0 i32.const 1 i32.sub ref.func 0 call_ref 0 local.get 0 i32.const 1 i32.sub ref.func 0 call_ref 0 end \n " +
		"func 1 f ; i32.const 60 call 0",
	"throws":   "type -> \n tag 0 \n func 0 f ; loop void block void try_table void catch_all:0 throw 0 end end br 0 end",
	"rethrows": "type -> \n tag 0 \n func 0 f exnref ; block exnref try_table void catch_all_ref:0 throw 0 end unreachable end local.set 0 loop void block exnref try_table void catch_all_ref:0 local.get 0 throw_ref end unreachable end drop br 0 end",
	"tries":    "type -> \n func 0 f ; loop void block void try_table void catch_all:0 end end br 0 end",
	// Copies of a stack that has grown before.
	"deep tries": "type i32 -> \n type -> \n tag 1 \n func 0 _ ; local.get 0 if void local.get 0 i32.const 1 i32.sub call 0 end \n " +
		"func 1 f ; i32.const 1900 call 0 loop void block void try_table void catch_all:0 end end br 0 end",
	"hidden throws": "type -> \n tag 0 \n table funcref 1 \n elem active ; ref.func 0 \n func 0 _ ; throw 0 \n " +
		"func 0 f ; loop void block void try_table void catch_all:0 i32.const 0 call_indirect 0 0 end end br 0 end",
}

// prepare compiles a hostile guest and returns what runs it until its clock stops it.
func prepare(t testing.TB, engine, name string) func(*Clock) error {
	t.Helper()
	rt := newRuntime(t, engine)
	work := api.GoModuleFunc(func(ctx context.Context, _ api.Module, stack []uint64) {
		ctx.Value(clockKey{}).(*Clock).Charge(int(api.DecodeU32(stack[0])))
	})
	_, err := rt.NewHostModuleBuilder("host").NewFunctionBuilder().
		WithGoModuleFunction(work, []api.ValueType{i32}, nil).Export("work").Instantiate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var module []byte
	if text, ok := assembled[name]; ok {
		module = assemble(t, text)
	} else {
		module = watFile(t, name)
	}
	compiled, err := rt.CompileModule(t.Context(), rewrite(t, module).Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return func(clock *Clock) error {
		ctx := withClock(context.Background(), clock)
		mod, err := rt.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
		if err != nil {
			return err
		}
		defer mod.Close(ctx)
		_, err = mod.ExportedFunction("f").Call(ctx)
		return err
	}
}

func TestHostileGuestsStop(t *testing.T) {
	for engine := range engines {
		for _, name := range hostile {
			t.Run(engine+"/"+name, func(t *testing.T) {
				clock := &Clock{}
				clock.Begin(20 * time.Millisecond)
				err := prepare(t, engine, name)(clock)
				exceeded, ok := errors.AsType[*Exceeded](err)
				if !ok {
					t.Fatalf("got %v, want *Exceeded", err)
				}
				if exceeded.Cause == Cancelled || exceeded.Units == 0 {
					t.Errorf("got %+v", exceeded)
				}
			})
		}
	}
}

// TestCollectorRunsDuringASpin: without the meter runtime.GC never returns while a guest loops, and with it the whole
// process stands still.
func TestCollectorRunsDuringASpin(t *testing.T) {
	for engine := range engines {
		t.Run(engine, func(t *testing.T) {
			clock := &Clock{}
			clock.Begin(time.Hour)
			done := make(chan error)
			run := prepare(t, engine, "spin")
			go func() { done <- run(clock) }()
			for range 3 {
				runtime.GC()
			}
			clock.Cancel()
			exceeded, ok := errors.AsType[*Exceeded](<-done)
			if !ok || exceeded.Cause != Cancelled {
				t.Errorf("got %v", exceeded)
			}
		})
	}
}

// BenchmarkStop tells how long after its time a hostile guest is stopped, and how long the collector takes meanwhile.
func BenchmarkStop(b *testing.B) {
	const budget = 20 * time.Millisecond
	for _, name := range hostile {
		b.Run("guest="+name, func(b *testing.B) {
			run := prepare(b, "compiler", name)
			var late, worst time.Duration
			for b.Loop() {
				clock := &Clock{}
				clock.Begin(budget)
				done := make(chan time.Duration)
				start := time.Now()
				go func() {
					run(clock)
					done <- time.Since(start) - budget
				}()
				gc := time.Now()
				runtime.GC()
				worst = max(worst, time.Since(gc))
				late = max(late, <-done)
			}
			b.ReportMetric(float64(late)/1e6, "ms-late")
			b.ReportMetric(float64(worst)/1e6, "ms-GC")
		})
	}
}
