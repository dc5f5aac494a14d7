package wasmhost

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero/sys"

	"github.com/weirlog/weir/wasmhost/meter"
)

// TestTheHostsLibcIsLikeARealOne runs one battery of calls with the functions of env and with WASI's libc.
func TestTheHostsLibcIsLikeARealOne(t *testing.T) {
	text := func(file string) []string {
		g, _ := loadFile(t, file, func(c *Config) { c.Time = 5 * time.Second })
		b := batch(t, "go")
		defer b.Discard()
		if held := g.Filter(0).Apply(t.Context(), b); held != nil {
			t.Fatal(held.Cause)
		}
		if o := b.Outcome(b.Messages()[0]); o.Verdict != "keep" {
			t.Fatal(o)
		}
		return strings.Split(string(b.Messages()[0].Text), "\n")
	}
	own, env := text("fluentbit/libc_own.c"), text("fluentbit/libc_env.c")
	if len(own) < 100 {
		t.Errorf("only %d lines", len(own))
	}
	if d := cmp.Diff(own, env); d != "" {
		t.Error(d)
	}
}

// calling is a filter of Fluent Bit that makes one call of env with a body's values on the stack, for ever if that is
// what it does, and returns the record. Its memory is full of the letter a, without a NUL.
func calling(t testing.TB, imports, body string) string {
	return wat(t, `(module `+imports+`
		(memory (export "memory") 200)
		(global $heap (mut i32) (i32.const 0xc00000))
		(func (export "malloc") (param i32) (result i32) (global.get $heap))
		(func (export "free") (param i32))
		(func $call (param $record i32) `+body+`)
		(func (export "filter") (param i32 i32 i32 i32 i32 i32) (result i32)
			(memory.fill (i32.const 0) (i32.const 97) (i32.const 0xb00000))
			(i32.store8 (i32.const 0xafffff) (i32.const 0))
			(i32.store8 (i32.const 0xa00000) (i32.const 98))
			(call $call (local.get 4))
			(local.get 4)))`)
}

func TestNoCallOfLibcEscapesTheLeash(t *testing.T) {
	h, _ := open(t)
	check := func(imports, body string) {
		t.Helper()
		g := load(t, h, settings(calling(t, imports, body), func(c *Config) { c.Time = 10 * time.Millisecond }))
		if got := outcome(t, g, "m"); !strings.HasPrefix(got, "reject time ") {
			t.Error(got)
		}
	}
	const text = `(import "env" "strstr" (func $strstr (param i32 i32) (result i32)))`
	check(text, `(drop (call $strstr (i32.const 0) (i32.const 0x9f0000)))`) // 64 KiB that fail at their end, ten million times
	const length = `(import "env" "strlen" (func $strlen (param i32) (result i32)))`
	check(length, `(loop (drop (call $strlen (i32.const 0))) (br 0))`)
	const print = `(import "env" "printf" (func $printf (param i32 i32) (result i32)))(data (i32.const 0xb00100) "%2000000000d\00")`
	check(print, `(loop (drop (call $printf (i32.const 0xb00100) (i32.const 0xb00200))) (br 0))`)
	const number = `(import "env" "strspn" (func $strspn (param i32 i32) (result i32)))(data (i32.const 0xb00100) "a\00")`
	check(number, `(loop (drop (call $strspn (i32.const 0) (i32.const 0xb00100))) (br 0))`)
}

func TestTextWithoutAnEndTraps(t *testing.T) {
	h, _ := open(t)
	g := load(t, h, settings(calling(t, `(import "env" "strlen" (func $strlen (param i32) (result i32)))`, `
		(memory.fill (i32.const 0xb00000) (i32.const 97) (i32.const 0x180000))
		(drop (call $strlen (i32.const 0xc7ffff)))`)))
	contains(t, outcome(t, g, "m"), "reject trap there is no NUL between the address 0xc7ffff of a text and the end of memory")
}

