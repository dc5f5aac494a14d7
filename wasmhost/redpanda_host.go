package wasmhost

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/tetratelabs/wazero/api"

	"github.com/weirlog/weir/router"
)

// redpandaFunctions are all of redpanda_transform. That a version is asked for is enough: none changed what others have.
var redpandaFunctions = []hostFunction{
	{"check_abi_version_1", "", "", redpandaVersion},
	{"check_abi_version_2", "", "", redpandaVersion},
	{"check_abi_version_3", "", "", redpandaVersion},
	{"read_batch_header", "iiiiiiiiii", "i", redpandaBatch},
	{"read_batch_metadata", "iii", "i", redpandaMetadata},
	{"read_next_record", "iiiii", "i", redpandaRead},
	{"write_record", "ii", "i", redpandaWrite},
	{"write_record_with_options", "iiii", "i", redpandaWriteTo},
}

// What functions of redpanda_transform answer when they cannot do it.
const (
	redpandaNoRecord = -1 // there is no record in hand, or no more of them come
	redpandaTooSmall = -2 // a buffer
	redpandaInvalid  = -3 // no record body, or no options
)

func redpandaVersion(ctx context.Context, _ api.Module, _ []uint64) { ctx.(*instance).clock.Charge(0) }

// redpandaBatch is where a guest waits for the next message.
func redpandaBatch(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	var values [len(redpandaHeader)][]byte
	for i, size := range redpandaHeader {
		values[i] = in.bytes(mod, stack[i], size)
	}
	in.clock.Charge(0)
	t := in.talk.(*redpandaTalk)
	if t.stage != offered && !t.ending {
		t.program.wait()
	}
	if t.ending {
		stack[0] = code(redpandaNoRecord)
		return
	}
	t.stage = announced
	noProducer := int64(-1)
	for i, v := range [...]int64{t.offset, 1, 0, 0, 0, t.timestamp, t.timestamp, noProducer, noProducer, noProducer} {
		putLittle(values[i], v)
	}
	stack[0] = uint64(len(t.body))
}

// redpandaHeader are the sizes of what read_batch_header tells: the first offset, how many records there are, the
// leader's epoch, attributes, the last offset behind the first, the first and the last timestamp, the producer's number,
// its epoch, and the sequence.
var redpandaHeader = [...]uint64{8, 4, 4, 2, 4, 8, 8, 8, 2, 4}

// putLittle fills p with as many of v's lowest bytes.
func putLittle(p []byte, v int64) {
	for i := range p {
		p[i] = byte(v >> (8 * i))
	}
}

// redpandaMetadata knows no key.
func redpandaMetadata(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	in.bytes(mod, stack[1], stack[2])
	in.clock.Charge(0)
	stack[0] = 0
}

func redpandaRead(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	attributes, timestamp, offset := in.bytes(mod, stack[0], 1), in.bytes(mod, stack[1], 8), in.bytes(mod, stack[2], 8)
	buf := in.bytes(mod, stack[3], stack[4])
	t := in.talk.(*redpandaTalk)
	in.clock.Charge(0)
	switch {
	case t.stage != announced:
		stack[0] = code(redpandaNoRecord)
		return
	case len(t.body) > len(buf):
		stack[0] = code(redpandaTooSmall)
		return
	}
	t.stage = read
	in.chargeLong(len(t.body))
	attributes[0] = 0
	binary.LittleEndian.PutUint64(timestamp, uint64(t.timestamp))
	binary.LittleEndian.PutUint64(offset, uint64(t.offset))
	stack[0] = uint64(copy(buf, t.body))
}

func redpandaWrite(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	body := in.bytes(mod, stack[0], stack[1])
	stack[0] = code(in.talk.(*redpandaTalk).write(in, body, nil))
}

func redpandaWriteTo(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	body, options := in.bytes(mod, stack[0], stack[1]), in.bytes(mod, stack[2], stack[3])
	stack[0] = code(in.talk.(*redpandaTalk).write(in, body, options))
}

// write takes a record: the first replaces the message, others are created behind it. Like a broker it takes whatever is
// a record; one that can be no message fails the message when the guest is done with it.
func (t *redpandaTalk) write(in *instance, body, options []byte) int32 {
	in.clock.Charge(0)
	if t.stage != read {
		return redpandaNoRecord
	}
	in.chargeLong(len(body) + len(options))
	topic, named, fine := outputTopic(options)
	value, null, ok := recordValue(body)
	switch {
	case !fine:
		t.fail("the guest wrote a record with options that it does not know how to write")
		return redpandaInvalid
	case !ok:
		t.fail("the guest wrote a record that is none (key, value and headers, with their lengths as varints)")
		return redpandaInvalid
	case null:
		t.fail("the guest wrote a record without a value")
	default:
		t.put(in, value, topic, named)
	}
	return int32(len(body))
}

func (t *redpandaTalk) put(in *instance, value, topic []byte, named bool) {
	m, c := in.m, int32(0)
	if t.wrote == 0 {
		c = in.become(value)
	} else if c = in.create(value); c == 0 {
		m = in.last
	}
	t.wrote++
	if c != 0 {
		t.fail(badRecord(c))
	} else if named && (len(topic) > router.MaxKey || !in.batch.Route(m, topic)) {
		t.fail(fmt.Sprintf("the guest wrote to the topic %q, and the route has no destination of that name", topic[:min(len(topic), 100)]))
	}
}

// fail keeps the first thing that was wrong.
func (t *redpandaTalk) fail(what string) {
	if t.wrong == "" {
		t.wrong = what
	}
}

// badRecord says why a record that a guest gave back did not become a message.
func badRecord(code int32) string {
	switch code {
	case errTooLong:
		return "the guest gave back a record that is too long"
	case errTooMany:
		return "the guest gave back more than there is room for: fields, records or memory"
	}
	return "the guest gave back a record that is not one JSON object"
}
