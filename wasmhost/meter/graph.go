package meter

import (
	"encoding/binary"
	"math"
	"slices"
)

// callGraph has a node for each function with a body, and behind these one for each type, through which call_indirect
// and call_ref lead to every function of an equal type that may be in a table or referred to. The host calls in from
// outside only.
type callGraph struct {
	w       *walker
	equal   []int32   // the first type that is equal to a type
	members [][]int32 // of each first type, the functions in its tables
}

// stack gives a frame to each function on a cycle of the call graph; in a module that catches exceptions, to each that
// calls another or catches, and in full.
func (w *walker) stack() {
	if w.rw.catches {
		for _, e := range w.rw.out.Exports {
			if e.Kind == Func && e.Index >= w.rw.imported {
				w.bodies[e.Index-w.rw.imported].called = true
			}
		}
		for i := range w.bodies {
			if b := &w.bodies[i]; b.tries > 0 || b.calls[0] < b.calls[1] {
				b.frame = int64(frameBytes + b.stack + b.tries*tryBytes)
			}
		}
		return
	}
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
		b.frame = int64(min(frameBytes+b.stack, maxFrame))
	})
}

// equalTypes finds for each type the first one with the same parameters and results: call_indirect compares these.
// References to functions are the same if their types are, which come first.
func (rw *rewriter) equalTypes() []int32 {
	equal := make([]int32, len(rw.types))
	first := make(map[string]int32, len(rw.types))
	var key []byte
	for i, t := range rw.types {
		key = key[:0]
		for _, list := range [][]valueType{t.params, t.results} {
			for _, v := range list {
				if v&concrete != 0 {
					v = v&(1<<10-1) | valueType(equal[v.index()])<<10
				}
				key = binary.LittleEndian.AppendUint32(key, uint32(v))
			}
			key = append(key, 0, 0, 0, 0)
		}
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

// cycles tells each function that is on a cycle on which the stack grows, once: not all of its calls are tail calls. It
// is Tarjan's search for strongly connected components, with a stack of its own: the guest decides how deep it goes.
func (g *callGraph) cycles(found func(int32)) {
	functions := int32(len(g.w.bodies))
	nodes := functions + int32(len(g.equal))
	const done = math.MaxInt32
	order, low := make([]int32, nodes), make([]int32, nodes) // order 0: not seen yet
	component := make([]int32, nodes)                        // by one of its nodes; -1: not known yet
	for i := range component {
		component[i] = -1
	}
	type step struct {
		node int32
		next int
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
				component[node] = s.node
			}
			grows := slices.ContainsFunc(open[at:], func(node int32) bool { return g.grows(node, component) })
			for _, node := range open[at:] {
				if order[node] = done; node < functions && grows {
					found(node)
				}
			}
			open = open[:at]
		}
	}
}

// grows reports whether a function calls into its own component, tail calls apart.
func (g *callGraph) grows(node int32, component []int32) bool {
	if int(node) >= len(g.w.bodies) {
		return false
	}
	b := &g.w.bodies[node]
	for i, c := range g.w.calls[b.calls[0]:b.calls[1]] {
		if to, _ := g.next(node, i); !c.tail && component[to] == component[node] {
			return true
		}
	}
	return false
}
