package router

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/weirlog/weir/router/syslog"
)

// A Batch is some messages and the memory they live in: the unit of ownership,
// filtering, hand-over and acknowledgement.
//
// It has one owner at a time: the source that took it, then the lane that
// filters it, then its destinations, which only read. It is done for a
// destination when the last of its messages there is settled; when it is done
// for all, its memory goes back.
type Batch struct {
	mem  *memory // where its bytes live
	base *memory // of the batch that this one is a copy of: only read; nil for an original

	live  []*Message  // in order; what no filter took out
	turn  []*Message  // of live, what the filter at work is to see; nil: all
	from  int         // of Messages(), how many the filter at work has finished before it held
	stage int         // filter of the route that it is at
	stops []int       // len(bad) after each filter
	rows  [][]Message // storage behind live
	bad   []Rejected  // rejected by filters
	held  int         // bytes, as its route counts them while it is parked
	limit int         // messages, at most
	skips bool        // some message has left the chain (verdict 2)
	parts bool        // some message goes to some destinations only

	anywhere bool // any destination is one, for tools

	mark    Mark     // of the sender, when it numbers
	receipt *receipt // nil: the source asked for none

	route *route       // nil until delivered
	hold  reservation  // what it holds of the budget
	open  atomic.Int32 // destinations for which it is not done
	since int64        // Unix ns, when it was delivered
	size  int          // bytes of the live messages, as flush_bytes counts them
	worst uint8        // most severe severity of the live messages
}

// Len is the number of live messages.
func (b *Batch) Len() int { return len(b.live) }

// Full reports whether Add would refuse.
func (b *Batch) Full() bool { return len(b.live) >= b.limit }

// Add appends a message, zero but for Timestamp, Facility and Severity, which
// say "unknown". It returns nil when the batch is full.
func (b *Batch) Add(o *Origin) *Message {
	if len(b.live) >= b.limit {
		return nil
	}
	m := b.row(o)
	if m != nil {
		b.live = append(b.live, m)
	}
	return m
}

// row makes a message that is in no list yet, or nil when there is no room.
func (b *Batch) row(o *Origin) *Message {
	last := len(b.rows) - 1
	if last < 0 || len(b.rows[last]) == cap(b.rows[last]) {
		n := rowClass(len(b.live))
		if !b.charge(n * rowSize) {
			return nil
		}
		b.rows = append(b.rows, takeRows(n))
		last++
	}
	rows := b.rows[last]
	rows = rows[:len(rows)+1]
	b.rows[last] = rows
	m := &rows[len(rows)-1]
	*m = Message{Origin: o}
	m.Timestamp, m.Facility, m.Severity = NoTime, syslog.DefaultFacility, syslog.DefaultSeverity
	return m
}

// Unadd takes back the message that Add returned last.
func (b *Batch) Unadd() {
	b.live = b.live[:len(b.live)-1]
	last := len(b.rows) - 1
	b.rows[last] = b.rows[last][:len(b.rows[last])-1]
}

// Bytes returns n bytes of the batch's memory, charged to it, or nil when its
// reservation is used up and the budget has no more: then the value does not
// fit (-6 to a guest). It never waits. A batch that is not delivered yet is
// never refused: what its source has read must become messages; the next Take
// waits for what was overdrawn.
func (b *Batch) Bytes(n int) []byte {
	return b.mem.bytes(b, n)
}

// Copy keeps a copy of p in the batch's memory; nil when there is no room.
func (b *Batch) Copy(p []byte) []byte {
	d := b.Bytes(len(p))
	if d != nil {
		copy(d, p)
	}
	return d
}

// NewFields, NewElements and NewParams return empty slices with room for n, in
// the batch's memory, or nil when there is no room. They never wait.
func (b *Batch) NewFields(n int) []Field     { return b.mem.fields.take(b, n) }
func (b *Batch) NewElements(n int) []Element { return b.mem.elements.take(b, n) }
func (b *Batch) NewParams(n int) []Param     { return b.mem.params.take(b, n) }

// Messages are those that the filter at work is to see, in order. The slice is
// valid until Apply returns; Drop, Reject and Skip do not change it.
func (b *Batch) Messages() []*Message {
	if b.turn != nil {
		return b.turn[b.from:]
	}
	return b.live[b.from:]
}

