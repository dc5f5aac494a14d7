//go:build wasip1

package weir

import (
	"strconv"
	"unsafe"
)

// Emit creates one more message behind this one, from record JSON (filters/ABI.md); see [Record], which writes it.
//
// What it leaves out is inherited from the message as it stands now; in OnTick and OnClose nothing is, and a missing
// timestamp is the time, a missing hostname weir's, a missing app_name the filter's name. It goes on at the next filter,
// also when the message itself is dropped. When the call fails or rejects, it is gone. ErrInvalid: some part of it is
// wrong, and nothing was emitted. ErrTooMany: over 1000 in a call, or no memory is free.
func Emit(record []byte) error {
	return errorOf(hostEmit(unsafe.String(unsafe.SliceData(record), len(record))))
}

// A Record writes record JSON, for Emit and Message.SetRecord; its zero value is empty. Of a key that is given twice the
// last counts. Bytes that are not UTF-8 are kept as they are.
//
//	var r weir.Record
//	r.Text("message", second)
//	r.Int("part", 2)
//	if err := r.Emit(); err != nil { … }
type Record struct{ json []byte }

// Reset empties it and keeps its memory.
func (r *Record) Reset() { r.json = r.json[:0] }

// Text adds a text.
func (r *Record) Text(key, value string) {
	r.key(key)
	r.json = appendQuoted(r.json, value)
}

// Int adds an integer.
func (r *Record) Int(key string, value int64) {
	r.key(key)
	r.json = strconv.AppendInt(r.json, value, 10)
}

// Float adds a float. One that is not finite makes the record invalid.
func (r *Record) Float(key string, value float64) {
	r.key(key)
	r.json = strconv.AppendFloat(r.json, value, 'g', -1, 64)
}

// Bool adds true or false.
func (r *Record) Bool(key string, value bool) {
	r.key(key)
	r.json = strconv.AppendBool(r.json, value)
}

// JSON adds any JSON value, also one that Message.Get gave for an array or an object.
func (r *Record) JSON(key string, value []byte) {
	r.key(key)
	r.json = append(r.json, value...)
}

// Bytes returns the record as JSON, valid until the next call.
func (r *Record) Bytes() []byte {
	if len(r.json) == 0 {
		r.json = append(r.json, '{')
	}
	return append(r.json, '}')
}

// Emit emits it: see [Emit].
func (r *Record) Emit() error { return Emit(r.Bytes()) }

func (r *Record) key(key string) {
	if len(r.json) == 0 {
		r.json = append(r.json, '{')
	} else if len(r.json) > 1 {
		r.json = append(r.json, ',')
	}
	r.json = append(appendQuoted(r.json, key), ':')
}

func appendQuoted(dst []byte, text string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
