package wasmhost

import (
	"context"
	"encoding/binary"
	"math"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/weirlog/weir/router"
)

// mayKeep is 0 when a filter may use a key of its own at the moment.
func (in *instance) mayKeep(key []byte) int32 {
	switch {
	case in.phase == starting:
		return errNotHere
	case len(key) > router.MaxKey:
		return errTooLong
	case !validKey(key):
		return errInvalid
	}
	in.clock.Charge(len(key))
	return 0
}

func kvGet(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	key, buf := in.bytes(mod, stack[0], stack[1]), in.bytes(mod, stack[2], stack[3])
	if c := in.mayKeep(key); c != 0 {
		stack[0] = code(c)
		return
	}
	n := 0
	found := in.guest.shelf.get(key, func(value []byte) {
		n = min(len(value), len(buf))
		stack[0] = answer(buf, value)
	})
	if !found {
		stack[0] = code(errAbsent)
	}
	in.clock.Charge(n)
}

func kvSet(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	key, value := in.bytes(mod, stack[0], stack[1]), in.bytes(mod, stack[2], stack[3])
	ttl := int64(stack[4]) // ms
	c := in.mayKeep(key)
	switch {
	case c != 0:
	case len(value) > in.guest.host.mostValue:
		c = errTooLong
	default:
		in.chargeLong(len(value))
		ttl = min(ttl, math.MaxInt64/int64(time.Millisecond))
		if !in.guest.shelf.set(key, value, time.Duration(ttl)*time.Millisecond) {
			c = errTooMany
		}
	}
	stack[0] = code(c)
}

func kvDel(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	key := in.bytes(mod, stack[0], stack[1])
	c := in.mayKeep(key)
	if c == 0 && !in.guest.shelf.del(key) {
		c = errAbsent
	}
	stack[0] = code(c)
}

func kvAdd(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	key, out := in.bytes(mod, stack[0], stack[1]), in.bytes(mod, stack[3], 8)
	c := in.mayKeep(key)
	if c == 0 {
		var sum int64
		if sum, c = in.guest.shelf.add(key, int64(stack[2])); c == 0 {
			binary.LittleEndian.PutUint64(out, uint64(sum))
		}
	}
	stack[0] = code(c)
}

func metricAdd(ctx context.Context, mod api.Module, stack []uint64) { measure(ctx, mod, stack, true) }
func metricSet(ctx context.Context, mod api.Module, stack []uint64) { measure(ctx, mod, stack, false) }

func measure(ctx context.Context, mod api.Module, stack []uint64, add bool) {
	in := ctx.(*instance)
	name, value := in.bytes(mod, stack[0], stack[1]), api.DecodeF64(stack[2])
	if in.phase == starting {
		return
	}
	in.clock.Charge(min(len(name), 256))
	if !in.guest.shelf.measure(name, value, add) {
		in.guest.ignored(name)
	}
}

// ignored tells, once, that a metric is none.
func (g *Guest) ignored(name []byte) {
	s := g.shelf
	s.mu.Lock()
	told := s.told
	s.told = true
	s.mu.Unlock()
	if !told {
		g.log.Warn("filter gave a metric that is ignored: a name is letters, digits and _, a value a number, and a filter may have 1000",
			"metric", printable(string(name[:min(len(name), 200)])))
	}
}
