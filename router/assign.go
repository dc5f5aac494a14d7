package router

import (
	"errors"
	"unsafe"

	"github.com/weirlog/weir/router/syslog"
)

// Errors of writing values. The guest ABI has a number for each
// (filters/ABI.md, Errors).
var (
	ErrWrongType    = errors.New("value has the wrong type for this key") // -2
	ErrTooLong      = errors.New("value or key is too long")              // -3
	ErrNotPermitted = errors.New("key may not be written like that")      // -4
	ErrInvalid      = errors.New("value is not valid")                    // -5
	ErrTooMany      = errors.New("too many fields or parameters")         // -6
	ErrNoRoom       = errors.New("no memory left for the value")          // -6
)

// Quotas of one message (filters/ABI.md, Quotas).
const (
	MaxKey    = 4096     // bytes of a field's name, an SD-ID or a parameter's name
	MaxHeader = 64 << 10 // bytes of hostname, app_name, proc_id and msg_id
	MaxFields = 1000
	MaxParams = 1000 // SD parameters, and as many elements
)

// Set writes one of the message's own values (filters/ABI.md, Keys): text into
// a number is decimal, a severity or facility word, or an RFC 3339 time; a
// number into text becomes its text; Null makes absent. Text of v is kept, not
// copied; b lends the memory for what has to be made. On error m is unchanged.
func (m *Message) Set(key Key, v Value, b *Batch) error {
	switch key {
	case KeyTimestamp:
		return m.setTimestamp(v)
	case KeyFacility:
		return setNumber(&m.Facility, 24, v, syslog.ParseFacility)
	case KeySeverity:
		return setNumber(&m.Severity, 8, v, syslog.ParseSeverity)
	case KeyHostname:
		return setText(&m.Hostname, MaxHeader, v, b)
	case KeyAppName:
		return setText(&m.AppName, MaxHeader, v, b)
	case KeyProcID:
		return setText(&m.ProcID, MaxHeader, v, b)
	case KeyMsgID:
		return setText(&m.MsgID, MaxHeader, v, b)
	case KeyMessage:
		return setText(&m.Text, 0, v, b)
	}
	return ErrNotPermitted
}

func (m *Message) setTimestamp(v Value) error {
	ns := NoTime
	switch v.Kind {
	case Null:
		m.Timestamp = NoTime
		return nil
	case Int:
		ns = v.Int()
	case Float:
		return ErrInvalid
	case String, Bytes:
		var ok bool
		if ns, ok = decimal(v.Bytes); !ok {
			ns = ParseTime(v.Bytes)
		}
	default:
		return ErrWrongType
	}
	if ns < minTime {
		return ErrInvalid
	}
	m.Timestamp = ns
	return nil
}

// decimal reads a signed decimal number that fits 64 bits.
func decimal(s []byte) (n int64, ok bool) {
	negative := len(s) > 0 && s[0] == '-'
	if negative {
		s = s[1:]
	}
	if len(s) == 0 || len(s) > 19 {
		return 0, false
	}
	u := uint64(0)
	for _, c := range s {
		if c-'0' > 9 {
			return 0, false
		}
		u = u*10 + uint64(c-'0')
	}
	if negative {
		return -int64(u), u <= 1<<63
	}
	return int64(u), u < 1<<63
}

func setNumber(to *uint8, limit int64, v Value, word func(string) (uint8, bool)) error {
	switch v.Kind {
	case Int:
		if n := v.Int(); n >= 0 && n < limit {
			*to = uint8(n)
			return nil
		}
		return ErrInvalid
	case Float:
		return ErrInvalid
	case String, Bytes:
		n, ok := word(unsafe.String(unsafe.SliceData(v.Bytes), len(v.Bytes)))
		if !ok {
			return ErrInvalid
		}
		*to = n
		return nil
	case Null:
		return ErrNotPermitted
	}
	return ErrWrongType
}

func setText(to *[]byte, limit int, v Value, b *Batch) error {
	switch v.Kind {
	case Null:
		*to = nil
		return nil
	case String, Bytes:
		if limit > 0 && len(v.Bytes) > limit {
			return ErrTooLong
		}
		*to = v.Bytes
		if *to == nil {
			*to = []byte{} // empty is present
		}
		return nil
	case Int, Float:
		var text [32]byte
		t := b.Copy(AppendText(text[:0], v))
		if t == nil {
			return ErrNoRoom
		}
		*to = t
		return nil
	}
	return ErrWrongType
}
