package meter

import "fmt"

// expression leaves one value of a type.
func (g *typed) expression(of string, depth int) {
	if depth > 5 {
		g.terminal(of)
		return
	}
	switch g.n(9) {
	default:
		g.terminal(of)
	case 3:
		g.open("block "+of, false, of)
		g.block(depth)
		g.expression(of, depth+1)
		g.close()
	case 4:
		g.expression("i32", depth+1)
		g.open("if "+of, false, of)
		g.expression(of, depth+1)
		g.emit("else")
		g.block(depth)
		g.expression(of, depth+1)
		g.close()
	case 5:
		g.open("block "+of, false, of)
		g.expression(of, depth+1)
		g.expression("i32", depth+1)
		l, _ := g.label(of)
		g.emit(fmt.Sprintf("br_if %d", l))
		g.close()
	case 6:
		if of == "exnref" { // wazero does not take it
			g.terminal(of)
			return
		}
		g.expression(of, depth+1)
		g.expression(of, depth+1)
		g.expression("i32", depth+1)
		g.emit("select_t " + of)
	case 7, 8:
		g.special(of, depth)
	}
}

func (g *typed) terminal(of string) {
	switch of {
	case "i32":
		switch g.n(4) {
		case 0:
			g.emit(fmt.Sprintf("i32.const %d", int8(g.n(256))))
		case 1:
			g.emit(fmt.Sprintf("global.get %d", g.n(2)))
		default:
			g.emit(fmt.Sprintf("local.get %d", g.local(of)))
		}
	case "i64":
		switch g.n(3) {
		case 0:
			g.emit(fmt.Sprintf("i64.const %d", int64(g.n(256))<<g.n(56)))
		case 1:
			g.emit("global.get 2")
		default:
			g.emit(fmt.Sprintf("local.get %d", g.local(of)))
		}
	case "null:1":
		switch g.n(4) {
		case 0:
			g.emit(fmt.Sprintf("ref.func %d", 1+g.n(2)))
		case 1:
			g.emit("global.get 3")
		case 2:
			g.emit("ref.null 1")
		default:
			g.emit(fmt.Sprintf("local.get %d", g.local(of)))
		}
	case "exnref":
		g.emit(fmt.Sprintf("local.get %d", g.local(of)))
	}
}

// special are expressions that only one type has.
func (g *typed) special(of string, depth int) {
	switch of {
	case "i32":
		switch g.n(13) {
		case 0, 1:
			g.expression("i32", depth+1)
			g.expression("i32", depth+1)
			g.emit([]string{"i32.add", "i32.sub", "i32.mul", "i32.xor", "i32.shl", "i32.div_u", "i32.rem_s", "i32.lt_s"}[g.n(8)])
		case 2:
			g.arguments(1, depth)
			g.emit(fmt.Sprintf("call %d", 1+g.n(2)))
		case 3:
			g.expression("i32", depth+1)
			g.expression("null:1", depth+1)
			g.emit("call_ref 1")
		case 4:
			g.arguments(1, depth)
			g.small(depth)
			g.emit("call_indirect 1 1")
		case 5:
			g.arguments(4, depth)
			g.emit("call 4")
		case 6:
			g.arguments(5, depth)
			g.emit("call 5")
		case 7:
			g.expression("null:1", depth+1)
			g.emit("ref.is_null")
		case 8:
			g.small(depth)
			g.emit("i32.load")
		case 9:
			g.expression("i64", depth+1)
			g.emit("i32.wrap_i64")
		case 10:
			g.open("block i32", false, "i32")
			g.open("try_table void catch:1:0", true)
			g.block(depth)
			g.close()
			g.expression("i32", depth+1)
			g.close()
		case 11:
			g.open("block 7", false, "i32", "exnref")
			g.open("try_table void catch_ref:1:0", true)
			g.block(depth)
			g.close()
			g.expression("i32", depth+1)
			g.expression("exnref", depth+1)
			g.close()
			g.sink()
		case 12:
			g.emit("call 0 drop")
		}
	case "i64":
		switch g.n(4) {
		case 0, 1:
			g.expression("i64", depth+1)
			g.expression("i64", depth+1)
			g.emit([]string{"i64.add", "i64.sub", "i64.mul", "i64.xor"}[g.n(4)])
		case 2:
			g.arguments(3, depth)
			g.emit("call 3")
		case 3:
			g.expression("i32", depth+1)
			g.emit("i64.extend_i32_s")
		}
	case "null:1":
		switch g.n(4) {
		case 0:
			g.small(depth)
			g.emit("table.get 0")
		case 1:
			g.emit("i32.const 1 table.get 2")
		case 2:
			g.expression("null:1", depth+1)
			g.emit("ref.as_non_null")
		case 3:
			g.open("block null:1", false, "null:1")
			g.expression("null:1", depth+1)
			g.emit("br_on_non_null 0")
			g.block(depth)
			g.expression("null:1", depth+1)
			g.close()
		}
	case "exnref":
		g.open("block exnref", false, "exnref")
		g.open("try_table void catch_all_ref:0", true)
		g.block(depth)
		g.close()
		g.expression("exnref", depth+1)
		g.close()
	}
}

