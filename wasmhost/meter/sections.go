package meter

import (
	"fmt"
	"slices"
)

// maxEntries bounds types, imports, exports, globals, tables and segments, which take memory in the compiler.
const (
	maxEntries  = 50_000
	maxElements = 1 << 18
	maxDatas    = 250_000 // Go writes one for each run of bytes between zeros: 40 000 in 4 MB
)

// declarations reads what the guest declares and writes the sections in front of the code.
func (rw *rewriter) declarations() {
	rw.elements, rw.datas = rw.count(secElement, maxEntries), rw.count(secData, maxDatas)
	rw.typeSection()
	rw.importSection()
	rw.functionSection()
	rw.tableSection()
	rw.memorySection()
	rw.tagSection()
	rw.globalSection()
	rw.exportSection()
	rw.startSection()
	rw.elementSection()
	rw.dataCountSection()
}

func (rw *rewriter) typeSection() {
	r := &rw.r
	rw.emit(secType, func(w []byte) []byte {
		n, _ := rw.enter(secType, maxEntries)
		for range n {
			if r.err != nil {
				return nil
			}
			at := r.pos
			switch form := r.byte(); {
			case r.err != nil || form == 0x60:
			case form == 0x4e || form == 0x4f || form == 0x50 || form == 0x5e || form == 0x5f:
				r.fail(at, "type section", gc.reason(), gc.remedy)
			default:
				r.fail(at, "type section", fmt.Sprintf("malformed: no type begins with %#x", form), "")
			}
			rw.types = append(rw.types, funcType{params: rw.valueTypes(), results: rw.valueTypes()})
		}
		rw.leave(secType)
		rw.labels = make([][2]uint32, len(rw.types))
		for i, t := range rw.types {
			rw.labels[i] = [2]uint32{rw.lists.number(t.params), rw.lists.number(t.results)}
		}
		added := rw.addedTypes()
		w = appendU32(w, n+uint32(len(added)))
		for _, t := range slices.Concat(rw.types, added) {
			w = append(w, 0x60)
			w = appendValueTypes(w, t.params)
			w = appendValueTypes(w, t.results)
		}
		return w
	})
}

// addedTypes are the types that the meter needs and the guest has not declared.
func (rw *rewriter) addedTypes() (added []funcType) {
	need := func(t funcType) uint32 {
		same := func(o funcType) bool { return slices.Equal(t.params, o.params) && slices.Equal(t.results, o.results) }
		i := slices.IndexFunc(rw.types, same)
		if i < 0 {
			i = len(rw.types) + len(added)
			added = append(added, t)
		}
		return uint32(i)
	}
	rw.tickType = need(funcType{[]valueType{i32}, []valueType{i32}})
	if rw.limits.Exceptions {
		rw.keepType = need(funcType{[]valueType{exnref, i32, i32}, []valueType{exnref}})
	}
	return append(added, rw.resultTypes(uint32(len(rw.types)+len(added)))...)
}

func appendValueTypes(w []byte, types []valueType) []byte {
	w = appendU32(w, uint32(len(types)))
	for _, v := range types {
		w = appendValueType(w, v)
	}
	return w
}

// valueTypes reads the parameters or results of the next type.
func (rw *rewriter) valueTypes() (types []valueType) {
	r := &rw.r
	at := r.pos
	n := r.u32()
	rw.params += uint64(n)
	switch {
	case r.err != nil:
	case n > MaxParams:
		r.fail(at, fmt.Sprintf("type %d", len(rw.types)), fmt.Sprintf("%d parameters or results, the limit is %d", n, MaxParams), "pass them in memory")
	case rw.params > MaxAllParams:
		r.fail(at, fmt.Sprintf("type %d", len(rw.types)), fmt.Sprintf("the types have %d parameters and results with it, the limit is %d", rw.params, MaxAllParams), "leave out types that no function has: wasm-opt -O")
	}
	for range n {
		if r.err != nil {
			return nil
		}
		types = append(types, rw.valueType(r, uint32(len(rw.types))))
	}
	return types
}

func (rw *rewriter) functionSection() {
	n, ok := rw.enter(secFunction, MaxFunctions)
	if !ok {
		return
	}
	if total := int(n) + len(rw.funcs); total > MaxFunctions {
		rw.r.fail(rw.section[secFunction].start, "function section", fmt.Sprintf("%d functions, the limit is %d", total, MaxFunctions), "")
	}
	rw.emit(secFunction, func(w []byte) []byte {
		w = appendU32(w, n)
		for range n {
			if rw.r.err != nil {
				return nil
			}
			at := rw.r.pos
			t := rw.index("type of a function", uint32(len(rw.types)))
			rw.signature(at, "function", t)
			w = appendU32(w, t)
			rw.funcs = append(rw.funcs, t)
		}
		rw.leave(secFunction)
		rw.out.Functions = int(n)
		return w
	})
}

