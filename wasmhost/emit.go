package wasmhost

import (
	"context"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/weirlog/weir/router"
)

// mostEmits is how many messages one call may emit.
const mostEmits = 1000

func emit(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	record := in.bytes(mod, stack[0], stack[1])
	if in.phase != processing && in.phase != ticking {
		stack[0] = code(errNotHere)
		return
	}
	stack[0] = code(in.emit(record))
}

// emit creates a message from record JSON behind the one in hand and those emitted before. What the record leaves out is
// inherited from the message in hand as it is now, and between messages is what weir knows of itself.
func (in *instance) emit(record []byte) int32 { return in.emitOn(in.draft(), record) }

// create creates a message that a guest of another system's ABI gave back beside the first: like become it is all in the
// record, but for what only weir sets.
func (in *instance) create(record []byte) int32 {
	if in.edited {
		return in.emitOn(bare(in.saved), record)
	}
	return in.emitOn(bare(*in.m), record)
}

// emitOn emits what a record makes of draft.
func (in *instance) emitOn(draft router.Message, record []byte) int32 {
	switch {
	case len(record) > in.guest.host.mostValue:
		return errTooLong
	case in.emits >= mostEmits:
		return errTooMany
	}
	in.chargeLong(2 * len(record))
	kept := in.batch.Copy(record)
	if kept == nil {
		return errTooMany
	}
	in.parser.MaxValue, in.parser.Strict, in.parser.Ours = in.guest.host.mostValue, false, true
	err := in.parser.Parse(&draft, kept, in.batch)
	in.parser.Ours = false
	if err == router.ErrWrongType || err == router.ErrNotPermitted {
		err = router.ErrInvalid
	}
	if err != nil {
		return errorCode(err)
	}
	after := in.last
	if after == nil {
		after = in.m
	}
	if in.phase == ticking {
		after = nil
	}
	m := in.batch.Emit(after, &draft)
	if m == nil {
		return errTooMany
	}
	in.last, in.emits = m, in.emits+1
	// It shares the values of the message in hand, which therefore are changed in new memory from here on.
	in.own, in.shared = ownership{}, true
	return 0
}

// draft is what an emitted message inherits.
func (in *instance) draft() router.Message {
	if in.phase == processing {
		return *in.m
	}
	now := time.Now().UnixNano()
	m := router.Message{Origin: &router.Origin{}, Received: now}
	m.Timestamp, m.Facility, m.Severity = now, ownFacility, ownSeverity
	m.Hostname, m.AppName, m.Text = in.guest.host.hostname, in.guest.appName, []byte{}
	return m
}

// A message that a filter writes by itself is from a user program, and a notice.
const (
	ownFacility = 1
	ownSeverity = 5
)

// route sends the message in hand to that destination, and those named before, only.
func route(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	name := in.bytes(mod, stack[0], stack[1])
	switch {
	case in.phase != processing:
		stack[0] = code(errNotHere)
	case len(name) > router.MaxKey:
		stack[0] = code(errTooLong)
	default:
		in.clock.Charge(len(name) + router.MaxRoutes)
		in.edit()
		if stack[0] = 0; !in.batch.Route(in.m, name) {
			stack[0] = code(errAbsent)
		}
	}
}
