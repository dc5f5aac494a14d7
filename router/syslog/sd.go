package syslog

import (
	"bytes"
	"unsafe"
)

// sdScratch is where structured data is gathered before the message's memory
// is asked for exactly what it needs.
type sdScratch struct {
	elements []sdElement
	params   []sdParam
	seen     map[string]int32 // index of an SD-ID's first element; used when there are many
}

type sdElement struct {
	id     []byte
	first  int32 // index of the first element with this ID
	params int32 // of all elements with this ID, on the first one
	next   int32 // where the next parameter goes, while they are placed
}

type sdParam struct {
	name, value []byte
	element     int32
	escapes     int32 // backslashes that decoding removes from value
}

const (
	sdLinear = 16  // up to so many elements, repeated SD-IDs are looked for one by one
	sdKeep   = 256 // scratch larger than this is not kept: one message in a million needs it
)

// parseSD reads the SD-ELEMENTs that s starts with (RFC 5424 section 6.3, with
// the mends that real senders need) and returns their length; 0 when any of
// them cannot be read or mem has no room.
func (p *Parser) parseSD(m *Message, s []byte, mem Memory) int {
	d := &p.sd
	d.elements, d.params = d.elements[:0], d.params[:0]
	n, repeated := d.scan(s)
	if n > 0 && !d.store(m, repeated, mem) {
		n = 0
	}
	if cap(d.elements) > sdKeep || cap(d.params) > sdKeep {
		*d = sdScratch{}
	}
	return n
}

// scan gathers elements and parameters and returns the length of all, or 0.
func (d *sdScratch) scan(s []byte) (n int, repeated bool) {
	i := 0
	for i < len(s) && s[i] == '[' {
		i++
		start := i
		for i < len(s) && class[s[i]]&sdName != 0 {
			i++
		}
		if i == start {
			return 0, false
		}
		index := int32(len(d.elements))
		first := d.find(s[start:i])
		if first < index {
			repeated = true
		}
		d.elements = append(d.elements, sdElement{id: s[start:i:i], first: first})
		for {
			spaces := i
			i = skipSpaces(s, i)
			if i >= len(s) {
				return 0, false
			}
			if s[i] == ']' {
				i++
				break
			}
			if i == spaces {
				return 0, false
			}
			param, end := scanParam(s, i)
			if end == 0 {
				return 0, false
			}
			param.element = first
			d.params = append(d.params, param)
			d.elements[first].params++
			i = end
		}
	}
	return i, repeated
}

// find returns the index of the element with that ID, or the next free one.
func (d *sdScratch) find(id []byte) int32 {
	n := len(d.elements)
	if n < sdLinear {
		for i := range d.elements {
			if bytes.Equal(d.elements[i].id, id) {
				return int32(i)
			}
		}
		return int32(n)
	}
	if n == sdLinear {
		clear(d.seen)
		if d.seen == nil {
			d.seen = map[string]int32{}
		}
		for i := range d.elements {
			if d.elements[i].first == int32(i) {
				d.seen[unsafe.String(unsafe.SliceData(d.elements[i].id), len(d.elements[i].id))] = int32(i)
			}
		}
	}
	key := unsafe.String(unsafe.SliceData(id), len(id)) // lives as long as the scan needs it
	if i, ok := d.seen[key]; ok {
		return i
	}
	d.seen[key] = int32(n)
	return int32(n)
}

// scanParam reads name=value at i and returns where it ends, or 0.
func scanParam(s []byte, i int) (p sdParam, end int) {
	start := i
	for i < len(s) && class[s[i]]&sdName != 0 {
		i++
	}
	if i == start || i >= len(s) || s[i] != '=' {
		return p, 0
	}
	p.name = s[start:i:i]
	i++
	q := skipSpaces(s, i)
	if q >= len(s) || s[q] != '"' { // VMware: unquoted
		start = i
		for i < len(s) && s[i] != ' ' && s[i] != ']' && s[i] != '"' {
			i++
		}
		p.value = s[start:i:i]
		return p, i
	}
	start = q + 1
	for i = start; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\' || s[i+1] == ']') {
				p.escapes++
				i++
			}
		case '"':
			if i+1 < len(s) && (s[i+1] == ' ' || s[i+1] == ']') {
				p.value = s[start:i:i]
				return p, i + 1
			}
		}
	}
	return p, 0
}

// store moves what was gathered into the message's own memory.
func (d *sdScratch) store(m *Message, repeated bool, mem Memory) bool {
	decoded, unique := 0, len(d.elements)
	for i := range d.params {
		if d.params[i].escapes > 0 {
			decoded += len(d.params[i].value) - int(d.params[i].escapes)
		}
	}
	if repeated {
		unique = 0
		for i := range d.elements {
			if d.elements[i].first == int32(i) {
				unique++
			}
		}
	}
	elements := mem.NewElements(unique)
	var params []Param
	var buf []byte
	if len(d.params) > 0 {
		params = mem.NewParams(len(d.params))
	}
	if decoded > 0 {
		buf = mem.Bytes(decoded)
	}
	if elements == nil || params == nil && len(d.params) > 0 || buf == nil && decoded > 0 {
		return false
	}
	params = params[:len(d.params)]
	at := int32(0)
	for i := range d.elements {
		e := &d.elements[i]
		if e.first != int32(i) {
			continue
		}
		e.next = at
		el := Element{ID: e.id}
		if e.params > 0 {
			el.Params = params[at : at+e.params : at+e.params]
		}
		at += e.params
		elements = append(elements, el)
	}
	for i := range d.params {
		g := &d.params[i]
		v := g.value
		if g.escapes > 0 {
			n := len(v) - int(g.escapes)
			unescape(buf[:n], v)
			v, buf = buf[:n:n], buf[n:]
		}
		e := &d.elements[g.element]
		params[e.next] = Param{Name: g.name, Value: v}
		e.next++
	}
	m.Structured = elements
	return true
}

// unescape decodes \" \\ and \] of v into dst, which has exactly the room.
func unescape(dst, v []byte) {
	for i, n := 0, 0; n < len(dst); i, n = i+1, n+1 {
		if v[i] == '\\' && i+1 < len(v) && (v[i+1] == '"' || v[i+1] == '\\' || v[i+1] == ']') {
			i++
		}
		dst[n] = v[i]
	}
}
