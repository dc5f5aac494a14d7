package meter

import "fmt"

// constant copies a constant expression: one instruction and end. Globals are those below globals.
func (rw *rewriter) constant(w []byte, globals uint32) []byte {
	r := &rw.r
	at := r.pos
	op := r.byte()
	w = append(w, op)
	switch op {
	case opI32Const:
		w = appendSigned(w, r.signed(32))
	case opI64Const:
		w = appendSigned(w, r.signed(64))
	case opF32Const:
		w = append(w, r.take(4)...)
	case opF64Const:
		w = append(w, r.take(8)...)
	case opGlobalGet:
		w = appendU32(w, rw.index("global.get in a constant expression", globals))
	case opRefNull:
		w = append(w, rw.refType("ref.null in a constant expression"))
	case opRefFunc:
		f := rw.index("ref.func in a constant expression", uint32(len(rw.funcs)))
		rw.name(f)
		w = appendU32(w, rw.function(f))
	case opSIMD:
		if sub := r.u32(); sub != simdConst {
			r.fail(at, "constant expression", "malformed: v128.const is the only vector instruction in one", "")
		}
		w = append(append(w, simdConst), r.take(16)...)
	default:
		r.fail(at, fmt.Sprintf("constant expression, opcode %#x", op), "not allowed in a constant expression", "")
	}
	at = r.pos
	if end := r.byte(); end != opEnd && r.err == nil {
		r.fail(at, "constant expression", extConst.reason(), extConst.remedy)
	}
	return append(w, opEnd)
}

// elementSection copies the segments in all their eight forms: bit 0 of the form says not active, bit 1 says that it
// names a table (of an active one) or is declarative, bit 2 that it holds expressions instead of function indices.
func (rw *rewriter) elementSection() {
	n, ok := rw.enter(secElement, maxEntries)
	if !ok {
		return
	}
	r := &rw.r
	total := 0
	rw.emit(secElement, func(w []byte) []byte {
		w = appendU32(w, n)
		for range n {
			at := r.pos
			form := r.u32()
			if form > 7 {
				r.fail(at, "element section", fmt.Sprintf("malformed: no segment has the form %d", form), "")
			}
			if r.err != nil {
				return nil
			}
			w = append(w, byte(form))
			if form&1 == 0 {
				table := uint32(0)
				if form&2 != 0 {
					table = r.u32()
					w = appendU32(w, table)
				}
				if table >= rw.tables && r.err == nil {
					r.fail(at, "element segment", fmt.Sprintf("table %d, but there are %d", table, rw.tables), "")
				}
				w = rw.constant(w, rw.globals)
			}
			if form&3 != 0 {
				w = rw.elementType(w, form&4 != 0)
			}
			count := r.u32()
			w = appendU32(w, count)
			for range count {
				if total++; total > maxElements && r.err == nil {
					r.fail(r.pos, "element section", fmt.Sprintf("more than %d elements", maxElements), "")
				}
				if r.err != nil {
					return nil
				}
				if form&4 != 0 {
					w = rw.constant(w, rw.globals)
				} else {
					f := rw.index("function in an element segment", uint32(len(rw.funcs)))
					rw.name(f)
					w = appendU32(w, rw.function(f))
				}
			}
		}
		rw.leave(secElement)
		return w
	})
}

func (rw *rewriter) elementType(w []byte, isRef bool) []byte {
	if isRef {
		return append(w, rw.refType("element segment"))
	}
	at := rw.r.pos
	if kind := rw.r.byte(); kind != 0 {
		rw.r.fail(at, "element segment", fmt.Sprintf("malformed: there are no elements of kind %#x", kind), "")
	}
	return append(w, 0)
}

// dataSection copies the segments: form 0 is active, 1 passive, 2 active with a memory index.
func (rw *rewriter) dataSection() {
	n, ok := rw.enter(secData, maxDatas)
	if !ok {
		return
	}
	r := &rw.r
	rw.emit(secData, func(w []byte) []byte {
		w = appendU32(w, n)
		for range n {
			at := r.pos
			form := r.u32()
			if form > 2 {
				r.fail(at, "data section", fmt.Sprintf("malformed: no segment has the form %d", form), "")
			}
			if r.err != nil {
				return nil
			}
			if form == 2 {
				if rw.index("memory of a data segment", rw.memories); r.err != nil {
					return nil
				}
			}
			w = append(w, byte(form&1))
			if form != 1 {
				w = rw.constant(w, rw.globals)
			}
			w = appendBytes(w, r.take(r.u32()))
		}
		rw.leave(secData)
		return w
	})
}
