package meter

import "slices"

// height bounds from above how many values the operand stack of the body at hand holds, for these stand in its frame
// when a call is made. Whatever does not follow from the instruction's number is taken for too many.
type height struct {
	now, peak int
}

// grow adds n values, or takes them off, but none of those below the innermost block: only code that is never reached
// asks for these.
func (h *height) grow(n, base int) {
	h.now = max(h.now+n, base)
	h.peak = max(h.peak, h.now)
}

// grow follows an instruction, or half of one.
func (w *walker) grow(n int) {
	base := w.frames[len(w.frames)-1].base
	if n == gone {
		n = base - w.height.now
	}
	w.height.grow(n, base)
}

// called takes a call's parameters and pushes its results.
func (w *walker) called(t funcType) {
	w.wide = w.wide || t.has(v128)
	w.work.passed += uint64(len(t.params) + len(t.results))
	w.grow(-len(t.params))
	w.grow(len(t.results))
}

// open begins a block.
func (w *walker) open(op byte, b block) {
	params := len(b.params)
	base := max(w.height.now-params, w.frames[len(w.frames)-1].base)
	w.frames = append(w.frames, frame{op: op, outer: w.point, base: base, block: b, head: len(w.buf), sets: w.work.sets, uses: w.work.uses})
	w.grow(base + params - w.height.now)
}

// gone stands for an instruction behind which nothing is reached.
const gone = -1 << 7

// growth is by how many values each instruction of one byte makes the operand stack higher, calls apart.
var growth = table(map[int8][]byte{
	gone: {opUnreachable, opBr, opBrTable, opReturn, opThrowRef},
	1: {opLocalGet, opGlobalGet, 0x3f /* memory.size */, opI32Const, opI64Const, opF32Const, opF64Const,
		opRefNull, opRefFunc},
	-1: slices.Concat([]byte{opIf, opBrIf, opCallIndirect, opReturnCallIndirect, opCallRef, opReturnCallRef, opBrOnNonNull, opDrop, opLocalSet, opGlobalSet}, numbers(0x46, 0x4f), numbers(0x51, 0x66), // comparisons
		numbers(0x6a, 0x78), numbers(0x7c, 0x8a), numbers(0x92, 0x98), numbers(0xa0, 0xa6)), // two operands of i32, i64, f32, f64
	-2: slices.Concat([]byte{0x1b, 0x1c /* select */, 0x26 /* table.set */}, numbers(0x36, 0x3e)), // stores
})

// miscGrowth is the same for those behind 0xfc.
var miscGrowth = table(map[int8][]byte{
	1:  {0x10 /* table.size */},
	-1: {miscTableGrow},
	-3: {miscMemoryInit, miscMemoryCopy, miscMemoryFill, miscTableInit, miscTableCopy, miscTableFill},
})

// simdGrowth is the same for those behind 0xfd.
var simdGrowth = table(map[int8][]byte{
	1: {simdConst},
	-1: slices.Concat([]byte{0x0d, 0x0e /* shuffle, swizzle */, 0x17, 0x1a, 0x1c, 0x1e, 0x20, 0x22 /* replace_lane */},
		numbers(0x23, 0x4c), numbers(0x4e, 0x51), // comparisons, and to xor
		numbers(0x54, 0x57),                                                         // loads of a lane
		numbers(0x65, 0x66), numbers(0x6b, 0x73), numbers(0x76, 0x79), []byte{0x7b}, // i8x16
		[]byte{0x82}, numbers(0x85, 0x86), numbers(0x8b, 0x93), numbers(0x95, 0x9f), // i16x8
		numbers(0xab, 0xbf), numbers(0xcb, 0xdf), numbers(0xe4, 0xeb), numbers(0xf0, 0xf7)), // i32x4, i64x2, f32x4, f64x2
	-2: slices.Concat([]byte{0x0b /* v128.store */, 0x52 /* bitselect */}, numbers(0x58, 0x5b)), // stores of a lane
})

func table(by map[int8][]byte) (t [256]int8) {
	for n, opcodes := range by {
		for _, op := range opcodes {
			t[op] = n
		}
	}
	return t
}

func numbers(from, to byte) (all []byte) {
	for n := int(from); n <= int(to); n++ {
		all = append(all, byte(n))
	}
	return all
}
