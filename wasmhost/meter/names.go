package meter

import "fmt"

// The parts of the name section that speak of functions by number. All others up to maxNames speak of things that keep
// theirs.
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
	named := false
	for _, c := range rw.customs {
		if rw.r.err != nil {
			return
		}
		content := rw.module[c.start:c.end]
		if c.name == "name" {
			content, named = rw.names(c.span), true
		}
		rw.emit(secCustom, func(w []byte) []byte { return append(appendBytes(w, c.name), content...) })
	}
	if !named && rw.out.Functions > 0 {
		rw.emit(secCustom, func(w []byte) []byte {
			return rw.appendFunctionNames(appendBytes(w, "name"), make([]string, len(rw.funcs)))
		})
	}
}

func (rw *rewriter) names(s span) []byte {
	var w []byte
	outer := reader{b: rw.module[:s.end], pos: s.start}
	functions := make([]string, len(rw.funcs))
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
			rw.functionNames(r, functions)
			content = nil
		case id == nameLocals:
			content = rw.localNames(r)
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
		if id != nameFunctions {
			w = appendBytes(append(w, id), content)
		}
	}
	if outer.err != nil && rw.r.err == nil {
		rw.r.err = outer.err
	}
	return rw.appendFunctionNames(w, functions)
}

// functionNames reads those of a name section.
func (rw *rewriter) functionNames(r *reader, functions []string) {
	for n := r.u32(); n > 0 && r.err == nil; n-- {
		i := rw.namedFunction(r)
		if name := r.name("function name"); r.err == nil {
			functions[i] = name
		}
	}
}

func (rw *rewriter) namedFunction(r *reader) uint32 {
	i := r.u32()
	if i >= uint32(len(rw.funcs)) && r.err == nil {
		r.fail(r.pos, "name section", fmt.Sprintf("malformed: a name for function %d, but there are %d", i, len(rw.funcs)), "")
	}
	return i
}

// localNames copies a vector of functions, each with a vector of locals and their names.
func (rw *rewriter) localNames(r *reader) []byte {
	n := r.u32()
	w := appendU32(nil, n)
	for range n {
		i := rw.namedFunction(r)
		locals := r.u32()
		w = appendU32(appendU32(w, rw.function(i)), locals)
		for range locals {
			if r.err != nil {
				return nil
			}
			w = appendU32(w, r.u32())
			w = appendBytes(w, r.name("local name"))
		}
		if r.err != nil {
			return nil
		}
	}
	return w
}

// appendFunctionNames writes the functions' names. One that has none is named by its export, or else by its number, for
// in a trace wazero would give it the number that it has now.
func (rw *rewriter) appendFunctionNames(w []byte, functions []string) []byte {
	for _, e := range rw.out.Exports {
		if e.Kind == Func && functions[e.Index] == "" {
			functions[e.Index] = e.Name
		}
	}
	var names []byte
	n := uint32(0)
	for i, name := range functions {
		if name == "" {
			if uint32(i) < rw.imported {
				continue
			}
			name = fmt.Sprintf("$%d", i)
		}
		n++
		names = appendBytes(appendU32(names, rw.function(uint32(i))), name)
	}
	return appendBytes(append(w, nameFunctions), append(appendU32(nil, n), names...))
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
