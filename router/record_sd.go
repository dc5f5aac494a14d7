package router

import (
	"bytes"
	"unicode/utf8"
)

// structured reads raw, valid JSON, as structured data: an object of objects
// whose values are strings or arrays of strings. ErrWrongType or ErrInvalid:
// it is no such object, and w is unchanged.
func (p *RecordParser) structured(w *Message, raw []byte, b *Batch) error {
	s := scanner{data: raw}
	if s.peek() != '{' {
		return ErrWrongType
	}
	p.elements, p.params = p.elements[:0], p.params[:0]
	p.ids.reset()
	for t, ok := s.member(); ok; t, ok = s.member() {
		id, err := p.sdName(t, b)
		if err != nil {
			return err
		}
		if s.peek() != '{' {
			return ErrWrongType
		}
		e := sdRange{id: id, from: len(p.params)}
		if err := p.sdParams(&s, b); err != nil {
			return err
		}
		e.to = len(p.params)
		if i, known := p.ids.add(id); known {
			p.elements[i] = e
		} else if len(p.elements) == MaxParams {
			return ErrTooMany
		} else {
			p.elements = append(p.elements, e)
		}
	}
	return p.place(w, b)
}

// sdParams reads the parameters of one element.
func (p *RecordParser) sdParams(s *scanner, b *Batch) error {
	p.inside.reset()
	from := len(p.params)
	for t, ok := s.member(); ok; t, ok = s.member() {
		name, err := p.sdName(t, b)
		if err != nil {
			return err
		}
		if _, known := p.inside.add(name); known {
			for i := range p.params[from:] { // the last counts
				if q := &p.params[from+i]; bytes.Equal(q.Name, name) {
					q.Name = nil
				}
			}
		}
		if s.peek() != '[' {
			if err := p.sdValue(name, s, b); err != nil {
				return err
			}
			continue
		}
		s.i++
		for s.space(); s.peek() != ']'; s.space() {
			if s.peek() == ',' {
				s.i++
				s.space()
			}
			if err := p.sdValue(name, s, b); err != nil {
				return err
			}
		}
		s.i++
	}
	return nil
}

func (p *RecordParser) sdValue(name []byte, s *scanner, b *Batch) error {
	if s.peek() != '"' {
		return ErrWrongType
	}
	v, err := p.anyValue(s, b)
	if err != nil {
		return err
	}
	if len(p.params) == MaxParams {
		return ErrTooMany
	}
	p.params = append(p.params, Param{Name: name, Value: v.Bytes})
	return nil
}

// sdName is an SD-NAME (RFC 5424 section 6.3), longer than 32 bytes and outside
// ASCII too, as senders have it.
func (p *RecordParser) sdName(t text, b *Batch) ([]byte, error) {
	name := t.raw
	if t.escaped {
		p.text = t.append(p.text[:0])
		var err error
		if name, err = room(b.Copy(p.text)); err != nil {
			return nil, err
		}
	}
	if !ValidSDName(name) {
		return nil, ErrInvalid
	}
	if len(name) > MaxKey {
		return nil, ErrTooLong
	}
	return name, nil
}

// ValidSDName reports whether RFC 5424 section 6.3 allows the bytes of an SD-ID
// or parameter name. Its length and bytes beyond ASCII are not looked at,
// because senders do not care either; they must be UTF-8.
func ValidSDName(name []byte) bool {
	for _, c := range name {
		if c <= ' ' || c == '"' || c == '=' || c == ']' || c == 0x7f {
			return false
		}
	}
	return len(name) > 0 && utf8.Valid(name)
}

// place moves what was gathered into the message.
func (p *RecordParser) place(w *Message, b *Batch) error {
	if len(p.elements) == 0 {
		w.Structured = nil
		return nil
	}
	n := 0
	for _, e := range p.elements {
		for _, q := range p.params[e.from:e.to] {
			if q.Name != nil {
				n++
			}
		}
	}
	elements, params := b.NewElements(len(p.elements)), b.NewParams(n)
	if elements == nil || n > 0 && params == nil {
		return ErrNoRoom
	}
	for _, e := range p.elements {
		from := len(params)
		for _, q := range p.params[e.from:e.to] {
			if q.Name != nil {
				params = append(params, q)
			}
		}
		elements = append(elements, Element{ID: e.id, Params: params[from:len(params):len(params)]})
	}
	w.Structured = elements
	return nil
}
