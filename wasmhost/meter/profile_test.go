package meter

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// TestProfileTellsWhatEachFunctionSpends: a loop of 7 instructions, 1000 times; its function's other 4; a fill of 6400
// bytes, with 5 instructions around it; the caller's 3, and 2 of a small function that is paid for by it.
func TestProfileTellsWhatEachFunctionSpends(t *testing.T) {
	module := wat(t, `(module (import "host" "work" (func (param i32))) (memory 1)
		(func $loop (local i32) (local.set 0 (i32.const 0)) (loop (br_if 0 (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 1))) (i32.const 1000)))) nop)
		(func $fill (memory.fill (i32.const 0) (i32.const 0) (i32.const 6400)) nop)
		(func $small nop nop)
		(func (export "f") call $loop call $fill call $small))`)
	m, err := Rewrite(module, Limits{MemoryPages: 1, Profile: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	rt := wazero.NewRuntimeWithConfig(ctx, engines["interpreter"]())
	defer rt.Close(context.Background())
	clock := &Clock{}
	clock.Begin(time.Hour)
	got := map[uint32]uint32{}
	function := func(b wazero.HostModuleBuilder, name string, params, results []api.ValueType, f func(stack []uint64)) wazero.HostModuleBuilder {
		return b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, _ api.Module, stack []uint64) { f(stack) }), params, results).Export(name)
	}
	b := function(rt.NewHostModuleBuilder(TickModule), TickName, []api.ValueType{i32}, []api.ValueType{i32}, func(s []uint64) { s[0] = api.EncodeI32(clock.Tick(api.DecodeI32(s[0]))) })
	b = function(b, SpentName, []api.ValueType{i32, i32}, nil, func(s []uint64) { got[uint32(s[0])] += uint32(s[1]) })
	if _, err := b.Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := function(rt.NewHostModuleBuilder("host"), "work", []api.ValueType{i32}, nil, func([]uint64) {}).Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	mod, err := rt.Instantiate(ctx, m.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mod.ExportedFunction("f").Call(ctx); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[uint32]uint32{1: 7004, 2: 105, 4: 5}, got); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}
