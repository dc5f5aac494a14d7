package meter

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// refused asserts that Rewrite refuses a module with a text that contains want, at an offset that is its own.
func refused(t *testing.T, module []byte, want ...string) {
	t.Helper()
	m, err := Rewrite(module, Limits{MemoryPages: 256})
	r, ok := errors.AsType[*Refused](err)
	if !ok {
		t.Errorf("got %v, %v, want a refusal with %q", m, err, want)
		return
	}
	for _, s := range want {
		if !strings.Contains(r.Error(), s) {
			t.Errorf("got %q, want %q in it", r.Error(), s)
		}
	}
	if r.Offset < 0 || r.Offset > len(module) {
		t.Errorf("%v: offset %d in %d bytes", r, r.Offset, len(module))
	}
}

// ops is a module whose function consists of some bytes.
func ops(body ...byte) []byte { return program{body: body}.module() }

// at is the offset where a body is seen in its module, as an error writes it.
func at(module []byte, body ...byte) string {
	return fmt.Sprintf("byte %#x,", bytes.LastIndex(module, append(body, opEnd)))
}

func TestRefusesLaterProposalsByOffsetAndOpcode(t *testing.T) {
	check := func(name, opcode, proposal string, body ...byte) {
		t.Helper()
		m := ops(body...)
		refused(t, m, at(m, body...), `function 1 "f"`, name, "opcode "+opcode, proposal)
	}
	check("try", "0x6", "wasm-opt --translate-to-exnref", 0x06, 0x40, opEnd)
	check("throw", "0x8", "exceptions", 0x08, 0)
	check("rethrow", "0x9", "-wasm-use-legacy-eh=false", 0x09, 0)
	check("throw_ref", "0xa", "exceptions", 0x0a)
	check("try_table", "0x1f", "exceptions", 0x1f, 0x40, 0, opEnd)
	check("ref.eq", "0xd3", "garbage-collected", 0xd3)
	check("", "0xfb", "garbage-collected", 0xfb, 0)
	check("", "0xfe", "threads", 0xfe, 0x10, 2, 0)
	check("", "0xe0", "stack switching", 0xe0, 0)
	check("memory.discard", "0xfc 0x12", "memory control", 0xfc, 0x12, 0)
	check("", "0xfc 0x13", "wide arithmetic", 0xfc, 0x13)
	check("", "0xfd 0x100", "relaxed SIMD", 0xfd, 0x80, 0x02)
	check("", "0xff", "no such instruction", 0xff)
	check("", "0xfc 0x40", "no such instruction", 0xfc, 0x40)
	check("", "0xfd 0x9a", "no such instruction", 0xfd, 0x9a, 0x01)
}

// TestTheLegacyEncodingIsToldFirst: such a module has tags too, but allowing exceptions would not help.
func TestTheLegacyEncodingIsToldFirst(t *testing.T) {
	refused(t, program{tag: true, body: []byte{0x06, 0x40, opEnd}}.module(), "legacy encoding", "wasm-opt --translate-to-exnref")
	if _, err := Rewrite(program{tag: true}.module(), Limits{MemoryPages: 256}); err != nil {
		t.Errorf("tags alone: %v", err)
	}
}

