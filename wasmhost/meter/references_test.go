package meter

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRefusesReferencesOfAnotherType: wazero takes each of these for a function of type 0, and calls what is there with
// that type's arguments, whatever it takes: an i64 of the guest becomes a pointer of wazero's.
func TestRefusesReferencesOfAnotherType(t *testing.T) {
	const head = `type i64 -> i64
		type funcref -> i64
		type -> null:0
		type -> i64
		func 0 _ ; local.get 0
		func 1 _ ; i64.const 0
		`
	check := func(text string, want ...string) {
		t.Helper()
		refused(t, assemble(t, head+text), want...)
	}
	constant := "one value of type (ref null 0)"
	check(`elem null:0 ; ref.func 1`, constant)
	check("global funcref ; ref.func 1 \n elem null:0 ; global.get 0", constant)
	check(`elem ref:0 ; ref.null funcref`, "one value of type (ref 0)")
	check(`table ref:0 1 ; ref.func 1`, "one value of type (ref 0)")
	check(`table ref:0 1 ; ref.null funcref`, "one value of type (ref 0)")
	check(`table ref:0 1 ; ref.null 0`, "one value of type (ref 0)")
	check(`global null:0 ; ref.func 1`, constant)
	check(`global ref:0 ; ref.null funcref`, "one value of type (ref 0)")

	labels := "references of different types"
	check("elem funcref ; ref.func 1 \n func 2 _ ; block null:0 block funcref ref.func 1 i32.const 1 br_table 1 0 1 end drop ref.null 0 end", labels)
	check("elem funcref ; ref.func 1 \n func 2 _ ; block funcref ref.func 1 i32.const 1 br_table 1 1 0 end drop ref.null 0", labels)
	check("func 2 _ ; loop 2 ref.null 0 end block null:0 block ref:0 i32.const 0 br_table 2 0 1 0 end end", labels)

	// And what must not be refused.
	for _, ok := range []string{
		`elem null:0 ; ref.func 0 ; ref.null 0`,
		`elem active ; ref.func 0 ; ref.null funcref` + "\n table funcref 10",
		`table ref:0 1 ; ref.func 0`, `table null:0 1`, `table funcref 1 ; ref.func 1`, `table ref:func 1 ; ref.func 1`,
		`global null:0 ; ref.func 0`, `global funcref ; ref.func 1`, `global ref:0 ; ref.func 0`,
		"global null:0 ; ref.null 0 \n func 2 _ ; block null:0 block null:0 global.get 0 i32.const 1 br_table 1 0 1 end end",
	} {
		sameAcceptance(t, assemble(t, head+ok))
	}
}

// sameAcceptance checks that wazero takes a module before and after.
func sameAcceptance(t *testing.T, module []byte) {
	t.Helper()
	rt := newRuntime(t, "compiler")
	for _, m := range [][]byte{module, rewrite(t, module).Bytes} {
		if c, err := rt.CompileModule(t.Context(), m); err != nil {
			t.Errorf("%x: %v", m, err)
		} else {
			c.Close(t.Context())
		}
	}
}

// TestReferencesDoTheSame calls through references, by each way that leads to one.
func TestReferencesDoTheSame(t *testing.T) {
	const head = `type i32 -> i32
		type -> i32
		type null:0 -> i32
		func 0 _ ; local.get 0 i32.const 1 i32.add
		func 0 _ ; local.get 0 i32.const 2 i32.mul
		func 2 _ ; i32.const 21 local.get 0 call_ref 0
		func 2 _ ref:0 ; block void local.get 0 br_on_null 0 local.set 1 i32.const 5 local.get 1 return_call_ref 0 end i32.const 8
		table null:0 4
		table ref:0 3 ; ref.func 1
		global null:0 ; ref.func 1
		global i32 ; i32.const 3 i32.const 4 i32.mul i32.const 2 i32.sub i32.const 1 i32.add
		global i64 ; i64.const 3 i64.const 4 i64.mul i64.const 2 i64.sub i64.const 1 i64.add
		elem null:0 ; ref.func 0 ; ref.func 1 ; ref.null 0
		elem funcref ; ref.func 0 ; ref.func 1 ; ref.func 2
		`
	for _, code := range []string{
		`ref.func 0 call 2`,
		`global.get 0 call 2`,
		`global.get 0 call 3`,
		`ref.null 0 call 3`,
		`ref.null 0 call 2`,
		`i32.const 0 i32.const 0 i32.const 3 table.init 0 0 i32.const 1 table.get 0 call 2`,
		`i32.const 0 table.get 0 call 2`,
		`i32.const 2 table.get 1 call 2`,
		`i32.const 3 table.get 1 call 2`,
		`i32.const 1 ref.func 0 table.set 0 i32.const 0 i32.const 1 i32.const 1 table.copy 0 0 i32.const 0 table.get 0 call 2`,
		`ref.func 0 i32.const 2 table.grow 1 drop i32.const 4 table.get 1 call 2`,
		`i32.const 0 ref.func 0 i32.const 4 table.fill 0 i32.const 3 table.get 0 call 2`,
		`block ref:0 global.get 0 br_on_non_null 0 i32.const 1 return end call 2`,
		`block ref:0 ref.null 0 br_on_non_null 0 i32.const 1 return end call 2`,
		`block void global.get 0 br_on_null 0 call 2 return end i32.const 1`,
		`block void ref.null 0 br_on_null 0 call 2 return end i32.const 1`,
		`ref.null 0 ref.as_non_null drop i32.const 1`,
		`global.get 0 ref.as_non_null call 2`,
		`global.get 0 ref.is_null`,
		`global.get 0 return_call 2`,
		`i32.const 9 global.get 0 return_call_ref 0`,
		`global.get 1 global.get 2 i32.wrap_i64 i32.add`,
	} {
		sameBehaviour(t, assemble(t, head+"func 1 f ; "+code))
	}
}

