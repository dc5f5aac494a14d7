package meter

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// thrower is a metered instance of a text that may import env.work, of type () -> (), and a context with its clock.
func thrower(t *testing.T, engine, text string, work func()) (api.Module, context.Context) {
	t.Helper()
	clock := &Clock{}
	clock.Begin(time.Hour)
	ctx := withClock(context.Background(), clock)
	rt := newRuntime(t, engine)
	call := api.GoModuleFunc(func(context.Context, api.Module, []uint64) { work() })
	if _, err := rt.NewHostModuleBuilder("env").NewFunctionBuilder().WithGoModuleFunction(call, nil, nil).Export("work").Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	mod, err := rt.InstantiateWithConfig(ctx, rewrite(t, assemble(t, text)).Bytes, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		t.Fatal(err)
	}
	return mod, ctx
}

// TestCaughtExceptionsLiveAsLongAsTheirFunction: unmetered, wazero reads freed memory here: the first exception is only
// in a local when the second one comes, and then the collector.
func TestCaughtExceptionsLiveAsLongAsTheirFunction(t *testing.T) {
	const text = `type ->
		type -> i32
		import env work 0
		tag 0
		func 1 f exnref ; block exnref try_table void catch_all_ref:0 throw 0 end unreachable end local.set 0
			block void try_table void catch_all:0 throw 0 end end
			call 0
			block void try_table void catch:0:0 local.get 0 throw_ref end end i32.const 7`
	collect := func() {
		type likeAnException struct {
			p *int
			s []uint64
		}
		runtime.GC()
		var all []*likeAnException
		for range 100_000 {
			all = append(all, &likeAnException{p: new(int)})
		}
		runtime.KeepAlive(all)
	}
	for engine := range engines {
		mod, ctx := thrower(t, engine, strings.ReplaceAll(text, "\n\t\t\t", " "), collect)
		for range 3 {
			if got, err := mod.ExportedFunction("f").Call(ctx); err != nil || got[0] != 7 {
				t.Errorf("%s: got %v, %v", engine, got, err)
			}
		}
	}
}

func TestExceptionsAreKeptUntilTheirFunctionHasEnded(t *testing.T) {
	c := &Clock{}
	keep := func(want int, depth, activation uint64) {
		t.Helper()
		stack := [3]uint64{0, depth, activation}
		*(*unsafe.Pointer)(unsafe.Pointer(&stack[0])) = unsafe.Pointer(new([4]uint64))
		if c.Keep(stack[:]); len(c.kept) != want {
			t.Errorf("depth %d, activation %d: %d kept, want %d", depth, activation, len(c.kept), want)
		}
	}
	keep(1, 100, 1)
	keep(2, 100, 1) // in a loop
	keep(3, 200, 2)
	keep(3, 200, 3) // called again
	keep(4, 300, 4)
	keep(3, 100, 1) // the deeper ones are gone
	keep(1, 100, 5)
	e := stopped(func() {
		for i := range maxThrown {
			keep(min(i+2, maxThrown), 100, 5)
		}
	})
	if e == nil || e.Cause != Exceptions {
		t.Errorf("got %v, want too many exceptions", e)
	}
}

