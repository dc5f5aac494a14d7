package syslog

import (
	"math"
	"unsafe"
)

// sdScratch is where structured data is gathered, as places in the text, before
// the message's memory is asked for exactly what it needs.
type sdScratch struct {
	elements []sdElement
	params   []sdParam
	seen     map[string]int32 // index of an SD-ID's first element; used when there are many
}

type sdElement struct {
	from, to int32 // of the SD-ID
	first    int32 // index of the first element with this ID
	params   int32 // of all elements with this ID, on the first one
	next     int32 // where the next parameter goes, while they are placed
}

type sdParam struct {
	name, nameEnd   int32
	value, valueEnd int32
	element         int32
	escapes         int32 // backslashes that decoding removes from the value
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
	if len(s) > math.MaxInt32 {
		return 0
	}
	n, repeated, decoded := d.scan(s)
	if n > 0 && !d.store(m, s, repeated, decoded, mem) {
		n = 0
	}
	if cap(d.elements) > sdKeep || cap(d.params) > sdKeep {
		*d = sdScratch{}
	}
	return n
}

// scan gathers elements and parameters and returns the length of all, or 0,
// whether SD-IDs are repeated, and the bytes of values that need decoding.
func (d *sdScratch) scan(s []byte) (n int, repeated bool, decoded int) {
	i := 0
	for i < len(s) && s[i] == '[' {
		i++
		start := i
		for i < len(s) && class[s[i]]&sdName != 0 {
			i++
		}
		if i == start {
			return 0, false, 0
		}
		first := d.find(s, s[start:i])
		if int(first) < len(d.elements) {
			repeated = true
		}
		d.elements = append(d.elements, sdElement{from: int32(start), to: int32(i), first: first})
		params := int32(0)
		for {
			spaces := i
			for i < len(s) && s[i] == ' ' {
				i++
			}
			if i >= len(s) {
				return 0, false, 0
			}
			if s[i] == ']' {
				i++
				break
			}
			if i == spaces {
				return 0, false, 0
			}
			p := sdParam{element: first}
			if i = p.scan(s, i); i == 0 {
				return 0, false, 0
			}
			if p.escapes > 0 {
				decoded += int(p.valueEnd - p.value - p.escapes)
			}
			d.params = append(d.params, p)
			params++
		}
		d.elements[first].params += params
	}
	return i, repeated, decoded
}

// find returns the index of the element with that ID, or the next free one.
func (d *sdScratch) find(s, id []byte) int32 {
	n := len(d.elements)
	if n < sdLinear {
		for i := range d.elements {
			if string(s[d.elements[i].from:d.elements[i].to]) == string(id) {
				return d.elements[i].first
			}
		}
		return int32(n)
	}
	key := func(id []byte) string { // lives as long as the scan needs it
		return unsafe.String(unsafe.SliceData(id), len(id))
	}
	if n == sdLinear {
		clear(d.seen)
		if d.seen == nil {
			d.seen = map[string]int32{}
		}
		for i := range d.elements {
			e := &d.elements[i]
			d.seen[key(s[e.from:e.to])] = e.first
		}
	}
	if i, ok := d.seen[key(id)]; ok {
		return i
	}
	d.seen[key(id)] = int32(n)
	return int32(n)
}

// scan reads name=value at i and returns where it ends, or 0.
func (p *sdParam) scan(s []byte, i int) (end int) {
	p.name = int32(i)
	for i < len(s) && class[s[i]]&sdName != 0 {
		i++
	}
	p.nameEnd = int32(i)
	if p.nameEnd == p.name || i >= len(s) || s[i] != '=' {
		return 0
	}
	i++
	q := i
	for q < len(s) && s[q] == ' ' {
		q++
	}
	if q >= len(s) || s[q] != '"' { // VMware: unquoted
		p.value = int32(i)
		for i < len(s) && s[i] != ' ' && s[i] != ']' && s[i] != '"' {
			i++
		}
		p.valueEnd = int32(i)
		return i
	}
	p.value = int32(q + 1)
	for i = q + 1; i < len(s); i++ {
		if class[s[i]]&sdSpecial == 0 {
			continue
		}
		if i+1 >= len(s) {
			break
		}
		next := s[i+1]
		if s[i] == '\\' {
			if next == '"' || next == '\\' || next == ']' {
				p.escapes++
				i++
			}
		} else if next == ' ' || next == ']' {
			p.valueEnd = int32(i)
			return i + 1
		}
	}
	return 0
}

// store moves what was gathered into the message's own memory.
func (d *sdScratch) store(m *Message, s []byte, repeated bool, decoded int, mem Memory) bool {
	unique := len(d.elements)
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
		el := Element{ID: s[e.from:e.to:e.to]}
		if e.params > 0 {
			el.Params = params[at : at+e.params : at+e.params]
		}
		at += e.params
		elements = append(elements, el)
	}
	for i := range d.params {
		g := &d.params[i]
		v := s[g.value:g.valueEnd:g.valueEnd]
		if g.escapes > 0 {
			n := len(v) - int(g.escapes)
			unescape(buf[:n], v)
			v, buf = buf[:n:n], buf[n:]
		}
		e := &d.elements[g.element]
		params[e.next] = Param{Name: s[g.name:g.nameEnd:g.nameEnd], Value: v}
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
