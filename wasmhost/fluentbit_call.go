package wasmhost

import (
	"bytes"
	"fmt"
	"math"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/weirlog/weir/router"
)

// fluentTalk hands records to a Fluent Bit filter.
type fluentTalk struct {
	quiet
	filter  api.Function
	lender  lender
	msgpack bool

	stack  [6]uint64
	packer packer
	packed []byte // the record in hand as MessagePack
	text   []byte // what the guest gave back as MessagePack, as JSON
}

func (t *fluentTalk) process(in *instance) (int32, error) {
	record := t.record(in)
	var at uint32
	for again := false; ; again = true {
		var err error
		if at, err = t.lender.lend(in, record, in.m.Origin.Source); err != nil {
			return failed, err
		}
		t.arguments(in.m, at, len(record))
		if err := t.filter.CallWithStack(in, t.stack[:]); err != nil {
			return failed, err
		}
		if !t.lender.lost(in, at, loan(record, in.m.Origin.Source)) || bytes.Equal(in.bytes(in.mod, uint64(at), uint64(len(record))), record) {
			break
		}
		// What the guest saw of the record may have been something else.
		if again {
			panic(&guestFault{"the guest's own allocator takes the memory in which records are put: " + exportMalloc})
		}
	}
	verdict := t.take(in, uint32(t.stack[0]), record)
	if cap(t.packed) > 64<<10 {
		t.packed = nil
	}
	return verdict, t.lender.giveBack(in, at)
}

// record is the message as the guest gets it. It holds until the next one is made.
func (t *fluentTalk) record(in *instance) []byte {
	in.scratch = router.AppendRecord(in.scratch[:0], in.m)
	in.chargeLong(len(in.scratch))
	if !t.msgpack {
		return in.scratch
	}
	t.packed = t.packer.appendJSON(t.packed[:0], in.scratch)
	in.chargeLong(2 * len(in.scratch))
	return t.packed
}

func (t *fluentTalk) arguments(m *router.Message, at uint32, n int) {
	ns := m.Timestamp
	if ns == router.NoTime {
		ns = m.Received
	}
	when := time.Unix(0, ns)
	tag := uint64(at) + uint64(n) + 1
	t.stack = [6]uint64{tag, uint64(len(m.Origin.Source)), uint64(uint32(when.Unix())), uint64(when.Nanosecond()), uint64(at), uint64(n)}
}

// take does with the message in hand what the guest answered.
func (t *fluentTalk) take(in *instance, at uint32, sent []byte) int32 {
	if at == 0 {
		// What it returns is never freed. A filter that allocates it gets to its memory's end some day, where its allocator
		// returns 0; which must not mean that everything is dropped from then on.
		if int64(in.mem.Size()) > in.program.memory/10*9 && in.program.atLimit {
			panic(&guestFault{"the filter returned 0, which may be its allocator's answer"})
		}
		return drop
	}
	size := in.mem.Size()
	if at >= size {
		panic(&guestFault{fmt.Sprintf("the filter returned the address %#x, which is outside of its memory of %d bytes", at, size)})
	}
	most := uint32(min(in.guest.host.mostValue, math.MaxInt32))
	answer := in.bytes(in.mod, uint64(at), uint64(min(size-at, most+1)))
	if answer[0] == 0 {
		return drop
	}
	if t.msgpack {
		return t.takePacked(in, answer, sent)
	}
	n := in.terminated(answer)
	if n < 0 {
		if len(answer) > int(most) {
			return in.failing("the filter returned a record longer than %d bytes", most)
		}
		panic(&guestFault{fmt.Sprintf("the filter returned the address %#x, and there is no NUL between it and the end of memory", at)})
	}
	if bytes.Equal(answer[:n], sent) {
		return keep
	}
	return become(in, answer[:n])
}

func (t *fluentTalk) takePacked(in *instance, answer, sent []byte) int32 {
	if bytes.HasPrefix(answer, sent) {
		return keep
	}
	u := unpacker{clock: &in.clock, most: in.guest.host.mostValue}
	text, err := u.appendMap(t.text[:0], answer)
	if cap(text) <= 64<<10 {
		t.text = text
	}
	if err != nil {
		return in.failing("the filter returned no MessagePack map: %v", err)
	}
	return become(in, text)
}

// become replaces the message in hand by a record of the guest.
func become(in *instance, record []byte) int32 {
	switch in.become(record) {
	case 0:
		return keep
	case errTooLong:
		return in.failing("the filter returned a record with a value or a name that is too long")
	case errTooMany:
		return in.failing("the filter returned a record with more fields or more bytes than there is room for")
	}
	const shown = 64
	if len(record) > shown {
		return in.failing("the filter returned no JSON object but %q…", record[:shown])
	}
	return in.failing("the filter returned no JSON object but %q", record)
}
