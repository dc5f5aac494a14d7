package meter

import "fmt"

// What a function costs wazero's compiler grows with the square of the places in it where control parts and meets:
// 16 000 blocks with a br_if each, 176 KB, take it 5 s, and 8000 loops, 56 KB, take it 40 s. So these are counted, by
// what each was measured to cost: a block or a branch as one, an if as two, four targets of a br_table as one; a loop as
// twelve, for the meter's check splits its head; a bulk operation as six, for it has such a check and is a loop itself.
//
// It also grows with the values that may be needed behind each of these places: the locals and what is on the operand
// stack. And with the locals that may have another value on each way to a place, some 270 bytes for each of them and
// each way (25 KB took it 530 MB and 14 s); and with the values that calls and branches pass, some 260 bytes each.
//
// The limits are four times what the largest programs of C, C++, Rust and Go have that were looked at (Python, PHP,
// SQLite, swc, esbuild). Only where one function does everything it comes nearer: PHP's interpreter has 19 000 branches
// there, generated lexers of 250 KB have 30 000.
const (
	MaxBranches      = 40_000        // of one function: 8 s
	MaxBranchSquares = 4_000_000_000 // the squares of these, summed up over all functions: 20 s
	MaxLive          = 12_000_000    // of one function: locals, and values on its operand stack, at each of its branches
	MaxMet           = 1_200_000     // of one function: locals that are set in a block × ways out of it, over all blocks
	MaxPassed        = 100_000       // of one function: parameters and results of its calls, and what its branches bring
	MaxAllLocals     = 600_000       // of all functions, parameters included: the interpreter takes 62 bytes for each
	MaxParams        = 250           // of one type, and as many results: the compiler takes the square of these
	MaxAllParams     = 100_000       // of all types: parameters and results
)

// In quarters of a branch.
const (
	aBranch = 4
	aTarget = 1           // of a br_table
	aBulk   = 6 * aBranch // operation
	aLoop   = 12 * aBranch
	aRound  = 2 * aBranch // a loop that is never repeated
)

// work is what the body at hand asks of the compiler.
type work struct {
	branches uint64 // in quarters
	live     uint64 // values, in quarters
	passed   uint64 // values
	met      uint64 // locals on all ways
	sets     uint64 // local.set and local.tee so far
	uses     uint64 // these and local.get
}

// branches counts so many quarters of a branch at the place at hand.
func (w *walker) branches(quarters uint64) {
	w.work.branches += quarters
	w.work.live += quarters * (uint64(w.locals) + uint64(w.height.now))
}

// meet counts the locals that may come from each of the ways that meet behind a block: those that are set in it. At a
// loop's head it is all that are used in it, for the compiler does not know yet what is set.
func (w *walker) meet(f *frame) {
	n := w.work.sets - f.sets
	switch {
	case f.op == opLoop:
		n = w.work.uses - f.uses
	case f.op == opIf || f.op == opElse:
		f.ways++
	}
	if f.ways > 0 && len(w.frames) > 1 {
		w.work.met += min(n, uint64(w.locals)) * (f.ways + 1)
	}
}

// weigh refuses a body that asks for too much, and one that makes too much of all of them.
func (w *walker) weigh(at int) {
	k, rw := &w.work, w.rw
	n := k.branches / aBranch
	rw.squares += n * n
	rw.locals += uint64(w.locals)
	const split = "split the function; clang: -fno-inline"
	refuse := func(reason, remedy string) { w.r.fail(at, "body", reason, remedy) }
	switch {
	case w.r.err != nil:
	case n > MaxBranches:
		refuse(fmt.Sprintf("%d blocks and branches (a loop counts as %d), the limit is %d", n, aLoop/aBranch, MaxBranches), split)
	case k.live/aBranch > MaxLive:
		refuse(fmt.Sprintf("its %d locals and the values on its stack at %d blocks and branches add up to %d, the limit is %d", w.locals, n, k.live/aBranch, MaxLive), split)
	case k.met > MaxMet:
		refuse(fmt.Sprintf("where its branches meet they bring %d values of its %d locals, the limit is %d", k.met, w.locals, MaxMet), split)
	case k.passed > MaxPassed:
		refuse(fmt.Sprintf("its calls and branches pass %d values, the limit is %d", k.passed, MaxPassed), split)
	case rw.squares > MaxBranchSquares:
		refuse(fmt.Sprintf("it has %d blocks and branches, and with it the sum of their squares over the functions is %d, the limit is %d", n, rw.squares, uint64(MaxBranchSquares)),
			"split the module's largest functions; clang: -fno-inline")
	case rw.locals > MaxAllLocals:
		refuse(fmt.Sprintf("%d locals, and with them the functions have %d, the limit is %d", w.locals, rw.locals, MaxAllLocals), "leave out code that is not used: wasm-opt -O, clang -O2, LTO")
	}
}