func TestRefusesExceptionsThatLeaveTheirFunction(t *testing.T) {
	check := func(text string, want ...string) {
		t.Helper()
		m, err := Rewrite(assemble(t, text), limits)
		r, ok := errors.AsType[*Refused](err)
		if !ok {
			t.Fatalf("%s: got %v, %v", text, m, err)
		}
		for _, s := range want {
			if !strings.Contains(r.Error(), s) {
				t.Errorf("got %q, want %q in it", r, s)
			}
		}
	}
	check("global exnref ; ref.null exnref", "global", "in locals and blocks only")
	check("table exnref 1", "table", "in locals and blocks only")
	check("elem exnref ; ref.null exnref", "element segment", "in locals and blocks only")
	check("type exnref -> \n tag 0", "tag section", "in locals and blocks only")
	check("type exnref -> \n func 0 f ;", "function", "in locals and blocks only")
	check("type -> null:exn \n func 0 f ; ref.null exnref", "function", "in locals and blocks only")
	check("type exnref -> \n import env work 0", "imported function", "in locals and blocks only")
	check("type v128 -> \n tag 0", "vectors")
	check("type -> \n type i32 -> \n func 0 f ; try_table void catch_all:0 i32.const 1 try_table 1 catch_all:0 drop end end", "leaves another try_table", "takes values")
	check("type -> \n type i32 i32 -> \n tag 1 \n func 0 f ; i32.const 1 i32.const 1 loop 1 drop drop try_table void catch_all:1 try_table void catch:0:1 end end end", "leaves another try_table", "takes values")
	check("type -> \n tag 0 \n func 0 f ; "+strings.Repeat("block void try_table void catch_all:0 throw 0 end end ", 700), "more than 2000 try_tables")
	check("type -> \n func 0 f ref:0 ; try_table void catch_all:0 end", "locals that cannot be null")
}

// TestRefusesVectorOpcodesThatReadTwoWays: wazero takes one byte behind 0xfd where the specification has a LEB.
func TestRefusesVectorOpcodesThatReadTwoWays(t *testing.T) {
	for _, body := range [][]byte{
		{0xfd, 0x80, 0x03, 0x40, opEnd}, // wazero: i16x8.abs, loop … end
		{0xfd, 0x80, 0x00},              // wazero: i16x8.abs, unreachable
		{0xfd, 0x8e, 0x81, 0x00},
		{0xfd, 0xff, 0xff, 0xff, 0xff, 0x0f},
	} {
		m := ops(body...)
		refused(t, m, at(m, body...), "0xfd")
	}
}

func TestRefusesOtherFiles(t *testing.T) {
	check := func(file string, want ...string) { t.Helper(); refused(t, []byte(file), want...) }
	check("", "empty")
	check("\x00aot\x01\x00\x00\x00", "AOT", ".wasm")
	check(" ;; text", "not a WebAssembly module")
	check("\n (module)", "text", "wat2wasm")
	check("\x7fELF\x02\x01\x01\x00", "not a WebAssembly module")
	check("\x00asm\x0d\x00\x01\x00", "component", "wasm32-wasip1")
	check("\x00asm\x02\x00\x00\x00", "version 2")
	check("\x00asm\x01\x00\x00", "not a WebAssembly module")
}

// sectionsOf is a module of sections given as number, content.
func sectionsOf(parts ...any) []byte {
	w := []byte("\x00asm\x01\x00\x00\x00")
	for i := 0; i < len(parts); i += 2 {
		w = appendBytes(append(w, byte(parts[i].(int))), []byte(parts[i+1].(string)))
	}
	return w
}

func TestRefusesDeclarationsOfLaterProposals(t *testing.T) {
	check := func(section int, content string, want ...string) {
		t.Helper()
		refused(t, sectionsOf(section, content), want...)
	}
	check(secMemory, "\x01\x04\x01", "64-bit memories", "wasm32")
	check(secMemory, "\x01\x03\x01\x02", "threads", "-pthread")
	check(secMemory, "\x01\x08\x01\x00", "custom page sizes")
	check(secMemory, "\x02\x00\x01\x00\x01", "several memories")
	check(secTable, "\x01\x69\x00\x01", "exceptions")
	check(secTable, "\x01\x7f\x00\x01", "not a reference type")
	check(secType, "\x01\x5f\x00", "garbage-collected")
	check(secType, "\x01\x60\x01\x6e\x00", "garbage-collected")
	check(secType, "\x01\x60\x01\x69\x00", "exceptions", "set `exceptions: true`")
	check(secType, "\x01\x60\x01\x64\x69\x00", "exceptions")
	check(secTag, "\x01\x00\x00", "index 0, but there are 0")
	check(secImport, "\x01\x01a\x01b\x04\x00\x00", "index 0, but there are 0")
	check(secImport, "\x01\x01a\x01b\x7f\x00", "compact")
	check(secGlobal, "\x01\x7f\x00\x6d\x0b", "opcode 0x6d")
}

