package meter

import "fmt"

// The subsections of the name section that speak of functions by number. All others up to maxNames speak of things
// that keep theirs.
const (
	nameModule    = 0
	nameFunctions = 1
	nameLocals    = 2
	nameLabels    = 3 // counted by block, of which the meter adds some: dropped
	maxNames      = 11
)

// rest writes the sections behind the code.
func (rw *rewriter) rest() {
	rw.dataSection()
	for _, c := range rw.customs {
		if rw.r.err != nil {
			return
		}
		content := rw.module[c.start:c.end]
		if c.name == "name" {
			content = rw.names(c.span)
		}
		rw.emit(secCustom, func(w []byte) []byte { return append(appendBytes(w, c.name), content...) })
	}
}

func (rw *rewriter) names(s span) []byte {
	var w []byte
	outer := reader{b: rw.module[:s.end], pos: s.start}
	for !outer.empty() && rw.r.err == nil {
		id := outer.byte()
		size := outer.u32()
		start := outer.pos
		content := outer.take(size)
		if outer.err != nil {
			break
		}
		r := &reader{b: rw.module[:outer.pos], pos: start}
		switch {
		case id == nameModule:
			content = appendBytes(nil, r.name("module name"))
		case id == nameFunctions:
			content = rw.nameMap(r, func(w []byte) []byte { return appendBytes(w, r.name("function name")) })
		case id == nameLocals:
			content = rw.nameMap(r, func(w []byte) []byte {
				n := r.u32()
				w = appendU32(w, n)
				for range n {
					if r.err != nil {
						break
					}
					w = appendU32(w, r.u32())
					w = appendBytes(w, r.name("local name"))
				}
				return w
			})
		case id == nameLabels || id > maxNames:
			continue
		default:
			r.pos = len(r.b)
		}
		if r.err == nil && !r.empty() {
			r.malformed(fmt.Sprintf("name section, part %d", id))
		}
		if r.err != nil {
			outer.err = r.err
			break
		}
		w = appendBytes(append(w, id), content)
	}
	if outer.err != nil && rw.r.err == nil {
		rw.r.err = outer.err
	}
	return w
}

// nameMap copies a vector of function indices, each followed by what value copies.
func (rw *rewriter) nameMap(r *reader, value func(w []byte) []byte) []byte {
	n := r.u32()
	w := appendU32(nil, n)
	for range n {
		i := r.u32()
		if i >= uint32(len(rw.funcs)) && r.err == nil {
			r.fail(r.pos, "name section", fmt.Sprintf("malformed: a name for function %d, but there are %d", i, len(rw.funcs)), "")
		}
		if r.err != nil {
			return nil
		}
		w = value(appendU32(w, rw.function(i)))
	}
	return w
}

// functionName names a function for an error: by number, and by the name section or an export if they have it.
func (rw *rewriter) functionName(f uint32) string {
	for _, c := range rw.customs {
		if c.name != "name" {
			continue
		}
		outer := reader{b: rw.module[:c.end], pos: c.start}
		for !outer.empty() {
			id, size := outer.byte(), outer.u32()
			start := outer.pos
			outer.take(size)
			if outer.err != nil || id != nameFunctions {
				continue
			}
			r := reader{b: rw.module[:outer.pos], pos: start}
			for n := r.u32(); n > 0 && r.err == nil; n-- {
				i, name := r.u32(), r.name("")
				if i == f && r.err == nil {
					return fmt.Sprintf("function %d %q", f, name)
				}
			}
		}
	}
	for _, e := range rw.out.Exports {
		if e.Kind == Func && e.Index == f {
			return fmt.Sprintf("function %d %q", f, e.Name)
		}
	}
	return fmt.Sprintf("function %d", f)
}
