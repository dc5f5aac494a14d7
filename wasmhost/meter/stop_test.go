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
var hostile = []string{"spin", "calls", "indirect", "bulk", "tables", "grow", "skip", "values", "hostcalls", "start"}

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
	compiled, err := rt.CompileModule(t.Context(), rewrite(t, watFile(t, name)).Bytes)
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
