package wasmhost

import (
	"encoding/binary"

	"github.com/weirlog/weir/router"
)

// A record body is what Kafka's record format (version 2) has between the offset and the end: key, value and headers.
// Lengths are zigzag varints, and -1 stands for null.

// appendRecordBody makes the body of a record without key and headers whose value is the message as record JSON. body is a
// part of buf.
func appendRecordBody(dst []byte, m *router.Message) (buf, body []byte) {
	const room = 1 + binary.MaxVarintLen64
	var head [room]byte
	buf = router.AppendRecord(append(dst, head[:]...), m)
	n := binary.PutVarint(head[1:], int64(len(buf)-len(dst)-room))
	from := len(dst) + room - n - 1
	buf[from] = nullLength
	copy(buf[from+1:], head[1:1+n])
	buf = append(buf, 0) // headers
	return buf, buf[from:]
}

const nullLength = 1 // -1 as a varint

// recordValue finds the value in a record body. null says that it has none; ok is false when the body is none.
func recordValue(body []byte) (value []byte, null, ok bool) {
	_, _, rest, ok := sized(body) // the key
	if !ok {
		return nil, false, false
	}
	if value, null, rest, ok = sized(rest); !ok {
		return nil, false, false
	}
	headers, n := binary.Varint(rest)
	if n <= 0 || headers < 0 {
		return nil, false, false
	}
	for rest = rest[n:]; headers > 0 && ok; headers-- { // ends with rest: a header has two bytes
		if _, _, rest, ok = sized(rest); ok {
			_, _, rest, ok = sized(rest)
		}
	}
	return value, null, ok && len(rest) == 0
}

// sized cuts a value with its length before it off p.
func sized(p []byte) (value []byte, null bool, rest []byte, ok bool) {
	length, n := binary.Varint(p)
	switch {
	case n <= 0 || length < -1 || length > int64(len(p)-n):
		return nil, false, nil, false
	case length == -1:
		return nil, true, p[n:], true
	}
	end := n + int(length)
	return p[n:end:end], false, p[end:], true
}

// outputTopic reads the options of write_record_with_options: a series of keys of one byte with their values, of which 1 is
// the topic. named says that there is one.
func outputTopic(options []byte) (topic []byte, named, ok bool) {
	for len(options) > 0 {
		if options[0] != 1 {
			return nil, false, false
		}
		var null bool
		if topic, null, options, ok = sized(options[1:]); !ok || null {
			return nil, false, false
		}
		named = true
	}
	return topic, named, true
}
