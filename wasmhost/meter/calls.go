package meter

// call copies what follows the opcode of a call and notes where it leads. With tail, the caller is gone by then.
func (w *walker) call(at int, op byte, tail bool) {
	r, rw := &w.r, w.rw
	name := instrs[op].name
	w.counts = true
	switch op {
	case opCall, opReturnCall:
		f := w.index(at, name, "function", uint32(len(rw.funcs)))
		if r.err != nil {
			return
		}
		w.called(rw.types[rw.funcs[f]])
		if f >= rw.imported {
			w.calls = append(w.calls, call{w.point, f - rw.imported, tail})
		}
		w.buf = appendU32(w.buf, rw.function(f))
	default:
		t := w.index(at, name, "type", uint32(len(rw.types)))
		if r.err != nil {
			return
		}
		w.called(rw.types[t])
		w.calls = append(w.calls, call{w.point, uint32(rw.out.Functions) + t, tail})
		w.buf = appendU32(w.buf, t)
		if op == opCallIndirect || op == opReturnCallIndirect {
			w.copyIndex(at, name, "table", rw.tables)
		}
	}
}

// tailCall copies a tail call. wazero makes a plain call of one whose callee takes arguments on the stack, and then
// their frames add up after all; such a one is written as a plain call and a return, so that it is counted as that.
func (w *walker) tailCall(b *body, at int, op byte) {
	plain := map[byte]byte{opReturnCall: opCall, opReturnCallIndirect: opCallIndirect, opReturnCallRef: opCallRef}[op]
	if op == opReturnCall {
		w.pay(b, 1)
	} else {
		w.pay(b, indirectUnits)
		w.grow(-1)
	}
	mark := w.r
	t := w.r.u32() // the callee, or its type
	if w.r = mark; op == opReturnCall && t < uint32(len(w.rw.funcs)) {
		t = w.rw.funcs[t]
	}
	if t < uint32(len(w.rw.types)) && !inRegisters(w.rw.types[t]) {
		w.buf = append(w.buf, plain)
		w.call(at, op, false)
		w.leave()
		return
	}
	w.edits = append(w.edits, edit{at: len(w.buf), kind: leaves})
	w.buf = append(w.buf, op)
	w.call(at, op, true)
	w.grow(gone)
}

// inRegisters reports whether a function's parameters and results need no place on the stack on any of wazero's
// architectures: of 8 registers two are taken already.
func inRegisters(t funcType) bool {
	fit := func(types []valueType, integers int) bool {
		floats := 8
		for _, v := range types {
			if k := v.kind(); k == f32 || k == f64 || k == v128 {
				floats--
			} else {
				integers--
			}
		}
		return integers >= 0 && floats >= 0
	}
	return fit(t.params, 6) && fit(t.results, 8)
}

// leave writes a return.
func (w *walker) leave() {
	w.edits = append(w.edits, edit{at: len(w.buf), kind: returns, depth: uint32(len(w.frames)-1) + w.extra})
	w.buf = append(w.buf, opReturn)
	w.grow(gone)
}

// target reads a label: the frame that it names, and its depth among the blocks as they are written.
func (w *walker) target(at int, name string) (frame int, depth uint32) {
	n := uint32(len(w.frames))
	depth = w.index(at, name, "label", n)
	if depth >= n {
		return 0, 0
	}
	frame = int(n - 1 - depth)
	f := &w.frames[frame]
	f.targeted = true
	f.ways++
	w.work.passed += uint64(len(f.brings()))
	if w.tries > 0 {
		for i := range w.frames[frame:] { // of try_tables, and branches to one's end lead to the block around it
			depth += w.frames[frame+i].extra
		}
	}
	return frame, depth
}

func (w *walker) label(at int, name string) {
	_, depth := w.target(at, name)
	w.branches(aBranch)
	w.buf = appendU32(w.buf, depth)
}

// brTable copies a br_table. Its labels must take the same references: wazero lets through what fits only one of them.
// One that has but a default gets that for a label too: wazero forgets to close the try_tables that it leaves.
func (w *walker) brTable(b *body, at int) {
	r := &w.r
	w.pay(b, 1)
	n := r.u32()
	w.branches(aBranch + aTarget*uint64(n))
	if n == 0 {
		w.buf = append(w.buf, opBrTable, 1)
		_, depth := w.target(at, "br_table")
		w.buf = appendU32(appendU32(w.buf, depth), depth)
		w.grow(gone)
		return
	}
	w.buf = appendU32(append(w.buf, opBrTable), n)
	first := uint32(0)
	for i := uint64(0); i <= uint64(n) && r.err == nil; i++ {
		f, depth := w.target(at, "br_table")
		w.buf = appendU32(w.buf, depth)
		label := w.frames[f].label()
		if i == 0 {
			first = label
		}
		if label != first && (w.rw.lists.refs(label) || w.rw.lists.refs(first)) {
			r.fail(at, "br_table", "its labels take references of different types", "let them take the same ones")
		}
	}
	w.grow(gone)
}
