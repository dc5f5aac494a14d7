package meter

import "fmt"

// walker reads function bodies: it checks their indices and nesting, copies every instruction in its shortest form,
// and finds where the counter has to fall, and by how much.
//
// An instruction is paid for at one point that every way to it passes, and passes again before the instruction can be
// reached a second time: the head of the innermost loop around it, or the function's entry.
type walker struct {
	rw     *rewriter
	r      reader
	buf    []byte // the instructions of all bodies, without points
	bodies []body
	points []point
	calls  []call
	edits  []edit

	// Of the body at hand.
	frames []frame
	point  int // where the next instruction is paid for
	height height
	locals uint32
	blocks uint32
	tries  int    // try_tables that are open
	extra  uint32 // blocks that are written around these
	raises int    // try_tables, catch clauses and throws so far
	counts bool   // it has a loop, call or bulk operation so far
	wide   bool   // it handles vectors
	work   work
}

// body is one function with a body, as found.
type body struct {
	groups        int    // of locals
	locals        []byte // their declarations, in shortest form
	scratch       uint32 // index of the first free local
	start, end    int    // in buf
	first, behind int    // in points
	calls, edits  [2]int // the same in calls and edits
	results       []valueType
	stack         int    // bytes of its locals and its operand stack, at most
	frame         int64  // bytes of stack that it counts; 0: it counts none, for it never calls itself
	tries         int    // try_tables that it may have open at a time
	nonNull       bool   // it has locals that cannot be null
	called        bool   // by the host, if that matters
	lengths       bool   // it has bulk operations, for which it needs a second scratch local
	ops           int    // its instructions, else and end apart
	inline        uint32 // its instructions if they are paid for by its callers; else 0
}

// point is a place in buf in front of which the counter falls.
type point struct {
	at    int
	payer int // another point that pays for this one, in front of it; -1: itself
	units uint32
	bulk  bulk // if not none: falls by the length on the stack instead
	head  bool // of a loop without parameters
}

// bulk is what the length in front of an operation counts.
type bulk uint8

const (
	none          bulk = iota
	bytesMoved         // a unit for 64 bytes
	elementsMoved      // a unit for 8 table elements, which are 64 bytes
	pagesGrown         // 4096 units a page: it is zeroed, and the memory copied time and again as it grows
)

// call is a call of a function of the guest's own. The point pays for a callee that does not count by itself.
type call struct {
	point  int
	callee uint32 // among those with a body; behind them, the type of a call_indirect or call_ref
	tail   bool   // the caller's frame is gone by then
}

const (
	inlineOps     = 32 // a function below this without loops and calls is paid for by its callers
	growUnits     = 50 // memory.grow and table.grow leave the compiled code
	indirectUnits = 8  // a callee that does not count by itself may hide behind call_indirect
)

func (rw *rewriter) code() {
	if w := rw.walk(); w != nil {
		w.settle()
		w.stack()
		rw.emit(secCode, w.appendCode)
	}
}

// walk reads all bodies; nil when there are none or one is refused.
func (rw *rewriter) walk() *walker {
	n, ok := rw.enter(secCode, MaxFunctions)
	if rw.r.err == nil && int(n) != rw.out.Functions {
		rw.r.fail(rw.section[secCode].start, "code section", fmt.Sprintf("malformed: %d bodies for %d functions", n, rw.out.Functions), "")
	}
	if !ok || rw.r.err != nil {
		return nil
	}
	r := &rw.r
	w := &walker{rw: rw, bodies: make([]body, 0, n), buf: make([]byte, 0, rw.section[secCode].end-rw.section[secCode].start)}
	for i := range n {
		at := r.pos
		size := r.u32()
		start := r.pos
		r.take(size)
		if size > rw.bodyBytes && r.err == nil {
			r.fail(at, "body", fmt.Sprintf("%d bytes, the limit is %d", size, rw.bodyBytes), "split the function; clang: -fno-inline")
		}
		if r.err == nil {
			w.r = reader{b: rw.module[:r.pos], pos: start}
			w.body(at, rw.funcs[rw.imported+i])
			r.err = w.r.err
		}
		if r.err != nil {
			r.err.Function = rw.functionName(rw.imported + i)
			return nil
		}
	}
	rw.leave(secCode)
	return w
}

