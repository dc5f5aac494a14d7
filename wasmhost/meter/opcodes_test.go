package meter

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
)

// TestEveryInstruction puts each instruction that the meter knows into a module: wazero takes it before and after, and
// both give the same results or the same trap, in both engines.
func TestEveryInstruction(t *testing.T) {
	seen := 0
	each := func(prefix byte, table []instr) {
		for n, ins := range table {
			if ins.name == "" || ins.name == "else" || ins.name == "end" {
				continue
			}
			seen++
			code := []byte{byte(n)}
			if prefix != 0 {
				code = appendU32([]byte{prefix}, uint32(n))
			}
			p := exercise(t, ins, code)
			t.Run(ins.name, func(t *testing.T) { sameBehaviour(t, p.module()) })
		}
	}
	each(0, instrs[:])
	each(opMisc, miscs[:])
	each(opSIMD, simds[:])
	// WebAssembly 2.0 has 181 instructions of one byte (else and end apart), 18 behind 0xfc, 236 behind 0xfd; tail calls
	// are two more, typed references five, exceptions three.
	if want := 181 + 18 + 236 + 2 + 5 + 3; seen != want {
		t.Errorf("%d instructions, want %d", seen, want)
	}
}

// sameBehaviour runs f of a module plain and metered and compares.
func sameBehaviour(t *testing.T, module []byte) {
	t.Helper()
	m := rewrite(t, module)
	for engine := range engines {
		rt := newRuntime(t, engine)
		plain, metered := runF(t, rt, module), runF(t, rt, m.Bytes)
		if diff := cmp.Diff(plain, metered); diff != "" {
			t.Errorf("%s: plain (-) and metered (+):\n%s", engine, diff)
		}
	}
}

// outcome is what running a module shows: results or trap, and the memory's content.
type outcome struct {
	Results []uint64
	Trap    string
	Memory  uint64 // a sum over it
}

func runF(t testing.TB, rt wazero.Runtime, module []byte) outcome {
	t.Helper()
	clock := &Clock{}
	clock.Begin(10 * time.Second)
	ctx := withClock(context.Background(), clock)
	compiled, err := rt.CompileModule(ctx, module)
	if err != nil {
		t.Fatal(err)
	}
	defer compiled.Close(ctx)
	mod, err := rt.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		t.Fatal(err)
	}
	defer mod.Close(ctx)
	var o outcome
	o.Results, err = mod.ExportedFunction("f").Call(ctx)
	if err != nil {
		o.Trap, _, _ = strings.Cut(err.Error(), "\n")
	}
	if m := mod.ExportedMemory("m"); m != nil {
		all, _ := m.Read(0, m.Size())
		for i := 0; i < len(all); i += 8 {
			o.Memory = o.Memory*31 + binary.LittleEndian.Uint64(all[i:])
		}
	}
	return o
}

// exercise builds a program around one instruction: constants for its operands, the instruction, its results returned
// (of references, whether they are null).
func exercise(t *testing.T, ins instr, code []byte) program {
	t.Helper()
	if p, ok := control[ins.name]; ok {
		return p
	}
	in, out := signature(ins.name)
	p := program{locals: []byte{i32, i64}}
	for i, c := range in {
		p.body = appendOperand(p.body, c, i)
	}
	p.body = append(p.body, code...)
	p.body = append(p.body, immediates(t, ins)...)
	for _, c := range out {
		if c == 'r' {
			p.body = append(p.body, 0xd1)
			c = 'i'
		}
		p.results = append(p.results, map[rune]byte{'i': i32, 'l': i64, 'f': f32, 'd': f64, 'v': v128}[c])
	}
	return p
}

// control are the instructions that are not one line.
var control = map[string]program{
	"block":         {body: []byte{opBlock, 0x40, opEnd}},
	"loop":          {body: []byte{opLoop, 0x40, opEnd}},
	"if":            {results: []byte{i32}, body: []byte{opI32Const, 1, opIf, i32, opI32Const, 2, opElse, opI32Const, 3, opEnd}},
	"br":            {body: []byte{opBlock, 0x40, opBr, 0, opEnd}},
	"br_if":         {body: []byte{opBlock, 0x40, opI32Const, 1, 0x0d, 0, opEnd}},
	"br_table":      {results: []byte{i32}, body: []byte{opBlock, 0x40, opBlock, 0x40, opI32Const, 1, 0x0e, 2, 0, 1, 0, opEnd, opI32Const, 5, 0x0f, opEnd, opI32Const, 6}},
	"return":        {results: []byte{i32}, body: []byte{opI32Const, 4, 0x0f}},
	"call":          {results: []byte{i32}, body: []byte{opI32Const, 4, opI32Const, 5, opCall, addFunc}},
	"call_indirect": {results: []byte{i32}, body: []byte{opI32Const, 4, opI32Const, 5, opI32Const, 0, opCallIndirect, 1, 0}},
	"unreachable":   {body: []byte{0}},

	"return_call":          {results: []byte{i32}, body: []byte{opI32Const, 4, opI32Const, 5, opReturnCall, addFunc}},
	"return_call_indirect": {results: []byte{i32}, body: []byte{opI32Const, 4, opI32Const, 5, opI32Const, 0, opReturnCallIndirect, 1, 0}},
	"call_ref":             {results: []byte{i32}, body: []byte{opI32Const, 4, opI32Const, 5, opRefFunc, addFunc, opCallRef, 1}},
	"return_call_ref":      {results: []byte{i32}, body: []byte{opI32Const, 4, opI32Const, 5, opRefFunc, addFunc, opReturnCallRef, 1}},
	"ref.as_non_null":      {results: []byte{i32}, body: []byte{opRefFunc, addFunc, opRefAsNonNull, 0xd1}},
	"br_on_null":           {body: []byte{opBlock, 0x40, opRefNull, 1, opBrOnNull, 0, opDrop, opUnreachable, opEnd}},
	"br_on_non_null":       {results: []byte{i32}, body: []byte{opBlock, ref, 1, opRefFunc, addFunc, opBrOnNonNull, 0, opUnreachable, opEnd, 0xd1}},
	"throw":                {tag: true, body: []byte{opThrow, 0}},
	"throw_ref":            {body: []byte{opRefNull, exnref, opThrowRef}},
	"try_table":            {tag: true, results: []byte{i32}, body: []byte{opBlock, exnref, opTryTable, 0x40, 1, catchAllRef, 0, opThrow, 0, opEnd, opRefNull, exnref, opEnd, 0xd1}},
}