// sink takes an exnref.
func (g *typed) sink() {
	switch n := g.n(3); {
	case n == 0 && g.tries == 0:
		g.emit(fmt.Sprintf("local.set %d", g.local("exnref")))
	case n == 1:
		g.emit("ref.is_null drop")
	default:
		g.emit("drop")
	}
}

func (g *typed) statement(depth int) {
	if depth > 4 {
		g.emit("nop")
		return
	}
	switch g.n(22) {
	case 0:
		g.emit("nop")
	case 1, 2:
		of := []string{"i32", "i64", "null:1"}[g.n(3)]
		g.expression(of, depth)
		if g.tries > 0 {
			g.emit("drop")
		} else {
			g.emit(fmt.Sprintf("local.set %d", g.local(of)))
		}
	case 3:
		i := g.n(3)
		g.expression([]string{"i32", "i64", "null:1"}[i], depth)
		g.emit(fmt.Sprintf("global.set %d", 1+i))
	case 4:
		g.expression("i32", depth)
		g.open("if void", false)
		g.block(depth)
		g.emit("else")
		g.block(depth)
		g.close()
	case 5:
		g.open("block void", false)
		g.block(depth)
		g.close()
	case 6, 7: // passes as long as there are any
		g.open("block void", false)
		g.open("loop void", false)
		g.emit("global.get 0 i32.const 1 i32.lt_s br_if 1 global.get 0 i32.const 1 i32.sub global.set 0")
		g.block(depth)
		g.expression("i32", depth)
		g.emit("br_if 0")
		g.close()
		g.close()
	case 8:
		if l, ok := g.label(); ok {
			g.expression("i32", depth)
			g.passes(fmt.Sprintf("br_if %d", l))
		}
	case 9:
		if a, ok := g.label(); ok {
			b, _ := g.label()
			c, _ := g.label()
			g.open("block void", false)
			g.expression("i32", depth)
			code := fmt.Sprintf("br_table %d %d %d %d", 2, a+1, b+1, c+1)
			if g.n(4) == 0 {
				code = fmt.Sprintf("br_table 0 %d", a+1)
			}
			g.passes(code)
			g.close()
		}
	case 10:
		if l, ok := g.label(); ok {
			g.expression("null:1", depth)
			g.passes(fmt.Sprintf("br_on_null %d", l))
			g.emit("drop")
		}
	case 11:
		g.small(depth)
		g.expression("i32", depth)
		g.emit("i32.store")
	case 12:
		g.small(depth)
		g.small(depth)
		g.small(depth)
		g.emit([]string{"memory.fill", "memory.copy", "memory.init 0", "table.copy 0 0", "table.init 0 0", "table.copy 0 2"}[g.n(6)])
	case 13:
		g.small(depth)
		g.expression("null:1", depth)
		g.emit("table.set 0")
	case 14:
		g.expression("null:1", depth)
		g.small(depth)
		g.emit("table.grow 0 drop")
	case 15, 16:
		g.catching(depth)
	case 17:
		g.expression("i32", depth)
		g.open("if void", false)
		if g.n(2) == 0 {
			g.emit("throw 0")
		} else {
			g.expression("i32", depth)
			g.emit("throw 1")
		}
		g.close()
	case 18:
		g.expression("i32", depth)
		g.open("if void", false)
		for _, r := range g.results {
			g.expression(r, depth)
		}
		g.emit("return")
		g.close()
	case 19:
		g.tail(depth)
	case 20:
		g.open("block void", false)
		g.expression("exnref", depth)
		g.emit("br_on_null 0 throw_ref")
		g.close()
	case 21:
		g.expression("exnref", depth)
		g.sink()
	}
}

// passes writes a branch that may be one to a loop, for which there must be passes left.
func (g *typed) passes(branch string) {
	g.emit("global.get 0 i32.const 1 i32.sub global.set 0")
	g.emit(branch)
}

// catching is a try_table whose clause leads to a void label.
func (g *typed) catching(depth int) {
	g.open("block void", false)
	l, _ := g.label()
	switch g.n(3) {
	case 0:
		g.open(fmt.Sprintf("try_table void catch_all:%d", l), true)
	case 1:
		g.open(fmt.Sprintf("try_table void catch:0:%d", l), true)
	case 2:
		g.open("try_table void", true)
	}
	g.block(depth)
	g.close()
	g.close()
}

// tail ends the function sometimes, by a call of one with the same results.
func (g *typed) tail(depth int) {
	g.expression("i32", depth)
	g.open("if void", false)
	switch {
	case len(g.results) == 2:
		g.emit("return_call 0")
	case g.results[0] == "i64":
		g.arguments(3, depth)
		g.emit("return_call 3")
	default:
		switch g.n(4) {
		case 0:
			f := 1 + g.n(4)
			if f == 3 {
				f = 5
			}
			g.arguments(f, depth)
			g.emit(fmt.Sprintf("return_call %d", f))
		case 1:
			g.arguments(1, depth)
			g.expression("null:1", depth)
			g.emit("return_call_ref 1")
		case 2:
			g.arguments(1, depth)
			g.small(depth)
			g.emit("return_call_indirect 1 1")
		case 3:
			g.arguments(5, depth)
			g.emit("return_call 5")
		}
	}
	g.close()
}
