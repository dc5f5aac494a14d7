package meter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero/api"
)

// stacked are the functions with a body, counted from 0, that count their stack.
func stacked(t *testing.T, module []byte) (functions []int) {
	t.Helper()
	rw := newRewriter(module, limits)
	rw.header()
	rw.split()
	rw.declarations()
	w := rw.walk()
	if w == nil {
		t.Fatal(rw.r.err)
	}
	w.settle()
	w.stack()
	for i, b := range w.bodies {
		if b.frame != 0 {
			functions = append(functions, i)
		}
	}
	return functions
}

func TestFunctionsOnACycleAreCounted(t *testing.T) {
	check := func(text string, want ...int) {
		t.Helper()
		if diff := cmp.Diff(want, stacked(t, wat(t, "(module "+text+")"))); diff != "" {
			t.Errorf("%s\nwant (-), got (+):\n%s", text, diff)
		}
	}
	check(`(func) (func call 0) (func call 1)`)
	check(`(func call 0)`, 0)
	check(`(func call 1) (func call 2) (func call 0) (func call 1)`, 0, 1, 2)
	check(`(func call 0 call 1) (func call 2) (func)`, 0)
	check(`(import "a" "b" (func)) (func call 0)`)
	check(`(import "a" "b" (func)) (func call 0 call 2) (func call 1)`, 0, 1)

	// call_indirect leads to what is in a table and of an equal type.
	call := `(call_indirect (type $t) (i32.const 0))`
	check(`(type $t (func)) (table 1 funcref) (func ` + call + `)`)
	check(`(type $t (func)) (table 1 funcref) (elem (i32.const 0) 0) (func `+call+`)`, 0)
	check(`(type $t (func)) (type $u (func)) (table 1 funcref) (elem (i32.const 0) 0) (func (type $u) `+call+`)`, 0)
	check(`(type $t (func)) (type $u (func (param i32))) (table 1 funcref) (elem (i32.const 0) 0) (func (type $u) ` + call + `)`)
	check(`(type $t (func)) (table 1 funcref) (elem func 1) (func `+call+`) (func call 0) (func call 1)`, 0, 1)
	check(`(type $t (func)) (table 1 funcref) (elem funcref (ref.func 1)) (func `+call+`) (func call 0)`, 0, 1)
	check(`(type $t (func)) (table 1 funcref) (elem declare func 1) (func `+call+`) (func call 0) (func (drop (ref.func 1)))`, 0, 1)
	check(`(type $t (func)) (table 1 funcref) (global funcref (ref.func 0)) (func `+call+`)`, 0)
}

// TestLongChainsAreSearchedOnAFlatStack: as many functions as there may be, in one chain and in one ring.
func TestLongChainsAreSearchedOnAFlatStack(t *testing.T) {
	for _, ring := range []bool{false, true} {
		const n = MaxFunctions
		functions, code := appendU32(nil, n), appendU32(nil, n)
		for i := range uint32(n) {
			next := i + 1
			if next == n {
				next = 0
			}
			functions = append(functions, 0)
			body := appendU32([]byte{0, opCall}, next)
			if next == 0 && !ring {
				body = []byte{0}
			}
			code = appendBytes(code, append(body, opEnd))
		}
		want := 0
		if ring {
			want = n
		}
		module := sectionsOf(secType, "\x01\x60\x00\x00", secFunction, string(functions), secCode, string(code))
		if got := len(stacked(t, module)); got != want {
			t.Errorf("ring %v: %d of %d functions are counted, want %d", ring, got, n, want)
		}
	}
}

