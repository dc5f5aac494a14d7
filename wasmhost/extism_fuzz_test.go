package wasmhost

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/routertest"
)

// extismScript is the least of plug-ins: the functions that it could call are called for it.
const extismScript = `(module
	(import "extism:host/env" "input_length" (func $n (result i64)))
	(func (export "f") (result i32) (i32.const 0)))`

// model is what a plug-in may see of Extism's memory: blocks by offset, and all bytes from the first on.
type model struct {
	length map[uint64]uint64
	bytes  []byte
}

// FuzzExtismOffsets calls the functions of extism:host/env with arguments of a stranger's. Whatever they are: each is
// answered or is the guest's fault, blocks do not overlap, keep what was stored in them, and take no more than the
// limit; and what is left is as empty as at first.
func FuzzExtismOffsets(f *testing.F) {
	call := func(function string, args ...uint64) (b []byte) {
		for i, fn := range extismFunctions {
			if fn.name == function {
				b = append(b, byte(i))
			}
		}
		for len(args) < 2 {
			args = append(args, 0)
		}
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, args[0]), args[1])
	}
	script := func(calls ...[]byte) []byte { return bytes.Join(calls, nil) }
	const first = extismFirst + extismGap
	f.Add(script(call("alloc", 8), call("store_u64", first, 7), call("load_u8", first), call("free", first), call("alloc", 1<<40)))
	f.Add(script(call("alloc", 8), call("alloc", 0), call("alloc", 8), call("free", first), call("alloc", 3), call("output_set", first, 4), call("length", first)))
	f.Add(script(call("alloc", 1), call("store_u8", first, 'k'), call("config_get", first), call("var_set", first, first), call("var_get", first), call("var_set", first, 0)))
	f.Add(script(call("alloc", 70000), call("error_set", first), call("error_get"), call("log_warn", first), call("reset"), call("error_set", first)))
	f.Add(script(call("alloc", 9), call("input_set", first, 9), call("input_load_u64", 1), call("input_load_u64", 2), call("input_load_u8", 8), call("free", first), call("input_load_u8", 0)))
	f.Add(script(call("load_u64", ^uint64(0)-6), call("store_u32", 1<<63, 1), call("output_set", ^uint64(0), 2), call("output_set", 1, ^uint64(0))))
	f.Add(script(call("http_request", 1, 2)))
	g, _ := load1(f)
	f.Fuzz(func(t *testing.T, script []byte) {
		b := router.NewBatch(1<<20, 1)
		defer b.Discard()
		in := g.lanes[0].in
		x := in.talk.(*extismTalk)
		clear(x.vars)
		x.varBytes = 0
		in.begin(b, b.Add(&router.Origin{}))
		x.reset()
		m := model{length: map[uint64]uint64{}, bytes: make([]byte, 64<<10)}
		for calls := 0; len(script) >= 17 && calls < 200; calls++ {
			fn := extismFunctions[int(script[0]&0x7f)%len(extismFunctions)]
			stack := []uint64{binary.LittleEndian.Uint64(script[1:]), binary.LittleEndian.Uint64(script[9:])}
			if script[0] > 0x7f { // near the memory that there is
				stack[0], stack[1] = stack[0]%(300<<10), stack[1]%(70<<10)
			}
			a, v := stack[0], stack[1]
			script = script[17:]
			var fault error
			func() {
				defer caught(&fault)
				fn.call(in, in.mod, stack)
			}()
			m.check(t, x, fn.name, a, v, stack[0], fault)
		}
		if kept := x.varBytes; kept > mostVarBytes || kept < 0 || (kept == 0) != (len(x.vars) == 0) {
			t.Errorf("%d bytes of %d variables", kept, len(x.vars))
		}
		x.reset()
		if i := bytes.IndexFunc(x.memory.mem, func(r rune) bool { return r != 0 }); i >= 0 {
			t.Errorf("a byte of the last call is left at %#x", i)
		}
	})
}

func load1(f *testing.F) (*Guest, *routertest.Transcript) {
	h, log := open(f)
	return load(f, h, settings(wat(f, extismScript), func(c *Config) { c.Memory = 256 << 10; c.Config = []byte(`{"k":"value"}`) })), log
}

// check compares a call with what the model says.
func (m *model) check(t *testing.T, x *extismTalk, function string, a, v, result uint64, fault error) {
	t.Helper()
	size := uint64(len(x.memory.mem))
	if size > 256<<10 {
		t.Fatalf("%d bytes of memory", size)
	}
	for uint64(len(m.bytes)) < size {
		m.bytes = append(m.bytes, 0)
	}
	inside := func(n uint64) bool { return a >= extismFirst && a < size && n <= size-a }
	is := func(want uint64) {
		t.Helper()
		if fault != nil || result != want {
			t.Errorf("%s(%#x, %#x) = %#x, %v; want %#x", function, a, v, result, fault, want)
		}
	}
	faulty := func(want bool) bool {
		t.Helper()
		if (fault != nil) != want {
			t.Errorf("%s(%#x, %#x): %v", function, a, v, fault)
		}
		return fault != nil
	}
	switch function {
	case "alloc", "config_get", "var_get":
		if fault == nil && result != 0 {
			m.alloc(t, x, result)
		}
	case "free":
		delete(m.length, a)
	case "length", "length_unsafe":
		is(m.length[a])
	case "load_u8":
		if !faulty(!inside(1)) {
			is(uint64(m.bytes[a]))
		}
	case "load_u32":
		if !faulty(!inside(4)) {
			is(uint64(binary.LittleEndian.Uint32(m.bytes[a:])))
		}
	case "load_u64":
		if !faulty(!inside(8)) {
			is(binary.LittleEndian.Uint64(m.bytes[a:]))
		}
	case "store_u8":
		if !faulty(!inside(1)) {
			m.bytes[a] = byte(v)
		}
	case "store_u32":
		if !faulty(!inside(4)) {
			binary.LittleEndian.PutUint32(m.bytes[a:], uint32(v))
		}
	case "store_u64":
		if !faulty(!inside(8)) {
			binary.LittleEndian.PutUint64(m.bytes[a:], v)
		}
	case "output_set":
		faulty(v > 0 && !inside(v))
		if uint64(len(x.memory.mem[x.output:x.output+x.outputLength])) > size { // slices, or panics
			t.Error("output")
		}
	case "error_set":
		faulty(a != 0 && m.length[a] == 0)
	case "reset":
		clear(m.length)
		clear(m.bytes)
	}
	for at, n := range m.length {
		if x.memory.length(at) != n {
			t.Errorf("after %s the block at %#x has %d bytes, not %d", function, at, x.memory.length(at), n)
		}
	}
}

// alloc notes a new block, which may touch no other.
func (m *model) alloc(t *testing.T, x *extismTalk, at uint64) {
	t.Helper()
	n := x.memory.length(at)
	if n == 0 || at < extismFirst || at+n > uint64(len(m.bytes)) {
		t.Fatalf("a block of %d bytes at %#x", n, at)
	}
	for other, length := range m.length {
		if at < other+length && other < at+n {
			t.Fatalf("blocks at %#x and %#x overlap", at, other)
		}
	}
	m.length[at] = n
	copy(m.bytes[at:at+n], x.memory.mem[at:]) // what the host has put there, or a freed one has left
}