func TestMistakesWithTheHeapTrap(t *testing.T) {
	h, _ := open(t)
	check := func(body, want string) {
		t.Helper()
		g := load(t, h, settings(calling(t, `
			(import "env" "malloc" (func $malloc (param i32) (result i32)))
			(import "env" "realloc" (func $realloc (param i32 i32) (result i32)))
			(import "env" "free" (func $free (param i32)))`, `(local $p i32) (local.set $p (call $malloc (i32.const 100))) `+body)))
		if got := outcome(t, g, "m"); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", body, got)
		}
	}
	check(`(call $free (local.get $p))`, "{")
	check(`(call $free (i32.const 0))`, "{")
	check(`(call $free (local.get $p))(call $free (local.get $p))`, "reject trap free or realloc of 0xc80010, which is free already")
	check(`(call $free (i32.const 16))`, "reject trap free or realloc of 0x10, which malloc has not given out")
	check(`(call $free (i32.add (local.get $p) (i32.const 8)))`, "reject trap free or realloc of 0xc80018, which malloc has not given out")
	check(`(drop (call $realloc (i32.const -16) (i32.const 1)))`, "reject trap free or realloc of 0xfffffff0, which malloc has not given out")
	check(`(i64.store (i32.sub (local.get $p) (i32.const 8)) (i64.const 5))(call $free (local.get $p))`, "reject trap the heap is damaged at 0xc80010")
	// A chain of free blocks that leads out of memory.
	check(`(call $free (local.get $p))(i32.store (local.get $p) (i32.const -16))
		(drop (call $malloc (i32.const 100)))(drop (call $malloc (i32.const 100)))`, "reject trap the heap is damaged at 0xfffffff0")
}

func TestEnvFitsWhatIsImported(t *testing.T) {
	h, _ := open(t)
	check := func(imports, call, want string) {
		t.Helper()
		g := load(t, h, settings(calling(t, imports, call)))
		if got := outcome(t, g, "m"); !strings.HasPrefix(got, want) {
			t.Error(got)
		}
	}
	const malloc = `(import "env" "malloc" (func $malloc (param i32) (result i32)))`
	check(malloc+`(import "env" "abort" (func $abort))`, `(call $abort)`, "reject trap abort")
	check(malloc+`(import "env" "abort" (func $abort (param i32)))`, `(call $abort (i32.const 3))`, "reject trap abort(3)")
	check(malloc+`(import "env" "abort" (func $abort (param i32 i32 i32 i32)))`, `(call $abort (i32.const 0) (i32.const 0) (i32.const 3) (i32.const 4))`, "reject trap abort:  at :3:4")
	check(`(import "env" "exit" (func $exit (param i32)))`, `(call $exit (i32.const 3))`, "reject exit the guest left with proc_exit(3)")
	check(`(import "env" "__cxa_throw" (func $throw (param i32 i32 i32)))`, `(call $throw (i32.const 0) (i32.const 0) (i32.const 0))`, "reject trap a C++ exception was thrown")
	// Emscripten's way of calling C's library, which WAMR knows too.
	check(`(import "env" "emscripten_memcpy_big" (func $copy (param i32 i32 i32) (result i32)))
		(import "env" "nullFunc_X" (func $null (param i32)))`, `(drop (call $copy (i32.const 0) (i32.const 0) (i32.const 0))) (call $null (i32.const 3))`, "reject trap abort(3)")
	contains(t, refused(t, calling(t, malloc+`(import "env" "fopen" (func (param i32 i32) (result i32)))`, "")),
		"imports env.fopen (i32, i32) -> i32, which this version of weir does not have", "link the rest into the module")
	contains(t, refused(t, calling(t, `(import "env" "strlen" (func (param i64) (result i32)))`, "")), "env.strlen has the type (i64) -> i32, but must have (i32) -> i32")
}