// TestSelectsOfReferencesRunNothingElse: wazero takes one byte for the type of a select and runs those behind it, here the
// index 3, as an instruction: a loop.
func TestSelectsOfReferencesRunNothingElse(t *testing.T) {
	const text = `type ->
		type ->
		type ->
		type i32 -> i32
		type -> i32
		func 3 _ ; local.get 0 i32.const 1 i32.add
		elem funcref ; ref.func 0
		func 4 f ; i32.const 5 ref.func 0 ref.null 3 i32.const %d select_t %s call_ref 3`
	for _, typ := range []string{"null:3", "funcref", "null:func"} {
		for condition, want := range []string{"null reference", ""} {
			module := assemble(t, fmt.Sprintf(text, condition, typ))
			for engine := range engines {
				got := runF(t, newRuntime(t, engine), rewrite(t, module).Bytes)
				if !strings.Contains(got.Trap, want) || want == "" && (got.Trap != "" || got.Results[0] != 6) {
					t.Errorf("%s: select %s: got %v", engine, typ, got)
				}
			}
		}
	}
}

func TestReferencesAndTailCallsInTheCallGraph(t *testing.T) {
	check := func(text string, want ...int) {
		t.Helper()
		if diff := cmp.Diff(want, stacked(t, assemble(t, text))); diff != "" {
			t.Errorf("%s\nwant (-), got (+):\n%s", text, diff)
		}
	}
	const types = "type -> \n type -> \n type i32 -> \n type null:0 -> \n type null:1 -> \n type i64 i64 i64 i64 i64 i64 i64 -> \n elem funcref ; ref.func 0 \n "
	check(types+"func 0 _ ; ref.func 0 call_ref 0", 0)
	check(types + "func 2 _ ; ref.null 0 call_ref 0")
	check(types+"func 1 _ ; ref.null 0 call_ref 0", 0)
	check(types+"func 3 _ ; ref.null 1 ref.null 4 call_ref 4", 0) // (ref null 0) is (ref null 1)
	check(types + "func 0 _ ; call 1 \n func 0 _ ; ref.null 1 drop")
	check("type -> \n table ref:0 1 ; ref.func 0 \n func 0 _ ; call 1 \n func 0 _ ; i32.const 0 table.get 0 call_ref 0", 0, 1)
	check("type -> \n global ref:0 ; ref.func 0 \n func 0 _ ; global.get 0 call_ref 0", 0)

	// The stack does not grow by tail calls alone, but by one on the way.
	check("type -> \n func 0 _ ; return_call 0")
	check("type -> \n func 0 _ ; return_call 1 \n func 0 _ ; return_call 0")
	check("type -> \n func 0 _ ; return_call 1 \n func 0 _ ; call 0", 0, 1)
	check(types + "func 0 _ ; ref.null 0 return_call_ref 0")
	check("type -> \n table funcref 1 \n elem funcref ; ref.func 0 \n func 0 _ ; i32.const 0 return_call_indirect 0 0")
	check("type -> \n table funcref 1 \n elem funcref ; ref.func 0 \n func 0 _ ; i32.const 0 call_indirect 0 0 i32.const 0 return_call_indirect 0 0", 0)
	// wazero makes plain calls of those that take more than its registers hold.
	check(types+"func 5 _ ; "+strings.Repeat("i64.const 0 ", 7)+"return_call 0", 0)
	check(types+"func 5 _ ; "+strings.Repeat("i64.const 0 ", 7)+"ref.null 5 return_call_ref 5", 0)
}

// TestTailCallsRunInOneFrame: a hundred thousand of each, and the stack is not used up; but where wazero makes plain
// calls of them, it is, and where a plain call is on the way.
func TestTailCallsRunInOneFrame(t *testing.T) {
	const n = 100_000
	down := "local.get 0 i32.eqz if void i32.const 7 return end local.get 0 i32.const 1 i32.sub "
	const head = `type i32 -> i32
		type i32 i64 i64 i64 i64 i64 i64 -> i32
		type -> i32
		table funcref 4
		elem active ; ref.func 0 ; ref.func 1
		`
	check := func(code, other string, fits bool) {
		t.Helper()
		module := assemble(t, head+"func 0 _ ; "+code+" \n func 0 _ ; "+other+fmt.Sprintf("\n func 2 f ; i32.const %d call 0", n))
		for engine := range engines {
			got := runF(t, newRuntime(t, engine), rewrite(t, module).Bytes)
			if ok := len(got.Results) == 1 && got.Results[0] == 7; ok != fits {
				t.Errorf("%s: %s\ngot %v", engine, code, got)
			}
		}
	}
	check(down+"return_call 0", "i32.const 0", true)
	check(down+"return_call 1", down+"return_call 0", true)
	check(down+"i32.const 1 return_call_indirect 0 0", down+"i32.const 0 return_call_indirect 0 0", true)
	check(down+"ref.func 1 return_call_ref 0", down+"ref.func 0 return_call_ref 0", true)
	check(down+"return_call 1", "i32.const 3 local.get 0 call 0 i32.add", false)

	many := strings.Repeat("i64.const 1 ", 6)
	module := assemble(t, head+"func 1 _ ; "+down+many+"return_call 0 \n func 0 _ ; i32.const 0 \n func 2 f ; "+fmt.Sprintf("i32.const %d ", n)+many+"call 0")
	if got := runF(t, newRuntime(t, "compiler"), rewrite(t, module).Bytes); !strings.Contains(got.Trap, "its stack is used up") {
		t.Errorf("got %v, want the stack used up", got)
	}
}
