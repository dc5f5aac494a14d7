package router

import "unsafe"

// extract returns a batch for a further route that has some of the messages, with bytes of its own. What it holds was
// reserved with the original.
func (b *Batch) extract(rt *route, msgs []*Message) *Batch {
	c := takeBatch(b.limit, reservation{budget: b.hold.budget, claims: rt.claims, size: b.hold.size})
	c.since, c.mark, c.receipt = b.since, b.mark, b.receipt
	size := 0
	for _, m := range msgs {
		size += len(m.Raw)
	}
	room := c.Bytes(size)
	for _, m := range msgs {
		x := extractor{batch: c, raw: m.Raw}
		if m.Raw != nil {
			x.copy, room = room[:len(m.Raw):len(m.Raw)], room[len(m.Raw):]
			copy(x.copy, m.Raw)
		}
		c.live = append(c.live, x.message(m))
	}
	return c
}

// An extractor makes a message of another batch one of its own.
type extractor struct {
	batch *Batch
	raw   []byte // of the message; most of what was parsed lies in it
	copy  []byte // of raw, in batch
}

func (x *extractor) message(from *Message) *Message {
	m := x.batch.row(from.Origin)
	*m = *from
	m.Raw = x.copy
	m.Hostname, m.AppName, m.ProcID, m.MsgID, m.Text = x.bytes(m.Hostname), x.bytes(m.AppName), x.bytes(m.ProcID), x.bytes(m.MsgID), x.bytes(m.Text)
	if len(from.Structured) > 0 {
		m.Structured = x.batch.NewElements(len(from.Structured))
	}
	for _, e := range from.Structured {
		params := e.Params
		if len(params) > 0 {
			params = x.batch.NewParams(len(params))
		}
		for _, p := range e.Params {
			params = append(params, Param{Name: x.bytes(p.Name), Value: x.bytes(p.Value)})
		}
		m.Structured = append(m.Structured, Element{ID: x.bytes(e.ID), Params: params})
	}
	if len(from.Fields) > 0 {
		m.Fields = x.batch.NewFields(len(from.Fields))
	}
	for _, f := range from.Fields {
		f.Name, f.Value.Bytes = x.bytes(f.Name), x.bytes(f.Value.Bytes)
		m.Fields = append(m.Fields, f)
	}
	return m
}

// bytes are p in the batch's memory: in the copy of the raw message when p lies in that, else copied too.
func (x *extractor) bytes(p []byte) []byte {
	if p == nil {
		return nil
	}
	at := uintptr(unsafe.Pointer(unsafe.SliceData(p))) - uintptr(unsafe.Pointer(unsafe.SliceData(x.raw)))
	if raw := uintptr(len(x.raw)); at <= raw && at+uintptr(len(p)) <= raw {
		return x.copy[at : int(at)+len(p) : int(at)+len(p)]
	}
	return x.batch.Copy(p)
}
