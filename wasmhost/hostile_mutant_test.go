package wasmhost

import (
	"bytes"
	"math/rand/v2"
	"slices"
)

// mutations change a module that works into one that most likely does not.
var mutations = []struct {
	name string
	make func(r *rand.Rand, module []byte, a *anatomy) []byte
}{
	{"bytes", func(r *rand.Rand, module []byte, _ *anatomy) []byte { return flip(r, bytes.Clone(module), 8) }},
	{"code", func(r *rand.Rand, module []byte, a *anatomy) []byte { return a.flipped(r, 10) }},
	{"data", func(r *rand.Rand, module []byte, a *anatomy) []byte { return a.flipped(r, 11) }},
	{"names", func(r *rand.Rand, module []byte, a *anatomy) []byte { return a.flipped(r, 7) }},
	{"cut", func(r *rand.Rand, module []byte, _ *anatomy) []byte { return module[:r.IntN(len(module))] }},
	{"spin", injected(func(r *rand.Rand, _ *anatomy, _ int) []byte { return []byte{0x03, 0x40, 0x0c, 0, 0x0b} })},
	{"recurse", injected(func(r *rand.Rand, a *anatomy, f int) []byte { return a.call(r, f) })},
	{"trap", injected(func(*rand.Rand, *anatomy, int) []byte { return []byte{0} })},
	{"call", injected(func(r *rand.Rand, a *anatomy, _ int) []byte { return a.call(r, r.IntN(len(a.functions))) })},
	{"hostcall", injected(func(r *rand.Rand, a *anatomy, _ int) []byte { return a.call(r, r.IntN(max(1, a.imported))) })},
	{"return", injected(func(r *rand.Rand, a *anatomy, f int) (code []byte) {
		for _, t := range a.types[a.functions[f]].results {
			code = append(code, constant(r, t)...)
		}
		return append(code, 0x0f)
	})},
	{"global", injected(func(r *rand.Rand, a *anatomy, _ int) []byte {
		if len(a.mutable) == 0 {
			return []byte{0}
		}
		return slices.Concat(constant(r, 0x7f), []byte{0x24}, uleb(a.mutable[r.IntN(len(a.mutable))]))
	})},
	{"store", injected(func(r *rand.Rand, a *anatomy, _ int) []byte {
		if !a.memory {
			return []byte{0}
		}
		return slices.Concat(constant(r, 0x7f), constant(r, 0x7f), []byte{0x36, 2, 0})
	})},
	{"grow", injected(func(r *rand.Rand, a *anatomy, _ int) []byte {
		if !a.memory {
			return []byte{0}
		}
		return slices.Concat([]byte{0x03, 0x40}, sleb(0x41, int64(1+r.IntN(64))), []byte{0x40, 0, 0x41, 0, 0x4e, 0x0d, 0, 0x0b})
	})},
	{"fill", injected(func(r *rand.Rand, a *anatomy, _ int) []byte {
		if !a.memory {
			return []byte{0}
		}
		zero := sleb(0x41, 0)
		return slices.Concat([]byte{0x03, 0x40}, zero, constant(r, 0x7f), []byte{0x3f, 0}, sleb(0x41, 16), []byte{0x74, 0xfc, 0x0b, 0, 0x0c, 0, 0x0b})
	})},
	{"indirect", injected(func(r *rand.Rand, a *anatomy, _ int) (code []byte) {
		if a.tables == 0 {
			return []byte{0}
		}
		t := r.IntN(len(a.types))
		for _, p := range a.types[t].params {
			code = append(code, constant(r, p)...)
		}
		code = slices.Concat(code, sleb(0x41, int64(r.IntN(8))), []byte{0x11}, uleb(t), []byte{0})
		return append(code, bytes.Repeat([]byte{0x1a}, len(a.types[t].results))...)
	})},
	{"swapped", func(r *rand.Rand, _ []byte, a *anatomy) []byte {
		return a.with(func(a *anatomy) {
			a.sections[a.section(10)].body = nil
			i, j := r.IntN(len(a.bodies)), r.IntN(len(a.bodies))
			a.bodies[i], a.bodies[j] = a.bodies[j], a.bodies[i]
		})
	}},
	{"lacking", func(r *rand.Rand, _ []byte, a *anatomy) []byte {
		return a.with(func(a *anatomy) {
			i := r.IntN(len(a.sections))
			a.sections = slices.Delete(a.sections, i, i+1)
		})
	}},
	{"doubled", func(r *rand.Rand, _ []byte, a *anatomy) []byte {
		return a.with(func(a *anatomy) {
			i := r.IntN(len(a.sections))
			a.sections = slices.Insert(a.sections, i, a.sections[i])
		})
	}},
	{"begun", func(r *rand.Rand, _ []byte, a *anatomy) []byte {
		return a.with(func(a *anatomy) {
			start := part{8, uleb(r.IntN(len(a.functions)))}
			if i := a.section(8); i >= 0 {
				a.sections[i] = start
				return
			}
			a.sections = slices.Insert(a.sections, a.section(7)+1, start)
		})
	}},
	{"memory", func(r *rand.Rand, _ []byte, a *anatomy) []byte {
		return a.with(func(a *anatomy) {
			if i := a.section(5); i >= 0 {
				limits := [][]byte{{1, 0, 0}, {1, 0, 0, 1}, {1, 1, 0, 0}, {1, 0, 0x80, 0x80, 4}, {1, 0, 0x80, 2}, {1, 3, 1, 2}, {1, 4, 1}, {2, 0, 1, 0, 1}}
				a.sections[i].body = limits[r.IntN(len(limits))]
			}
		})
	}},
}

// injected makes a mutation that puts code in front of one function, most likely of one that weir calls.
func injected(code func(r *rand.Rand, a *anatomy, function int) []byte) func(*rand.Rand, []byte, *anatomy) []byte {
	return func(r *rand.Rand, _ []byte, a *anatomy) []byte {
		f := a.imported + r.IntN(len(a.bodies))
		if r.IntN(4) > 0 && len(a.exported) > 0 {
			if e := a.exported[r.IntN(len(a.exported))]; e >= a.imported {
				f = e
			}
		}
		return a.inject(f, code(r, a, f))
	}
}

// flipped changes bytes of one section.
func (a *anatomy) flipped(r *rand.Rand, id byte) []byte {
	return a.with(func(a *anatomy) {
		if i := a.section(id); i >= 0 {
			a.sections[i].body = flip(r, bytes.Clone(a.sections[i].body), 3)
		}
	})
}

// flip changes one byte or a few.
func flip(r *rand.Rand, b []byte, most int) []byte {
	for range 1 + r.IntN(most) {
		b[r.IntN(len(b))] = byte(r.Uint32())
	}
	return b
}
