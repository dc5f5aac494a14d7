package meter

import (
	"fmt"
	"slices"
)

// maxEntries bounds types, imports, exports, globals, tables and segments, which take memory in the compiler.
const (
	maxEntries  = 50_000
	maxParams   = 1000 // and results, of one type
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
			rw.types = append(rw.types, FuncType{Params: rw.valueTypes(), Results: rw.valueTypes()})
		}
		rw.leave(secType)

		rw.tickType = uint32(slices.IndexFunc(rw.types, isTickType))
		if rw.tickType == ^uint32(0) {
			rw.tickType = uint32(len(rw.types))
			n++
		}
		results := rw.resultTypes()
		w = appendU32(w, n+uint32(len(results)))
		for _, t := range rw.types {
			w = append(w, 0x60)
			w = appendBytes(w, t.Params)
			w = appendBytes(w, t.Results)
		}
		if rw.tickType == uint32(len(rw.types)) {
			w = append(w, 0x60, 1, i32, 1, i32)
		}
		for _, r := range results {
			w = appendBytes(append(w, 0x60, 0), r)
		}
		return w
	})
}

func isTickType(t FuncType) bool {
	return string(t.Params) == "\x7f" && string(t.Results) == "\x7f"
}

// Value types.
const (
	i32       = 0x7f
	i64       = 0x7e
	f32       = 0x7d
	f64       = 0x7c
	v128      = 0x7b
	funcref   = 0x70
	externref = 0x6f
)

func isValueType(t byte) bool { return t >= v128 && t <= i32 || isRefType(t) }

func isRefType(t byte) bool { return t == funcref || t == externref }

func (rw *rewriter) valueTypes() []byte {
	r := &rw.r
	at := r.pos
	n := r.u32()
	if n > maxParams && r.err == nil {
		r.fail(at, "function type", fmt.Sprintf("%d parameters or results, the limit is %d", n, maxParams), "")
	}
	at = r.pos
	types := r.take(n)
	for i, t := range types {
		rw.checkValueType(at+i, t)
	}
	return types
}

func (rw *rewriter) checkValueType(at int, t byte) {
	if rw.r.err != nil || isValueType(t) {
		return
	}
	rw.r.refuseType(at, t)
}

func (rw *rewriter) refType(what string) byte {
	at := rw.r.pos
	t := rw.r.byte()
	if !isRefType(t) && rw.r.err == nil {
		if isValueType(t) {
			rw.r.fail(at, what, fmt.Sprintf("malformed: %#x is not a reference type", t), "")
		} else {
			rw.r.refuseType(at, t)
		}
	}
	return t
}

func (rw *rewriter) importSection() {
	rw.emit(secImport, func(w []byte) []byte {
		n, _ := rw.enter(secImport, maxEntries)
		w = appendU32(w, n+1)
		for range n {
			if w = rw.oneImport(w); rw.r.err != nil {
				return nil
			}
		}
		rw.leave(secImport)
		rw.imported = uint32(len(rw.funcs))
		w = appendBytes(w, TickModule)
		w = appendBytes(w, TickName)
		return appendU32(append(w, byte(Func)), rw.tickType)
	})
}

func (rw *rewriter) oneImport(w []byte) []byte {
	r := &rw.r
	at := r.pos
	imp := Import{Module: r.name("import"), Name: r.name("import")}
	if imp.Module == TickModule && r.err == nil {
		r.fail(at, fmt.Sprintf("import %s.%s", imp.Module, imp.Name), "the module "+TickModule+" is the meter's own", "leave out the import; give weir the module as it was before it was metered")
	}
	w = appendBytes(w, imp.Module)
	w = appendBytes(w, imp.Name)
	at = r.pos
	imp.Kind = Kind(r.byte())
	w = append(w, byte(imp.Kind))
	switch imp.Kind {
	case Func:
		t := rw.index("type of an imported function", uint32(len(rw.types)))
		w = appendU32(w, t)
		if r.err == nil {
			rw.funcs = append(rw.funcs, t)
			imp.Type = rw.types[t].clone()
		}
	case Table:
		rw.tables++
		w = append(w, rw.refType("imported table"))
		w = appendLimits(w, rw.readLimits("imported table"))
	case Memory:
		rw.memories++
		w = appendLimits(w, rw.readLimits("imported memory"))
	case Global:
		rw.globals++
		w = rw.globalType(w)
	case 4:
		r.fail(at, "imported tag", exceptions.reason(), exceptions.remedy)
	default:
		if imp.Kind == 0x7e || imp.Kind == 0x7f {
			r.fail(at, "import section", compactNames.reason(), compactNames.remedy)
		} else {
			r.fail(at, "import section", fmt.Sprintf("malformed: nothing of kind %#x can be imported", byte(imp.Kind)), "")
		}
	}
	rw.out.Imports = append(rw.out.Imports, imp)
	return w
}

func (t FuncType) clone() FuncType {
	return FuncType{Params: append([]byte(nil), t.Params...), Results: append([]byte(nil), t.Results...)}
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
			t := rw.index("type of a function", uint32(len(rw.types)))
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
		w = appendU32(w, n+2)
		declared := rw.globals
		for range n {
			if rw.r.err != nil {
				return nil
			}
			w = rw.globalType(w)
			w = rw.constant(w, declared)
			declared++
		}
		rw.leave(secGlobal)
		rw.globals = declared
		w = append(w, i32, 1, opI32Const)
		w = append(appendSigned(w, FirstChunk), opEnd)
		return append(w, i32, 1, opI32Const, 0, opEnd)
	})
}

func (rw *rewriter) globalType(w []byte) []byte {
	r := &rw.r
	at := r.pos
	t := r.byte()
	rw.checkValueType(at, t)
	at = r.pos
	mutable := r.byte()
	if mutable > 1 {
		r.fail(at, "global", fmt.Sprintf("malformed: %#x is not a mutability", mutable), "")
	}
	return append(w, t, mutable)
}

func (rw *rewriter) exportSection() {
	n, ok := rw.enter(secExport, maxEntries)
	if !ok {
		return
	}
	r := &rw.r
	counts := [...]uint32{uint32(len(rw.funcs)), rw.tables, rw.memories, rw.globals}
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
				if e.Kind == 4 {
					r.fail(at, "exported tag", exceptions.reason(), exceptions.remedy)
				} else {
					r.fail(at, "export section", fmt.Sprintf("malformed: nothing of kind %#x can be exported", byte(e.Kind)), "")
				}
				return nil
			}
			e.Index = rw.index("export of a "+e.Kind.String(), counts[e.Kind])
			w = append(appendBytes(w, e.Name), byte(e.Kind))
			if e.Kind != Func {
				w = appendU32(w, e.Index)
			} else if r.err == nil {
				w = appendU32(w, rw.function(e.Index))
				e.Type = rw.types[rw.funcs[e.Index]].clone()
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
