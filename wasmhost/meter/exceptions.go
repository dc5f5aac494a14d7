package meter

import "fmt"

// Exceptions (try_table, throw and throw_ref; [Limits].Exceptions) have rules of their own.
//
// wazero's compiler opens a try_table by copying the whole stack, and keeps the copy until it is left. Recursion through
// one took 10.7 GB. What bounds it: in a module that opens any, every function that calls another counts its stack in
// full, all of them may take [exceptionStack] together, and a function counts a 64th of that for each try_table that it
// may have open at a time. So there are never more than 64 copies of a stack that never grew beyond some 512 KiB.
//
// With each exception that is caught, the stack that wazero goes on with is 16 bytes longer, for as long as the api.Function
// lives that was called. So a call may throw [maxThrown] times, and the host has to take the function anew for each
// call into a module that catches ([Module].Catches).
//
// An exception leaves functions without passing their exits, so a function that catches notes its depth on entry and
// restores it where catch clauses lead to.
//
// wazero forgets to close a try_table on some ways out of it; each would leave a copy behind, and catch what it should
// not. These are written in another way: a branch to a try_table's own end, a br_table with only a default, a try_table
// without clauses, a clause that leaves another try_table (try.go).
//
// An exnref is a bare pointer to an object that only wazero's latest exception keeps alive. A guest that held on to one
// would make wazero read freed memory. So whatever a clause catches by reference is handed to the host first, [Keep],
// which holds it as long as the function that caught it may run; and an exnref may not leave that function: none in
// globals, tables, tags, parameters and results.
const (
	exceptionStack = 256 << 10
	tryBytes       = exceptionStack / 64

	tryUnits   = 10_000 // opening a try_table, and throwing: 6 to 30 µs each
	maxThrown  = 8 << 10
	maxClauses = 1000 // of one try_table
	maxTries   = 2000 // try_tables, clauses and throws of one function: 16 000 take the compiler a minute
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
	w.thrown(b, at)
	w.grow(gone)
	w.buf = appendU32(append(w.buf, opThrow), t)
}

// raise bounds what a function has to do with exceptions.
func (w *walker) raise(at, n int) {
	if w.raises += n; w.raises > maxTries && w.r.err == nil {
		w.r.fail(at, "body", fmt.Sprintf("more than %d try_tables, catch clauses and throws", maxTries), "split the function; clang: -fno-inline")
	}
}

// thrown writes what stands in front of a throw: thrown++, or the guest is stopped.
func (w *walker) thrown(b *body, at int) {
	w.counts = true
	w.raise(at, 1)
	w.pay(b, tryUnits)
	out := appendU32(append(w.buf, opGlobalGet), w.rw.thrown())
	out = append(out, opI32Const, 1, opI32Add)
	out = appendU32(append(out, opLocalTee), b.scratch)
	out = appendU32(append(out, opGlobalSet), w.rw.thrown())
	out = appendU32(append(out, opLocalGet), b.scratch)
	out = appendSigned(append(out, opI32Const), maxThrown)
	out = append(out, opI32GtU, opIf, 0x40)
	out = appendSigned(append(out, opI32Const), thrownTooOften)
	out = appendU32(append(out, opCall), w.rw.imported)
	w.buf = append(out, opUnreachable, opEnd)
}