// Drop takes m out: the filter wants nobody to have it.
func (b *Batch) Drop(m *Message) { m.fate = dropped }

// Reject sends m to the dead letters with a code and a reason. m must be as it
// came to the filter, so call it after the edits are undone.
func (b *Batch) Reject(m *Message, code, reason string) {
	m.fate = rejected
	b.bad = append(b.bad, Rejected{Message: m, Code: code, Reason: reason})
}

// Skip keeps m out of the rest of the chain: it goes straight to the destinations.
func (b *Batch) Skip(m *Message) { m.fate, b.skips = skipping, true }

// Emit returns a new message behind after, which is one that the filter at work sees, or one that it emitted behind that.
// It is a copy of from's values; the zero Raw says that nobody sent it. It goes on at the next filter,
// whatever becomes of the message that it stands behind, but is gone when that one is rejected. It returns nil when there
// is no room. A filter may emit any number: a batch's limit is for its source.
//
// after nil puts it at the batch's end: for a Ticker, which sees no messages.
func (b *Batch) Emit(after, from *Message) *Message {
	m := b.row(from.Origin)
	if m == nil {
		return nil
	}
	*m = *from
	m.Raw, m.fate, m.size, m.behind = nil, inChain, 0, nil
	if after == nil {
		b.live = append(b.live, m)
	} else {
		m.behind, after.behind = after.behind, m
	}
	return m
}

// Unemit takes back all that was emitted behind m.
func (b *Batch) Unemit(m *Message) { m.behind = nil }

// Route sends m to the named destination of its route only, and to those named before. It reports whether the route has
// it.
func (b *Batch) Route(m *Message, destination []byte) bool {
	i := slices.IndexFunc(b.route.To, func(to string) bool { return to == string(destination) })
	if i < 0 {
		if !b.anywhere || len(b.route.To) == MaxRoutes {
			return false
		}
		i = len(b.route.To)
		b.route.To = append(b.route.To, string(destination))
	}
	m.to |= 1 << i
	b.parts = true
	return true
}

// MaxRoutes is how many destinations a route may have.
const MaxRoutes = 64

// fate is what a filter decided about a message.
type fate uint8

const (
	inChain  fate = iota
	skipping      // alive, but done with the filters
	dropped
	rejected
)

// sweep takes out what the filter at work dropped or rejected and puts in what
// it emitted, and returns how many of each; the rejected ones are in b.bad.
func (b *Batch) sweep() (drops, emitted int) {
	kept := b.live[:0]
	for _, m := range b.live {
		behind := m.behind
		m.behind = nil
		switch m.fate {
		case dropped:
			drops++
		case rejected:
			continue
		default:
			kept = append(kept, m)
		}
		if behind != nil && emitted == 0 { // from here on there may be more than there were
			kept = append(make([]*Message, 0, len(b.live)+16), kept...)
		}
		for ; behind != nil; emitted++ {
			m, behind = behind, behind.behind
			m.behind = nil
			kept = append(kept, m)
		}
	}
	b.live, b.turn, b.from = kept, nil, 0
	if !b.skips {
		return drops, emitted
	}
	b.turn = make([]*Message, 0, len(kept))
	for _, m := range kept {
		if m.fate == inChain {
			b.turn = append(b.turn, m)
		}
	}
	return drops, emitted
}

const rowSize = int(unsafe.Sizeof(Message{})) + int(unsafe.Sizeof((*Message)(nil)))

// rowClass is how many messages to make room for when there are already have.
func rowClass(have int) int {
	switch {
	case have < 4:
		return 4
	case have < 64:
		return 32
	case have < 512:
		return 128
	}
	return 512
}

var rowPools = map[int]*sync.Pool{4: {}, 32: {}, 128: {}, 512: {}}

func takeRows(n int) []Message {
	if r, ok := rowPools[n].Get().(*[]Message); ok {
		return (*r)[:0]
	}
	return make([]Message, 0, n)
}

func giveRows(r []Message) {
	r = r[:cap(r)]
	clear(r)
	rowPools[len(r)].Put(&r)
}
