package router

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"
)

// A Ref names one value of a message in the configuration, in columns and
// templates.
//
//	hostname         one of the message's own keys (KeyNames)
//	tag              who sent it, as RFC 3164 section 4.1.3 writes it: app_name[proc_id], without the brackets where there is no proc_id
//	fields           all fields, as a JSON object
//	fields.NAME      the field of that name, dots and all; or else the path NAME through objects
//	sd.ID            the parameters of that structured-data element, as a JSON object
//	sd.ID.PARAM      the first parameter of that name; what follows the last dot is PARAM
type Ref struct {
	Kind RefKind
	Key  Key    // RefKey
	ID   string // RefElement, RefParam: SD-ID
	Name string // RefField: its name; RefParam: PARAM-NAME
}

// A RefKind says what a Ref names.
type RefKind uint8

const (
	RefKey RefKind = iota
	RefTag
	RefFields
	RefField
	RefElement
	RefParam
)

// ParseRef reads a Ref as the configuration writes it.
func ParseRef(s string) (Ref, error) {
	if rest, ok := strings.CutPrefix(s, "fields."); ok && rest != "" {
		return Ref{Kind: RefField, Name: rest}, nil
	}
	if rest, ok := strings.CutPrefix(s, "sd."); ok && rest != "" {
		i := strings.LastIndexByte(rest, '.')
		if i < 0 {
			return Ref{Kind: RefElement, ID: rest}, nil
		}
		if i > 0 && i < len(rest)-1 {
			return Ref{Kind: RefParam, ID: rest[:i], Name: rest[i+1:]}, nil
		}
	}
	switch s {
	case "tag":
		return Ref{Kind: RefTag}, nil
	case "fields":
		return Ref{Kind: RefFields}, nil
	}
	if i := slices.Index(KeyNames[:], s); i > 0 {
		return Ref{Kind: RefKey, Key: Key(i)}, nil
	}
	if near, ok := commonNames[s]; ok {
		return Ref{}, fmt.Errorf("%q is none of the message's keys: %s?", s, near)
	}
	return Ref{}, fmt.Errorf("%q is none of the message's keys (a field is written fields.%s)", s, s)
}

// commonNames are what other programs call the message's keys.
var commonNames = map[string]string{
	"host": "hostname", "level": "severity", "priority": "severity", "msg": "message", "text": "message", "program": "app_name",
	"appname": "app_name", "programname": "app_name", "syslogtag": "tag", "pid": "proc_id", "procid": "proc_id", "msgid": "msg_id", "time": "timestamp",
	"ts": "timestamp", "received": "received_at", "sd": "structured_data", "address": "peer",
}

// Append appends the value as text and reports whether there is one: times as
// RFC 3339, everything else as AppendKey and AppendText give it. What is null is
// absent.
func (r *Ref) Append(dst []byte, m *Message) ([]byte, bool) {
	switch r.Kind {
	case RefKey:
		switch {
		case r.Key == KeyReceivedAt:
			return AppendTime(dst, m.Received), true
		case r.Key == KeyTimestamp && m.Timestamp != NoTime:
			return AppendTime(dst, m.Timestamp), true
		}
		return AppendKey(dst, m, r.Key)
	case RefTag:
		return appendTag(dst, m)
	case RefFields:
		if len(m.Fields) > 0 {
			return AppendFields(dst, m.Fields), true
		}
	case RefField:
		if v, grown, ok := r.Value(m, dst); ok {
			if len(grown) > len(dst) {
				return grown, true // an unescaped text, already where it belongs
			}
			return AppendText(dst, v), true
		}
	case RefElement:
		if e := r.Element(m); e != nil {
			return append(appendParams(append(dst, '{'), e.Params), '}'), true
		}
	case RefParam:
		if p := r.Param(m); p != nil {
			return append(dst, p.Value...), true
		}
	}
	return dst, false
}

// appendTag appends app_name[proc_id]. Without an app_name there is no tag.
func appendTag(dst []byte, m *Message) ([]byte, bool) {
	if len(m.AppName) == 0 {
		return dst, false
	}
	dst = append(dst, m.AppName...)
	if len(m.ProcID) > 0 {
		dst = append(append(append(dst, '['), m.ProcID...), ']')
	}
	return dst, true
}

// Element is the structured-data element that a RefElement or RefParam names, or nil.
func (r *Ref) Element(m *Message) *Element {
	for i := range m.Structured {
		if string(m.Structured[i].ID) == r.ID {
			return &m.Structured[i]
		}
	}
	return nil
}

// Param is the parameter that a RefParam names, or nil.
func (r *Ref) Param(m *Message) *Param {
	e := r.Element(m)
	if e == nil {
		return nil
	}
	for i := range e.Params {
		if string(e.Params[i].Name) == r.Name {
			return &e.Params[i]
		}
	}
	return nil
}

// bytesOf lends the bytes of s, which must not be changed.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
