package router

import (
	"bytes"
	"encoding/base64"
	"errors"
	"unicode/utf8"

	"github.com/weirlog/weir/router/syslog"
)

// ErrNotRecord says that a text is not one JSON object, or none that weir can
// hold: deeper than 512 levels, for example.
var ErrNotRecord = errors.New("not one JSON object")

// A RecordParser reads record JSON (filters/ABI.md, Record JSON). It holds
// scratch space, is meant to be used for many records, and serves one goroutine
// at a time.
//
// The zero value reads what others wrote: what a record leaves out stays as it
// is in the message, fields are added to those that it has, and one of the
// message's own keys whose value does not fit (Message.Set; a timestamp only as
// RFC 3339) becomes the field `<key>_`. Keys that only weir sets (source,
// listener, peer, raw) become such fields too, but in weir's own records, which
// are told by their received_at, source, listener and peer are passed over.
type RecordParser struct {
	// Strict makes a record replace all of the message but what only weir sets,
	// as record_set does: what it leaves out becomes absent, and one bad part
	// refuses all of it.
	Strict bool
	// Ours says that the record is one of weir's own, that somebody else has had in hand: source, listener and peer are
	// passed over even when received_at is missing.
	Ours bool
	// MaxValue bounds one value, in bytes; 0: only the record's own size does.
	MaxValue int

	recordScratch
}

type recordScratch struct {
	text     []byte // what an escape or a gap kept from being used in place
	fields   []Field
	names    names // of fields
	elements []sdRange
	ids      names // of elements
	params   []Param
	inside   names // of the parameters of one element
}

// sdRange is an element and its place in params.
type sdRange struct {
	id       []byte
	from, to int
}

// Parse reads one record from data into m. Text and compact values of m point
// into data from then on, the rest is made in b's memory: so data belongs to b,
// or lives as long. On error m is unchanged: ErrNotRecord, ErrInvalid,
// ErrWrongType, ErrTooLong, ErrTooMany or ErrNoRoom, without detail because
// the sender chooses how often.
func (p *RecordParser) Parse(m *Message, data []byte, b *Batch) error {
	w := *m
	if p.Strict {
		w.Message = syslog.Message{Timestamp: NoTime, Facility: syslog.DefaultFacility, Severity: syslog.DefaultSeverity}
		w.Fields = nil
	}
	p.reset()
	defer p.shrink()
	for i := range w.Fields {
		p.names.add(w.Fields[i].Name)
		p.fields = append(p.fields, w.Fields[i])
	}
	if err := p.object(&w, data, b); err != nil {
		return err
	}
	if n := len(p.fields); n > 0 {
		w.Fields = b.NewFields(n)
		if w.Fields == nil {
			return ErrNoRoom
		}
		w.Fields = append(w.Fields, p.fields...)
	}
	*m = w
	return nil
}

func (p *RecordParser) object(w *Message, data []byte, b *Batch) error {
	s := scanner{data: data}
	s.space()
	if s.peek() != '{' {
		return ErrNotRecord
	}
	s.i++
	var own late
	for first := true; ; first = false {
		s.space()
		if s.peek() == '}' {
			s.i++
			break
		}
		if !first {
			if s.peek() != ',' {
				return ErrNotRecord
			}
			s.i++
			s.space()
		}
		t, ok := s.string()
		if !ok {
			return ErrNotRecord
		}
		name, err := p.name(t, b)
		if err != nil {
			return err
		}
		if s.space(); s.peek() != ':' {
			return ErrNotRecord
		}
		s.i++
		s.space()
		if err := p.member(w, &own, name, &s, b); err != nil {
			return err
		}
	}
	if s.space(); s.i < len(data) {
		return ErrNotRecord
	}
	return p.finish(w, &own, b)
}

// late is what can only be judged when all of the record has been read.
type late struct {
	message, b64, received           bool
	encoded                          []byte
	source, listener, peer, original Value // Absent: not there
}

