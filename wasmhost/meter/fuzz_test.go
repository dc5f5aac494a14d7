package meter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
)

// FuzzRewrite: whatever the bytes, Rewrite returns a *Refused, or a module that wazero accepts exactly if it accepts the
// original. That the original is accepted means that the guest reaches nothing of what the meter adds.
func FuzzRewrite(f *testing.F) {
	for _, body := range [][]byte{
		nil,
		{opI32Const, 1, opGlobalSet, 1},
		{opLoop, 0x40, opI32Const, 0, 0x0d, 0, opEnd},
		{opI32Const, 0, opI32Const, 0, opI32Const, 3, opMisc, 0x0b, 0},
		{opSIMD, simdConst, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, opSIMD, 0x80, 0x01, 0x1a},
		{opI32Const, 1, opI32Const, 2, opCall, addFunc, opI32Const, 0, opCallIndirect, 0, 0, 0x1a},
		{opI32Const, 1, opLoop, 1, opEnd, 0x1a},
		{opRefFunc, addFunc, 0x1a, opRefNull, funcref, opI32Const, 1, opMisc, 0x0f, 0, 0x1a},
	} {
		f.Add(program{body: body, locals: []byte{i32, v128}}.module())
		f.Add(program{body: body, start: true, params: []byte{i64}, results: []byte{f32, f64}}.module())
	}
	f.Add(sectionsOf(secCustom, "\x04name\x01\x04\x01\x00\x01a", secMemory, "\x01\x01\x01\x02", secData, "\x01\x00\x41\x00\x0b\x01x"))
	f.Add(sectionsOf(secTable, "\x02\x70\x00\x01\x6f\x01\x02\x03", secElement, "\x03\x00\x41\x00\x0b\x00\x05\x70\x01\xd0\x70\x0b\x03\x00\x00"))
	f.Add(sectionsOf(secImport, "\x03\x01a\x01b\x03\x7f\x01\x01a\x01c\x02\x00\x01\x01a\x01d\x01\x70\x00\x01", secGlobal, "\x01\x7f\x00\x23\x00\x0b"))
	for _, code := range waysOut {
		f.Add(assemble(f, fmt.Sprintf(waysOutText, code, 3)))
	}
	for _, text := range assembled {
		f.Add(assemble(f, text))
	}
	f.Add(assemble(f, typedHead+"func 0 _ ; \n func 1 _ ; i32.const 1 \n func 1 f ; i32.const 2 ref.func 1 ref.null 1 i32.const 1 select_t null:1 return_call_ref 1 \n func 0 _ ; \n func 0 _ ; \n func 0 _ ; "))
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, engines["interpreter"]())
	f.Cleanup(func() { rt.Close(ctx) })
	accepted := func(module []byte) error {
		m, err := rt.CompileModule(ctx, module)
		if err == nil {
			m.Close(ctx)
		}
		return err
	}
	f.Fuzz(func(t *testing.T, module []byte) {
		plain, err := Rewrite(module, Limits{MemoryPages: 16})
		m, all := Rewrite(module, Limits{MemoryPages: 16, Exceptions: true})
		if err == nil && all != nil {
			t.Fatalf("refused where exceptions are allowed: %v", all)
		}
		if err == nil {
			if a, b := accepted(plain.Bytes), accepted(m.Bytes); (a == nil) != (b == nil) {
				t.Errorf("without exceptions: %v\nwith: %v", a, b)
			}
		}
		if err = all; err != nil {
			if r, ok := errors.AsType[*Refused](err); !ok || r.Offset < 0 || r.Offset > len(module) {
				t.Fatalf("%#v", err)
			}
			return
		}
		before, after := accepted(module), accepted(m.Bytes)
		if before != nil && strings.Contains(before.Error(), "failed to read custom section") {
			return // wazero does not take an empty one at a module's end; the meter drops it
		}
		if before != nil && strings.Contains(before.Error(), "handling instruction: ") {
			return // valid for wazero, but then it reads a select's type as instructions; the meter shortens it
		}
		if (before == nil) != (after == nil) {
			t.Errorf("original: %v\nrewritten: %v", before, after)
		}
		if again, err := Rewrite(m.Bytes, limits); err == nil {
			t.Errorf("metered twice: %v", again)
		}
	})
}

