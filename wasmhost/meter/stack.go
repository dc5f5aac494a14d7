package meter

import (
	"cmp"
	"math"
	"slices"
)

// MaxStack is how many bytes of stack the functions of one instance may take that call themselves, directly or through
// others, by estimate. Without it wazero lets a stack grow to hundreds of megabytes, by doubling and copying, and for
// as long as it copies neither Go's collector nor the clock gets its turn. The depth is kept in a global behind the
// counter; it is 0 whenever no call is under way.
//
// Functions that are on no cycle of the call graph are not counted: a module's size bounds what they take.
const MaxStack = 1 << 20

// What tick gets instead of a counter when the stack is used up, and when too much was thrown. No counter falls as low.
const (
	stackUsedUp    = math.MinInt32
	thrownTooOften = math.MinInt32 + 1
)

// A frame is estimated from above: what a call always takes, and a place for each local and each value that the operand
// stack ever holds. The cap leaves even functions of thousands of values 64 calls deep.
const (
	frameBytes = 64
	valueBytes = 8
	maxFrame   = 16 << 10
)

// An edit is what a function that counts its stack needs at a place in buf.
type edit struct {
	at     int
	kind   edits
	depth  uint32 // of a return: the blocks that are open
	caught caught // what restores
}

type edits byte

const (
	restores edits = iota // catch clauses lead here: depth = the function's own
	returns               // a return: it becomes a branch to the end of the function's block
	leaves                // a tail call: depth -= the frame
)

// sortEdits orders those that a loop needed afterwards.
func sortEdits(e []edit) {
	by := func(a, b edit) int { return cmp.Or(a.at-b.at, int(a.kind)-int(b.kind)) }
	if !slices.IsSortedFunc(e, by) {
		slices.SortStableFunc(e, by)
	}
}

// appendEnter writes: depth += the frame, or the guest is stopped; and opens the block that all returns leave.
func (w *walker) appendEnter(out []byte, b *body) []byte {
	depth, most := w.rw.depth(), int64(MaxStack)
	if w.rw.catches {
		most = exceptionStack
	}
	out = appendU32(append(out, opGlobalGet), depth)
	out = appendSigned(append(out, opI32Const), b.frame)
	out = appendU32(append(out, opI32Add, opLocalTee), b.scratch)
	out = appendSigned(append(out, opI32Const), most)
	out = append(out, opI32GtU, opIf, 0x40)
	out = appendSigned(append(out, opI32Const), stackUsedUp)
	out = appendU32(append(out, opCall), w.rw.imported)
	out = append(out, opUnreachable, opEnd)
	out = appendU32(append(out, opLocalGet), b.scratch)
	if b.tries > 0 {
		out = appendU32(append(out, opLocalTee), b.scratch+2)
	}
	out = appendU32(append(out, opGlobalSet), depth)
	if b.tries > 0 {
		out = appendU32(append(out, opGlobalGet), w.rw.activations())
		out = append(out, opI32Const, 1, opI32Add)
		out = appendU32(append(out, opLocalTee), b.scratch+3)
		out = appendU32(append(out, opGlobalSet), w.rw.activations())
	}
	if b.called { // thrown = 0, if the host calls
		out = appendU32(append(out, opLocalGet), b.scratch)
		out = appendSigned(append(out, opI32Const), b.frame)
		out = append(out, opI32Eq, opIf, 0x40, opI32Const, 0)
		out = append(appendU32(append(out, opGlobalSet), w.rw.thrown()), opEnd)
	}
	return w.rw.appendBlockType(append(out, opBlock), b.results)
}

// appendLeave writes what a function does in front of its end and its tail calls: depth -= the frame. One that catches
// may come there from a deeper one, by a clause that leads to its end.
func (w *walker) appendLeave(out []byte, b *body) []byte {
	if b.tries > 0 {
		out = appendU32(append(out, opLocalGet), b.scratch+2)
	} else {
		out = appendU32(append(out, opGlobalGet), w.rw.depth())
	}
	out = appendSigned(append(out, opI32Const), b.frame)
	return appendU32(append(out, opI32Sub, opGlobalSet), w.rw.depth())
}

// appendOps copies the instructions in buf[from:to] with their edits. It takes the edits that it makes.
func (w *walker) appendOps(out []byte, from, to int, b *body, edits *[]edit) []byte {
	for len(*edits) > 0 && (*edits)[0].at < to {
		e := (*edits)[0]
		*edits = (*edits)[1:]
		out = append(out, w.buf[from:e.at]...)
		from = e.at
		switch e.kind {
		case restores:
			out = w.appendCaught(out, b, e.caught)
		case returns:
			out = appendU32(append(out, opBr), e.depth)
			from++
		case leaves:
			out = w.appendLeave(out, b)
		}
	}
	return append(out, w.buf[from:to]...)
}

// resultTypes appends, for each list of several results that a type has, the type () -> results if there is none: such
// a block needs its number.
func (rw *rewriter) resultTypes(next uint32) (added []funcType) {
	rw.blocks = map[uint32]uint32{}
	for i, t := range rw.types {
		if no := rw.labels[i][1]; len(t.params) == 0 {
			if _, ok := rw.blocks[no]; !ok {
				rw.blocks[no] = uint32(i)
			}
		}
	}
	for i, t := range rw.types {
		no := rw.labels[i][1]
		if _, ok := rw.blocks[no]; !ok && len(t.results) > 1 {
			rw.blocks[no] = next
			added = append(added, funcType{results: t.results})
			next++
		}
	}
	return added
}

// appendBlockType writes that of a block without parameters.
func (rw *rewriter) appendBlockType(w []byte, results []valueType) []byte {
	switch len(results) {
	case 0:
		return append(w, 0x40)
	case 1:
		return appendValueType(w, results[0])
	}
	return appendSigned(w, int64(rw.blocks[rw.lists.number(results)]))
}