func TestRefusesMalformedModules(t *testing.T) {
	check := func(module []byte, want ...string) { t.Helper(); refused(t, module, want...) }
	check(sectionsOf(secMemory, "\x00", secType, "\x00"), "type section", "order")
	check(sectionsOf(secMemory, "\x00", secMemory, "\x00"), "memory section", "twice")
	check(sectionsOf(secCode, "\x00", secDataCount, "\x00"), "data count section", "order")
	check(sectionsOf(0x0e, ""), "no section has the number 14")
	check(sectionsOf(secMemory, "\x00\x00"), "goes on behind")
	check(sectionsOf(secMemory, "\x81\x80\x80\x80\x10"), "malformed")
	check(sectionsOf(secType, "\xff\xff\xff\xff\x0f"), "the limit is")
	check(sectionsOf(secCustom, "\x01\xff"), "UTF-8")
	check(sectionsOf(secCustom, "\x04name\x00\x02\x01a", secCustom, "\x04name\x00\x02\x01a"), "twice")
	check(sectionsOf(secCustom, "\x04name\x01\x04\x01\x07\x01a"), "function 7")
	check(sectionsOf(secDataCount, "\x01"), "1 data segments announced, 0 there")
	check(sectionsOf(secType, "\x01\x60\x00\x00", secFunction, "\x01\x00"), "0 bodies for 1 functions")
	check(sectionsOf(secExport, "\x01\x01\xc0\x00\x00"), "UTF-8")
	check(ops(opBr), "label 11")
	check(ops(opEnd), "behind the end")
	check(ops(opBlock, 0x40), "malformed")
	check(ops(opElse), "no if for it")
	check(ops(opBlock, 0x40, opElse, opEnd), "no if for it")
	check(ops(opI32Const, 0xff, 0xff, 0xff, 0xff, 0x4f, 0x1a), "malformed")
	check(ops(opI32Const, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00, 0x1a), "malformed")
	check(ops(opBlock, 0x41, opEnd), "value type 0x41")
	check(ops(opBlock, 0x80, 0x7f, opEnd), "block type")
	check(ops(0x1c, 2, i32, i32), "2 types")
	check(ops(0x28, 0x40, 0, 0), "several memories")
	check(ops(0x28, 0x20, 0), "alignment")
	check(ops(0x3f, 1), "several memories")
	check(ops(opRefNull, 3), "type 3, but there are 3")
	check(ops(opRefNull, 0x73), "garbage-collected")
	check(ops(opBlock, ref, 0x73, opEnd), "garbage-collected")
	check(ops(opBlock, refNull, 3, opEnd), "type 3, but there are 3")
	check(sectionsOf(secGlobal, "\x01\x7f\x00\x6a\x0b"), "no two values")
	check(sectionsOf(secGlobal, "\x01\x7f\x00\x0b"), "one value of type i32")
	check(sectionsOf(secGlobal, "\x01\x7f\x00\x41\x00\x41\x00\x0b"), "one value of type i32")
	check(sectionsOf(secGlobal, "\x01\x7e\x00\x41\x00\x0b"), "one value of type i64")
}