// FuzzSameResults makes a program of the bytes, as generate does, and runs it plain and metered.
func FuzzSameResults(f *testing.F) {
	f.Add([]byte("a loop"))
	f.Add([]byte{0x06, 0x03, 0x01, 0x02, 0x05, 0x09, 0x0a, 0x0b, 0x00, 0x07, 0x01, 0x08, 0x04})
	f.Add([]byte{0x07, 0x06, 0x06, 0x06, 0x01, 0x02, 0x0d, 0x03, 0x0c, 0x11, 0x0e, 0x02, 0x02, 0x03, 0x0f, 0x01, 0x10, 0x05})
	f.Add([]byte{0x15, 0x00, 0x01, 0x12, 0x00, 0x01, 0x05, 0x01, 0x15, 0x01, 0x02, 0x13, 0x04, 0x03, 0x01, 0x14, 0x02})
	f.Add([]byte("The quick brown fox jumps over the lazy dog, 0123456789, and back again: zyxwvutsrqponmlkjihgfedcba"))
	runtimes := map[string]wazero.Runtime{}
	for engine := range engines {
		runtimes[engine] = newRuntime(f, engine)
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		if len(choices) > 400 {
			t.Skip("long programs take long and find nothing more")
		}
		module := generate(choices).module()
		metered := rewrite(t, module).Bytes
		for engine, rt := range runtimes {
			after := runF(t, rt, metered)
			if strings.Contains(after.Trap, "guest stopped") {
				t.Fatal("the program does not end, and unmetered nothing would stop it")
			}
			if diff := cmp.Diff(runF(t, rt, module), after); diff != "" {
				t.Errorf("%s: plain (-) and metered (+):\n%s", engine, diff)
			}
		}
	})
}

// FuzzTypedPrograms is the same with programs of several functions, references, tail calls and exceptions. What it
// compares with is the interpreter: wazero's compiler gets some ways out of a try_table wrong unmetered.
func FuzzTypedPrograms(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 40 {
		choices := make([]byte, 20+n*n/4)
		for i := range choices {
			choices[i] = byte(r.Uint32())
		}
		f.Add(choices)
	}
	runtimes := map[string]wazero.Runtime{}
	for engine := range engines {
		runtimes[engine] = newRuntime(f, engine)
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		if len(choices) > 1000 {
			t.Skip("long programs take long and find nothing more")
		}
		text := generateTyped(choices)
		module := assemble(t, text)
		metered := rewrite(t, module).Bytes
		var plain *outcome
		for _, engine := range []string{"interpreter", "compiler"} {
			after := runF(t, runtimes[engine], metered)
			if strings.Contains(after.Trap, "its stack is used up") {
				t.Skip("more than 64 try_tables are open")
			}
			if strings.Contains(after.Trap, "guest stopped") {
				t.Fatalf("the program does not end, and unmetered nothing would stop it\n%s", text)
			}
			if plain == nil {
				o := runF(t, runtimes[engine], module)
				plain = &o
			}
			if diff := cmp.Diff(*plain, after); diff != "" {
				t.Errorf("%s: plain (-) and metered (+):\n%s\n%s", engine, diff, text)
			}
		}
	})
}

// generate makes a valid program that ends: each byte chooses a statement, the next ones its operands.
//
// Locals 0 to 3 hold values; 4, 5 and 6 count the passes of loops, one for each depth. Global 0 counts the calls of
// itself that it may still make.
func generate(choices []byte) program {
	g := generator{in: choices, results: bytes.Repeat([]byte{i32}, 1+len(choices)%3)}
	for len(g.in) > 0 {
		g.statement(0)
	}
	g.result()
	return program{results: g.results, locals: []byte{i32, i32, i32, i32, i32, i32, i32}, body: g.out}
}

type generator struct {
	in, out []byte
	results []byte
	open    byte // blocks around the statement at hand
}

// result pushes what the program returns.
func (g *generator) result() {
	g.emit(opLocalGet, 0, opLocalGet, 1, 0x73, opLocalGet, 2, opI32Add, opLocalGet, 3, 0x73)
	for i := range g.results[1:] {
		g.emit(opLocalGet, byte(i))
	}
}

func (g *generator) next() byte {
	if len(g.in) == 0 {
		return 0
	}
	c := g.in[0]
	g.in = g.in[1:]
	return c
}

func (g *generator) emit(code ...byte) { g.out = append(g.out, code...) }

// local pushes one of the values.
func (g *generator) local() { g.emit(opLocalGet, g.next()%4) }

// small pushes a number below 32, for lengths and addresses.
func (g *generator) small() { g.local(); g.emit(opI32Const, 31, opI32And) }

func (g *generator) set() { g.emit(opLocalSet, g.next()%4) }

