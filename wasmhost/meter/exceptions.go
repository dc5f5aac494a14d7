package meter

import (
	"fmt"
	"slices"
)

// Exceptions (try_table, throw and throw_ref; [Limits].Exceptions) have rules of their own.
//
// wazero's compiler opens a try_table by copying the whole stack, and keeps the copy until it is left. Recursion through
// one took 10.7 GB. What bounds it: in a module that opens any, every function that calls another counts its stack in
// full, all of them may take [exceptionStack] together, and a function counts a 64th of that for each try_table that it
// may have open at a time. So there are never more than 64 copies of a stack that never grew beyond some 512 KiB.
//
// An exception leaves functions without passing their exits, so a function that catches notes its depth on entry and
// restores it where catch clauses lead to.
//
// wazero forgets to close a try_table on some ways out of it; each would leave a copy behind, and catch what it should
// not. These are rewritten (a branch to a try_table's own end, a br_table with only a default, a try_table without
// clauses) or refused (a clause that leaves another try_table).
//
// An exnref is a bare pointer to an object that only wazero's latest exception keeps alive. A guest that held on to one
// would make wazero read freed memory. So whatever a clause catches by reference is handed to the host first, [Keep],
// which holds it as long as the function that caught it may run; and an exnref may not leave that function: none in
// globals, tables, tags, parameters and results.
const (
	exceptionStack = 256 << 10
	tryBytes       = exceptionStack / 64

	tryUnits   = 10_000 // opening a try_table, and throwing: 6 to 30 µs each
	maxClauses = 1000   // of one try_table
)

// The catch clauses.
const (
	catch = iota
	catchRef
	catchAll
	catchAllRef
)

// needExceptions refuses what only exceptions need when they are off.
func (rw *rewriter) needExceptions(r *reader, at int, what string) {
	if !rw.limits.Exceptions {
		r.fail(at, what, exceptions.reason(), exceptions.remedy)
	}
}

// confine refuses a reference to an exception where it could leave the function that caught it.
func (rw *rewriter) confine(at int, what string, v valueType) {
	if v.kind() == exnref {
		rw.r.fail(at, what, fmt.Sprintf("references to exceptions (%v) are supported in locals and blocks only", v), "keep it in a local of the function that catches it")
	}
}

// signature checks the type of a function that the guest declares.
func (rw *rewriter) signature(at int, what string, t uint32) {
	if int(t) < len(rw.types) && rw.types[t].has(exnref) {
		rw.confine(at, what, exnref)
	}
}

// tag reads a tag's type.
func (rw *rewriter) tag(w []byte, what string) []byte {
	r := &rw.r
	at := r.pos
	if attribute := r.byte(); attribute != 0 && r.err == nil {
		r.fail(at, what, fmt.Sprintf("malformed: there are no tags of kind %#x", attribute), "")
	}
	t := rw.index("type of a tag", uint32(len(rw.types)))
	if r.err == nil {
		rw.signature(at, what, t)
		if rw.types[t].has(v128) {
			r.fail(at, what, "vectors (v128) in exceptions are not supported", "throw the vector's parts, or a pointer to it")
		}
	}
	rw.tags = append(rw.tags, t)
	return appendU32(append(w, 0), t)
}

func (rw *rewriter) tagSection() {
	n, ok := rw.enter(secTag, maxEntries)
	if !ok {
		return
	}
	rw.emit(secTag, func(w []byte) []byte {
		w = appendU32(w, n)
		for range n {
			if rw.r.err != nil {
				return nil
			}
			w = rw.tag(w, "tag section")
		}
		rw.leave(secTag)
		return w
	})
}

// throw copies a throw.
func (w *walker) throw(b *body, at int) {
	w.rw.needExceptions(&w.r, at, "throw (opcode 0x8)")
	t := w.index(at, "throw", "tag", uint32(len(w.rw.tags)))
	w.counts = true
	w.pay(b, tryUnits)
	w.grow(gone)
	w.buf = appendU32(append(w.buf, opThrow), t)
}

// tryTable copies a try_table inside of a block of its own, which branches to its end lead to instead. One without
// clauses becomes a block.
func (w *walker) tryTable(b *body, at int) {
	r := &w.r
	w.rw.needExceptions(r, at, "try_table (opcode 0x1f)")
	if b.nonNull && r.err == nil {
		r.fail(at, "try_table", "it is not supported beside locals that cannot be null", "make the locals nullable: (ref null $t)")
	}
	typeAt := len(w.buf)
	block := w.blockType(at)
	typ := slices.Clone(w.buf[typeAt:])
	n := r.u32()
	if n > maxClauses && r.err == nil {
		r.fail(at, "try_table", fmt.Sprintf("%d clauses, the limit is %d", n, maxClauses), "")
	}
	if r.err != nil {
		return
	}
	if n == 0 {
		w.pay(b, 1)
		w.buf = append(append(w.buf[:typeAt], opBlock), typ...)
		w.open(opBlock, block)
		return
	}
	w.counts = true
	w.pay(b, tryUnits)
	w.buf = append(append(w.buf[:typeAt], opBlock), typ...)
	w.buf = append(append(w.buf, opTryTable), typ...)
	w.buf = appendU32(w.buf, n)
	for range n {
		if w.clause(b, at); r.err != nil {
			return
		}
	}
	w.open(opTryTable, block)
	if w.tries++; w.tries > b.tries {
		b.tries = w.tries
	}
	w.rw.catches = true
}

// clause copies a catch clause, whose label is one of those around the try_table.
func (w *walker) clause(b *body, at int) {
	r := &w.r
	kind := r.byte()
	if kind > catchAllRef && r.err == nil {
		r.fail(at, "try_table", fmt.Sprintf("malformed: no clause begins with %#x", kind), "")
	}
	w.buf = append(w.buf, kind)
	if kind < catchAll {
		w.copyIndex(at, "try_table", "tag", uint32(len(w.rw.tags)))
	}
	i, depth := w.target(at, "try_table")
	if r.err != nil {
		return
	}
	for _, f := range w.frames[i:] {
		if f.op == opTryTable {
			r.fail(at, "try_table", "a catch clause that leaves another try_table is not supported", "wasm-opt: catch in the inner one and branch from there, or leave out -O")
			return
		}
	}
	w.buf = appendU32(w.buf, depth+1) // past the block that is around the try_table
	f := &w.frames[i]
	c := &f.caught
	if c.here {
		return
	}
	c.here = true
	if kind == catchRef || kind == catchAllRef {
		label := f.block.results
		if f.op == opLoop {
			label = f.block.params
		}
		if len(label) > 0 { // else it is invalid
			c.keep, c.nonNull = true, !label[len(label)-1].nullable()
		}
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