// waysOut leave a try_table with each of 3000 passes of a loop; local 0 counts them. wazero leaves some of them open.
var waysOut = map[string]string{
	"end":                   `block void try_table void catch_all:0 end end`,
	"br to its end":         `block void try_table void catch_all:0 br 0 end end`,
	"br_if":                 `block void try_table void catch_all:0 i32.const 1 br_if 0 end end`,
	"br out":                `block void try_table void catch_all:0 br 1 end end`,
	"br_table":              `block void try_table void catch_all:0 i32.const 0 br_table 1 0 1 end end`,
	"empty br_table":        `block void try_table void catch_all:0 i32.const 5 br_table 0 1 end end`,
	"br_on_null":            `block void try_table void catch_all:0 ref.null 0 br_on_null 0 drop end end`,
	"br_on_non_null":        `block void block ref:0 try_table void catch_all:1 ref.func 1 br_on_non_null 1 end ref.func 1 end drop end`,
	"throw":                 `block void try_table void catch_all:0 throw 0 end end`,
	"clause out":            `block void try_table void catch_all:0 try_table void catch_all:1 throw 0 end end end`,
	"clauses out":           `block void block void block void try_table void catch:0:0 catch_all:1 try_table void catch_all:0 try_table void catch:1:0 catch:0:3 catch_all:4 throw 0 end end end end end end`,
	"clause to outer's end": `block void try_table void catch_all:0 try_table void catch_all:0 throw 0 end end end`,
	"clause to a loop":      `block void loop void global.get 0 i32.const 1 i32.xor global.set 0 try_table void catch_all:1 try_table void catch_all:1 global.get 0 br_if 3 throw 0 end end end end`,
	"clause not taken":      `block void try_table void catch_all:0 try_table void catch_all:1 br 0 end end end`,
	"no clauses":            `try_table void end`,
	"in another":            `block void try_table void catch_all:0 block void try_table void catch:0:0 br 3 end end end end`,
	"without, in one":       `block void try_table void catch_all:0 try_table void br 0 end end end`,
	"call":                  `block void try_table void catch_all:0 call 1 end end`,
	"return":                `call 2`,
	"return_call":           `call 3`,
}

const waysOutText = `type ->
	type -> i32
	tag 0
	elem funcref ; ref.func 1
	tag 0
	global i32 ; i32.const 0
	func 1 f i32 ; loop void %s local.get 0 i32.const 1 i32.add local.tee 0 i32.const %d i32.lt_u br_if 0 end i32.const 7
	func 0 _ ; throw 0
	func 0 _ ; try_table void catch_all:0 return end
	func 0 _ ; try_table void catch_all:0 return_call 4 end
	func 0 _ ;
	func 1 g ; throw 0`

// TestEveryWayOutClosesATryTable: none is open afterwards, which would keep its copy of the stack.
func TestEveryWayOutClosesATryTable(t *testing.T) {
	for name, code := range waysOut {
		t.Run(name, func(t *testing.T) {
			mod, ctx := thrower(t, "compiler", fmt.Sprintf(waysOutText, code, 3000), nil)
			before := heap()
			f := mod.ExportedFunction("f")
			if got, err := f.Call(ctx); err != nil || got[0] != 7 {
				t.Fatalf("got %v, %v", got, err)
			}
			if grown := heap() - before; grown > 4<<20 {
				t.Errorf("%d bytes are held afterwards", grown)
			}
			runtime.KeepAlive(f)
		})
	}
}

