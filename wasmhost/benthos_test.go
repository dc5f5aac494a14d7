package wasmhost

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestBenthosBytesAndMetadataMakeTheMessage(t *testing.T) {
	g, _ := loadFile(t, "benthos.c", func(c *Config) { c.Time = time.Minute })
	check := func(text, want string) {
		t.Helper()
		if diff := cmp.Diff(want, try(t, g, text)); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	check("x", "keep")
	check("replace", "keep\n"+`{"facility":1,"severity":5,"message":"new","n":1}`)
	check("twice", "keep\n"+`{"facility":1,"severity":5,"message":"second","a":"2","b":""}`)
	check("origin", "keep\n"+`{"facility":1,"severity":5,"hostname":"web1","app_name":"app","message":"origin","seen":"192.0.2.7"}`)
	check("nothing there", "keep\n"+`{"facility":1,"severity":5,"hostname":"web1","app_name":"app","message":"nothing there","seen":""}`)
	check("own", "keep\n"+`{"facility":1,"severity":3,"hostname":"h9","app_name":"app","message":"own","facility_":"99","peer_":"me"}`)
	check("bytes", "keep\n"+`{"facility":1,"severity":5,"hostname":"web1","app_name":"app","message":"bytes","b":"�"}`)
	check("bad name", `reject failed: the metadata "\xff" cannot be set: its name is not UTF-8, or has a NUL`)
	check("empty", "reject failed: the message was set to nothing, which drops it no more than in Redpanda Connect")
	check("number", "reject failed: the output is no JSON object that a message can be made of")
	check("many", "reject trap: v0_msg_set_meta was given more than 1000 names for one message")
	check("x", "keep")
}

func TestBenthosFunctionIsChosen(t *testing.T) {
	g, _ := loadFile(t, "benthos.c", func(c *Config) { c.Function = "second" })
	if got := try(t, g, "x"); got != "keep\n"+`{"facility":1,"severity":5,"message":"second"}` {
		t.Error(got)
	}
}

func TestBenthosGuestsCannotReachBeyondTheirMemory(t *testing.T) {
	g, _ := loadFile(t, "benthos.c", func(c *Config) { c.Time = time.Minute })
	check := func(text, want string) {
		t.Helper()
		if got := try(t, g, text); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", text, got)
		}
	}
	check("wild set", "reject trap: the guest gave an address outside of its memory: 16 bytes at 0x7fffffff")
	check("wild key", "reject trap: the guest gave an address outside of its memory: 4294967280 bytes at 0x10")
	check("again", "reject trap: the guest has asked 10000 times")
	check("spin", "reject trap: the guest has asked 10000 times")
	check("x", "keep")
}

// benthosGuest is a module whose process calls what is there; the allocator is malloc's body.
func benthosGuest(malloc, process, more string) string {
	return `(module
		(import "benthos_wasm" "v0_msg_as_bytes" (func $bytes (result i64)))
		(import "benthos_wasm" "v0_msg_set_bytes" (func $set (param i32 i32)))
		(import "benthos_wasm" "v0_msg_get_meta" (func $meta (param i32 i32) (result i64)))
		(import "benthos_wasm" "v0_msg_set_meta" (func $put (param i32 i32 i32 i32)))
		(import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
		(memory 1) (global $n (mut i32) (i32.const 0))
		(func (export "malloc") (param i32) (result i32) ` + malloc + `)
		(func (export "process") ` + process + `) ` + more + `)`
}

// Between the host and a guest calls are never deeper than host, guest, host, guest: wazero's recursion ends in a stack
// overflow that a Go program does not survive.
func TestBenthosAllocatorMayNotCallBack(t *testing.T) {
	check := func(malloc, process, more, want string) {
		t.Helper()
		h, _ := open(t)
		g := load(t, h, settings(wat(t, benthosGuest(malloc, process, more)), func(c *Config) {
			if c.Time = time.Minute; strings.HasPrefix(want, "reject time") {
				c.Time = 20 * time.Millisecond
			}
		}))
		for range 2 { // the second time with another instance
			if got := try(t, g, "x"); got != want {
				t.Errorf("malloc %s, process %s, %s: %s", malloc, process, more, got)
			}
		}
	}
	const ask = `(drop (call $bytes))`
	check(ask+`(i32.const 64)`, ask, "", "reject trap: malloc, called by the host, has called v0_msg_as_bytes")
	check(`(drop (call $meta (i32.const 0) (i32.const 1)))(i32.const 64)`, ask, "", "reject trap: malloc, called by the host, has called v0_msg_get_meta")
	check(`(call $set (i32.const 0) (i32.const 1))(i32.const 64)`, ask, "", "reject trap: malloc, called by the host, has called v0_msg_set_bytes")
	check(`(call $put (i32.const 0) (i32.const 1) (i32.const 0) (i32.const 1))(i32.const 64)`, ask, "", "reject trap: malloc, called by the host, has called v0_msg_set_meta")
	check(`(i32.const 64)`, ask, `(func (export "free") (param i32) `+ask+`)`, "reject trap: free, called by the host, has called v0_msg_as_bytes")
	check(`(i32.const 64)`, `(call $set (i32.const 0) (i32.const 1))`, `(func (export "deallocate") (param i32 i32) `+ask+`)`, "reject trap: deallocate, called by the host, has called v0_msg_as_bytes")

	// It is on the same leash, and what stops it stops the call around it.
	check(`(loop $l (br $l)) (i32.const 64)`, ask, "", "reject time: guest stopped: its time (20ms) is used up")
	check(`(i32.const 64)`, ask, `(func (export "free") (param i32) (loop $l (br $l)))`, "reject time: guest stopped: its time (20ms) is used up")
	check(`unreachable`, ask, "", "reject trap: malloc: unreachable")
	check(`(call $exit (i32.const 3)) (i32.const 64)`, ask, "", "reject exit: the guest left with proc_exit(3)")
	check(`(call $f) (i32.const 64)`, ask, `(func $f (call $f) (call $f))`, "reject stack: guest stopped: its stack is used up (calls nested too deep, or too many open try blocks)")
	check(`(i32.const 0)`, ask, "", "reject trap: malloc has no memory for 178 bytes")
	check(`(i32.const 65535)`, ask, "", "reject trap: the guest gave an address outside of its memory: 178 bytes at 0xffff, memory has 65536")
	check(`(i32.const 64)`, `(loop $l (drop (call $meta (i32.const 0) (i32.const 1))) (br $l))`, "", "reject trap: the guest has asked 10000 times for the same message")
	// When nothing is wrong, the allocator may make memory grow.
	check(`(drop (memory.grow (i32.const 1))) (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 4096))`, ask, "", "keep")
}

