package meter

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// TestIndicesLeadWhereTheyLed calls everything that is reached by an index, plain and metered.
func TestIndicesLeadWhereTheyLed(t *testing.T) {
	module := wat(t, string(readTestdata(t, "everything.wat")), "--debug-names")
	tell := func(engine string, module []byte) (log []string) {
		ctx := withClock(context.Background(), &Clock{})
		rt := newRuntime(t, engine)
		constant := func(v int32) api.GoModuleFunc {
			return func(_ context.Context, _ api.Module, stack []uint64) { stack[0] = api.EncodeI32(v) }
		}
		global := sectionsOf(secGlobal, "\x01\x7f\x00\x41\x11\x0b", secExport, "\x01\x01g\x03\x00")
		if _, err := rt.InstantiateWithConfig(ctx, global, wazero.NewModuleConfig().WithName("globals")); err != nil {
			t.Fatal(err)
		}
		host := rt.NewHostModuleBuilder("env")
		host.NewFunctionBuilder().WithGoModuleFunction(constant(100), nil, []api.ValueType{i32}).Export("a")
		host.NewFunctionBuilder().WithGoModuleFunction(constant(1000), nil, []api.ValueType{i32}).Export("b")
		if _, err := host.Instantiate(ctx); err != nil {
			t.Fatal(err)
		}
		compiled, err := rt.CompileModule(ctx, module)
		if err != nil {
			t.Fatal(err)
		}
		mod, err := rt.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("guest"))
		if err != nil {
			t.Fatal(err)
		}
		call := func(name string, args ...uint64) {
			f := mod.ExportedFunction(name)
			got, err := f.Call(ctx, args...)
			log = append(log, fmt.Sprint(f.Definition().Name(), f.Definition().DebugName(), name, args, got, err != nil))
		}
		call("f")
		call("one")
		call("again")
		for i := range uint64(20) {
			call("table", i)
		}
		for i := range uint64(4) {
			call("other", i)
		}
		return log
	}
	m := rewrite(t, module)
	for engine := range engines {
		if diff := cmp.Diff(tell(engine, module), tell(engine, m.Bytes)); diff != "" {
			t.Errorf("%s: plain (-) and metered (+):\n%s", engine, diff)
		}
	}
}

func TestTellsWhatTheGuestDeclares(t *testing.T) {
	m := rewrite(t, watFile(t, "everything"))
	toI32 := FuncType{Results: []byte{i32}}
	indexed := FuncType{Params: []byte{i32}, Results: []byte{i32}}
	want := &Module{
		Imports: []Import{{"env", "a", Func, toI32}, {"env", "b", Func, toI32}, {"globals", "g", Global, FuncType{}}},
		Exports: []Export{{"table", Func, 6, indexed}, {"other", Func, 7, indexed}, {"f", Func, 8, toI32},
			{"m", Memory, 0, FuncType{}}, {"one", Func, 2, toI32}, {"again", Func, 1, toI32}},
		Memory: &Pages{1, 2}, Functions: 7, HasStart: true,
	}
	m.Bytes = nil
	if diff := cmp.Diff(want, m); diff != "" {
		t.Error(diff)
	}
}

func TestMaximaAreLowered(t *testing.T) {
	check := func(declared string, limit, min, max uint32) {
		t.Helper()
		m, err := Rewrite(wat(t, `(module (memory `+declared+`))`), Limits{MemoryPages: limit})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := *m.Memory, (Pages{min, max}); got != want {
			t.Errorf("memory %s: got %v, want %v", declared, got, want)
		}
	}
	check("1", 256, 1, 256)
	check("1 8", 256, 1, 8)
	check("1 65536", 256, 1, 256)
	check("256", 256, 256, 256)
	check("0 0", 256, 0, 0)

	grown := func(engine string, limits Limits, text string) int32 {
		t.Helper()
		m, err := Rewrite(wat(t, text), limits)
		if err != nil {
			t.Fatal(err)
		}
		return api.DecodeI32(runF(t, newRuntime(t, engine), m.Bytes).Results[0])
	}
	for engine := range engines {
		few := Limits{MemoryPages: 4, TableElements: 10}
		table := `(module (table $t 1 1000 externref) (func (export "f") (result i32) (table.grow $t (ref.null extern) (i32.const %d))))`
		if got := grown(engine, few, fmt.Sprintf(table, 9)); got != 1 {
			t.Errorf("%s: table.grow to the limit gave %d", engine, got)
		}
		if got := grown(engine, few, fmt.Sprintf(table, 10)); got != -1 {
			t.Errorf("%s: table.grow above the limit gave %d", engine, got)
		}
		memory := `(module (memory 1) (func (export "f") (result i32) (memory.grow (i32.const %d))))`
		if got := grown(engine, few, fmt.Sprintf(memory, 3)); got != 1 {
			t.Errorf("%s: memory.grow to the limit gave %d", engine, got)
		}
		if got := grown(engine, few, fmt.Sprintf(memory, 4)); got != -1 {
			t.Errorf("%s: memory.grow above the limit gave %d", engine, got)
		}
	}
}

