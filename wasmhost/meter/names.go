package meter

import (
	"fmt"
	"unicode/utf8"
)

// nameFunctions is the part of the name section that names functions. All others are dropped: nobody reads them here, and
// wazero, which looks through all names of locals for each function, and puts the module's name before each function's,
// would take minutes and gigabytes for a small module.
const nameFunctions = 1

// mostName bounds a function's name, in bytes: a trap's trace has thirty of them.
const mostName = 1000

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
	outer := reader{b: rw.module[:s.end], pos: s.start}
	functions := make([]string, len(rw.funcs))
	for !outer.empty() && rw.r.err == nil {
		id := outer.byte()
		size := outer.u32()
		start := outer.pos
		outer.take(size)
		if outer.err != nil {
			break
		}
		if id != nameFunctions {
			continue
		}
		r := &reader{b: rw.module[:outer.pos], pos: start}
		rw.functionNames(r, functions)
		if r.err == nil && !r.empty() {
			r.malformed(fmt.Sprintf("name section, part %d", id))
		}
		if r.err != nil {
			outer.err = r.err
			break
		}
	}
	if outer.err != nil && rw.r.err == nil {
		rw.r.err = outer.err
	}
	return rw.appendFunctionNames(nil, functions)
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
		names = appendBytes(appendU32(names, rw.function(uint32(i))), shortened(name))
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

// shortened is a name, cut where it is too long.
func shortened(name string) string {
	if len(name) <= mostName {
		return name
	}
	end := mostName
	for !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end] + "…"
}
