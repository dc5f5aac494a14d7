package meter

import (
	"strconv"
	"strings"
	"testing"
)

// assemble makes a module of a text that has a line for each declaration, for the proposals that wat2wasm does not know.
// Everything is named by its index, types are written i32, exnref, ref:0 (of type 0), null:0:
//
//	type i32 i32 -> i32
//	import env work 0               (a function of type 0)
//	func 0 f i32 exnref ; code      (of type 0; exported as f, or _ not; locals; instructions)
//	table null:0 10 ; constant      (or without a constant)
//	memory 1
//	tag 0
//	global i32 ; constant           (mutable)
//	elem funcref ; code ; code      (passive; with the type "active", funcref in table 0 from 0)
//	data bytes                      (passive)
//
// Instructions are flat and have the names and operands of the meter's tables; a block type is void, a type or the
// number of one. try_table takes its clauses as catch:0:1, catch_all:0 and so on.
func assemble(t testing.TB, text string) []byte {
	t.Helper()
	a := assembler{t: t}
	for line := range strings.Lines(text) {
		a.declare(strings.Split(strings.TrimSpace(line), ";"))
	}
	if a.counts[secData] > 0 {
		a.sections[secDataCount], a.counts[secDataCount] = nil, a.counts[secData]
	}
	w := []byte("\x00asm\x01\x00\x00\x00")
	for _, id := range []byte{secType, secImport, secFunction, secTable, secMemory, secTag, secGlobal, secExport, secElement, secDataCount, secCode, secData} {
		if n := a.counts[id]; n > 0 {
			w = appendBytes(append(w, id), append(appendU32(nil, n), a.sections[id]...))
		}
	}
	return w
}

type assembler struct {
	t        testing.TB
	sections [sections][]byte
	counts   [sections]uint32
	imported uint32
}

func (a *assembler) add(id int, entry []byte) {
	a.sections[id] = append(a.sections[id], entry...)
	a.counts[id]++
}

func (a *assembler) declare(parts []string) {
	f := strings.Fields(parts[0])
	if len(f) == 0 {
		return
	}
	switch args := f[1:]; f[0] {
	case "type":
		w, n := []byte{0x60}, len(args)
		for i, s := range args {
			if s == "->" {
				n = i
			}
		}
		w = a.valueTypes(w, args[:n])
		a.add(secType, a.valueTypes(w, args[min(n+1, len(args)):]))
	case "import":
		a.imported++
		a.add(secImport, append(appendBytes(appendBytes(nil, args[0]), args[1]), append([]byte{0}, a.u32(nil, args[2])...)...))
	case "func":
		if args[1] != "_" {
			a.add(secExport, appendU32(append(appendBytes(nil, args[1]), 0), a.imported+a.counts[secFunction]))
		}
		a.add(secFunction, a.u32(nil, args[0]))
		w := appendU32(nil, uint32(len(args)-2))
		for _, s := range args[2:] {
			w = append(append(w, 1), a.valueType(s)...)
		}
		a.add(secCode, appendBytes(nil, a.code(w, parts[1])))
	case "table":
		limits := a.u32([]byte{0}, args[1])
		if len(parts) > 1 {
			a.add(secTable, a.code(append(append([]byte{0x40, 0}, a.valueType(args[0])...), limits...), parts[1]))
		} else {
			a.add(secTable, append(a.valueType(args[0]), limits...))
		}
	case "memory":
		a.add(secMemory, a.u32([]byte{0}, args[0]))
		a.add(secExport, []byte{1, 'm', 2, 0})
	case "tag":
		a.add(secTag, a.u32([]byte{0}, args[0]))
	case "global":
		a.add(secGlobal, a.code(append(a.valueType(args[0]), 1), parts[1]))
	case "elem":
		w := []byte{4, opI32Const, 0, opEnd}
		if args[0] != "active" {
			w = append([]byte{5}, a.valueType(args[0])...)
		}
		w = appendU32(w, uint32(len(parts)-1))
		for _, c := range parts[1:] {
			w = a.code(w, c)
		}
		a.add(secElement, w)
	case "data":
		a.add(secData, appendBytes([]byte{1}, args[0]))
	default:
		a.t.Fatalf("no declaration %q", f[0])
	}
}

