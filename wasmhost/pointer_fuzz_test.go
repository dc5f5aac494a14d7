package wasmhost

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/weirlog/weir/router"
)

// FuzzHostCalls lets guests of every ABI call every function that there is for them, with any arguments. The call
// returns or is the guest's fault: never a bug of the host's, and never a guest that holds up its lane.
func FuzzHostCalls(f *testing.F) {
	h, _ := open(f)
	type loaded struct {
		*caller
		lane *lane
	}
	var guests []loaded
	for _, c := range callers(f) {
		if strings.HasPrefix(c.name, "stdio") || c.name == "weir init" || c.name == "weir start" {
			continue // they read their script before it can be put into their memory
		}
		g := load(f, h, settings(bombFile(f, c.module), func(c *Config) { c.Time *= 20 }))
		guests = append(guests, loaded{c, g.lanes[0]})
	}
	for i, g := range guests {
		for fn, function := range g.functions {
			if function.module == wasiModule && g.name != "weir" {
				continue // they are the same everywhere
			}
			f.Add(byte(i), byte(fn), []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0}, []byte("message"))
			f.Add(byte(i), byte(fn), []byte{0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 0xf0, 0xff, 0xff, 0xff}, []byte("message"))
		}
	}
	f.Fuzz(func(t *testing.T, guest, function byte, args, memory []byte) {
		g := guests[int(guest)%len(guests)]
		b := router.NewBatch(4<<20, 4)
		defer b.Discard()
		m := b.Add(&router.Origin{Source: "s", Peer: "192.0.2.7"})
		m.Text, m.Hostname, m.Received = []byte("some text 4711"), []byte("host"), 1
		m.Structured = []router.Element{{ID: []byte("a"), Params: []router.Param{{Name: []byte("b"), Value: []byte("1")}}}}
		before := router.AppendRecord(nil, m)
		if g.lane.in == nil {
			if held := g.lane.renew(t.Context()); held != nil {
				t.Fatal(held.Cause)
			}
		}
		values := make([]uint64, mostParams)
		for i := range values {
			var v [8]byte
			copy(v[:], args[min(8*i, len(args)):])
			values[i] = binary.LittleEndian.Uint64(v[:])
		}
		n := int(function) % len(g.functions)
		mem := g.lane.in.mod.Memory()
		all, _ := mem.Read(0, mem.Size())
		copy(all, memory)
		copy(all[callerScript:], g.script(n, values))
		switch {
		case strings.HasSuffix(g.name, "tick"):
			g.lane.Tick(t.Context(), b)
		case strings.HasSuffix(g.name, "close"):
			g.lane.Finish(t.Context(), b)
		default:
			if ok, _ := g.lane.message(b, m); !ok {
				if after := router.AppendRecord(nil, m); !bytes.Equal(before, after) {
					t.Errorf("%s: %s is not undone:\n%s\n%s", g.name, g.functions[n].name, before, after)
				}
			}
		}
		if text := g.lane.guest.lastFault(); strings.Contains(text, "BUG:") {
			t.Fatalf("%s: %s%x: %s", g.name, g.functions[n].name, values, text)
		}
	})
}

// spans are the arguments of functions of weir_v1 that are a pointer and a length, by the number of the first. Those
// that a function writes to come last, behind the bar; a number alone is a pointer to eight bytes.
var spans = map[string]string{
	"field_get": "ab|cd", "field_type": "ab|", "field_get_i64": "ab|c", "field_get_f64": "ab|c",
	"field_set": "abcd|", "field_set_json": "abcd|", "field_set_i64": "ab|", "field_set_f64": "ab|", "field_unset": "ab|",
	"field_count": "|", "field_name": "|bc", "sd_get": "abcd|ef", "sd_set": "abcdef|", "sd_unset": "abcd|",
	"record_get": "|ab", "record_set": "ab|", "emit": "ab|", "route": "ab|", "config_get": "|ab", "log": "bc|",
	"log_enabled": "|", "metric_add": "ab|", "metric_set": "ab|", "kv_get": "ab|cd", "kv_set": "abcd|", "kv_del": "ab|",
	"kv_add": "ab|d", "time_now": "|", "random": "|", "fail": "ab|",
}

