package router

import (
	"strconv"
	"unicode/utf8"
)

// ParseValue reads one JSON value of any type, as the value of a field. It
// points into data where it can, as with Parse. ErrInvalid: it is no JSON value,
// or a number that no float holds (without Strict such a number is a string).
func (p *RecordParser) ParseValue(data []byte, b *Batch) (Value, error) {
	defer p.shrink()
	s := scanner{data: data}
	s.space()
	v, err := p.value(&s, b)
	if s.space(); err == ErrNotRecord || err == nil && s.i < len(data) {
		err = ErrInvalid
	}
	return v, err
}

// value reads any value.
func (p *RecordParser) value(s *scanner, b *Batch) (Value, error) {
	v, err := p.anyValue(s, b)
	if err == nil && p.MaxValue > 0 && len(v.Bytes) > p.MaxValue {
		err = ErrTooLong
	}
	return v, err
}

func (p *RecordParser) anyValue(s *scanner, b *Batch) (Value, error) {
	switch c := s.peek(); c {
	case '"':
		t, ok := s.string()
		if !ok {
			return Value{}, ErrNotRecord
		}
		v := Value{Kind: String, Bytes: t.raw}
		if t.escaped {
			p.text = t.append(p.text[:0])
			if v.Bytes = b.Copy(p.text); v.Bytes == nil {
				return Value{}, ErrNoRoom
			}
		}
		if t.wide && !utf8.Valid(v.Bytes) {
			v.Kind = Bytes
		}
		return v, nil
	case '{', '[':
		return p.containerValue(s, b)
	case 't':
		return BoolValue(true), notRecord(s.word("true"))
	case 'f':
		return BoolValue(false), notRecord(s.word("false"))
	case 'n':
		return Value{Kind: Null}, notRecord(s.word("null"))
	}
	raw, integer, ok := s.number()
	if !ok {
		return Value{}, ErrNotRecord
	}
	if integer {
		if n, ok := decimal(raw); ok {
			return IntValue(n), nil
		}
	}
	f, err := strconv.ParseFloat(view(raw), 64)
	if err == nil {
		return FloatValue(f), nil
	}
	if p.Strict {
		return Value{}, ErrInvalid
	}
	return Value{Kind: String, Bytes: raw}, nil // no float holds it
}

func notRecord(ok bool) error {
	if !ok {
		return ErrNotRecord
	}
	return nil
}

func (p *RecordParser) containerValue(s *scanner, b *Batch) (Value, error) {
	v := Value{Kind: Array}
	if s.peek() == '{' {
		v.Kind = Object
	}
	raw, clean, huge, ok := s.container()
	switch {
	case !ok:
		return v, ErrNotRecord
	case huge && p.Strict:
		return v, ErrInvalid
	case clean && !huge:
		v.Bytes = raw
		return v, nil
	}
	p.text = appendCompact(p.text[:0], raw)
	if v.Bytes = b.Copy(p.text); v.Bytes == nil {
		return v, ErrNoRoom
	}
	return v, nil
}