func (a *assembler) valueType(s string) []byte {
	plain := map[string]byte{"i32": i32, "i64": i64, "f32": f32, "f64": f64, "v128": v128, "funcref": funcref, "externref": externref, "exnref": exnref, "void": 0x40}
	if b, ok := plain[s]; ok {
		return []byte{b}
	}
	prefix, of, _ := strings.Cut(s, ":")
	w := []byte{map[string]byte{"ref": ref, "null": refNull}[prefix]}
	switch of {
	case "func", "extern", "exn":
		return append(w, map[string]byte{"func": funcref, "extern": externref, "exn": exnref}[of])
	}
	return appendSigned(w, a.number(of))
}

func (a *assembler) valueTypes(w []byte, types []string) []byte {
	w = appendU32(w, uint32(len(types)))
	for _, s := range types {
		w = append(w, a.valueType(s)...)
	}
	return w
}

func (a *assembler) number(s string) int64 {
	a.t.Helper()
	n, err := strconv.ParseInt(s, 0, 64)
	if err != nil {
		a.t.Fatal(err)
	}
	return n
}

func (a *assembler) u32(w []byte, s string) []byte { return appendU32(w, uint32(a.number(s))) }

// code appends instructions and an end.
func (a *assembler) code(w []byte, text string) []byte {
	a.t.Helper()
	f := strings.Fields(text)
	next := func() string {
		if len(f) == 0 {
			a.t.Fatalf("%q ends too early", text)
		}
		s := f[0]
		f = f[1:]
		return s
	}
	for len(f) > 0 {
		name := next()
		ins := encodings[name]
		if ins.code == nil {
			a.t.Fatalf("no instruction %q", name)
		}
		w = append(w, ins.code...)
		switch ins.imm {
		case immBlock, immTry:
			if s := next(); s[0] >= '0' && s[0] <= '9' {
				w = appendSigned(w, a.number(s))
			} else {
				w = append(w, a.valueType(s)...)
			}
			if ins.imm == immTry {
				n := 0
				for n < len(f) && strings.HasPrefix(f[n], "catch") {
					n++
				}
				w = appendU32(w, uint32(n))
				for range n {
					parts := strings.Split(next(), ":")
					w = append(w, map[string]byte{"catch": catch, "catch_ref": catchRef, "catch_all": catchAll, "catch_all_ref": catchAllRef}[parts[0]])
					for _, s := range parts[1:] {
						w = a.u32(w, s)
					}
				}
			}
		case immLabels:
			n := a.number(next())
			w = appendU32(w, uint32(n))
			for range n + 1 {
				w = a.u32(w, next())
			}
		case immI32, immI64:
			w = appendSigned(w, a.number(next()))
		case immRefType:
			if s := next(); s[0] >= '0' && s[0] <= '9' {
				w = appendSigned(w, a.number(s))
			} else {
				w = append(w, a.valueType(s)...)
			}
		case immSelect:
			w = append(append(w, 1), a.valueType(next())...)
		case immMemory, immZeroZero:
			w = append(w, 0, 0)
		case immZero:
			w = append(w, 0)
		case immDataZero:
			w = append(a.u32(w, next()), 0)
		case immIndirect, immElemTable, immTables:
			w = a.u32(a.u32(w, next()), next())
		case immNone:
		default:
			w = a.u32(w, next())
		}
	}
	return append(w, opEnd)
}

type encoding struct {
	code []byte
	imm  imm
}

// encodings are the instructions of one byte and those behind 0xfc, by name.
var encodings = func() map[string]encoding {
	m := map[string]encoding{}
	for op, ins := range instrs {
		m[strings.ReplaceAll(ins.name, " ", "_")] = encoding{[]byte{byte(op)}, ins.imm}
	}
	for n, ins := range miscs {
		m[ins.name] = encoding{[]byte{opMisc, byte(n)}, ins.imm}
	}
	delete(m, "")
	return m
}()