// FuzzPointers calls the functions of weir_v1 with addresses of a stranger's. Each call with one outside of memory is the
// guest's fault, each other one is answered, and nothing is written but where the guest has asked for it.
func FuzzPointers(f *testing.F) {
	args := func(values ...uint32) (b []byte) {
		for _, v := range values {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
		return b
	}
	for i := range weirFunctions {
		f.Add(byte(i), byte(2), args(0, 7, 16, 64, 100, 8), []byte("messagea b      3.5"))
		f.Add(byte(i), byte(2), args(65530, 7, 65528, 8, 65529, 8), []byte("message"))
		f.Add(byte(i), byte(2), args(0, 0xffffffff, 0xffffffff, 1, 0xfffffff8, 8), []byte("message"))
		f.Add(byte(i), byte(3), args(0, 1, 1, 1, 65528, 0), []byte("a"))
	}
	h, _ := open(f)
	g := load(f, h, settings(wat(f, `(module (memory (export "memory") 1 1) (func (export "weir_process") (result i32) (i32.const 0)))`)))
	in := g.lanes[0].in
	memory, _ := in.mod.Memory().Read(0, page)
	was := make([]byte, page)
	f.Fuzz(func(t *testing.T, function, when byte, args, head []byte) {
		fn := weirFunctions[int(function)%len(weirFunctions)]
		stack := make([]uint64, len(fn.params)+1)
		for i, p := range fn.params {
			var v [4]byte
			copy(v[:], args[min(4*i, len(args)):])
			n := binary.LittleEndian.Uint32(v[:])
			if stack[i] = uint64(n); p == 'I' {
				stack[i] = uint64(int64(int32(n)))
			}
		}
		clear(memory)
		copy(memory, head)
		copy(was, memory)
		b := router.NewBatch(4<<20, 4)
		defer b.Discard()
		m := b.Add(&router.Origin{Source: "s"})
		m.Text, m.Hostname, m.Received = []byte("text 1"), []byte("host"), 1
		m.Fields = []router.Field{{Name: []byte("a"), Value: router.Value{Kind: router.String, Bytes: []byte("field a")}}}
		in.begin(b, m)
		in.phase = phase(when % 4)
		if in.phase != processing {
			in.m = nil
		}
		reads, writes, _ := strings.Cut(spans[fn.name], "|")
		outside := false
		span := func(which string) (ptr, n uint64) {
			ptr, n = stack[which[0]-'a'], 8
			if len(which) > 1 {
				n = stack[which[1]-'a']
			}
			outside = outside || ptr+n > page
			return ptr, n
		}
		for i := 0; i < len(reads); i += 2 {
			span(reads[i : i+2])
		}
		if writes != "" {
			if ptr, n := span(writes); !outside { // where anything may be written
				copy(was[ptr:ptr+n], bytes.Repeat([]byte{0xaa}, int(n)))
				defer func() {
					copy(was[ptr:ptr+n], memory[ptr:ptr+n])
					if !bytes.Equal(was, memory) {
						t.Errorf("%s%v has written elsewhere", fn.name, stack)
					}
				}()
			}
		}
		asked := append([]uint64(nil), stack...)
		var fault error
		func() {
			defer caught(&fault)
			fn.call(in, in.mod, stack)
		}()
		if (fault != nil) != outside {
			t.Errorf("%s%v: %v", fn.name, asked, fault)
		}
		if outside && !bytes.Equal(was, memory) {
			t.Errorf("%s%v has written, and failed", fn.name, asked)
		}
		in.undo()
		in.rest()
		in.phase = processing
	})
}
