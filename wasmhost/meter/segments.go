package meter

import "fmt"

// constant copies a constant expression that leaves one value of type want. It is checked in full: wazero takes any
// reference to a function for one of the type that is wanted, and calls it without another look.
func (rw *rewriter) constant(w []byte, want valueType) []byte {
	r := &rw.r
	begin := r.pos
	var stack []valueType
	for r.err == nil {
		at := r.pos
		op := r.byte()
		w = append(w, op)
		var t valueType
		switch op {
		case opEnd:
			if r.err == nil && (len(stack) != 1 || !stack[0].under(want)) {
				r.fail(begin, "constant expression", fmt.Sprintf("malformed: it does not leave one value of type %v", want), "")
			}
			return w
		case opI32Const:
			w, t = appendSigned(w, r.signed(32)), i32
		case opI64Const:
			w, t = appendSigned(w, r.signed(64)), i64
		case opF32Const:
			w, t = append(w, r.take(4)...), f32
		case opF64Const:
			w, t = append(w, r.take(8)...), f64
		case opI32Add, opI32Sub, opI32Mul, opI64Add, opI64Sub, opI64Mul:
			if t = i32; op >= opI64Add {
				t = i64
			}
			top := len(stack) - 2
			if top < 0 || stack[top] != t || stack[top+1] != t {
				r.fail(at, fmt.Sprintf("constant expression, opcode %#x", op), fmt.Sprintf("malformed: there are no two values of type %v for it", t), "")
				return nil
			}
			stack = stack[:top]
		case opGlobalGet:
			g := rw.index("global.get in a constant expression", rw.globals)
			if r.err != nil {
				return nil
			}
			w, t = appendU32(w, g), rw.globalTypes[g]
		case opRefNull:
			t = rw.nullType(r)
			w = appendNullType(w, t)
		case opRefFunc:
			f := rw.index("ref.func in a constant expression", uint32(len(rw.funcs)))
			if r.err != nil {
				return nil
			}
			rw.name(f)
			w, t = appendU32(w, rw.function(f)), refTo(rw.funcs[f])|nonNull
		case opSIMD:
			if sub := r.u32(); sub != simdConst || r.pos != at+2 {
				r.fail(at, "constant expression", "malformed: v128.const is the only vector instruction in one", "")
			}
			w, t = append(append(w, simdConst), r.take(16)...), v128
		default:
			r.fail(at, fmt.Sprintf("constant expression, opcode %#x", op), "not allowed in a constant expression", "")
		}
		stack = append(stack, t)
	}
	return nil
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
				w = rw.constant(w, i32)
			}
			t := valueType(funcref)
			if form&3 != 0 {
				w, t = rw.elementType(w, form&4 != 0)
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
					w = rw.constant(w, t)
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

// elementType copies what a segment's elements are: a type, or else the kind 0, functions.
func (rw *rewriter) elementType(w []byte, isType bool) ([]byte, valueType) {
	if isType {
		t := rw.refType("element segment")
		return appendValueType(w, t), t
	}
	at := rw.r.pos
	if kind := rw.r.byte(); kind != 0 {
		rw.r.fail(at, "element segment", fmt.Sprintf("malformed: there are no elements of kind %#x", kind), "")
	}
	return append(w, 0), funcref
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
				w = rw.constant(w, i32)
			}
			w = appendBytes(w, r.take(r.u32()))
		}
		rw.leave(secData)
		return w
	})
}
