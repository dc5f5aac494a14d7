package wasmhost

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirlog/weir/router"
)

// refusedAs loads a filter that must not load with what edit changes, and returns why not.
func refusedAs(t *testing.T, module string, edit func(*Config)) string {
	t.Helper()
	h, _ := open(t)
	g, err := h.Load(t.Context(), "f", settings(module, edit))
	if err == nil {
		g.Close(t.Context())
		t.Fatal("the module was loaded")
	}
	return err.Error()
}

const (
	watFilter = `(func (export "filter") (param i32 i32 i32 i32 i32 i32) (result i32) (local.get 4))`
	watMemory = `(memory (export "memory") 1)`
)

func TestTheFunctionOfAFluentBitFilterIsFound(t *testing.T) {
	module := wasmOf(t, "testdata/fluentbit/filters.c")
	contains(t, refused(t, module), "exports append_tag, modify_record, numeric, ", "which all have the type of a Fluent Bit filter: name one with function:")
	check := func(function, want string) {
		t.Helper()
		contains(t, refusedAs(t, module, func(c *Config) { c.Function = function }), want, "there is append_tag, modify_record, numeric, ")
	}
	check("nothing", "exports no nothing, which function: names")
	check("memory", "exports memory, which function: names, as a memory")
	check("malloc", "malloc has the type (i32) -> i32, but must have (i32, i32, i32, i32, i32, i32) -> i32")

	contains(t, refusedAs(t, wat(t, `(module `+watMemory+`(func (export "f")))`), func(c *Config) { c.ABI = "fluentbit" }),
		"exports no function of the type (i32, i32, i32, i32, i32, i32) -> i32, which Fluent Bit filters have")
	contains(t, refusedAs(t, wat(t, `(module `+watMemory+`(func (export "f")))`), func(c *Config) { c.ABI, c.Function = "fluentbit", "f" }),
		"f has the type () -> (), but must have", "nothing that it exports has the type")
}

func TestClearerSignsGoBeforeTheTypeOfAnExport(t *testing.T) {
	check := func(more, want string) {
		t.Helper()
		contains(t, refused(t, wat(t, `(module `+more+watMemory+watFilter+`)`)), want)
	}
	check(`(import "weir_v1" "log" (func (param i32 i32 i32)))`, "exports no weir_process")
	check(`(import "env" "copy_records" (func (param i32 i32)))`, "Fluvio")
	check(`(import "wbg" "x" (func))`, "wasm-bindgen")
}

func TestWhereNoRecordCanBePut(t *testing.T) {
	check := func(text string, parts ...string) {
		t.Helper()
		contains(t, refused(t, wat(t, "(module "+text+")")), parts...)
	}
	check(watFilter, "has no memory, so it cannot be handed a record")
	check(`(memory 1 1)`+watFilter, "exports no malloc and free, and its memory of 1 pages of 64 KiB may not grow")
	check(watMemory+watFilter+`(func (export "_initialize") (param i32))`, "_initialize has the type (i32) -> (), but must have () -> ()")
	contains(t, refused(t, wasmOf(t, "testdata/fluentbit/gofilter")), "was built by Go and exports no malloc and free", "//go:wasmexport")
}

// lent loads a filter that checks what it was given.
func lent(t *testing.T, memory, more string) *Guest {
	h, _ := open(t)
	return load(t, h, settings(wat(t, `(module
		(memory (export "memory") `+memory+`)
		(global $lent (mut i32) (i32.const 0))
		(global $held (mut i32) (i32.const 0))
		(data (i32.const 16) "{\"message\":\"fine\"}\00")
		`+more+`
		(func $must (param i32) (if (i32.eqz (local.get 0)) (then unreachable)))
		(func (export "filter") (param $tag i32) (param $tag_n i32) (param i32 i32) (param $record i32) (param $n i32) (result i32)
			(call $must (i32.eq (i32.load8_u (local.get $tag)) (i32.const 115))) ;; s
			(call $must (i32.eq (local.get $tag_n) (i32.const 1)))
			(call $must (i32.eqz (i32.load8_u offset=1 (local.get $tag))))
			(call $must (i32.eq (i32.load8_u (local.get $record)) (i32.const 123))) ;; {
			(call $must (i32.eq (i32.load8_u (i32.sub (i32.add (local.get $record) (local.get $n)) (i32.const 1))) (i32.const 125)))
			(call $must (i32.eqz (i32.load8_u (i32.add (local.get $record) (local.get $n)))))
			(call $must (call $ready))
			(i32.const 16)))`)))
}

const fine = `{"received_at":"2023-11-14T22:13:20Z","facility":1,"severity":5,"message":"fine","source":"s","listener":"udp://127.0.0.1:514","peer":"192.0.2.7"}`