func TestCustomSectionsThatSpeakOfFunctionsAreDropped(t *testing.T) {
	custom := func(name string) string { return string(appendBytes(nil, name)) + "\x00content" }
	module := sectionsOf(secCustom, custom("producers"), secCustom, custom(".debug_info"), secCustom, custom("metadata.code.branch_hint"),
		secCustom, custom("target_features"), secCustom, custom("sourceMappingURL"))
	m := rewrite(t, module)
	for name, kept := range map[string]bool{"producers": true, "target_features": true, ".debug_info": false, "metadata.code.branch_hint": false, "sourceMappingURL": false} {
		if got := bytes.Contains(m.Bytes, []byte(name)); got != kept {
			t.Errorf("%s: kept %v, want %v", name, got, kept)
		}
	}
}

// TestInstructionsAreWrittenShortest: the longest forms of indices and constants become what the shortest become.
func TestInstructionsAreWrittenShortest(t *testing.T) {
	padded := program{results: []byte{i32}, locals: []byte{i32}, body: []byte{
		opBlock, 0x40, opEnd,
		opI32Const, 0x81, 0x80, 0x80, 0x80, 0x00, opLocalSet, 0x80, 0x80, 0x80, 0x80, 0x00,
		opMisc, 0x87, 0x80, 0x80, 0x80, 0x00, // trunc_sat below
	}}
	padded.body = padded.body[:len(padded.body)-6]
	padded.body = append(padded.body, opLocalGet, 0x80, 0x00)
	short := padded
	short.body = []byte{opBlock, 0x40, opEnd, opI32Const, 1, opLocalSet, 0, opLocalGet, 0}
	if got, want := rewrite(t, padded.module()).Bytes, rewrite(t, short.module()).Bytes; !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
}

// TestSmallFunctionsArePaidForByTheirCallers: they run at their old speed, and are counted all the same.
func TestSmallFunctionsArePaidForByTheirCallers(t *testing.T) {
	units := func(text string) uint64 {
		t.Helper()
		clock := &Clock{}
		clock.Begin(time.Hour)
		ctx := withClock(context.Background(), clock)
		mod, err := newRuntime(t, "interpreter").Instantiate(ctx, rewrite(t, wat(t, text)).Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := mod.ExportedFunction("f").Call(ctx); err != nil {
			t.Fatal(err)
		}
		return clock.Units()
	}
	// A million passes, by chunks: each pays for the loop's 6 and the callee's 8 or none.
	loop := `(module (func $small %s) (func (export "f") (local i32) (loop (call $small)
		(br_if 0 (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 1))) (i32.const 1000000))))))`
	empty, eight := units(fmt.Sprintf(loop, "")), units(fmt.Sprintf(loop, "nop nop nop nop nop nop nop nop"))
	if got := float64(eight-empty) / 1e6; got < 6 || got > 10 {
		t.Errorf("a callee of 8 instructions adds %.2f units a call", got)
	}
}

// TestWorksOnAModuleWithoutAnything: the sections that the meter needs appear where they belong.
func TestWorksOnAModuleWithoutAnything(t *testing.T) {
	for _, text := range []string{`(module)`, `(module (memory 1))`, `(module (func))`, `(module (global i32 (i32.const 1)))`, `(module (func (param i32) (result i32) unreachable))`} {
		m := rewrite(t, wat(t, text))
		if _, err := newRuntime(t, "interpreter").InstantiateWithConfig(t.Context(), m.Bytes, wazero.NewModuleConfig()); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