func (rw *rewriter) globalSection() {
	rw.emit(secGlobal, func(w []byte) []byte {
		n, _ := rw.enter(secGlobal, maxEntries)
		w = appendU32(w, n+rw.addedGlobals())
		for range n {
			if rw.r.err != nil {
				return nil
			}
			w = rw.globalType(w)
			w = rw.constant(w, rw.globalTypes[rw.globals])
			rw.globals++
		}
		rw.leave(secGlobal)
		w = append(w, i32, 1, opI32Const) // the counter
		w = append(appendSigned(w, FirstChunk), opEnd)
		w = append(w, i32, 1, opI32Const, 0, opEnd) // the depth
		if rw.limits.Exceptions {
			w = append(w, i32, 1, opI32Const, 0, opEnd) // the activations
			w = append(w, i32, 1, opI32Const, 0, opEnd) // how often was thrown
		}
		return w
	})
}

// The globals that the meter adds.
func (rw *rewriter) addedGlobals() uint32 {
	if rw.limits.Exceptions {
		return 4
	}
	return 2
}

func (rw *rewriter) counter() uint32     { return rw.globals }
func (rw *rewriter) depth() uint32       { return rw.globals + 1 }
func (rw *rewriter) activations() uint32 { return rw.globals + 2 }
func (rw *rewriter) thrown() uint32      { return rw.globals + 3 }

func (rw *rewriter) globalType(w []byte) []byte {
	r := &rw.r
	at := r.pos
	t := rw.valueType(r, uint32(len(rw.types)))
	rw.confine(at, "global", t)
	rw.globalTypes = append(rw.globalTypes, t)
	at = r.pos
	mutable := r.byte()
	if mutable > 1 {
		r.fail(at, "global", fmt.Sprintf("malformed: %#x is not a mutability", mutable), "")
	}
	return append(appendValueType(w, t), mutable)
}

func (rw *rewriter) exportSection() {
	n, ok := rw.enter(secExport, maxEntries)
	if !ok {
		return
	}
	r := &rw.r
	counts := [...]uint32{uint32(len(rw.funcs)), rw.tables, rw.memories, rw.globals, uint32(len(rw.tags))}
	rw.emit(secExport, func(w []byte) []byte {
		w = appendU32(w, n)
		for range n {
			if r.err != nil {
				return nil
			}
			e := Export{Name: r.name("export")}
			at := r.pos
			e.Kind = Kind(r.byte())
			if int(e.Kind) >= len(counts) {
				r.fail(at, "export section", fmt.Sprintf("malformed: nothing of kind %#x can be exported", byte(e.Kind)), "")
				return nil
			}
			e.Index = rw.index("export of a "+e.Kind.String(), counts[e.Kind])
			w = append(appendBytes(w, e.Name), byte(e.Kind))
			if e.Kind != Func {
				w = appendU32(w, e.Index)
			} else if r.err == nil {
				w = appendU32(w, rw.function(e.Index))
				e.Type = rw.types[rw.funcs[e.Index]].public()
			}
			rw.out.Exports = append(rw.out.Exports, e)
		}
		rw.leave(secExport)
		return w
	})
}

func (rw *rewriter) startSection() {
	s := rw.section[secStart]
	if s.start == 0 {
		return
	}
	rw.emit(secStart, func(w []byte) []byte {
		rw.r.b, rw.r.pos = rw.module[:s.end], s.start
		f := rw.index("start function", uint32(len(rw.funcs)))
		rw.leave(secStart)
		rw.out.HasStart = true
		return appendU32(w, rw.function(f))
	})
}

func (rw *rewriter) dataCountSection() {
	s := rw.section[secDataCount]
	if s.start == 0 {
		return
	}
	rw.emit(secDataCount, func(w []byte) []byte {
		rw.r.b, rw.r.pos = rw.module[:s.end], s.start
		n := rw.r.u32()
		rw.leave(secDataCount)
		if n != rw.datas && rw.r.err == nil {
			rw.r.fail(s.start, "data count section", fmt.Sprintf("malformed: %d data segments announced, %d there", n, rw.datas), "")
		}
		return appendU32(w, n)
	})
}