func TestBenthosModulesOfEveryShapeStart(t *testing.T) {
	check := func(more, want string) {
		t.Helper()
		h, _ := open(t)
		process := `(call $put (i32.const 0) (i32.const 1) (i32.const 0) (i32.const 1))`
		g := load(t, h, settings(wat(t, benthosGuest(`(i32.const 64)`, `(i32.store8 (i32.const 0) (i32.add (global.get $n) (i32.const 97)))`+process, more))))
		if got := try(t, g, "x"); !strings.Contains(got, want) {
			t.Errorf("%s: %s", more, got)
		}
	}
	check("", `"a":"a"`)
	check(`(func (export "_start") (global.set $n (i32.const 1)))`, `"b":"b"`)
	check(`(func (export "_initialize") (global.set $n (i32.const 2)))`, `"c":"c"`)
	check(`(func (export "_start") (global.set $n (i32.const 1)))(func (export "_initialize") (global.set $n (i32.const 2)))`, `"b":"b"`)
	// Rust's way: what was handed over is given back at once, the name and the value.
	check(`(func (export "deallocate") (param i32 i32) (global.set $n (i32.const 1)))`, `"a":"a"`)
	check(`(func (export "allocate") (param i32) (result i32) unreachable)`, `"a":"a"`)
}

func TestBenthosRefusalsNameTheCause(t *testing.T) {
	check := func(text, want string, edit ...func(*Config)) {
		t.Helper()
		h, _ := open(t)
		_, err := h.Load(t.Context(), "f", settings(wat(t, text), edit...))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	const env = `(module (import "benthos_wasm" "v0_msg_as_bytes" (func $bytes (result i64)))`
	good := func(more string) string { return benthosGuest(`(i32.const 64)`, ``, more) }
	check(env+`)`, "exports no function process () -> (), which is called for each message (function: names another); has no memory; exports neither malloc nor allocate (i32) -> i32")
	check(env+`(memory 1)(func (export "process") (param i32))(func (export "malloc") (param i64) (result i32) (i32.const 0)))`,
		"process has the type (i32) -> (), but must have () -> (); malloc has the type (i64) -> i32, but must have (i32) -> i32")
	check(good(""), "exports no function other () -> ()", func(c *Config) { c.Function = "other" })
	check(good(""), "config: a module for Redpanda Connect has no way to read settings", func(c *Config) { c.Config = []byte(`{"a":1}`) })
	check(good(`(func (export "_start") (call $exit (i32.const 0)))`), "_start left with proc_exit(0), after which nothing can be called: build a library")
	check(good(`(func (export "_start") unreachable)`), "_start failed: trap: unreachable")
	check(good(`(func (export "_start") (drop (call $bytes)))`), "_start failed: trap: v0_msg_as_bytes was called before there was a message")
	check(`(module (import "benthos_wasm" "v1_msg" (func))`+`(memory 1))`, "imports benthos_wasm.v1_msg () -> (), which this version of weir does not have")
}

func TestBenthosRunsInterpretedToo(t *testing.T) {
	h, err := Open(t.Context(), Options{Interpret: true})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(t.Context())
	for want, module := range map[string]string{
		"keep\n" + `{"facility":1,"severity":5,"message":"second","a":"2","b":""}`: wasmOf(t, "testdata/benthos.c"),
		"reject trap: malloc, called by the host, has called v0_msg_as_bytes":      wat(t, benthosGuest(`(drop (call $bytes))(i32.const 64)`, `(drop (call $bytes))`, "")),
	} {
		g := load(t, h, settings(module, func(c *Config) { c.Time = time.Minute }))
		if got := try(t, g, "twice"); got != want {
			t.Error(got)
		}
		g.Close(t.Context())
	}
}