// TestACallMayThrowSoOften: the stack grows by 16 bytes each time, so each call begins anew to count.
func TestACallMayThrowSoOften(t *testing.T) {
	const text = `type i32 ->
		type ->
		tag 1
		func 0 f ; loop void block void try_table void catch_all:0 throw 0 end end local.get 0 i32.const 1 i32.sub local.tee 0 br_if 0 end
		func 0 g exnref ; block exnref try_table void catch_all_ref:0 throw 0 end unreachable end local.set 1
			loop void block void try_table void catch_all:0 local.get 1 throw_ref end end local.get 0 i32.const 1 i32.sub local.tee 0 br_if 0 end
		func 0 h ; local.get 0 call 0`
	for engine := range engines {
		for _, name := range []string{"f", "g", "h"} {
			mod, ctx := thrower(t, engine, strings.ReplaceAll(text, "\n\t\t\t", " "), nil)
			for range 2 {
				if _, err := mod.ExportedFunction(name).Call(ctx, maxThrown-1); err != nil {
					t.Fatalf("%s: %s: %v", engine, name, err)
				}
			}
			_, err := mod.ExportedFunction(name).Call(ctx, maxThrown+1)
			if e, ok := errors.AsType[*Exceeded](err); !ok || e.Cause != Exceptions {
				t.Errorf("%s: %s: got %v, want that it threw too often", engine, name, err)
			}
		}
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestExceptionsDoTheSame compares with the interpreter, unmetered. (wazero's compiler loses what a try_table's body
// sets a local to when that function catches; the texts here set none.)
func TestExceptionsDoTheSame(t *testing.T) {
	runtimes := map[string]wazero.Runtime{}
	for engine := range engines {
		runtimes[engine] = newRuntime(t, engine)
	}
	check := func(text string) {
		t.Helper()
		module := assemble(t, text)
		want := runF(t, runtimes["interpreter"], module)
		for engine, rt := range runtimes {
			if diff := cmp.Diff(want, runF(t, rt, rewrite(t, module).Bytes)); diff != "" {
				t.Errorf("%s: %s\nplain (-) and metered (+):\n%s", engine, text, diff)
			}
		}
	}
	for _, code := range waysOut {
		check(fmt.Sprintf(waysOutText, code, 30))
		// A try_table that is left catches nothing any more.
		check(fmt.Sprintf(waysOutText, "block void try_table void catch_all:0 "+code+" throw 0 end end "+code, 30))
		check(fmt.Sprintf(waysOutText, code+" local.get 0 i32.const 9 i32.eq if void throw 0 end", 30))
	}
	const head = "type -> \n type i32 -> i32 \n type i32 -> \n type i32 exnref -> \n type -> i32 exnref \n type -> i32 i64 \n type i32 i64 -> \n type -> i32 \n tag 0 \n tag 2 \n tag 6 \n"
	check(head + `func 7 f ; block i32 try_table void catch:1:0 i32.const 5 throw 1 end unreachable end`)
	check(head + `func 7 f ; block void block i32 try_table void catch:0:1 catch:1:0 i32.const 5 throw 1 end unreachable end return end i32.const 9`)
	check(head + `func 7 f ; block 5 try_table void catch:2:0 i32.const 5 i64.const 6 throw 2 end unreachable end i32.wrap_i64 i32.add`)
	check(head + `func 7 f ; block 4 try_table void catch_ref:1:0 i32.const 5 throw 1 end unreachable end throw_ref`)
	check(head + `func 7 f ; block i32 try_table void catch:1:0 block 4 try_table void catch_ref:1:0 i32.const 5 throw 1 end unreachable end throw_ref end unreachable end`)
	check(head + `func 7 f ; block ref:exn try_table void catch_all_ref:0 i32.const 5 throw 1 end unreachable end drop i32.const 3`)
	check(head + `func 7 f i32 ; i32.const 4 loop 2 local.tee 0 if void try_table void catch:1:1 local.get 0 i32.const 1 i32.sub throw 1 end end end local.get 0`)
	check(head + `func 7 f ; block i32 try_table void catch:1:0 try_table void catch:1:1 i32.const 5 throw 1 end end unreachable end`)
	check(head + `func 7 f ; block 5 try_table void catch:2:0 try_table void catch:2:1 i32.const 5 i64.const 6 throw 2 end end unreachable end i32.wrap_i64 i32.add`)
	check(head + `func 7 f ; block 4 try_table void catch_ref:1:0 try_table void catch_ref:1:1 i32.const 5 throw 1 end end unreachable end throw_ref`)
	check(head + `func 7 f ; block ref:exn try_table void catch_all_ref:0 try_table i32 catch_all_ref:1 i32.const 5 throw 1 end drop end unreachable end drop i32.const 3`)
	check(head + `func 7 f ; block ref:exn try_table void catch_all_ref:0 try_table i32 catch_all_ref:1 i32.const 5 end return end unreachable end drop i32.const 3`)
	check(head + `func 7 f ; try_table i32 catch:1:0 try_table void catch:1:1 i32.const 5 throw 1 end i32.const 6 end`)
	check(head + `func 7 f ; try_table i32 catch:1:0 try_table i32 catch:1:0 i32.const 5 throw 1 end i32.const 6 i32.add end`)
	check(head + `func 7 f ; ref.null exnref throw_ref`)
	check(head + `func 7 f ; block void i32.const 1 try_table 1 catch_all:0 i32.const 2 i32.add end return end i32.const 9`)
	check(head + `func 7 f ; i32.const 1 try_table i32 catch:1:0 i32.const 8 throw 1 end i32.add`)
	check(head + `func 7 f ; try_table void catch:1:0 call 1 end unreachable
		func 0 _ ; i32.const 8 throw 1`)
}

// TestDepthIsRestoredWhereExceptionsAreCaught: each of 1000 calls throws through 20 frames of a function that would fill
// the stack otherwise, and is caught in a block, in a loop and at a function's end.
func TestDepthIsRestoredWhereExceptionsAreCaught(t *testing.T) {
	const text = `type ->
		type i32 ->
		type i32 -> i32
		tag 0
		func 2 block ; block void try_table void catch_all:0 i32.const 20 call 3 end end i32.const 1
		func 2 loop ; loop void local.get 0 i32.eqz if void i32.const 1 return end i32.const 0 local.set 0 try_table void catch_all:0 i32.const 20 call 3 end end unreachable
		func 2 end ; i32.const 5 call 4 i32.const 1
		func 1 _ ; local.get 0 i32.eqz if void throw 0 end local.get 0 i32.const 1 i32.sub call 3
		func 1 _ ; try_table void catch_all:0 i32.const 20 call 3 end`
	for engine := range engines {
		mod, ctx := thrower(t, engine, text, nil)
		for _, name := range []string{"block", "loop", "end"} {
			for i := range 1000 {
				if got, err := mod.ExportedFunction(name).Call(ctx, 1); err != nil || got[0] != 1 {
					t.Fatalf("%s: %s: call %d: got %v, %v", engine, name, i, got, err)
				}
			}
		}
	}
}

// TestOpenTryTablesAreBounded: recursion through a try_table took 10.7 GB. The worst is a stack that has grown to its
// limit before, of which then 64 copies are made.
func TestOpenTryTablesAreBounded(t *testing.T) {
	const text = `type ->
		type i32 ->
		import env work 0
		tag 0
		func 0 f ; i32.const %d call 2 call 3
		func 1 _ %s ; %s local.get 0 if void local.get 0 i32.const 1 i32.sub call 2 end %s
		func 0 _ ; call 0 block void try_table void catch_all:0 call 3 end end`
	check := func(name, text string) {
		t.Helper()
		opened, peak := 0, int64(0)
		before := heap()
		mod, ctx := thrower(t, "compiler", text, func() {
			opened++
			peak = max(peak, heap()-before)
		})
		_, err := mod.ExportedFunction("f").Call(ctx)
		if e, ok := errors.AsType[*Exceeded](err); !ok || e.Cause != Stack {
			t.Errorf("%s: got %v, want the stack used up", name, err)
		}
		if opened > 64 || peak > 64<<20 {
			t.Errorf("%s: %d were open, and took %d bytes", name, opened, peak)
		}
		t.Logf("%s: %d were open, and took %d bytes", name, opened, peak)
	}
	check("nothing before", fmt.Sprintf(text, 0, "", "", ""))
	check("recursion before", fmt.Sprintf(text, 2900, "", "", ""))
	// 500 locals that are in use across the call: half of them in its frame.
	set, use := "", ""
	for i := 1; i <= 500; i++ {
		set += fmt.Sprintf("local.get 0 i32.const %d i32.mul local.set %d ", i, i)
		use += fmt.Sprintf("i32.const 0 local.get %d i32.store ", i)
	}
	check("recursion of large frames before", fmt.Sprintf(text, 60, strings.Repeat("i32 ", 500), set, use)+"\n memory 1")
}
