//go:build wasip1

package weir

import (
	"iter"
	"unsafe"
)

// A Message is the message in hand. It is valid during the handler's call only.
//
// Keys are literal: "a.b" is one name. The message's own are timestamp (ns), facility, severity, hostname, app_name,
// proc_id, msg_id, message, and, read-only, received_at, structured_data, raw, source, listener, peer. Every other key
// is a field that a filter added.
type Message struct{}

// A Type is the type of a value.
type Type int32

const (
	TypeAbsent Type = iota
	TypeNull
	TypeBool
	TypeInt
	TypeFloat
	TypeString
	TypeBytes // text that is not UTF-8
	TypeArray
	TypeObject
)

// scratch is where values are read first: one host call for a get, and no allocation but the string's.
var scratch [64 << 10]byte

// The result of a numeric get; package variables, because what is handed to the host escapes.
var (
	gotInt   int64
	gotFloat float64
)

// full returns what get reads, in scratch or, when it is longer, in memory of its own. n < 0 is the host's error.
func full(get func(buf unsafe.Pointer, n uint32) int32) ([]byte, int32) {
	buf := scratch[:]
	for {
		n := get(unsafe.Pointer(unsafe.SliceData(buf)), uint32(len(buf)))
		if n < 0 {
			return nil, n
		}
		if int(n) <= len(buf) {
			return buf[:n], n
		}
		buf = make([]byte, n)
	}
}

// here panics when a message is asked for where there is none, which is a mistake of the filter. Any other error of a
// get is a key that cannot exist: absent.
func here(n int32) {
	if n == int32(errNotHere) {
		panic("weir: there is no message outside of the handler")
	}
}

// Get returns the value of key as text: numbers in decimal (times in ns since 1970), true or false, arrays and
// objects as compact JSON, text as it is, also when it is not UTF-8. ok tells whether the key is there; empty and
// null (as "null") are.
func (Message) Get(key string) (value string, ok bool) {
	b, n := full(func(buf unsafe.Pointer, size uint32) int32 { return fieldGet(key, buf, size) })
	here(n)
	return string(b), n >= 0
}

// Append appends the value of key to dst, as Get would return it. It allocates only when dst must grow.
func (Message) Append(dst []byte, key string) (_ []byte, ok bool) {
	// Straight into dst where it fits: the host writes all or nothing.
	room := cap(dst) - len(dst)
	if room > 0 {
		n := fieldGet(key, unsafe.Pointer(unsafe.SliceData(dst[len(dst):cap(dst)])), uint32(room))
		if n <= int32(room) {
			here(n)
			return dst[:len(dst)+int(max(n, 0))], n >= 0
		}
	}
	b, n := full(func(buf unsafe.Pointer, size uint32) int32 { return fieldGet(key, buf, size) })
	here(n)
	return append(dst, b...), n >= 0
}

// Type returns the type of key's value, TypeAbsent when there is none.
func (Message) Type(key string) Type {
	n := fieldType(key)
	here(n)
	return Type(max(n, 0))
}

// Int returns an integer. It never parses text: the error is ErrAbsent or ErrType.
func (Message) Int(key string) (int64, error) {
	if n := fieldGetI64(key, unsafe.Pointer(&gotInt)); n < 0 {
		return 0, errorOf(n)
	}
	return gotInt, nil
}

// Float returns a float, or an integer's value. It never parses text: the error is ErrAbsent or ErrType.
func (Message) Float(key string) (float64, error) {
	if n := fieldGetF64(key, unsafe.Pointer(&gotFloat)); n < 0 {
		return 0, errorOf(n)
	}
	return gotFloat, nil
}

// Set sets a text. Into the message's own timestamp, facility and severity it is parsed: decimal digits, RFC 3339, or
// a keyword such as "warning"; ErrInvalid when it is none.
func (Message) Set(key, value string) error { return errorOf(fieldSet(key, value)) }

// SetBytes is Set with bytes, which need not be UTF-8.
func (Message) SetBytes(key string, value []byte) error {
	return errorOf(fieldSet(key, unsafe.String(unsafe.SliceData(value), len(value))))
}

// SetInt sets an integer.
func (Message) SetInt(key string, value int64) error { return errorOf(fieldSetI64(key, value)) }

// SetFloat sets a float. NaN and the infinities are ErrInvalid.
func (Message) SetFloat(key string, value float64) error { return errorOf(fieldSetF64(key, value)) }

// SetBool sets true or false.
func (Message) SetBool(key string, value bool) error {
	if value {
		return errorOf(fieldSetJSON(key, "true"))
	}
	return errorOf(fieldSetJSON(key, "false"))
}

// SetJSON sets any JSON value. null makes one of the message's own keys absent.
func (Message) SetJSON(key string, value []byte) error {
	return errorOf(fieldSetJSON(key, unsafe.String(unsafe.SliceData(value), len(value))))
}

// Unset makes key absent. ErrAbsent when it was; ErrNotPermitted for facility, severity and read-only keys.
func (Message) Unset(key string) error { return errorOf(fieldUnset(key)) }

// Count returns how many fields there are. The message's own keys are none.
func (Message) Count() int { return int(fieldCount()) }

// Fields goes over the names of the fields in order. Setting them meanwhile is fine; a field that is added comes last,
// and one that is unset makes the next one be left out.
func (Message) Fields() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := int32(0); ; i++ {
			b, n := full(func(buf unsafe.Pointer, size uint32) int32 { return fieldName(i, buf, size) })
			here(n)
			if n < 0 || !yield(string(b)) {
				return
			}
		}
	}
}

// Param returns a parameter of the structured data, the first of repeated ones.
func (Message) Param(id, name string) (value string, ok bool) {
	b, n := full(func(buf unsafe.Pointer, size uint32) int32 { return sdGet(id, name, buf, size) })
	here(n)
	return string(b), n >= 0
}

// AppendParam appends a parameter of the structured data to dst, as Param would return it.
func (Message) AppendParam(dst []byte, id, name string) (_ []byte, ok bool) {
	b, n := full(func(buf unsafe.Pointer, size uint32) int32 { return sdGet(id, name, buf, size) })
	here(n)
	return append(dst, b...), n >= 0
}

// SetParam sets a parameter of the structured data, and makes its element when there is none. ErrInvalid for names
// that RFC 5424 forbids.
func (Message) SetParam(id, name, value string) error { return errorOf(sdSet(id, name, value)) }

// UnsetParam removes a parameter, all of that name. ErrAbsent when there is none.
func (Message) UnsetParam(id, name string) error { return errorOf(sdUnset(id, name)) }

// UnsetElement removes a whole element of the structured data. ErrAbsent when there is none.
func (Message) UnsetElement(id string) error { return errorOf(sdUnset(id, "")) }

// AppendRecord appends the whole message as record JSON (filters/ABI.md) to dst.
func (Message) AppendRecord(dst []byte) []byte {
	b, n := full(recordGet)
	here(n)
	return append(dst, b...)
}

// SetRecord replaces the whole message by record JSON; what it leaves out becomes absent, except received_at, raw,
// source, listener and peer, which stay. One bad part refuses all of it: ErrInvalid.
func (Message) SetRecord(json []byte) error {
	return errorOf(recordSet(unsafe.String(unsafe.SliceData(json), len(json))))
}

// Route sends the message only to this destination of its route, and to those named before. ErrAbsent when the route has
// none of this name. It is undone when the call fails or rejects.
func (Message) Route(destination string) error { return errorOf(hostRoute(destination)) }
