package meter

import (
	"fmt"
	"slices"
)

// clause is a catch clause, and where it leads: a frame, and that one's depth around the try_table.
type clause struct {
	kind    byte
	tag     uint32
	frame   int
	depth   uint32
	crosses bool // another try_table on the way
}

// tryTable copies a try_table inside of a block of its own, which branches to its end lead to instead, for wazero does
// not close it for these. Nor does it close the try_tables that a catch clause leaves: such a clause leads to a block of
// its own first, from where a branch goes on.
//
//	block                     ; for branches to the try_table's end
//	  block (results of $l)   ; for each clause that leaves another try_table
//	    try_table (catch $tag 0) … end
//	    br 1
//	  end
//	  br $l
//	end
//
// One without clauses becomes a block.
func (w *walker) tryTable(b *body, at int) {
	r := &w.r
	w.rw.needExceptions(r, at, "try_table (opcode 0x1f)")
	if b.nonNull && r.err == nil {
		r.fail(at, "try_table", "it is not supported beside locals that cannot be null", "make the locals nullable: (ref null $t)")
	}
	typeAt := len(w.buf)
	t := w.blockType(at)
	typ := slices.Clone(w.buf[typeAt:])
	w.buf = w.buf[:typeAt]
	clauses := w.clauses(at, t)
	w.raise(at, 1+len(clauses))
	if r.err != nil {
		return
	}
	w.buf = append(append(w.buf, opBlock), typ...)
	if len(clauses) == 0 {
		w.pay(b, 1)
		w.open(opBlock, t)
		return
	}
	w.counts = true
	w.pay(b, tryUnits)
	var crossing []uint32 // depths of where clauses go on to
	for _, c := range clauses {
		if c.crosses {
			w.buf = w.rw.appendBlockType(append(w.buf, opBlock), w.frames[c.frame].brings())
			crossing = append(crossing, c.depth)
		}
	}
	w.buf = append(append(w.buf, opTryTable), typ...)
	w.buf = appendU32(w.buf, uint32(len(clauses)))
	n := uint32(len(crossing))
	left := n
	for _, c := range clauses {
		w.buf = append(w.buf, c.kind)
		if c.kind < catchAll {
			w.buf = appendU32(w.buf, c.tag)
		}
		if c.crosses {
			left--
			w.buf = appendU32(w.buf, left)
		} else {
			w.buf = appendU32(w.buf, c.depth+1+n)
		}
	}
	w.open(opTryTable, t)
	f := &w.frames[len(w.frames)-1]
	f.extra, f.crossing = 1+n, crossing
	w.extra += f.extra
	w.blocks += n
	w.tries++
	b.tries = max(b.tries, w.tries)
	w.rw.catches = true
}

// endTry writes what stands behind a try_table's end.
func (w *walker) endTry(f *frame) {
	if n := uint32(len(f.crossing)); n > 0 {
		w.buf = appendU32(append(w.buf, opBr), n)
		for i := n; i > 0; i-- {
			w.buf = appendU32(append(w.buf, opEnd, opBr), f.crossing[i-1]+i)
		}
	}
	w.buf = append(w.buf, opEnd)
	w.extra -= f.extra
	w.tries--
}

// clauses reads the catch clauses of a try_table of type t. Their labels are those around it.
func (w *walker) clauses(at int, t block) (all []clause) {
	r := &w.r
	n := r.u32()
	if n > maxClauses && r.err == nil {
		r.fail(at, "try_table", fmt.Sprintf("%d clauses, the limit is %d", n, maxClauses), "")
	}
	for range n {
		var c clause
		c.kind = r.byte()
		if c.kind > catchAllRef && r.err == nil {
			r.fail(at, "try_table", fmt.Sprintf("malformed: no clause begins with %#x", c.kind), "")
		}
		if c.kind < catchAll {
			c.tag = w.index(at, "try_table", "tag", uint32(len(w.rw.tags)))
		}
		c.frame, c.depth = w.target(at, "try_table")
		if r.err != nil {
			return nil
		}
		c.crosses = slices.ContainsFunc(w.frames[c.frame:], func(f frame) bool { return f.op == opTryTable })
		f := &w.frames[c.frame]
		if c.crosses && (len(t.params) > 0 || f.op == opLoop && len(f.block.params) > 1) {
			r.fail(at, "try_table", "a catch clause that leaves another try_table is not supported where one of them takes values", "build without multi-value blocks")
			return nil
		}
		w.catchAt(f)
		all = append(all, c)
	}
	return all
}

// catchAt notes that a catch clause leads to a frame.
func (w *walker) catchAt(f *frame) {
	c := &f.caught
	if c.here {
		return
	}
	c.here = true
	if label := f.brings(); len(label) > 0 {
		last := label[len(label)-1] // clauses that bring no exnref do not fit where one is last
		c.keep, c.nonNull = last.kind() == exnref, !last.nullable()
	}
	if f.op == opLoop {
		w.edits = append(w.edits, edit{at: f.head, kind: restores, caught: *c})
	}
}

// caught says what has to be done where catch clauses lead to.
type caught struct {
	here    bool // restore the depth
	keep    bool // hand the exnref on top of the stack to the host
	nonNull bool // and it is one that cannot be null
}

// appendCaught writes: depth = the function's own; and, if an exnref is on the stack, keep(it, depth, activation).
func (w *walker) appendCaught(out []byte, b *body, c caught) []byte {
	own, activation := b.scratch+2, b.scratch+3
	out = appendU32(append(out, opLocalGet), own)
	out = appendU32(append(out, opGlobalSet), w.rw.depth())
	if !c.keep {
		return out
	}
	out = appendU32(append(out, opLocalGet), own)
	out = appendU32(append(out, opLocalGet), activation)
	out = appendU32(append(out, opCall), w.rw.imported+1)
	if c.nonNull {
		out = append(out, opRefAsNonNull)
	}
	return out
}
