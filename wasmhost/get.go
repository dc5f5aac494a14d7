package wasmhost

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"
	"unsafe"

	"github.com/tetratelabs/wazero/api"

	"github.com/weirlog/weir/router"
)

func outside(ptr, n, size uint32) error {
	return &guestFault{fmt.Sprintf("the guest gave an address outside of its memory: %d bytes at %#x, memory has %d", n, ptr, size)}
}

// text is the value of a key as field_get gives it; false: absent. It may lie in scratch.
func (in *instance) text(key []byte) ([]byte, bool) {
	m := in.m
	switch k := router.LookupKey(key); k {
	case router.KeyField:
		f := m.Field(key)
		if f == nil {
			in.guest.nearly(key)
			return nil, false
		}
		if f.Value.Kind >= router.String {
			return f.Value.Bytes, true
		}
		in.scratch = router.AppendText(in.scratch[:0], f.Value)
		return in.scratch, true
	case router.KeyMessage:
		return m.Text, true
	case router.KeyHostname:
		return m.Hostname, m.Hostname != nil
	case router.KeyAppName:
		return m.AppName, m.AppName != nil
	case router.KeyProcID:
		return m.ProcID, m.ProcID != nil
	case router.KeyMsgID:
		return m.MsgID, m.MsgID != nil
	case router.KeyRaw:
		return m.Raw, m.Raw != nil
	case router.KeySource:
		return view(m.Origin.Source), m.Origin.Source != ""
	case router.KeyListener:
		return view(m.Origin.Listener), m.Origin.Listener != ""
	case router.KeyPeer:
		return view(m.Origin.Peer), m.Origin.Peer != ""
	case router.KeyStructuredData, router.KeyMessageB64:
		in.clock.Charge(m.Size())
		fallthrough
	default:
		var ok bool
		in.scratch, ok = router.AppendKey(in.scratch[:0], m, k)
		return in.scratch, ok
	}
}

// view is s without a copy, to be read only.
func view(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

func fieldGet(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	key, buf := in.bytes(mod, stack[0], stack[1]), in.bytes(mod, stack[2], stack[3])
	if in.phase != processing {
		stack[0] = code(errNotHere)
		return
	}
	if len(key) > router.MaxKey {
		stack[0] = code(errTooLong)
		return
	}
	text, ok := in.text(key)
	if !ok {
		stack[0] = code(in.noField(key))
		return
	}
	in.clock.Charge(len(key) + min(len(text), len(buf)))
	stack[0] = answer(buf, text)
}

// noField is what a key that is not there answers.
func (in *instance) noField(key []byte) int32 {
	in.clock.Charge(len(key))
	if !validKey(key) {
		return errInvalid
	}
	return errAbsent
}

// validKey reports whether key is UTF-8 without NUL.
func validKey(key []byte) bool {
	for _, c := range key {
		if c == 0 {
			return false
		}
	}
	return utf8.Valid(key)
}

func fieldType(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	key := in.bytes(mod, stack[0], stack[1])
	if in.phase != processing {
		stack[0] = code(errNotHere)
		return
	}
	if len(key) > router.MaxKey {
		stack[0] = code(errTooLong)
		return
	}
	kind := in.kind(key)
	if kind == router.Absent && !validKey(key) {
		stack[0] = code(errInvalid)
		return
	}
	stack[0] = uint64(kind)
}

func (in *instance) kind(key []byte) router.Kind {
	m, k := in.m, router.LookupKey(key)
	switch k {
	case router.KeyField:
		in.clock.Charge(len(key))
		if f := m.Field(key); f != nil {
			return f.Value.Kind
		}
		in.guest.nearly(key)
		return router.Absent
	case router.KeyFacility, router.KeySeverity, router.KeyReceivedAt:
		in.clock.Charge(0)
		return router.Int
	case router.KeyTimestamp:
		in.clock.Charge(0)
		if m.Timestamp == router.NoTime {
			return router.Absent
		}
		return router.Int
	case router.KeyStructuredData:
		in.clock.Charge(0)
		if len(m.Structured) == 0 {
			return router.Absent
		}
		return router.Object
	case router.KeyMessageB64:
		in.clock.Charge(len(m.Text))
		if utf8.Valid(m.Text) {
			return router.Absent
		}
		return router.String
	}
	text, ok := in.text(key)
	in.clock.Charge(len(text))
	switch {
	case !ok:
		return router.Absent
	case utf8.Valid(text):
		return router.String
	}
	return router.Bytes
}

// number is the value of a key that holds a number. The kind is Absent when there is no such value, and String when
// there is one that is no number.
func (in *instance) number(key []byte) router.Value {
	m := in.m
	switch router.LookupKey(key) {
	case router.KeyField:
		f := m.Field(key)
		if f == nil {
			in.guest.nearly(key)
			return router.Value{}
		}
		if f.Value.Kind == router.Int || f.Value.Kind == router.Float {
			return f.Value
		}
	case router.KeyFacility:
		return router.IntValue(int64(m.Facility))
	case router.KeySeverity:
		return router.IntValue(int64(m.Severity))
	case router.KeyReceivedAt:
		return router.IntValue(m.Received)
	case router.KeyTimestamp:
		if m.Timestamp == router.NoTime {
			return router.Value{}
		}
		return router.IntValue(m.Timestamp)
	default:
		if _, ok := in.text(key); !ok {
			return router.Value{}
		}
	}
	return router.Value{Kind: router.String}
}

func fieldGetI64(ctx context.Context, mod api.Module, stack []uint64) {
	getNumber(ctx.(*instance), mod, stack, func(v router.Value) (uint64, bool) { return v.Num, v.Kind == router.Int })
}

func fieldGetF64(ctx context.Context, mod api.Module, stack []uint64) {
	getNumber(ctx.(*instance), mod, stack, func(v router.Value) (uint64, bool) {
		if v.Kind == router.Int {
			return math.Float64bits(float64(v.Int())), true
		}
		return v.Num, v.Kind == router.Float
	})
}

func getNumber(in *instance, mod api.Module, stack []uint64, as func(router.Value) (uint64, bool)) {
	key, out := in.bytes(mod, stack[0], stack[1]), in.bytes(mod, stack[2], 8)
	if in.phase != processing {
		stack[0] = code(errNotHere)
		return
	}
	if len(key) > router.MaxKey {
		stack[0] = code(errTooLong)
		return
	}
	v := in.number(key)
	if v.Kind == router.Absent {
		stack[0] = code(in.noField(key))
		return
	}
	in.clock.Charge(len(key))
	n, ok := as(v)
	if !ok {
		stack[0] = code(errWrongType)
		return
	}
	binary.LittleEndian.PutUint64(out, n)
	stack[0] = 0
}

func fieldCount(ctx context.Context, _ api.Module, stack []uint64) {
	in := ctx.(*instance)
	if in.phase != processing {
		stack[0] = code(errNotHere)
		return
	}
	in.clock.Charge(0)
	stack[0] = uint64(len(in.m.Fields))
}

func fieldName(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	buf := in.bytes(mod, stack[1], stack[2])
	if in.phase != processing {
		stack[0] = code(errNotHere)
		return
	}
	i := uint32(stack[0])
	if uint64(i) >= uint64(len(in.m.Fields)) {
		in.clock.Charge(0)
		stack[0] = code(errAbsent)
		return
	}
	name := in.m.Fields[i].Name
	in.clock.Charge(min(len(name), len(buf)))
	stack[0] = answer(buf, name)
}