// instantiate makes an instance of a metered text, and a context with its clock.
func instantiate(t *testing.T, engine, text string) (api.Module, context.Context) {
	t.Helper()
	clock := &Clock{}
	clock.Begin(time.Hour)
	ctx := withClock(context.Background(), clock)
	mod, err := newRuntime(t, engine).Instantiate(ctx, rewrite(t, wat(t, text)).Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return mod, ctx
}

// wazero's interpreter has a limit of its own, 2000 calls.
func TestRecursionStopsWhenTheStackIsUsedUp(t *testing.T) {
	check := func(name, text string) {
		for engine := range engines {
			t.Run(engine+"/"+name, func(t *testing.T) {
				mod, ctx := instantiate(t, engine, text)
				_, err := mod.ExportedFunction("f").Call(ctx)
				e, ok := errors.AsType[*Exceeded](err)
				if own := engine == "interpreter" && strings.Contains(err.Error(), "stack overflow"); !own && (!ok || e.Cause != Stack) {
					t.Errorf("got %v, want the stack used up", err)
				}
			})
		}
	}
	check("itself", `(module (func $f (export "f") (result i32) (i32.add (call $f) (i32.const 1))))`)
	check("two", `(module (func $f (export "f") call $g) (func $g call $f))`)
	check("table", `(module (type $t (func)) (table 1 funcref) (elem (i32.const 0) $f) (func $f (export "f") call $g)
		(func $g (call_indirect (type $t) (i32.const 0))))`)
	check("set table", `(module (type $t (func)) (table 1 funcref) (elem declare func $g)
		(func $f (export "f") (table.set 0 (i32.const 0) (ref.func $g)) call $g)
		(func $g (call_indirect (type $t) (i32.const 0))))`)
	check("locals", `(module (func $f (export "f") (local `+strings.Repeat("i64 ", 9000)+`) call $f))`)
	check("operands", `(module (memory 1) (func $f (export "f") (result i32) `+strings.Repeat("(i32.load (i32.const 8)) ", 2000)+`call $f `+strings.Repeat("i32.add ", 2000)+`))`)
	check("below", `(module (func (export "f") call $f) (func $f call $f))`)
}

// everyExit is a function that calls itself as often as its first parameter says, and leaves by the way that the
// second one says; its results are of three types.
const everyExit = `(module
	(func $f (param i32 i32) (result i32 i64 f32)
		(if (local.get 0) (then (call $f (i32.sub (local.get 0) (i32.const 1)) (local.get 1)) drop drop drop))
		(block (block (block (block (block (br_table 0 1 2 3 4 (local.get 1)))
			(return (i32.const 1) (i64.const 2) (f32.const 3)))
			(loop (block (i32.const 77) (return (i32.const 4) (i64.const 5) (f32.const 6)))))
			(br 2 (i32.const 7) (i64.const 8) (f32.const 9)))
			(br_if 1 (i32.const 10) (i64.const 11) (f32.const 12) (i32.const 1)) drop drop drop)
		(block (br_if 0 (i32.ne (local.get 1) (i32.const 4)))
			(br_table 1 1 (i32.const 13) (i64.const 14) (f32.const 15) (i32.const 0)))
		(i32.const 16) (i64.const 17) (f32.const 18))
	(func (export "f") (param i32 i32) (result i32 i64 f32) (call $f (local.get 0) (local.get 1))))`

// TestTheStackIsGivenBackByEveryExit: a hundred calls of a thousand frames each, of which one takes a thirteenth of the stack.
func TestTheStackIsGivenBackByEveryExit(t *testing.T) {
	for engine := range engines {
		mod, ctx := instantiate(t, engine, everyExit)
		plain, err := newRuntime(t, engine).Instantiate(ctx, wat(t, everyExit))
		if err != nil {
			t.Fatal(err)
		}
		for way := range uint64(6) {
			want, err := plain.ExportedFunction("f").Call(ctx, 0, way)
			if err != nil {
				t.Fatal(err)
			}
			for range 100 {
				got, err := mod.ExportedFunction("f").Call(ctx, 1000, way)
				if err != nil {
					t.Fatalf("%s: way %d: %v", engine, way, err)
				}
				if !slices.Equal(got, want) {
					t.Fatalf("%s: way %d: got %v, want %v", engine, way, got, want)
				}
			}
		}
	}
}

func TestResultTypesAreAddedOnlyWhereNoneIsThere(t *testing.T) {
	check := func(types string, want int) {
		t.Helper()
		rw := newRewriter(wat(t, "(module "+types+")"), limits)
		rw.header()
		rw.split()
		rw.declarations()
		if got := len(rw.resultTypes(0)); got != want || rw.r.err != nil {
			t.Errorf("%s: %d added, want %d (%v)", types, got, want, rw.r.err)
		}
	}
	check(`(type (func)) (type (func (param i32) (result i32)))`, 0)
	check(`(type (func (param i32) (result i32 i64)))`, 1)
	check(`(type (func (param i32) (result i32 i64))) (type (func (param i64) (result i32 i64)))`, 1)
	check(`(type (func (param i32) (result i32 i64))) (type (func (result i32 i64)))`, 0)
}

// TestGoGuestsRecurseDeep: goroutines, a function 2000 deep and JSON nested 500 deep stay within the stack.
func TestGoGuestsRecurseDeep(t *testing.T) {
	g := open(t, "compiler", rewrite(t, built(t, "go")).Bytes)
	for range 3 {
		n, err := g.mod.ExportedFunction("deep").Call(g.ctx, 2000)
		if err != nil {
			t.Fatal(err)
		}
		if want := uint64(2000 * 2001 / 2); n[0] != want {
			t.Errorf("got %d, want %d", n[0], want)
		}
		const levels = 500
		text := fmt.Sprintf(`{"message":%s%s}`, strings.Repeat(`[{"a":`, levels/2)+"1", strings.Repeat("}]", levels/2))
		want := text[:len(text)-1] + `,"words":0}`
		want = strings.Replace(want, text[:len(text)-1], `{"message":""`, 1)
		if got := g.call(t, "edit", text); got != want {
			t.Errorf("got %.200q, want %q", got, want)
		}
	}
	if _, err := g.mod.ExportedFunction("deep").Call(g.ctx, 1<<20); err == nil {
		t.Error("a million frames fit in the stack")
	} else if e, ok := errors.AsType[*Exceeded](err); !ok || e.Cause != Stack {
		t.Error(err)
	}
}