// FuzzLibc calls the functions of env with whatever addresses and lengths there are. A call returns, or it stops the
// guest in one of the ways that are meant for it. data is memory from 0 on and what is called: a function and an argument
// is a byte each.
func FuzzLibc(f *testing.F) {
	f.Add([]byte("%s %5.3d %n %*d\x00needle"), []byte("\x00\x01\x05\x02\x01\x08\x0f\x20\x30\x40"))
	f.Add([]byte("%1000.1000f%.99999999d%s"), []byte{30, 1, 2, 3, 31, 250, 251, 252, 253, 32, 1, 255, 0, 4})
	f.Add([]byte("0x7fffffffffffffff"), []byte{0, 9, 0, 9, 2, 128, 10, 3, 128, 3, 129, 24, 0, 1, 2})
	h, err := Open(f.Context(), Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { h.Close(context.Background()) })
	c := settings(calling(f, `(import "env" "malloc" (func (param i32) (result i32)))`, ""))
	g, err := h.Load(f.Context(), "f", c)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { g.Close(context.Background()) })
	f.Fuzz(func(t *testing.T, memory, calls []byte) {
		in, err := g.newInstance(t.Context(), g.program.Load())
		if err != nil {
			t.Fatal(err)
		}
		defer in.discard()
		in.clock.Begin(time.Second)
		copy(in.bytes(in.mod, 0, 1<<16), memory)
		results := []uint64{0, 1, 2, 8, 16, 100, 255, 256, 1000, 4096, 65535, 65536, 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff, uint64(in.mem.Size()) - 1, uint64(in.mem.Size())}
		for len(calls) > 0 {
			fn := libc[int(calls[0])%len(libc)]
			calls = calls[1:]
			stack := make([]uint64, max(len(fn.params), len(fn.results)))
			for i := range fn.params {
				if len(calls) > 0 {
					if stack[i] = uint64(calls[0]); calls[0] >= 128 {
						stack[i] = results[int(calls[0]-128)%len(results)]
					}
					calls = calls[1:]
				}
			}
			text := fmt.Sprint(fn.name, stack)
			if !endsWell(t, text, func() { fn.call(in, in.mod, stack) }) {
				return
			}
			if fn.results == "i" && stack[0] != 0 {
				results = append(results, uint64(uint32(stack[0])))
			}
		}
	})
}

// endsWell reports whether f returned; else it must have stopped the guest.
func endsWell(t *testing.T, what string, f func()) (returned bool) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		err, _ := p.(error)
		_, fault := errors.AsType[*guestFault](err)
		_, leash := errors.AsType[*meter.Exceeded](err)
		_, exit := errors.AsType[*sys.ExitError](err)
		if err == nil || !fault && !leash && !exit {
			t.Errorf("%s: %v", what, p)
		}
	}()
	f()
	return true
}

// TestTheHeapDealsOutEachByteOnce compares the blocks that are out with each other.
func TestTheHeapDealsOutEachByteOnce(t *testing.T) {
	h, _ := open(t)
	g := load(t, h, settings(calling(t, `(import "env" "malloc" (func (param i32) (result i32)))`, "")))
	in := g.lanes[0].in
	in.clock.Begin(time.Minute)
	sizes := map[uint32]uint32{}
	random := uint32(1)
	for range 20_000 {
		random = random*1664525 + 1013904223
		if n := random >> 8 % 5000; len(sizes) < 300 {
			if at := in.malloc(in.mod, uint64(n)); at != 0 {
				for other, size := range sizes {
					if at < other+size && other < at+n {
						t.Fatalf("%d bytes at %#x and %d at %#x overlap", n, at, size, other)
					}
				}
				sizes[at] = n
				b := in.bytes(in.mod, uint64(at), uint64(n))
				for i := 0; i+4 <= len(b); i += 4 {
					binary.LittleEndian.PutUint32(b[i:], at)
				}
				continue
			}
		}
		for at, n := range sizes {
			b := in.bytes(in.mod, uint64(at), uint64(n))
			for i := 0; i+4 <= len(b); i += 4 {
				if binary.LittleEndian.Uint32(b[i:]) != at {
					t.Fatalf("the block at %#x was written over", at)
				}
			}
			fluentOf(in).lender.heap.release(in, at)
			delete(sizes, at)
			break
		}
	}
	if in.size() > 200*page+4<<20 {
		t.Errorf("%d bytes for at most 300 blocks of 5000", in.size())
	}
}
