package router

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrBrokenBlob says that bytes are no message in the binary encoding.
var ErrBrokenBlob = errors.New("no message in its binary encoding")

// AddBlob adds the message that AppendBlob wrote. It copies data once, into the batch's memory; the message
// points there. origins, which may be nil, lets messages share an Origin. Errors: ErrNoRoom,
// ErrBrokenBlob, or another for a form that this weir does not know; the batch has no more messages then
// than before.
func (b *Batch) AddBlob(data []byte, origins *Origins) (*Message, error) {
	if len(data) == 0 {
		return nil, ErrBrokenBlob
	}
	if data[0] != blobVersion {
		return nil, fmt.Errorf("the message has form %d, this weir knows form %d", data[0], blobVersion)
	}
	m := b.Add(nil)
	if m == nil {
		return nil, ErrNoRoom
	}
	own := b.Copy(data[1:])
	if own == nil {
		b.Unadd()
		return nil, ErrNoRoom
	}
	r := blobReader{data: own, batch: b}
	r.message(m, origins)
	switch {
	case r.full:
		b.Unadd()
		return nil, ErrNoRoom
	case r.broken || len(r.data) > 0:
		b.Unadd()
		return nil, ErrBrokenBlob
	}
	return m, nil
}

// A blobReader cuts values off the front of data. After the first that is not there all are nil or 0.
type blobReader struct {
	data   []byte
	raw    []byte
	batch  *Batch
	broken bool
	full   bool // the batch has no room
}

func (r *blobReader) message(m *Message, origins *Origins) {
	origin := r.counted()
	m.Facility, m.Severity = r.byte(), r.byte()
	m.Received, m.Timestamp = int64(r.number()), int64(r.number())
	m.Serial = r.uvarint()
	m.Raw = r.value()
	r.raw = m.Raw
	m.Hostname, m.AppName, m.ProcID, m.MsgID, m.Text = r.value(), r.value(), r.value(), r.value(), r.value()
	m.Structured = list(r, r.batch.NewElements, 2)
	for i := range m.Structured {
		m.Structured[i] = Element{ID: r.value(), Params: list(r, r.batch.NewParams, 2)}
		params := m.Structured[i].Params
		for j := range params {
			params[j] = Param{Name: r.value(), Value: r.value()}
		}
	}
	m.Fields = list(r, r.batch.NewFields, 4)
	for i := range m.Fields {
		f := &m.Fields[i]
		*f = Field{Name: r.value(), Value: Value{Kind: Kind(r.byte()), Num: r.uvarint(), Bytes: r.value()}}
		r.broken = r.broken || f.Value.Kind > Object
	}
	if r.broken || r.full {
		return
	}
	if m.Origin = origins.find(origin); m.Origin == nil || m.Facility > 23 || m.Severity > 7 {
		r.broken = true
	}
}

// list is room for the entries of a list, of which each takes at least so many bytes.
func list[T any](r *blobReader, room func(n int) []T, least int) []T {
	n := r.uvarint()
	switch {
	case n == 0 || r.broken || r.full:
		return nil
	case n-1 > uint64(len(r.data)/least):
		r.fail()
		return nil
	case n == 1:
		return []T{}
	}
	all := room(int(n - 1))
	if all == nil {
		r.full = true
		r.data = nil
		return nil
	}
	return all[:n-1]
}

func (r *blobReader) fail() { r.broken, r.data = true, nil }

func (r *blobReader) take(n uint64) []byte {
	if n > uint64(len(r.data)) {
		r.fail()
		return nil
	}
	v := r.data[:n:n]
	r.data = r.data[n:]
	return v
}

func (r *blobReader) byte() byte {
	if len(r.data) == 0 {
		r.fail()
		return 0
	}
	c := r.data[0]
	r.data = r.data[1:]
	return c
}

func (r *blobReader) number() uint64 {
	if v := r.take(8); v != nil {
		return binary.LittleEndian.Uint64(v)
	}
	return 0
}

func (r *blobReader) uvarint() uint64 {
	if len(r.data) > 0 && r.data[0] < 0x80 {
		u := uint64(r.data[0])
		r.data = r.data[1:]
		return u
	}
	u, n := binary.Uvarint(r.data)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.data = r.data[n:]
	return u
}

func (r *blobReader) counted() []byte { return r.take(r.uvarint()) }

// value reads a value; a part of raw has no room behind it, like every other.
func (r *blobReader) value() []byte {
	u := r.uvarint()
	switch {
	case u == 0:
		return nil
	case u&1 == 0:
		if u == 2 {
			return []byte{}
		}
		return r.take(u/2 - 1)
	}
	n, from := u>>1, r.uvarint()
	if size := uint64(len(r.raw)); n == 0 || from > size || n > size-from {
		r.fail()
		return nil
	}
	return r.raw[from : from+n : from+n]
}
