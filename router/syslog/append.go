package syslog

import (
	"strconv"
	"time"
)

// AppendRFC5424 appends m as RFC 5424 has it, without a framing. Times are in
// UTC to the microsecond, which is all the RFC allows. Bytes that would break
// the header (spaces, control characters, and = ] " in SD names) become `_`;
// nothing is cut to the RFC's lengths, and bytes over 0x7e stay.
func AppendRFC5424(dst []byte, m *Message) []byte {
	dst = appendPRI(dst, m)
	dst = append(dst, "1 "...)
	if m.Timestamp == NoTime {
		dst = append(dst, '-')
	} else {
		dst = appendMicros(dst, m.Timestamp)
	}
	for _, col := range [4][]byte{m.Hostname, m.AppName, m.ProcID, m.MsgID} {
		dst = append(dst, ' ')
		if len(col) == 0 {
			dst = append(dst, '-')
		}
		for _, c := range col {
			if c <= ' ' || c == 0x7f {
				c = '_'
			}
			dst = append(dst, c)
		}
	}
	dst = append(dst, ' ')
	if len(m.Structured) == 0 {
		dst = append(dst, '-')
	}
	for i := range m.Structured {
		e := &m.Structured[i]
		dst = appendSDName(append(dst, '['), e.ID)
		for j := range e.Params {
			dst = appendSDName(append(dst, ' '), e.Params[j].Name)
			dst = append(dst, `="`...)
			for _, c := range e.Params[j].Value {
				if c == '"' || c == '\\' || c == ']' {
					dst = append(dst, '\\')
				}
				dst = append(dst, c)
			}
			dst = append(dst, '"')
		}
		dst = append(dst, ']')
	}
	if len(m.Text) > 0 {
		dst = append(append(dst, ' '), m.Text...)
	}
	return dst
}

// AppendRFC3164 appends m as RFC 3164 has it, without a framing. The time is in
// zone, which the format cannot tell; without a timestamp there is no header,
// and so no host. Bytes that would break host or tag become `_`. MsgID and
// structured data have no place in the format.
func AppendRFC3164(dst []byte, m *Message, zone *time.Location) []byte {
	dst = appendPRI(dst, m)
	if m.Timestamp != NoTime {
		dst = time.Unix(0, m.Timestamp).In(zone).AppendFormat(dst, time.Stamp)
		dst = append(dst, ' ')
		if len(m.Hostname) == 0 {
			dst = append(dst, '-')
		}
		for _, c := range m.Hostname {
			if class[c]&hostByte == 0 && c != ':' {
				c = '_'
			}
			dst = append(dst, c)
		}
		dst = append(dst, ' ')
	}
	if len(m.AppName) > 0 {
		for _, c := range m.AppName {
			if class[c]&nameByte == 0 {
				c = '_'
			}
			dst = append(dst, c)
		}
		if len(m.ProcID) > 0 {
			dst = append(dst, '[')
			for _, c := range m.ProcID {
				if c <= ' ' || c == 0x7f || c == ']' {
					c = '_'
				}
				dst = append(dst, c)
			}
			dst = append(dst, ']')
		}
		dst = append(dst, ": "...)
	}
	return append(dst, m.Text...)
}

func appendPRI(dst []byte, m *Message) []byte {
	dst = append(dst, '<')
	dst = strconv.AppendUint(dst, uint64(m.Facility)<<3|uint64(m.Severity), 10)
	return append(dst, '>')
}

// appendMicros is RFC 3339 in UTC with as much of the fraction as there is.
func appendMicros(dst []byte, ns int64) []byte {
	return time.Unix(0, ns).UTC().Truncate(time.Microsecond).AppendFormat(dst, "2006-01-02T15:04:05.999999Z07:00")
}

func appendSDName(dst, name []byte) []byte {
	if len(name) == 0 {
		return append(dst, '_')
	}
	for _, c := range name {
		if class[c]&sdName == 0 {
			c = '_'
		}
		dst = append(dst, c)
	}
	return dst
}