func TestEachWayOfAllocating(t *testing.T) {
	const one = `(func $ready (result i32) (i32.and (i32.eq (global.get $lent) (i32.const 1)) (i32.eqz (global.get $held))))`
	const add = `(global.set $lent (i32.add (global.get $lent) (i32.const 1)))`
	const sub = `(global.set $lent (i32.sub (global.get $lent) (i32.const 1)))`
	const hold = `(global.set $held (i32.sub (global.get $held) (i32.const 1)))`
	const letGo = `(global.set $held (i32.add (global.get $held) (i32.const 1)))`
	object := `(func (export "__new") (param i32 i32) (result i32) ` + add + letGo + ` (if (i32.ne (local.get 1) (i32.const 1)) (then unreachable)) (i32.const 4096))`
	check := func(name, more string) {
		t.Helper()
		g := lent(t, "1", more)
		for range 3 {
			if got := outcome(t, g, "text"); got != fine {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
	check("malloc and free", one+`
		(func (export "malloc") (param i32) (result i32) `+add+` (i32.const 4096))
		(func (export "free") (param i32) `+sub+` (if (i32.ne (local.get 0) (i32.const 4096)) (then unreachable)))`)
	check("pinned", one+object+`
		(func (export "__pin") (param i32) (result i32) `+hold+` (local.get 0))
		(func (export "__unpin") (param i32) `+sub+`)`)
	check("retained", one+object+`
		(func (export "__retain") (param i32) (result i32) `+hold+` (local.get 0))
		(func (export "__release") (param i32) `+sub+`)`)
	check("the host's heap", `(func $ready (result i32) (i32.gt_u (memory.size) (i32.const 1)))`)
	check("malloc without free", `(func $ready (result i32) (i32.const 1)) (func (export "malloc") (param i32) (result i32) unreachable)`)
	check("malloc of another type", `(func $ready (result i32) (i32.const 1)) (func (export "malloc") (param i64) (result i32) unreachable) (func (export "free") (param i32) unreachable)`)
}

func TestAnAllocatorThatFailsIsAFault(t *testing.T) {
	check := func(malloc, free, want string) {
		t.Helper()
		g := lent(t, "1", `(func $ready (result i32) (i32.const 1)) (func (export "malloc") (param i32) (result i32) `+malloc+`) (func (export "free") (param i32) `+free+`)`)
		if got := outcome(t, g, "m"); got != want {
			t.Errorf("%q is not %q", got, want)
		}
		if g.lanes[0].in != nil {
			t.Error("the instance goes on")
		}
	}
	check(`(i32.const 0)`, ``, "reject trap no memory for a record of 208 bytes: the guest's allocator gave none")
	check(`unreachable`, ``, "reject trap unreachable")
	check(`(i32.const 65535)`, ``, "reject trap "+outside(65535, 208, 65536).Error())
	check(`(i32.const 4096)`, `unreachable`, "reject trap unreachable") // although the record had come back
}

// TestRecordsLieWhereNoAllocatorTakesThem runs a filter with a libc of its own, which takes all memory that there is when
// it is first used.
func TestRecordsLieWhereNoAllocatorTakesThem(t *testing.T) {
	g, _ := loadFile(t, "fluentbit/own_libc.c")
	for i := range 20 {
		text := fmt.Sprintf("message %d %s", i, strings.Repeat("x", 100*i))
		if got := outcome(t, g, text); got != usual(`"`+text+`"`, `,"same":true`) {
			t.Fatalf("%d: %s", i, got)
		}
	}
}

func TestAFilterStartsAsInFluentBit(t *testing.T) {
	check := func(exports, want string) {
		t.Helper()
		h, _ := open(t)
		g := load(t, h, settings(wat(t, `(module (memory 1)
			(global $n (mut i32) (i32.const 0))
			(data (i32.const 16) "{\"message\":\"    \"}\00")
			(func $note (param i32) (i32.store8 offset=28 (global.get $n) (local.get 0)) (global.set $n (i32.add (global.get $n) (i32.const 1))))
			`+exports+`
			(func (export "_start") unreachable)
			(func (export "any name") (param i32 i32 i32 i32 i32 i32) (result i32) (i32.const 16)))`)))
		b := batch(t, "m")
		defer b.Discard()
		g.Filter(0).Apply(t.Context(), b)
		if got := string(b.Messages()[0].Text); got != want {
			t.Errorf("%q is not %q", got, want)
		}
	}
	const ctors = `(func (export "__wasm_call_ctors") (call $note (i32.const 99)))`
	const post = `(func (export "__post_instantiate") (call $note (i32.const 112)))`
	check("", "    ")
	check(ctors, "c   ")
	check(ctors+post, "cp  ")
	check(ctors+post+`(func (export "_initialize") (call $note (i32.const 105)))`, "ip  ")
}

// TestTheHeapServesStartFunctions begins with calls of env before there is anything of the ABI.
func TestTheHeapServesStartFunctions(t *testing.T) {
	h, _ := open(t)
	g := load(t, h, settings(wat(t, `(module
		(import "env" "strdup" (func $strdup (param i32) (result i32)))
		(memory 1)
		(global $copy (mut i32) (i32.const 0))
		(data (i32.const 16) "{\"message\":\"copied\"}\00")
		(func $early (global.set $copy (call $strdup (i32.const 16))))
		(start $early)
		(func (export "filter") (param i32 i32 i32 i32 i32 i32) (result i32) (global.get $copy)))`)))
	for range 3 {
		if got, want := outcome(t, g, "m"), strings.Replace(fine, "fine", "copied", 1); got != want {
			t.Errorf("%s", got)
		}
	}
}

func TestAnEmittedMessageHasNoTag(t *testing.T) {
	g, _ := loadFile(t, "fluentbit/filters.c", func(c *Config) { c.Function = "append_tag" })
	b := router.NewBatch(1<<20, 1)
	defer b.Discard()
	m := b.Add(&router.Origin{})
	m.Text = []byte("m")
	g.Filter(0).Apply(t.Context(), b)
	contains(t, string(router.AppendRecord(nil, m)), `"tag":"","tag_len":0`)
}
