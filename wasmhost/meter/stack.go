package meter

import (
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

// stackUsedUp is what tick gets instead of a counter when the stack is used up. No counter falls as low.
const stackUsedUp = math.MinInt32

// A frame is estimated from above: what a call always takes, and a place for each local and each value that the operand
// stack ever holds. The cap leaves even functions of thousands of values 64 calls deep.
const (
	frameBytes = 64
	valueBytes = 8
	maxFrame   = 16 << 10
)

// A leave is a return instruction, by its place in buf, and the number of blocks that are open there.
type leave struct {
	at    int
	depth uint32
}

// callGraph has a node for each function with a body, and behind these one for each type, through which call_indirect
// leads to every function of an equal type that may be in a table. The host calls in from outside only.
type callGraph struct {
	w       *walker
	equal   []int32   // the first type that is equal to a type
	members [][]int32 // of each first type, the functions in its tables
}

// stack gives a frame to each function on a cycle of the call graph.
func (w *walker) stack() {
	g := callGraph{w: w, equal: w.rw.equalTypes(), members: make([][]int32, len(w.rw.types))}
	imported := int(w.rw.imported)
	for f, named := range w.rw.named {
		if named && f >= imported {
			t := g.equal[w.rw.funcs[f]]
			g.members[t] = append(g.members[t], int32(f-imported))
		}
	}
	g.cycles(func(f int32) {
		b := &w.bodies[f]
		b.frame = int64(min(frameBytes+valueBytes*(int(b.scratch)+b.peak), maxFrame))
	})
}

// equalTypes finds for each type the first one with the same parameters and results: call_indirect compares these.
func (rw *rewriter) equalTypes() []int32 {
	equal := make([]int32, len(rw.types))
	first := make(map[string]int32, len(rw.types))
	var key []byte
	for i, t := range rw.types {
		key = append(append(append(key[:0], t.Params...), 0), t.Results...)
		j, ok := first[string(key)]
		if !ok {
			j = int32(i)
			first[string(key)] = j
		}
		equal[i] = j
	}
	return equal
}

// next is the i-th node that a node leads to; false behind the last one.
func (g *callGraph) next(node int32, i int) (int32, bool) {
	functions := int32(len(g.w.bodies))
	if node >= functions {
		m := g.members[node-functions]
		if i >= len(m) {
			return 0, false
		}
		return m[i], true
	}
	calls := g.w.calls[g.w.bodies[node].calls[0]:g.w.bodies[node].calls[1]]
	if i >= len(calls) {
		return 0, false
	}
	to := int32(calls[i].callee)
	if to >= functions {
		to = functions + g.equal[to-functions]
	}
	return to, true
}

// cycles tells each function that is on a cycle, once. It is Tarjan's search for strongly connected components, with
// a stack of its own: the guest decides how deep it goes.
func (g *callGraph) cycles(found func(int32)) {
	functions := int32(len(g.w.bodies))
	nodes := functions + int32(len(g.equal))
	const done = math.MaxInt32
	order, low := make([]int32, nodes), make([]int32, nodes) // order 0: not seen yet
	type step struct {
		node int32
		next int
		self bool
	}
	var path []step
	var open []int32 // seen, and their components not complete
	seen := int32(0)
	visit := func(node int32) {
		seen++
		order[node], low[node] = seen, seen
		open = append(open, node)
		path = append(path, step{node: node})
	}
	for root := range functions {
		if order[root] != 0 {
			continue
		}
		visit(root)
		for len(path) > 0 {
			top := &path[len(path)-1]
			if to, ok := g.next(top.node, top.next); ok {
				top.next++
				top.self = top.self || to == top.node
				if order[to] == 0 {
					visit(to)
				} else if order[to] != done {
					low[top.node] = min(low[top.node], order[to])
				}
				continue
			}
			s := *top
			path = path[:len(path)-1]
			if len(path) > 0 {
				parent := path[len(path)-1].node
				low[parent] = min(low[parent], low[s.node])
			}
			if low[s.node] != order[s.node] {
				continue
			}
			at := len(open) - 1
			for open[at] != s.node {
				at--
			}
			for _, node := range open[at:] {
				if order[node] = done; node < functions && (len(open)-at > 1 || s.self) {
					found(node)
				}
			}
			open = open[:at]
		}
	}
}

// appendEnter writes: depth += the frame, or the guest is stopped; and opens the block that all returns leave.
func (w *walker) appendEnter(out []byte, b *body) []byte {
	depth := w.rw.globals + 1
	out = appendU32(append(out, opGlobalGet), depth)
	out = appendSigned(append(out, opI32Const), b.frame)
	out = appendU32(append(out, opI32Add, opLocalTee), b.scratch)
	out = appendSigned(append(out, opI32Const), MaxStack)
	out = append(out, opI32GtU, opIf, 0x40)
	out = appendSigned(append(out, opI32Const), stackUsedUp)
	out = appendU32(append(out, opCall), w.rw.imported)
	out = append(out, opUnreachable, opEnd)
	out = appendU32(append(out, opLocalGet), b.scratch)
	out = appendU32(append(out, opGlobalSet), depth)
	return appendSigned(append(out, opBlock), w.rw.blockType(b.results))
}

// appendLeave writes what stands behind that block: depth -= the frame, and the function's end.
func (w *walker) appendLeave(out []byte, b *body) []byte {
	depth := w.rw.globals + 1
	out = appendU32(append(out, opGlobalGet), depth)
	out = appendSigned(append(out, opI32Const), b.frame)
	out = appendU32(append(out, opI32Sub, opGlobalSet), depth)
	return append(out, opEnd)
}

// appendOps copies the instructions in buf[from:to], those of leaves as branches to the end of the function's block.
func (w *walker) appendOps(out []byte, from, to int, leaves []leave) []byte {
	i, _ := slices.BinarySearchFunc(leaves, from, func(l leave, at int) int { return l.at - at })
	for ; i < len(leaves) && leaves[i].at < to; i++ {
		out = append(out, w.buf[from:leaves[i].at]...)
		out = appendU32(append(out, opBr), leaves[i].depth)
		from = leaves[i].at + 1
	}
	return append(out, w.buf[from:to]...)
}

// resultTypes appends, for each list of several results that a type has, the type () -> results if there is none: such
// a block needs its number.
func (rw *rewriter) resultTypes() (added [][]byte) {
	rw.blocks = map[string]uint32{}
	for i, t := range rw.types {
		if _, ok := rw.blocks[string(t.Results)]; !ok && len(t.Params) == 0 {
			rw.blocks[string(t.Results)] = uint32(i)
		}
	}
	next := uint32(len(rw.types))
	if rw.tickType == next {
		next++
	}
	for _, t := range rw.types {
		if _, ok := rw.blocks[string(t.Results)]; !ok && len(t.Results) > 1 {
			rw.blocks[string(t.Results)] = next
			added = append(added, t.Results)
			next++
		}
	}
	return added
}

// blockType is that of a block without parameters.
func (rw *rewriter) blockType(results []byte) int64 {
	switch len(results) {
	case 0:
		return -64
	case 1:
		return int64(results[0]) - 0x80
	}
	return int64(rw.blocks[string(results)])
}
