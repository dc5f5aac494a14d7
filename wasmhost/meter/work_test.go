package meter

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// many repeats a piece of code.
func many(n int, code ...byte) []byte { return bytes.Repeat(code, n) }

// TestRefusesWhatTakesTheCompilerLong: each is just above its limit, and its neighbour just below passes.
func TestRefusesWhatTakesTheCompilerLong(t *testing.T) {
	check := func(p program, want ...string) {
		t.Helper()
		refused(t, p.module(), append(want, `function 1 "f"`, "split")...)
	}
	passes := func(p program) { t.Helper(); rewrite(t, p.module()) }
	locals := func(n int) []byte { return many(n, i32) }

	nested := func(n int) program { return program{body: append(many(n, opBlock, 0x40), many(n, opEnd)...)} }
	check(nested(40_000), "40001 blocks and branches", "the limit is 40000")
	passes(nested(39_999))
	ifs := func(n int) program { return program{body: many(n, opI32Const, 0, opIf, 0x40, opEnd)} }
	check(ifs(20_000), "40001 blocks and branches")
	passes(ifs(19_999))
	leaving := func(n int) program { return program{body: many(n, opBlock, 0x40, opI32Const, 0, opBrIf, 0, opEnd)} }
	check(leaving(20_000), "40001 blocks and branches")
	passes(leaving(19_999))
	again := func(n int) program { return program{body: many(n, opLoop, 0x40, opI32Const, 0, opBrIf, 0, opEnd)} }
	check(again(3100), "40301 blocks and branches (a loop counts as 12)") // and their branches
	passes(again(3000))
	once := func(n int) program { return program{body: many(n, opLoop, 0x40, opEnd)} }
	check(once(20_000), "40001 blocks")
	passes(once(19_999))
	fills := func(n int) program {
		return program{body: many(n, opI32Const, 0, opI32Const, 0, opI32Const, 0, 0xfc, 0x0b, 0)}
	}
	check(fills(6700), "40201 blocks")
	passes(fills(6600))
	targets := func(n int) program {
		return program{body: slices.Concat([]byte{opI32Const, 0, opBrTable}, appendU32(nil, uint32(n)), many(n+1, 0))}
	}
	check(targets(160_000), "40002 blocks")
	passes(targets(159_900))

	// Of 10 000 locals each may be needed behind each branch, and so may be what is on the operand stack.
	across := func(n int) program {
		return program{locals: locals(10_000), body: many(n, opI32Const, 0, opBrIf, 0)}
	}
	check(across(1201), "its 10000 locals and the values on its stack at 1202 blocks and branches add up to 12010000", "the limit is 12000000")
	passes(across(1200))
	above := func(n int) program {
		return program{body: slices.Concat(many(4000, opI32Const, 0), many(n, opI32Const, 0, opBrIf, 0), many(4000, opDrop))}
	}
	check(above(3001), "its 0 locals and the values on its stack at 3002 blocks and branches add up to 12004000")
	passes(above(3000))

	// Each br_if of n leaves a block in which all of 300 locals are set.
	meeting := func(n int) program {
		body := []byte{opBlock, 0x40}
		for i := range 300 {
			body = append(appendU32(append(body, opI32Const, 0, opLocalSet), uint32(i)), opI32Const, 0, opBrIf, 0)
		}
		body = append(append(body, many(n-300, opI32Const, 0, opBrIf, 0)...), opEnd)
		return program{locals: locals(300), body: body}
	}
	check(meeting(4000), "bring 1200300 values of its 300 locals", "the limit is 1200000")
	passes(meeting(3999))
	around := func(n int) program { // the same at a loop's head, and of locals that are read only
		body := []byte{opLoop, 0x40}
		for i := range 300 {
			body = append(appendU32(append(body, opLocalGet), uint32(i)), opDrop)
		}
		return program{locals: locals(300), body: append(append(body, many(n, opI32Const, 0, opBrIf, 0)...), opEnd)}
	}
	check(around(4000), "bring 1200300 values of its 300 locals")
	passes(around(3999))
	chosen := func(n int) program { // an if has two ways by itself
		body := many(n, opI32Const, 0, opIf, 0x40)
		for i := range 120 {
			body = append(append(body, opI32Const, 0, opLocalSet), byte(i))
		}
		return program{locals: locals(120), body: append(body, many(n, opEnd)...)}
	}
	check(chosen(5001), "bring 1200240 values of its 120 locals")
	passes(chosen(5000))

	passing := func(n int) program {
		return program{params: many(100, i32), body: many(n, opBlock, 0x40, opUnreachable, opCall, ownFunc, opEnd)}
	}
	check(passing(1001), "pass 100100 values", "the limit is 100000")
	passes(passing(1000))
	bringing := func(n int) program {
		body := slices.Concat([]byte{opBlock, 2, opUnreachable}, many(n, opUnreachable, opBr, 0), []byte{opEnd}, many(100, opDrop))
		return program{results: many(100, i32), body: append(body, opUnreachable)}
	}
	check(bringing(1001), "pass 100100 values")
	passes(bringing(1000))
}

// functionsOf is a module of n functions without parameters, all of one code.
func functionsOf(n int, code string) []byte {
	body := string(appendBytes(nil, code))
	count := string(appendU32(nil, uint32(n)))
	return sectionsOf(secType, "\x01\x60\x00\x00", secFunction, count+strings.Repeat("\x00", n), secCode, count+strings.Repeat(body, n))
}

func TestRefusesFunctionsThatAddUpToTooMuch(t *testing.T) {
	nested := func(n int) string {
		return "\x00" + strings.Repeat("\x02\x40", n) + strings.Repeat("\x0b", n+1)
	}
	refused(t, functionsOf(41, nested(9_999)), "function 40: body: it has 10000 blocks and branches, and with it the sum of their squares over the functions is 4100000000, the limit is 4000000000")
	rewrite(t, functionsOf(40, nested(9_999)))

	locals := string(appendU32([]byte{1}, 6000)) + "\x7f\x0b"
	refused(t, functionsOf(101, locals), "function 100: body: 6000 locals, and with them the functions have 606000, the limit is 600000")
	rewrite(t, functionsOf(100, locals))
}

func TestRefusesTypesThatTakeTheCompilerLong(t *testing.T) {
	types := func(n, params, results int) []byte {
		one := string(appendU32([]byte{0x60}, uint32(params))) + strings.Repeat("\x7f", params) + string(appendU32(nil, uint32(results))) + strings.Repeat("\x7f", results)
		return sectionsOf(secType, string(appendU32(nil, uint32(n)))+strings.Repeat(one, n))
	}
	refused(t, types(1, 251, 0), "type 0: 251 parameters or results, the limit is 250")
	refused(t, types(1, 0, 251), "type 0: 251 parameters or results, the limit is 250")
	refused(t, types(401, 250, 0), "type 400: the types have 100250 parameters and results with it, the limit is 100000")
	refused(t, types(501, 100, 100), fmt.Sprintf("type 500: the types have %d", 100_100))
	rewrite(t, types(400, 250, 0))
}