// block emits statements at a depth, inside of so many blocks more, sometimes with a way out in the middle.
func (g *generator) block(depth int, blocks byte) {
	g.open += blocks
	defer func() { g.open -= blocks }()
	for n := g.next() % 4; n > 0; n-- {
		g.statement(depth)
		if g.next()%8 == 0 {
			g.local()
			g.emit(0x0d, 0)
		}
	}
}

func (g *generator) statement(depth int) {
	switch g.next() % 22 {
	case 0:
		g.emit(opI32Const)
		g.out = appendSigned(g.out, int64(int8(g.next()))*1001)
		g.set()
	case 1, 2: // one of and, or, xor, shl, add, sub, mul, rotl
		g.local()
		g.local()
		g.emit([]byte{0x71, 0x72, 0x73, 0x74, 0x6a, 0x6b, 0x6c, 0x77}[g.next()%8])
		g.set()
	case 3: // may trap
		g.local()
		g.local()
		g.emit([]byte{0x6d, 0x6e, 0x6f, 0x70}[g.next()%4])
		g.set()
	case 4:
		g.local()
		g.emit(opIf, 0x40)
		if depth < 3 {
			g.block(depth+1, 1)
		}
		g.emit(opElse)
		if depth < 3 {
			g.block(depth+1, 1)
		}
		g.emit(opEnd)
	case 5:
		g.emit(opBlock, 0x40)
		if depth < 3 {
			g.block(depth+1, 1)
		}
		g.emit(opEnd)
	case 6, 7: // a loop of up to 16 passes
		if depth >= 3 {
			return
		}
		counter := byte(4 + depth)
		g.emit(opI32Const, g.next()%16, opLocalSet, counter)
		g.emit(opBlock, 0x40, opLoop, 0x40, opLocalGet, counter, 0x45, 0x0d, 1)
		g.emit(opLocalGet, counter, opI32Const, 1, opI32Sub, opLocalSet, counter)
		g.emit(opBlock, 0x40)
		g.block(depth+1, 3)
		g.emit(opEnd, opBr, 0, opEnd, opEnd)
	case 8: // a loop with a parameter, entered once
		g.local()
		g.local()
		g.emit(opLoop, 1, opI32Add, opEnd)
		g.set()
	case 9:
		g.local()
		g.local()
		g.emit(opCall, addFunc)
		g.set()
	case 10: // an index may be out of range or of the wrong type
		g.local()
		g.local()
		g.small()
		g.emit(opCallIndirect, 1, 0)
		g.set()
	case 11:
		g.small()
		g.small()
		g.small()
		g.emit(opMisc, []byte{0x0a, 0x0b}[g.next()%2])
		if g.emit(0); g.out[len(g.out)-2] == 0x0a {
			g.emit(0)
		}
	case 12: // may trap
		g.small()
		g.small()
		g.small()
		g.emit(opMisc, 0x08, 0, 0)
	case 13:
		g.small()
		g.local()
		g.emit(0x36, 2, 0)
	case 14:
		g.small()
		g.emit(0x28, 2, 0)
		g.set()
	case 15:
		g.emit(opRefFunc, addFunc)
		g.small()
		g.emit(opMisc, miscTableGrow, 0)
		g.set()
	case 16:
		g.small()
		g.emit(opI32Const, 3, opI32And, opMemoryGrow, 0)
		g.set()
	case 17: // jumps over a loop, by a table
		g.emit(opBlock, 0x40, opBlock, 0x40)
		g.small()
		g.emit(0x0e, 1, 0, 1, opEnd)
		if depth < 3 {
			g.emit(opLoop, 0x40, opBlock, 0x40)
			g.block(depth+1, 3)
			g.emit(opEnd, opEnd)
		}
		g.emit(opEnd)
	case 18: // ends, with something left below the results
		g.local()
		g.emit(opIf, 0x40)
		g.local()
		g.result()
		g.emit(opReturn, opEnd)
	case 19:
		g.result()
		g.local()
		g.emit(0x0d, g.open)
		g.emit(bytes.Repeat([]byte{0x1a}, len(g.results))...)
	case 20:
		g.local()
		g.emit(opIf, 0x40)
		g.result()
		g.small()
		g.emit(0x0e, 1, g.open+1, g.open+1, opEnd)
	case 21: // calls itself, by its number or through the table
		g.emit(opGlobalGet, 0, opIf, 0x40, opGlobalGet, 0, opI32Const, 1, opI32Sub, opGlobalSet, 0)
		if g.next()%2 == 0 {
			g.emit(opCall, ownFunc)
		} else {
			g.emit(opI32Const, 1, opCallIndirect, 2, 0)
		}
		for range g.results {
			g.set()
		}
		g.emit(opEnd)
	}
}