// signature derives an instruction's operands and results from its name: i, l, f, d for i32, i64, f32, f64, v and r.
func signature(name string) (in, out string) {
	if s, ok := signatures[name]; ok {
		in, out, _ = strings.Cut(s, ">")
		return in, out
	}
	shape, op, _ := strings.Cut(name, ".")
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.HasPrefix(op, p) {
				return true
			}
		}
		return false
	}
	letter := map[string]string{"i32": "i", "i64": "l", "f32": "f", "f64": "d"}
	if s, ok := letter[shape]; ok {
		switch {
		case op == "const":
			return "", s
		case has("load"):
			return "i", s
		case has("store"):
			return "i" + s, ""
		case op == "eqz":
			return s, "i"
		case has("eq", "ne", "lt", "gt", "le", "ge") && op != "neg" && op != "nearest":
			return s + s, "i"
		}
		for from, c := range letter {
			if strings.Contains(op, "_"+from) {
				return c, s
			}
		}
		if has("clz", "ctz", "popcnt", "abs", "neg", "ceil", "floor", "trunc", "nearest", "sqrt", "extend") {
			return s, s
		}
		return s + s, s
	}
	lane := map[string]string{"i8x16": "i", "i16x8": "i", "i32x4": "i", "i64x2": "l", "f32x4": "f", "f64x2": "d"}[shape]
	switch {
	case op == "const":
		return "", "v"
	case has("load") && strings.HasSuffix(op, "_lane"):
		return "iv", "v"
	case has("store"):
		return "iv", ""
	case has("load"):
		return "i", "v"
	case op == "splat":
		return lane, "v"
	case has("extract_lane"):
		return "v", lane
	case has("replace_lane"):
		return "v" + lane, "v"
	case has("all_true", "any_true", "bitmask"):
		return "v", "i"
	case has("shl", "shr"):
		return "vi", "v"
	case op == "bitselect":
		return "vvv", "v"
	case op == "not", has("abs", "neg", "popcnt", "ceil", "floor", "trunc", "nearest", "sqrt", "extend", "extadd", "convert", "demote", "promote") && op != "extmul":
		return "v", "v"
	}
	return "vv", "v"
}

var signatures = map[string]string{
	"nop": ">", "drop": "i>", "select": "lli>l", "select t": "ddi>d",
	"local.get": ">i", "local.set": "i>", "local.tee": "i>i", "global.get": ">i", "global.set": "i>",
	"table.get": "i>r", "table.set": "ir>", "memory.size": ">i", "memory.grow": "i>i",
	"ref.null": ">r", "ref.is_null": "r>i", "ref.func": ">r",
	"memory.init": "iii>", "data.drop": ">", "memory.copy": "iii>", "memory.fill": "iii>",
	"table.init": "iii>", "elem.drop": ">", "table.copy": "iii>", "table.grow": "ri>i", "table.size": ">i", "table.fill": "iri>",
}

// appendOperand pushes a constant; those of i32 are small: they serve as addresses, lengths and table indices.
func appendOperand(w []byte, c rune, n int) []byte {
	switch c {
	case 'i':
		return append(w, opI32Const, byte(n+1))
	case 'l':
		return appendSigned(append(w, opI64Const), -0x0123456789abcdef*int64(n+1))
	case 'f':
		return binary.LittleEndian.AppendUint32(append(w, opF32Const), math.Float32bits(float32(n)*7-3.25))
	case 'd':
		return binary.LittleEndian.AppendUint64(append(w, opF64Const), math.Float64bits(float64(n)*7-3.25))
	case 'v':
		w = append(w, opSIMD, simdConst)
		for i := range 16 {
			w = append(w, byte(n*97+i*41+3))
		}
		return w
	case 'r':
		return append(w, opRefFunc, addFunc)
	}
	panic(fmt.Sprintf("BUG: operand %c", c))
}

func immediates(t *testing.T, ins instr) []byte {
	t.Helper()
	switch ins.imm {
	case immNone:
		return nil
	case immFunc:
		return []byte{addFunc}
	case immSelect:
		return []byte{1, f64}
	case immLocal, immGlobal, immTable, immZero, immData, immElem, immLane:
		return []byte{0}
	case immMemory, immZeroZero, immDataZero, immElemTable, immTables:
		if ins.name == "table.init" {
			return []byte{1, 0}
		}
		return []byte{0, 0}
	case immMemLane:
		return []byte{0, 5, 0}
	case immI32:
		return appendSigned(nil, math.MinInt32)
	case immI64:
		return appendSigned(nil, math.MinInt64)
	case immF32:
		return make([]byte, 4)
	case immF64:
		return make([]byte, 8)
	case immRefType:
		return []byte{externref}
	case imm16, immLane16:
		return []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 31}
	}
	t.Fatalf("%s: no immediates for %d", ins.name, ins.imm)
	return nil
}