// body walks one function at an offset, of the type with an index.
func (w *walker) body(at int, index uint32) {
	r := &w.r
	t := w.rw.types[index]
	b := body{start: len(w.buf), first: len(w.points), results: t.results}
	b.calls[0], b.edits[0] = len(w.calls), len(w.edits)
	w.wide = t.has(v128)
	w.localGroups(&b, t.params)
	b.scratch = w.locals
	w.frames = append(w.frames[:0], frame{block: block{results: t.results, resultsNo: w.rw.labels[index][1]}})
	w.points = append(w.points, point{at: b.start, payer: -1})
	w.point = b.first
	w.blocks, w.tries, w.extra, w.raises, w.counts, w.height, w.work = 1, 0, 0, 0, false, height{}, work{branches: aBranch}
	for len(w.frames) > 0 && r.err == nil {
		w.run(&b)
		w.instruction(&b)
	}
	if r.err == nil && !r.empty() {
		r.fail(r.pos, "", "malformed: instructions behind the end of the function", "")
	}
	b.end, b.behind = len(w.buf), len(w.points)
	w.weigh(at)
	b.stack += w.height.peak * valueBytes
	if w.wide {
		b.stack += w.height.peak * valueBytes
	}
	b.calls[1], b.edits[1] = len(w.calls), len(w.edits)
	sortEdits(w.edits[b.edits[0]:])
	if !w.counts && b.ops < inlineOps {
		b.inline = w.points[b.first].units
		b.behind = b.first
		w.points = w.points[:b.first]
	}
	w.bodies = append(w.bodies, b)
}

func (w *walker) localGroups(b *body, params []valueType) {
	r := &w.r
	total := uint64(len(params))
	for _, t := range params {
		b.stack += size(t)
	}
	n := r.u32()
	for range n {
		if r.err != nil {
			return
		}
		at := r.pos
		count := r.u32()
		if total += uint64(count); total > MaxLocals && r.err == nil {
			r.fail(at, "locals", fmt.Sprintf("%d or more, the limit is %d", total, MaxLocals), "split the function")
		}
		t := w.rw.valueType(r, uint32(len(w.rw.types)))
		b.stack += int(count) * size(t)
		b.nonNull = b.nonNull || !t.nullable()
		w.wide = w.wide || t == v128
		b.locals = appendValueType(appendU32(b.locals, count), t)
	}
	b.groups = int(n)
	w.locals = uint32(total)
}

// pay adds an instruction of some units to what the current point takes.
func (w *walker) pay(b *body, units uint32) {
	b.ops++
	w.points[w.point].units += units
}

// instruction copies one instruction.
func (w *walker) instruction(b *body) {
	r := &w.r
	at := r.pos
	op := r.byte()
	ins := &instrs[op]
	switch op {
	case opMisc:
		w.misc(b, at)
		return
	case opSIMD:
		w.simd(b, at)
		return
	case opEnd, opElse:
		if r.err == nil {
			w.close(at, op)
		}
		return
	}
	if ins.name == "" || r.err != nil {
		w.refuse(at, op)
		return
	}
	units := uint32(1)
	switch op {
	case opThrow:
		w.throw(b, at)
		return
	case opTryTable:
		w.tryTable(b, at)
		return
	case opReturnCall, opReturnCallIndirect, opReturnCallRef:
		w.tailCall(b, at, op)
		return
	case opBrTable:
		w.brTable(b, at)
		return
	case opThrowRef:
		w.rw.needExceptions(r, at, "throw_ref (opcode 0xa)")
		w.thrown(b, at)
		w.grow(gone)
		w.buf = append(w.buf, op)
		return
	case opCallIndirect, opCallRef:
		units = indirectUnits
	case opMemoryGrow:
		units = growUnits
	}
	w.pay(b, units)
	w.grow(int(growth[op]))
	switch op {
	case opLoop:
		w.counts = true
		w.branches(aRound - aBranch)
		w.buf = append(w.buf, op)
		t := w.blockType(at)
		w.open(op, t)
		w.point = len(w.points)
		w.points = append(w.points, point{at: len(w.buf), payer: -1, head: len(t.params) == 0})
		return
	case opBlock, opIf:
		if op == opIf {
			w.branches(aBranch)
		}
		w.buf = append(w.buf, op)
		w.open(op, w.blockType(at))
		return
	case opCall, opCallIndirect, opCallRef:
		w.buf = append(w.buf, op)
		w.call(at, op, false)
		return
	case opMemoryGrow:
		w.bulk(b, pagesGrown)
	case opReturn:
		w.leave()
		return
	}
	w.buf = append(w.buf, op)
	w.operands(at, ins)
}
