package meter

import "fmt"

func (rw *rewriter) importSection() {
	rw.emit(secImport, func(w []byte) []byte {
		n, _ := rw.enter(secImport, maxEntries)
		w = appendU32(w, n+rw.added())
		for range n {
			if w = rw.oneImport(w); rw.r.err != nil {
				return nil
			}
		}
		rw.leave(secImport)
		rw.imported = uint32(len(rw.funcs))
		w = appendBytes(w, TickModule)
		w = appendBytes(w, TickName)
		w = appendU32(append(w, byte(Func)), rw.tickType)
		if rw.limits.Exceptions {
			w = appendBytes(w, TickModule)
			w = appendBytes(w, KeepName)
			w = appendU32(append(w, byte(Func)), rw.keepType)
		}
		return w
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
			rw.signature(at, "imported function", t)
			imp.Type = rw.types[t].public()
		}
	case Table:
		rw.tables++
		w = appendValueType(w, rw.refType("imported table"))
		w = appendLimits(w, rw.readLimits("imported table"))
	case Memory:
		rw.memories++
		w = appendLimits(w, rw.readLimits("imported memory"))
	case Global:
		w = rw.globalType(w)
		rw.globals++
	case Tag:
		w = rw.tag(w, "imported tag")
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
