package meter

import "fmt"

// frame is an open block, loop or if, or the function itself.
type frame struct {
	op       byte // opBlock, opLoop, opIf, opElse; 0 the function
	outer    int  // the point that pays in front of it and behind it
	targeted bool // branched to

	base  int // values on the operand stack below it
	block block
	head  int // in buf, behind its type

	extra    uint32   // of a try_table: blocks that are written around it
	crossing []uint32 // and where its clauses go on to that leave another one, by depths around it

	caught caught // what to do behind it, or of a loop, what is done at its head

	ways       uint64 // that branches lead to it
	sets, uses uint64 // of locals, in front of it
}

// block is what a block takes and leaves, and the numbers of these lists.
type block struct {
	params, results     []valueType
	paramsNo, resultsNo uint32
}

// label is the number of the list of what a branch to the frame brings.
func (f *frame) label() uint32 {
	if f.op == opLoop {
		return f.block.paramsNo
	}
	return f.block.resultsNo
}

// brings is that list.
func (f *frame) brings() []valueType {
	if f.op == opLoop {
		return f.block.params
	}
	return f.block.results
}

// close ends a block, or turns from its first arm to the second.
func (w *walker) close(at int, op byte) {
	w.buf = append(w.buf, op)
	f := &w.frames[len(w.frames)-1]
	if op == opElse {
		if f.op != opIf {
			w.r.fail(at, "else", "malformed: there is no if for it", "")
		}
		f.op = opElse
		w.grow(f.base + len(f.block.params) - w.height.now)
		w.point = f.outer
		return
	}
	switch {
	case f.op == opLoop && f.targeted:
		w.branches(aLoop - aRound)
	case f.op == opLoop:
		w.points[w.point].payer = f.outer // never repeated: no loop
	}
	w.point = f.outer
	w.meet(f)
	w.grow(f.base + len(f.block.results) - w.height.now)
	if f.op == opTryTable {
		w.endTry(f)
	}
	if f.caught.here && f.op != opLoop && len(w.frames) > 1 {
		w.edits = append(w.edits, edit{at: len(w.buf), kind: restores, caught: f.caught})
	}
	w.frames = w.frames[:len(w.frames)-1]
}

// blockType copies a block type.
func (w *walker) blockType(at int) (b block) {
	r, rw := &w.r, w.rw
	typeAt := r.pos
	t := r.signed(33)
	w.blocks++
	w.branches(aBranch)
	values := uint64(w.locals)
	if t >= 0 {
		if t >= int64(len(rw.types)) {
			r.fail(typeAt, "block type", fmt.Sprintf("index %d, but there are %d types", t, len(rw.types)), "")
		}
		if r.err == nil {
			b = block{rw.types[t].params, rw.types[t].results, rw.labels[t][0], rw.labels[t][1]}
			values += uint64(len(b.params) + len(b.results))
			w.buf = appendSigned(w.buf, t)
		}
	} else {
		switch {
		case t == -64:
			w.buf = append(w.buf, 0x40)
		case t < -64:
			r.fail(typeAt, "block type", "malformed: there is no such type", "")
		default:
			var v valueType
			switch k := byte(t & 0x7f); {
			case k == refNull:
				v = rw.heapType(r, typeAt, uint32(len(rw.types)))
			case k == ref:
				v = rw.heapType(r, typeAt, uint32(len(rw.types))) | nonNull
			case !isValueType(k):
				r.refuseType(typeAt, k)
			default:
				if v = valueType(k); k == exnref {
					rw.needExceptions(r, typeAt, "value type exnref")
				}
			}
			if b.results = []valueType{v}; v < 256 {
				b.results = alone[v][:]
			}
			w.buf = appendValueType(w.buf, v)
		}
		b.resultsNo = rw.lists.number(b.results)
	}
	if values*uint64(w.blocks) > MaxLocalBlocks && r.err == nil {
		r.fail(at, "body", fmt.Sprintf("%d locals over %d or more blocks, the limit of their product is %d", values, w.blocks, MaxLocalBlocks), "split the function; clang: -fno-inline")
	}
	return b
}
