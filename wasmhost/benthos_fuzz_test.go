package wasmhost

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero/api"

	"github.com/weirlog/weir/router"
)

// FuzzBenthosPointers calls the functions of benthos_wasm with addresses of a stranger's, in a guest whose allocator
// gives such ones too and whose memory begins with the input. Whatever they are: each call is answered or is the guest's
// fault, nothing is written but where the allocator said, a failure leaves no trace, and what is left is a record.
func FuzzBenthosPointers(f *testing.F) {
	call := func(function byte, args ...uint32) []byte {
		b := []byte{function}
		for _, a := range args {
			b = binary.LittleEndian.AppendUint32(b, a)
		}
		return append(b, make([]byte, 17-len(b))...)
	}
	f.Add([]byte(`{"message":"new","a":1}`), uint32(4096), bytes.Join([][]byte{call(0), call(1, 0, 23), call(0)}, nil))
	f.Add([]byte(`seenpeerhostname`), uint32(65000), bytes.Join([][]byte{call(2, 4, 4), call(3, 0, 4, 4, 4), call(3, 8, 8, 0, 0), call(2, 0, 4)}, nil))
	f.Add([]byte(`severity \xff`), uint32(0), bytes.Join([][]byte{call(3, 0, 8, 9, 1), call(3, 9, 1, 0, 0), call(2, 65535, 1), call(2, 0, 0)}, nil))
	f.Add([]byte(`peer`), ^uint32(0), bytes.Join([][]byte{call(0), call(1, 65535, 2), call(3, 0, 4, ^uint32(0), 2), call(1, 0, 0)}, nil))
	h, _ := open(f)
	g := load(f, h, settings(wat(f, `(module
		(import "benthos_wasm" "v0_msg_as_bytes" (func $bytes (result i64)))
		(memory 1) (global $at (export "at") (mut i32) (i32.const 0))
		(func (export "malloc") (param i32) (result i32) (global.get $at))
		(func (export "free") (param i32))
		(func (export "process")))`)))
	f.Fuzz(func(t *testing.T, memory []byte, at uint32, script []byte) {
		b := router.NewBatch(4<<20, 1)
		defer b.Discard()
		in := g.lanes[0].in
		x := in.talk.(*benthosTalk)
		m := b.Add(&router.Origin{Source: "s", Peer: "192.0.2.7"})
		m.Text, m.Hostname, m.Received = []byte("text"), []byte("host"), 1
		other := *m
		before := router.AppendRecord(nil, m)
		all, _ := in.mem.Read(0, in.mem.Size())
		clear(all)
		copy(all, memory)
		in.mod.ExportedGlobal("at").(api.MutableGlobal).Set(uint64(at))
		in.begin(b, m)
		x.reset()
		var verdict int32
		var err error
		for calls := 0; len(script) >= 17 && calls < 100 && err == nil; calls++ {
			fn := benthosFunctions[int(script[0])%len(benthosFunctions)]
			stack := make([]uint64, 4)
			for i := range stack {
				stack[i] = uint64(binary.LittleEndian.Uint32(script[1+4*i:]))
			}
			script = script[17:]
			was := slices.Clone(all)
			func() {
				defer caught(&err)
				fn.call(in, in.mod, stack)
			}()
			n := uint64(0)
			if fn.results == "I" && err == nil {
				if n = uint64(uint32(stack[0])); stack[0]>>32 != uint64(at) {
					t.Errorf("%s: %#x, the allocator gave %#x", fn.name, stack[0], at)
				}
			}
			if n > 0 {
				copy(was[at:], all[at:uint64(at)+n])
			}
			if !bytes.Equal(was, all) {
				t.Fatalf("%s has written elsewhere", fn.name)
			}
		}
		if err == nil {
			func() {
				defer caught(&err)
				verdict, err = x.finish(in)
			}()
		}
		if copied := router.AppendRecord(nil, &other); !bytes.Equal(copied, before) {
			t.Errorf("the copy was changed:\n%s\n%s", before, copied)
		}
		if err != nil || verdict != keep {
			in.undo()
			if after := router.AppendRecord(nil, m); !bytes.Equal(after, before) {
				t.Errorf("not undone:\n%s\n%s", before, after)
			}
		} else if after := router.AppendRecord(nil, m); !json.Valid(after) {
			t.Errorf("no JSON: %s", after)
		}
		in.rest()
	})
}
