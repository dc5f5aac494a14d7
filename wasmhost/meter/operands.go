package meter

import "fmt"

// operands copies what follows the opcode of ins, which began at offset at.
func (w *walker) operands(at int, ins *instr) {
	r, rw := &w.r, w.rw
	switch ins.imm {
	case immLabel:
		w.label(at, ins.name)
	case immFunc:
		f := w.index(at, ins.name, "function", uint32(len(rw.funcs)))
		rw.name(f)
		w.buf = appendU32(w.buf, rw.function(f))
	case immSelect:
		if n := r.u32(); n != 1 && r.err == nil {
			r.fail(at, ins.name, fmt.Sprintf("malformed: %d types instead of one", n), "")
		}
		long := !r.empty() && (r.b[r.pos] == refNull || r.b[r.pos] == ref)
		t := rw.valueType(r, uint32(len(rw.types)))
		if long {
			t = funcref // wazero takes it as one byte whatever it is, runs the others, and does not compare it
		}
		w.buf = appendValueType(append(w.buf, 1), t)
	case immLocal:
		w.work.uses++
		if ins != &instrs[opLocalGet] {
			w.work.sets++
		}
		w.copyIndex(at, ins.name, "local", w.locals)
	case immGlobal:
		g := w.index(at, ins.name, "global", rw.globals)
		w.wide = w.wide || g < rw.globals && rw.globalTypes[g] == v128
		w.buf = appendU32(w.buf, g)
	case immTable:
		w.copyIndex(at, ins.name, "table", rw.tables)
	case immMemory:
		w.memarg(at, ins.name)
	case immMemLane:
		w.memarg(at, ins.name)
		w.buf = append(w.buf, r.byte())
	case immZero:
		w.zero(at, ins.name)
	case immZeroZero:
		w.zero(at, ins.name)
		w.zero(at, ins.name)
	case immI32:
		w.buf = appendSigned(w.buf, r.signed(32))
	case immI64:
		w.buf = appendSigned(w.buf, r.signed(64))
	case immF32:
		w.buf = append(w.buf, r.take(4)...)
	case immF64:
		w.buf = append(w.buf, r.take(8)...)
	case imm16, immLane16:
		w.buf = append(w.buf, r.take(16)...)
	case immLane:
		w.buf = append(w.buf, r.byte())
	case immRefType:
		w.buf = appendNullType(w.buf, rw.nullType(r))
	case immData:
		w.copyIndex(at, ins.name, "data segment", rw.datas)
	case immDataZero:
		w.copyIndex(at, ins.name, "data segment", rw.datas)
		w.zero(at, ins.name)
	case immElem:
		w.copyIndex(at, ins.name, "element segment", rw.elements)
	case immElemTable:
		w.copyIndex(at, ins.name, "element segment", rw.elements)
		w.copyIndex(at, ins.name, "table", rw.tables)
	case immTables:
		w.copyIndex(at, ins.name, "table", rw.tables)
		w.copyIndex(at, ins.name, "table", rw.tables)
	}
}

// index reads the index of a thing of which the guest declared n.
func (w *walker) index(at int, name, thing string, n uint32) uint32 {
	r := &w.r
	i := r.u32()
	if i >= n && r.err == nil {
		r.fail(at, name, fmt.Sprintf("%s %d, but there are %d", thing, i, n), "")
	}
	return i
}

func (w *walker) copyIndex(at int, name, thing string, n uint32) {
	w.buf = appendU32(w.buf, w.index(at, name, thing, n))
}

func (w *walker) memarg(at int, name string) {
	r := &w.r
	align := r.u32()
	switch {
	case align >= 0x40 && align < 0x80:
		r.fail(at, name, multiMemory.reason(), multiMemory.remedy)
	case align >= 32:
		r.fail(at, name, fmt.Sprintf("malformed: alignment 2^%d", align), "")
	case w.rw.memories == 0 && r.err == nil:
		r.fail(at, name, "the module has no memory", "")
	}
	w.buf = appendU32(w.buf, align)
	w.buf = appendU32(w.buf, r.u32())
}

func (w *walker) zero(at int, name string) {
	r := &w.r
	if c := r.byte(); c != 0 && r.err == nil {
		r.fail(at, name, multiMemory.reason(), multiMemory.remedy)
	}
	w.buf = append(w.buf, 0)
}

// misc copies an instruction behind the prefix 0xfc.
func (w *walker) misc(b *body, at int) {
	n := w.r.u32()
	if n >= uint32(len(miscs)) || w.r.err != nil {
		name, p := laterMisc(n)
		w.notKnown(at, name, fmt.Sprintf("0xfc %#x", n), p)
		return
	}
	units := uint32(1)
	if n == miscTableGrow {
		units = growUnits
	}
	w.pay(b, units)
	switch n {
	case miscMemoryInit, miscMemoryCopy, miscMemoryFill:
		w.bulk(b, bytesMoved)
	case miscTableInit, miscTableCopy, miscTableFill, miscTableGrow:
		w.bulk(b, elementsMoved)
	}
	w.grow(int(miscGrowth[n]))
	w.buf = append(w.buf, opMisc, byte(n))
	w.operands(at, &miscs[n])
}

// bulk makes a point in front of an operation that is paid for by its length.
func (w *walker) bulk(b *body, kind bulk) {
	w.counts, b.lengths = true, true
	w.branches(aBulk)
	w.points = append(w.points, point{at: len(w.buf), payer: -1, bulk: kind})
}

// simd copies an instruction behind the prefix 0xfd.
func (w *walker) simd(b *body, at int) {
	r := &w.r
	n := r.u32()
	if r.err == nil {
		if long := r.pos - at - 1; n > 0xff || long > 2 || long == 2 && n < 0x80 {
			if n >= 0x100 && n < 0x130 {
				w.notKnown(at, "", fmt.Sprintf("0xfd %#x", n), &relaxedSIMD)
			} else {
				r.fail(at, fmt.Sprintf("opcode 0xfd %#x", n), "malformed: not written in its shortest form, or no instruction", "")
			}
			return
		}
	}
	if n > 0xff || simds[n].name == "" || r.err != nil {
		w.notKnown(at, "", fmt.Sprintf("0xfd %#x", n), nil)
		return
	}
	w.pay(b, 1)
	w.wide = true
	w.grow(int(simdGrowth[n]))
	w.buf = appendU32(append(w.buf, opSIMD), n)
	w.operands(at, &simds[n])
}

// refuse tells what an opcode is that the tables do not have.
func (w *walker) refuse(at int, op byte) {
	name, p := later(op)
	w.notKnown(at, name, fmt.Sprintf("%#x", op), p)
}

func (w *walker) notKnown(at int, name, opcode string, p *proposal) {
	what := "opcode " + opcode
	if name != "" {
		what = name + " (" + what + ")"
	}
	if p == nil {
		w.r.fail(at, what, "malformed: there is no such instruction", "")
		return
	}
	w.r.fail(at, what, p.reason(), p.remedy)
}
