package meter

import (
	"strings"
	"testing"
)

func TestHeightsFollowEveryInstruction(t *testing.T) {
	check := func(table []instr, growth [256]int8) {
		for n, ins := range table {
			if ins.name == "" || control[ins.name].body != nil {
				continue
			}
			if ins.name == "else" || ins.name == "end" {
				continue
			}
			in, out := signature(ins.name)
			if got, want := int(growth[n]), len(out)-len(in); got != want {
				t.Errorf("%s: grows by %d, want %d", ins.name, got, want)
			}
		}
	}
	check(instrs[:], growth)
	check(miscs[:], miscGrowth)
	check(simds[:], simdGrowth)
}

func TestPeaksOfTheOperandStack(t *testing.T) {
	check := func(want int, text string) {
		t.Helper()
		rw := newRewriter(wat(t, `(module (type $two (func (param i32 i32) (result i32 i32))) (table 1 funcref) (memory 1)
			(func (param i32) (result i32) `+text+`) (func $none) (func $pair (param i32 i32 i32) (result i32 i64) unreachable))`), limits)
		rw.header()
		rw.split()
		rw.declarations()
		if got := rw.walk().bodies[0].stack/valueBytes - 1; got != want {
			t.Errorf("%s: peak %d, want %d", text, got, want)
		}
	}
	one := "local.get 0 "
	check(1, one)
	check(3, strings.Repeat(one, 3)+"i32.add i32.add")
	check(2, strings.Repeat(one+one+"i32.add drop ", 9)+one)
	check(4, one+one+"(block (result i32) "+one+one+"i32.add) drop drop")
	check(3, one+one+"(block (type $two) "+one+"drop) drop")
	check(2, one+"(if (result i32) (then "+one+one+"return) (else i32.const 1))")
	check(1, strings.Repeat(one+"return ", 9)+one)
	check(2, "(block (loop (br_if 1 (local.get 0)) "+strings.Repeat(one+"br 0 ", 9)+"))"+one+one+"drop")
	check(4, one+one+one+"call $pair drop "+one+one+one+"i32.add i32.add i32.add")
	check(3, one+one+one+"call_indirect (type $two) drop")
	check(1, "unreachable i32.add i32.add i32.store "+one+"drop i32.const 1")
}