// TestRefusesIndicesOfWhatTheMeterAdds: each of these is invalid only because the count ends there, and what the meter
// appends would make it valid.
func TestRefusesIndicesOfWhatTheMeterAdds(t *testing.T) {
	check := func(thing string, body ...byte) { t.Helper(); refused(t, ops(body...), thing) }
	check("function 2, but there are 2", opCall, 2)
	check("function 2, but there are 2", opRefFunc, 2, 0x1a)
	check("global 2, but there are 2", opGlobalGet, 2, 0x1a)
	check("global 2, but there are 2", opI32Const, 0, opGlobalSet, 2)
	check("type 3, but there are 3", opI32Const, 0, opCallIndirect, 3, 0)
	check("there are 3 types", opBlock, 3, opEnd)
	check("table 1, but there are 1", opI32Const, 0, opCallIndirect, 0, 1)
	check("table 1, but there are 1", 0xfc, 0x10, 1, 0x1a)
	check("local 0, but there are 0", opLocalGet, 0, 0x1a)
	check("local 0, but there are 0", 0x03, 0x40, opLocalGet, 0, 0x0d, 0, opEnd)
	check("label 1, but there are 1", opBr, 1)
	check("data segment 1, but there are 1", 0xfc, 0x09, 1)
	check("element segment 2, but there are 2", 0xfc, 0x0d, 2)

	// The same outside of bodies.
	void := "\x01\x60\x00\x00"
	outside := func(want string, parts ...any) { t.Helper(); refused(t, sectionsOf(parts...), want) }
	outside("index 1, but there are 1", secType, void, secImport, "\x01\x01a\x01b\x00\x01")
	outside("index 1, but there are 1", secType, void, secFunction, "\x01\x01")
	outside("index 0, but there are 0", secType, void, secExport, "\x01\x01a\x00\x00")
	outside("index 0, but there are 0", secType, void, secExport, "\x01\x01a\x03\x00")
	outside("index 0, but there are 0", secType, void, secStart, "\x00")
	outside("index 0, but there are 0", secGlobal, "\x01\x7f\x00\x23\x00\x0b")
	outside("index 0, but there are 0", secGlobal, "\x01\x70\x00\xd2\x00\x0b")
	outside("index 0, but there are 0", secTable, "\x01\x70\x00\x01", secElement, "\x01\x00\x41\x00\x0b\x01\x00")
	outside("index 0, but there are 0", secTable, "\x01\x70\x00\x01", secElement, "\x01\x04\x41\x00\x0b\x01\xd2\x00\x0b")
	outside("index 0, but there are 0", secMemory, "\x01\x00\x01", secData, "\x01\x00\x23\x00\x0b\x00")
}

func TestRefusesTheMetersOwnImport(t *testing.T) {
	refused(t, sectionsOf(secType, "\x01\x60\x01\x7f\x01\x7f", secImport, "\x01\x0aweir_meter\x04tick\x00\x00"), "weir_meter.tick", "meter's own")
	refused(t, sectionsOf(secImport, "\x01\x0aweir_meter\x01g\x03\x7f\x01"), "weir_meter.g")
	m, err := Rewrite(ops(), Limits{MemoryPages: 1})
	if err != nil {
		t.Fatal(err)
	}
	refused(t, m.Bytes, "weir_meter.tick")
}

func TestRefusesWhatOverloadsTheCompiler(t *testing.T) {
	refused(t, make([]byte, MaxModuleBytes+1), "16777217 bytes")
	refused(t, ops(bytes.Repeat([]byte{0x01}, MaxBodyBytes)...), `function 1 "f"`, "the limit is 262144")
	refused(t, sectionsOf(secType, "\x01\x60\x00\x00", secFunction, "\xd1\x86\x03"+strings.Repeat("\x00", 50_001)), "50001 entries", "50000")
	refused(t, program{locals: bytes.Repeat([]byte{i32}, MaxLocals+1)}.module(), "10001 or more", "10000")
	refused(t, program{locals: bytes.Repeat([]byte{i32}, 9000), body: bytes.Repeat([]byte{opBlock, 0x40, opEnd}, 200)}.module(), "9000 locals over 112")
	refused(t, sectionsOf(secTable, "\x01\x70\x00\x81\x80\x04"), "65537 elements", "65536")
	refused(t, sectionsOf(secMemory, "\x01\x00\x81\x02"), "begins with 16448KiB", "may have 16MiB", "memory:")
}

// TestGoMayHaveLargeBodies: its start-up code for large tables is one function.
func TestGoMayHaveLargeBodies(t *testing.T) {
	m := ops(bytes.Repeat([]byte{0x01}, MaxBodyBytes)...)
	m = append(m, appendBytes([]byte{secCustom}, []byte("\x0ago:buildid"))...)
	if _, err := Rewrite(m, limits); err != nil {
		t.Error(err)
	}
}