func (p *RecordParser) member(w *Message, own *late, name []byte, s *scanner, b *Batch) error {
	key := LookupKey(name)
	start := s.i
	v, err := p.value(s, b)
	if err != nil {
		return err
	}
	switch key {
	case KeyField:
		return p.field(name, v)
	case KeySource:
		own.source = v
		return nil
	case KeyListener:
		own.listener = v
		return nil
	case KeyPeer:
		own.peer = v
		return nil
	case KeyRaw:
		own.original = v
		return nil
	case KeyReceivedAt:
		if v.Kind != String || ParseTime(v.Bytes) == NoTime {
			return p.misfit(key, v, nil)
		}
		own.received = true
		return nil
	case KeyMessageB64:
		if v.Kind == Null {
			own.b64 = false
			return nil
		}
		if v.Kind != String {
			return p.misfit(key, v, ErrWrongType)
		}
		own.b64, own.encoded = true, v.Bytes
		return nil
	case KeyStructuredData:
		if v.Kind == Null {
			w.Structured = nil
			return nil
		}
		if err := p.structured(w, s.data[start:s.i], b); err != nil {
			if err == ErrNoRoom {
				return err
			}
			return p.misfit(key, v, err)
		}
		return nil
	case KeyTimestamp:
		if v.Kind == Int || v.Kind == String && ParseTime(v.Bytes) == NoTime { // seconds? ms? nothing is guessed
			return p.misfit(key, v, ErrInvalid)
		}
	case KeyFacility, KeySeverity:
		if v.Kind == Null { // as if left out
			return nil
		}
	case KeyMessage:
		own.message = v.Kind != Null
	}
	err = w.Set(key, v, b)
	if err != nil && err != ErrNoRoom {
		if key == KeyMessage {
			own.message = false
		}
		return p.misfit(key, v, err)
	}
	return err
}

// misfit deals with a value that one of the message's own keys cannot take.
func (p *RecordParser) misfit(key Key, v Value, err error) error {
	if !p.Strict {
		return p.field(misfits[key], v)
	}
	return err
}

// misfits are the names that such values are kept under.
var misfits = func() (t [len(KeyNames)][]byte) {
	for key, name := range KeyNames {
		t[key] = []byte(name + "_")
	}
	return t
}()

func (p *RecordParser) finish(w *Message, own *late, b *Batch) error {
	if own.b64 {
		if err := p.encoded(w, own, b); err != nil {
			return err
		}
	}
	if p.Strict {
		return nil
	}
	for _, k := range [...]struct {
		key Key
		v   Value
	}{{KeyRaw, own.original}, {KeySource, own.source}, {KeyListener, own.listener}, {KeyPeer, own.peer}} {
		if k.v.Kind == Absent || (own.received || p.Ours) && k.v.Kind == String && k.key != KeyRaw { // weir's own records have no raw
			continue
		}
		if err := p.field(misfits[k.key], k.v); err != nil {
			return err
		}
	}
	return nil
}

// encoded puts message_b64 into the message when it counts: when there is no
// message, or when the message is its text with U+FFFD for the bad bytes.
func (p *RecordParser) encoded(w *Message, own *late, b *Batch) error {
	bad := func() error {
		return p.misfit(KeyMessageB64, Value{Kind: String, Bytes: own.encoded}, ErrInvalid)
	}
	n := base64.StdEncoding.DecodedLen(len(own.encoded))
	text := b.Bytes(n)
	if text == nil {
		return ErrNoRoom
	}
	n, err := base64.StdEncoding.Decode(text, own.encoded)
	if err != nil {
		return bad()
	}
	text = text[:n:n]
	if own.message {
		p.text = appendValid(p.text[:0], text)
		if !bytes.Equal(p.text, w.Text) {
			return nil
		}
	}
	w.Text = text
	return nil
}

// field adds a field; of two with one name the last counts.
func (p *RecordParser) field(name []byte, v Value) error {
	if i, known := p.names.add(name); known {
		p.fields[i].Value = v
		return nil
	}
	if len(p.fields) == MaxFields {
		return ErrTooMany
	}
	p.fields = append(p.fields, Field{Name: name, Value: v})
	return nil
}

// name makes a field's name of t: UTF-8 without NUL.
func (p *RecordParser) name(t text, b *Batch) ([]byte, error) {
	name := t.raw
	if t.escaped {
		p.text = t.append(p.text[:0])
		name = p.text
	}
	if nul := t.escaped && bytes.IndexByte(name, 0) >= 0; nul || t.wide && !utf8.Valid(name) {
		if p.Strict {
			return nil, ErrInvalid
		}
		name = bytes.ReplaceAll(appendValid(nil, name), []byte{0}, []byte(replacement))
	} else if !t.escaped {
		if len(name) > MaxKey {
			return nil, ErrTooLong
		}
		return name, nil
	}
	if len(name) > MaxKey {
		return nil, ErrTooLong
	}
	if LookupKey(name) != KeyField {
		return name, nil // not kept
	}
	return room(b.Copy(name))
}

func room(p []byte) ([]byte, error) {
	if p == nil {
		return nil, ErrNoRoom
	}
	return p, nil
}

func (p *RecordParser) reset() {
	p.fields = p.fields[:0]
	p.names.reset()
}

// shrink lets go of the batch's memory, and of scratch that few records need.
func (p *RecordParser) shrink() {
	const few, small = 64, 16 << 10
	if cap(p.fields) > few || cap(p.params) > few || cap(p.elements) > few || cap(p.text) > small {
		p.recordScratch = recordScratch{}
		return
	}
	clear(p.fields)
	clear(p.params)
	clear(p.elements)
	p.names.reset()
	p.ids.reset()
	p.inside.reset()
}
