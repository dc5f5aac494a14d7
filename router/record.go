package router

import (
	"encoding/base64"
	"strconv"
	"unicode/utf8"
	"unsafe"
)

// AppendRecord appends m as record JSON (filters/ABI.md, Record JSON): one
// object, without a line end. It is valid JSON and valid UTF-8 whatever the
// message holds, and a RecordParser reads it back. It allocates only to grow dst,
// and for elements with more than 32 parameters.
func AppendRecord(dst []byte, m *Message) []byte {
	dst = append(dst, '{')
	if m.Timestamp != NoTime {
		dst = append(dst, `"timestamp":"`...)
		dst = AppendTime(dst, m.Timestamp)
		dst = append(dst, `",`...)
	}
	dst = append(dst, `"received_at":"`...)
	dst = AppendTime(dst, m.Received)
	dst = append(dst, `","facility":`...)
	dst = strconv.AppendUint(dst, uint64(m.Facility), 10)
	dst = append(dst, `,"severity":`...)
	dst = strconv.AppendUint(dst, uint64(m.Severity), 10)
	dst = appendOwn(dst, `,"hostname":`, m.Hostname)
	dst = appendOwn(dst, `,"app_name":`, m.AppName)
	dst = appendOwn(dst, `,"proc_id":`, m.ProcID)
	dst = appendOwn(dst, `,"msg_id":`, m.MsgID)
	if len(m.Structured) > 0 {
		dst = append(dst, `,"structured_data":`...)
		dst = AppendStructured(dst, m.Structured)
	}
	dst = append(dst, `,"message":`...)
	dst = AppendString(dst, m.Text)
	if !utf8.Valid(m.Text) {
		dst = append(dst, `,"message_b64":"`...)
		dst = base64.StdEncoding.AppendEncode(dst, m.Text)
		dst = append(dst, '"')
	}
	dst = appendOrigin(dst, `,"source":`, m.Origin.Source)
	dst = appendOrigin(dst, `,"listener":`, m.Origin.Listener)
	dst = appendOrigin(dst, `,"peer":`, m.Origin.Peer)
	for i := range m.Fields {
		dst = append(dst, ',')
		dst = appendMember(dst, &m.Fields[i])
	}
	return append(dst, '}')
}

func appendOwn(dst []byte, key string, v []byte) []byte {
	if v == nil {
		return dst
	}
	return AppendString(append(dst, key...), v)
}

func appendOrigin(dst []byte, key, v string) []byte {
	if v == "" {
		return dst
	}
	return AppendString(append(dst, key...), unsafe.Slice(unsafe.StringData(v), len(v)))
}

func appendMember(dst []byte, f *Field) []byte {
	dst = append(AppendString(dst, f.Name), ':')
	return AppendValue(dst, f.Value)
}

// AppendFields appends fields as one JSON object, in order; {} when there are none.
func AppendFields(dst []byte, fields []Field) []byte {
	dst = append(dst, '{')
	for i := range fields {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendMember(dst, &fields[i])
	}
	return append(dst, '}')
}

// AppendStructured appends structured data as a JSON object of objects; {} when
// there is none. A parameter's value is a string, or an array of strings where
// the parameter is repeated in its element; it stands where it came first.
func AppendStructured(dst []byte, elements []Element) []byte {
	dst = append(dst, '{')
	for i := range elements {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendString(dst, elements[i].ID), ':', '{')
		dst = appendParams(dst, elements[i].Params)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// fewParams is up to how many parameters repeated names are looked for one by one.
const fewParams = 32

func appendParams(dst []byte, params []Param) []byte {
	if len(params) > fewParams {
		return appendManyParams(dst, params)
	}
	var done uint32 // those that stand in an earlier one's array
	for i := range params {
		if done&(1<<i) != 0 {
			continue
		}
		p := &params[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendString(dst, p.Name), ':')
		open := len(dst)
		dst = AppendString(dst, p.Value)
		repeated := false
		for j := i + 1; j < len(params); j++ {
			if string(params[j].Name) != string(p.Name) {
				continue
			}
			if !repeated { // make room for the bracket
				repeated = true
				dst = append(dst, 0)
				copy(dst[open+1:], dst[open:])
				dst[open] = '['
			}
			done |= 1 << j
			dst = AppendString(append(dst, ','), params[j].Value)
		}
		if repeated {
			dst = append(dst, ']')
		}
	}
	return dst
}

// appendManyParams takes time linear in the number of parameters, which a
// sender chooses.
func appendManyParams(dst []byte, params []Param) []byte {
	last := make(map[string]int, len(params)) // by name: its last parameter so far
	next := make([]int, len(params))          // the next one of the same name; 0: none
	first := make([]bool, len(params))
	for i := range params {
		name := string(params[i].Name)
		j, seen := last[name]
		if seen {
			next[j] = i
		}
		first[i], last[name] = !seen, i
	}
	for i := range params {
		if !first[i] {
			continue
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendString(dst, params[i].Name), ':')
		if next[i] == 0 {
			dst = AppendString(dst, params[i].Value)
			continue
		}
		dst = AppendString(append(dst, '['), params[i].Value)
		for j := next[i]; j > 0; j = next[j] {
			dst = AppendString(append(dst, ','), params[j].Value)
		}
		dst = append(dst, ']')
	}
	return dst
}

// AppendKey appends one of the message's own values as a filter reads it
// (filters/ABI.md, field_get): times in decimal Unix ns, numbers in decimal,
// text as its bytes, structured data as JSON. It reports false, and appends
// nothing, when the value is absent.
func AppendKey(dst []byte, m *Message, key Key) ([]byte, bool) {
	var text []byte
	switch key {
	case KeyTimestamp:
		if m.Timestamp == NoTime {
			return dst, false
		}
		return strconv.AppendInt(dst, m.Timestamp, 10), true
	case KeyReceivedAt:
		return strconv.AppendInt(dst, m.Received, 10), true
	case KeyFacility:
		return strconv.AppendUint(dst, uint64(m.Facility), 10), true
	case KeySeverity:
		return strconv.AppendUint(dst, uint64(m.Severity), 10), true
	case KeyStructuredData:
		if len(m.Structured) == 0 {
			return dst, false
		}
		return AppendStructured(dst, m.Structured), true
	case KeyMessageB64:
		if utf8.Valid(m.Text) {
			return dst, false
		}
		return base64.StdEncoding.AppendEncode(dst, m.Text), true
	case KeySource:
		return append(dst, m.Origin.Source...), m.Origin.Source != ""
	case KeyListener:
		return append(dst, m.Origin.Listener...), m.Origin.Listener != ""
	case KeyPeer:
		return append(dst, m.Origin.Peer...), m.Origin.Peer != ""
	case KeyMessage:
		return append(dst, m.Text...), true
	case KeyHostname:
		text = m.Hostname
	case KeyAppName:
		text = m.AppName
	case KeyProcID:
		text = m.ProcID
	case KeyMsgID:
		text = m.MsgID
	case KeyRaw:
		text = m.Raw
	}
	return append(dst, text...), text != nil
}
