package router

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Value is the field that a RefField names: that of the very name, or else what
// a path through objects leads to. fields.user.name is the field "user.name", or
// the member name of the object user; at each step the longer key goes first.
// Null counts as absent: then ok is false. A text with escapes is written behind
// buf, which is returned; everything else is lent by the message.
func (r *Ref) Value(m *Message, buf []byte) (v Value, grown []byte, ok bool) {
	if f := m.Field(bytesOf(r.Name)); f != nil {
		return f.Value, buf, f.Value.Kind != Null
	}
	for dot := strings.LastIndexByte(r.Name, '.'); dot > 0; dot = strings.LastIndexByte(r.Name[:dot], '.') {
		f := m.Field(bytesOf(r.Name[:dot]))
		if f == nil || f.Value.Kind != Object {
			continue
		}
		if v, buf, ok = memberAt(f.Value.Bytes, r.Name[dot+1:], buf); ok {
			return v, buf, true
		}
	}
	return Value{}, buf, false
}

// memberAt follows a path into the object that object is the JSON text of. What
// is no JSON has no members.
func memberAt(object []byte, path string, buf []byte) (v Value, grown []byte, ok bool) {
	if raw := member(object, path); raw != nil {
		v, buf = valueOf(raw, buf)
		return v, buf, v.Kind != Null
	}
	for dot := strings.LastIndexByte(path, '.'); dot > 0; dot = strings.LastIndexByte(path[:dot], '.') {
		raw := member(object, path[:dot])
		if raw == nil || raw[0] != '{' {
			continue
		}
		if v, buf, ok = memberAt(raw, path[dot+1:], buf); ok {
			return v, buf, true
		}
	}
	return Value{}, buf, false
}

// member is the JSON text of an object's first member of that name, nil when
// there is none.
func member(object []byte, name string) []byte {
	s := scanner{data: object}
	s.space()
	if s.peek() != '{' {
		return nil
	}
	for {
		s.i++ // the brace or the comma
		s.space()
		key, ok := s.string()
		if !ok {
			return nil
		}
		s.space()
		if s.peek() != ':' {
			return nil
		}
		s.i++
		s.space()
		start := s.i
		if !s.skip() {
			return nil
		}
		if key.is(name) {
			return object[start:s.i:s.i]
		}
		s.space()
		if s.peek() != ',' {
			return nil
		}
	}
}

// skip moves behind a value.
func (s *scanner) skip() (ok bool) {
	switch s.peek() {
	case '{', '[':
		_, _, _, ok = s.container()
	case '"':
		_, ok = s.string()
	default:
		_, ok = s.scalar()
	}
	return ok
}

// is reports whether t says name.
func (t text) is(name string) bool {
	if !t.escaped {
		return string(t.raw) == name
	}
	var small [64]byte
	return string(t.append(small[:0])) == name
}

// valueOf is the value that valid JSON says.
func valueOf(raw, buf []byte) (v Value, grown []byte) {
	s := scanner{data: raw}
	switch raw[0] {
	case '{':
		return Value{Kind: Object, Bytes: raw}, buf
	case '[':
		return Value{Kind: Array, Bytes: raw}, buf
	case 't':
		return BoolValue(true), buf
	case 'f':
		return BoolValue(false), buf
	case 'n':
		return Value{Kind: Null}, buf
	case '"':
		t, _ := s.string()
		v = Value{Kind: String, Bytes: t.raw}
		if t.escaped {
			from := len(buf)
			buf = t.append(buf)
			v.Bytes = buf[from:]
		}
		if t.wide && !utf8.Valid(v.Bytes) {
			v.Kind = Bytes
		}
		return v, buf
	}
	if _, integer, _ := s.number(); integer {
		if n, ok := decimal(raw); ok {
			return IntValue(n), buf
		}
	}
	if f, err := strconv.ParseFloat(view(raw), 64); err == nil {
		return FloatValue(f), buf
	}
	return Value{Kind: String, Bytes: raw}, buf // no float holds it
}
