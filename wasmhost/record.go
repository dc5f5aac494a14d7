package wasmhost

import (
	"context"
	"errors"

	"github.com/tetratelabs/wazero/api"

	"github.com/weirlog/weir/router"
)

func recordGet(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	buf := in.bytes(mod, stack[0], stack[1])
	if in.phase != processing {
		stack[0] = code(errNotHere)
		return
	}
	in.scratch = router.AppendRecord(in.scratch[:0], in.m)
	in.chargeLong(len(in.scratch))
	stack[0] = answer(buf, in.scratch)
}

func recordSet(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	record := in.bytes(mod, stack[0], stack[1])
	if in.phase != processing {
		stack[0] = code(errNotHere)
		return
	}
	if len(record) > in.guest.host.mostValue {
		stack[0] = code(errTooLong)
		return
	}
	in.chargeLong(2 * len(record))
	// Parse leaves text where it is, so the record must be the batch's.
	kept := in.batch.Copy(record)
	if kept == nil {
		stack[0] = code(errTooMany)
		return
	}
	m := in.edit()
	in.own = ownership{}
	in.parser.MaxValue = in.guest.host.mostValue
	in.parser.Strict = true
	err := in.parser.Parse(m, kept, in.batch)
	if err == router.ErrWrongType || err == router.ErrNotPermitted {
		err = router.ErrInvalid // one bad part refuses all of the record
	}
	stack[0] = code(errorCode(err))
}

func fieldSetJSON(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	key, text := in.bytes(mod, stack[0], stack[1]), in.bytes(mod, stack[2], stack[3])
	c := in.mayEdit(key)
	switch {
	case c != 0:
	case len(text) > in.guest.host.mostValue:
		c = errTooLong
	case router.LookupKey(key).ReadOnly():
		c = errNotPermitted
	default:
		in.chargeLong(2 * len(text))
		in.parser.MaxValue = in.guest.host.mostValue
		in.parser.Strict = true
		v, err := in.parser.ParseValue(text, in.batch)
		if c = errorCode(err); err == nil {
			c = in.set(key, v)
		}
	}
	stack[0] = code(c)
}

// chargeLong counts n bytes of work in pieces, so that the clock is looked at between them.
func (in *instance) chargeLong(n int) {
	for ; n > 64<<10; n -= 64 << 10 {
		in.clock.Charge(64 << 10)
	}
	in.clock.Charge(n)
}

// errorCode is the number of a router's error in this ABI.
func errorCode(err error) int32 {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, router.ErrWrongType):
		return errWrongType
	case errors.Is(err, router.ErrTooLong):
		return errTooLong
	case errors.Is(err, router.ErrNotPermitted):
		return errNotPermitted
	case errors.Is(err, router.ErrTooMany), errors.Is(err, router.ErrNoRoom):
		return errTooMany
	}
	return errInvalid
}

// become makes the message in hand what a guest of another system's ABI gave back: a record replaces all but what only
// weir sets, and a value that does not fit its key is kept as the field `<key>_` (filters/ABI.md, Record JSON). It
// returns 0 or an error of weir_v1; then the message is as it was.
func (in *instance) become(record []byte) int32 {
	if len(record) > in.guest.host.mostValue {
		return errTooLong
	}
	in.chargeLong(2 * len(record))
	kept := in.batch.Copy(record)
	if kept == nil {
		return errTooMany
	}
	m := in.edit()
	w := bare(*m)
	in.parser.MaxValue, in.parser.Strict, in.parser.Ours = in.guest.host.mostValue, false, true
	err := in.parser.Parse(&w, kept, in.batch)
	in.parser.Ours = false
	if err != nil {
		return errorCode(err)
	}
	*m, in.own = w, ownership{}
	return 0
}

// bare is m without all that a record can say.
func bare(m router.Message) router.Message {
	m.Message, m.Fields = router.Message{}.Message, nil
	m.Timestamp, m.Facility, m.Severity, m.Text = router.NoTime, ownFacility, ownSeverity, []byte{}
	return m
}
