package wasmhost

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/wasmhost/meter"
)

// benthosFunctions are all functions of benthos_wasm. An i64 is an address in its upper half and a length in its lower:
// bytes in memory that the host has allocated in the guest.
var benthosFunctions = []hostFunction{
	{"v0_msg_as_bytes", "", "I", benthosAsBytes},
	{"v0_msg_set_bytes", "ii", "", benthosSetBytes},
	{"v0_msg_get_meta", "ii", "I", benthosGetMeta},
	{"v0_msg_set_meta", "iiii", "", benthosSetMeta},
}

const (
	// mostLent bounds what one call may be given, and mostMeta the bytes of metadata that it may set, in values.
	mostLent = 10_000
	mostMeta = 2
)

// benthosCall is the instance that calls a host function, which is counted.
func benthosCall(ctx context.Context, function string) (*instance, *benthosTalk) {
	in := ctx.(*instance)
	t := in.talk.(*benthosTalk)
	if in.phase != processing {
		panic(&guestFault{function + " was called before there was a message"})
	}
	if t.inside != "" {
		panic(&guestFault{fmt.Sprintf("%s, called by the host, has called %s", t.inside, function)})
	}
	in.clock.Charge(0)
	return in, t
}

func benthosAsBytes(ctx context.Context, mod api.Module, stack []uint64) {
	in, t := benthosCall(ctx, "v0_msg_as_bytes")
	if t.set {
		stack[0] = t.lend(in, mod, t.bytes)
		return
	}
	in.scratch = router.AppendRecord(in.scratch[:0], in.m)
	in.chargeLong(len(in.scratch))
	stack[0] = t.lend(in, mod, in.scratch)
}

// benthosSetBytes takes the new message, which is read when the guest has returned: a later one may take its place.
func benthosSetBytes(ctx context.Context, mod api.Module, stack []uint64) {
	in, t := benthosCall(ctx, "v0_msg_set_bytes")
	b := in.bytes(mod, stack[0], stack[1])
	in.chargeLong(len(b))
	if len(b) > in.guest.host.mostValue {
		panic(&guestFault{fmt.Sprintf("v0_msg_set_bytes was given %d bytes, the most is %d", len(b), in.guest.host.mostValue)})
	}
	t.bytes, t.set = append(t.bytes[:0], b...), true
	t.taken(in, stack[0], stack[1])
}

// benthosGetMeta gives metadata that the guest has set, or else what the message has under that key: for Redpanda Connect
// metadata is all that is not the content, and a filter before this one may have set it. What is not there is empty.
func benthosGetMeta(ctx context.Context, mod api.Module, stack []uint64) {
	in, t := benthosCall(ctx, "v0_msg_get_meta")
	key := in.bytes(mod, stack[0], stack[1])
	known := len(key) <= router.MaxKey
	if known {
		in.clock.Charge(len(key))
		t.key = append(t.key[:0], key...)
	}
	t.taken(in, stack[0], stack[1])
	var value []byte
	if known {
		if i := t.indexMeta(in, t.key); i >= 0 {
			value = t.meta[i].value
		} else {
			value, _ = in.text(t.key)
		}
	}
	stack[0] = t.lend(in, mod, value)
}

func benthosSetMeta(ctx context.Context, mod api.Module, stack []uint64) {
	in, t := benthosCall(ctx, "v0_msg_set_meta")
	key, value := in.bytes(mod, stack[0], stack[1]), in.bytes(mod, stack[2], stack[3])
	if len(key) > router.MaxKey {
		panic(&guestFault{fmt.Sprintf("v0_msg_set_meta was given a name of %d bytes, the most is %d", len(key), router.MaxKey)})
	}
	if most := mostMeta * in.guest.host.mostValue; len(t.text)+len(key)+len(value) > most {
		panic(&guestFault{fmt.Sprintf("v0_msg_set_meta was given more than %d bytes for one message", most)})
	}
	in.chargeLong(len(key) + len(value))
	i := t.indexMeta(in, key)
	if i < 0 {
		if i = len(t.meta); i == router.MaxFields {
			panic(&guestFault{fmt.Sprintf("v0_msg_set_meta was given more than %d names for one message", router.MaxFields)})
		}
		t.meta = append(t.meta, benthosMeta{key: t.keep(key)})
	}
	t.meta[i].value = t.keep(value)
	// As in Redpanda Connect, after both were read.
	k, kn, v, vn := stack[0], stack[1], stack[2], stack[3]
	t.taken(in, k, kn)
	t.taken(in, v, vn)
}

// keep copies b into text. What text held before stays where it is when it grows.
func (t *benthosTalk) keep(b []byte) []byte {
	n := len(t.text)
	t.text = append(t.text, b...)
	return t.text[n:len(t.text):len(t.text)]
}

// indexMeta is the place of metadata that the guest has set; -1: it has not.
func (t *benthosTalk) indexMeta(in *instance, key []byte) int {
	in.clock.Charge(16 * len(t.meta))
	for i := range t.meta {
		if bytes.Equal(t.meta[i].key, key) {
			return i
		}
	}
	return -1
}

// lend puts data into memory that the guest allocates for it, and returns where.
func (t *benthosTalk) lend(in *instance, mod api.Module, data []byte) uint64 {
	if len(t.lent) == mostLent {
		panic(&guestFault{fmt.Sprintf("the guest has asked %d times for the same message", mostLent)})
	}
	in.chargeLong(len(data))
	t.stack[0] = uint64(len(data))
	if err := t.nested(in, t.allocator, t.allocate); err != nil {
		panic(nestedFault(t.allocator, err))
	}
	p := uint64(uint32(t.stack[0]))
	if p == 0 && len(data) > 0 {
		panic(&guestFault{fmt.Sprintf("%s has no memory for %d bytes", t.allocator, len(data))})
	}
	t.lent = append(t.lent, uint32(p))
	copy(in.bytes(mod, p, uint64(len(data))), data)
	return p<<32 | uint64(len(data))
}

// taken gives back to the guest what it has handed over, if it exports a function for that.
func (t *benthosTalk) taken(in *instance, ptr, n uint64) {
	if t.deallocate == nil {
		return
	}
	t.stack = [2]uint64{uint64(uint32(ptr)), uint64(uint32(n))}
	if err := t.nested(in, "deallocate", t.deallocate); err != nil {
		panic(nestedFault("deallocate", err))
	}
}

// nestedFault is what a host function panics with when the guest's function that it has called fails, so that it is for
// the outer call what it was for the inner.
func nestedFault(function string, err error) error {
	if e, ok := errors.AsType[*meter.Exceeded](err); ok {
		return e
	}
	if e, ok := errors.AsType[*sys.ExitError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*guestFault](err); ok {
		return e
	}
	_, text, _ := explain(err)
	return &guestFault{function + ": " + text}
}
