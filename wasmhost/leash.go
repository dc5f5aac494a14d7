package wasmhost

import (
	"fmt"

	"github.com/tetratelabs/wazero/api"

	"github.com/weirlog/weir/wasmhost/meter"
)

// given gives the message in hand to the guest. Talkers do work of their own for the guest, which is counted as the
// guest's: what stops it there is an error too.
func (in *instance) given() (verdict int32, err error) {
	defer caught(&err)
	return in.talk.process(in)
}

// told calls a talker's tick or end, of which the same holds.
func (in *instance) told(call func(*instance) error) (err error) {
	defer caught(&err)
	return call(in)
}

// caught is deferred where work counts as a guest's and no call into the guest is around it: there a panic that stops a
// guest becomes an error.
func caught(err *error) {
	switch p := recover().(type) {
	case nil:
	case *meter.Exceeded:
		*err = p
	case *guestFault:
		*err = p
	default:
		panic(p)
	}
}

// failing gives a reason and returns the verdict of a failure.
func (in *instance) failing(format string, args ...any) int32 {
	in.reason = fmt.Appendf(in.reason[:0], format, args...)
	in.reason = in.reason[:min(len(in.reason), mostReason)]
	return failed
}

// whenRead is the verdict when a guest's record was read with this result.
func (in *instance) whenRead(c int32) int32 {
	switch c {
	case 0:
		return keep
	case errTooLong:
		return in.failing("the output, or a key or value in it, is too long")
	case errTooMany:
		return in.failing("the output is too much: more fields, messages or bytes than one message may have")
	}
	return in.failing("the output is no JSON object that a message can be made of")
}

// memoryOf is the guest's memory; nil: it has none. wazero's own Memory is never nil.
func (in *instance) memoryOf(mod api.Module) api.Memory {
	if in.program.memory == 0 {
		return nil
	}
	return mod.Memory()
}
