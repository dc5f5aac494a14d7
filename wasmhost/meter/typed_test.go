package meter

import (
	"fmt"
	"strings"
)

// typedHead is what the programs of generateTyped have in common. Global 0 is how many calls and passes of loops a
// program may still make; functions 0 to 5 have the types of typedFuncs.
const typedHead = `type ->
type i32 -> i32
type i64 i32 -> i64
type -> i32 i64
type null:1 i32 -> i32
type i64 i64 i64 i64 i64 i64 i64 i32 -> i32
type i32 ->
type -> i32 exnref
table null:1 8
table funcref 6
table ref:1 2 ; ref.func 2
memory 1
tag 0
tag 6
global i32 ; i32.const 10 i32.const 3 i32.mul i32.const 4 i32.sub
global i32 ; i32.const 7
global i64 ; i64.const 3 i64.const -5 i64.mul i64.const 1 i64.add
global null:1 ; ref.func 1
elem null:1 ; ref.func 1 ; ref.null 1 ; ref.func 2
elem funcref ; ref.func 0 ; ref.func 1 ; ref.func 2 ; ref.func 3 ; ref.func 4 ; ref.func 5
data 0123456789abcdef
`

// typedFuncs are the parameters and results of typedHead's functions; the first one is exported as f.
var typedFuncs = []struct {
	number          int
	params, results []string
}{
	{3, nil, []string{"i32", "i64"}},
	{1, []string{"i32"}, []string{"i32"}},
	{1, []string{"i32"}, []string{"i32"}},
	{2, []string{"i64", "i32"}, []string{"i64"}},
	{4, []string{"null:1", "i32"}, []string{"i32"}},
	{5, []string{"i64", "i64", "i64", "i64", "i64", "i64", "i64", "i32"}, []string{"i32"}},
}

// typedLocals are what each function has behind its parameters.
var typedLocals = []string{"i32", "i32", "i64", "i64", "null:1", "exnref"}

// generateTyped makes a text of a valid program that ends: each byte chooses among what may stand in a place.
//
// Inside of a try_table it sets no local: wazero's compiler loses what is set there when the same function catches. The
// interpreter does not, and is what the outcome is compared with.
func generateTyped(choices []byte) string {
	g := &typed{in: choices}
	g.text.WriteString(typedHead)
	for i, f := range typedFuncs {
		g.results, g.locals = f.results, append(append([]string(nil), f.params...), typedLocals...)
		g.labels = []typedLabel{{types: f.results}}
		g.emit(fmt.Sprintf("func %d %s %s ;", f.number, map[bool]string{true: "f", false: "_"}[i == 0], strings.Join(typedLocals, " ")))
		if i == 0 {
			g.emit("i32.const 0 i32.const 0 i32.const 3 table.init 0 0 i32.const 0 i32.const 0 i32.const 6 table.init 1 1")
		}
		g.emit("global.get 0 i32.const 1 i32.lt_s if void")
		for _, r := range f.results {
			g.emit(r + ".const 1")
		}
		g.emit("return end global.get 0 i32.const 1 i32.sub global.set 0")
		share := len(g.in) / (len(typedFuncs) - i)
		rest := g.in[share:]
		g.in = g.in[:share]
		for len(g.in) > 0 {
			g.statement(0)
		}
		for _, r := range f.results {
			g.expression(r, 3)
		}
		g.in = rest
		g.text.WriteString("\n")
	}
	return g.text.String()
}

type typed struct {
	in      []byte
	text    strings.Builder
	results []string
	locals  []string
	labels  []typedLabel
	tries   int
}

// typedLabel is what a branch to a block brings.
type typedLabel struct {
	types []string
	try   bool
}

func (g *typed) emit(code string) { g.text.WriteString(code); g.text.WriteByte(' ') }

// n chooses one of n.
func (g *typed) n(n int) int {
	if len(g.in) == 0 {
		return 0
	}
	c := g.in[0]
	g.in = g.in[1:]
	return int(c) % n
}

// local is the index of one of a type.
func (g *typed) local(of string) int {
	var all []int
	for i, t := range g.locals {
		if t == of {
			all = append(all, i)
		}
	}
	return all[g.n(len(all))]
}

// open and close stand around what is inside a block whose label has these types.
func (g *typed) open(code string, try bool, types ...string) {
	g.emit(code)
	g.labels = append(g.labels, typedLabel{types, try})
	if try {
		g.tries++
	}
}

func (g *typed) close() {
	if g.labels[len(g.labels)-1].try {
		g.tries--
	}
	g.labels = g.labels[:len(g.labels)-1]
	g.emit("end")
}

// label is the depth of one of the labels with these types; false if there is none.
func (g *typed) label(types ...string) (int, bool) {
	var all []int
	for i := len(g.labels) - 1; i >= 0; i-- {
		if strings.Join(g.labels[i].types, " ") == strings.Join(types, " ") {
			all = append(all, len(g.labels)-1-i)
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	return all[g.n(len(all))], true
}

func (g *typed) block(depth int) {
	for n := g.n(4); n > 0; n-- {
		g.statement(depth + 1)
	}
}

// arguments pushes what a function takes.
func (g *typed) arguments(f, depth int) {
	for _, p := range typedFuncs[f].params {
		g.expression(p, depth+1)
	}
}

func (g *typed) small(depth int) { g.expression("i32", depth+2); g.emit("i32.const 7 i32.and") }
