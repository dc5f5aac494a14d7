package router

import (
	"context"
	"sync"
)

// inlet is the Inlet of one source.
type inlet struct {
	router  *Router
	name    string
	source  Source
	index   int      // in the ledger
	routes  []*route // those that take everything, then those with a Match, then those with Else
	all     int      // of routes, the first, take everything
	claims  []claim  // of all its routes together
	limits  Limits
	slack   int // bytes that filters may add to a batch whatever else is going on, at most
	largest int // message, in bytes
	holding holding
}

var batches = sync.Pool{New: func() any { return new(Batch) }}

func (in *inlet) Limits() Limits { return in.limits }
func (in *inlet) Tails() *Tails  { return in.router.tails }

func (in *inlet) Take(ctx context.Context, bytes, messages int) (*Batch, error) {
	messages = min(max(messages, 1), in.limits.Messages)
	growth := min(guestSlack+in.largest+bytes+messages*fieldRoom, in.slack)
	size := pieceSize(bytes) + rowsFor(messages)*rowSize + growth
	if err := in.reserve(ctx, size); err != nil {
		return nil, err
	}
	return takeBatch(messages, reservation{budget: in.router.budget, claims: in.claims, size: size}), nil
}

// takeBatch is an empty batch with room for so many messages, and what it holds.
func takeBatch(messages int, hold reservation) *Batch {
	b := batches.Get().(*Batch)
	b.mem = memories.Get().(*memory)
	b.mem.refs.Store(1)
	b.limit, b.hold = messages, hold
	return b
}

// rowsFor is how many rows Add makes room for on the way to n messages.
func rowsFor(n int) int {
	rows := 0
	for rows < n {
		rows += rowClass(rows)
	}
	return rows
}

func (in *inlet) Deliver(b *Batch) {
	r, n := in.router, len(b.live)
	if n == 0 {
		b.discard()
		return
	}
	r.metrics.batch.Observe(float64(n))
	d := divisions.Get().(*division)
	defer d.recycle()
	in.divide(d, b)
	r.ledger.mu.Lock()
	r.ledger.sources[in.index].Received += uint64(n)
	r.ledger.sources[in.index].Unrouted += uint64(d.unrouted)
	for _, each := range d.batches {
		r.ledger.routes[each.route.index].take(len(each.live))
	}
	r.ledger.mu.Unlock()
	if len(d.batches) == 0 {
		b.discard()
		return
	}
	d.batches[0].receipt.expect(len(d.batches))
	for _, each := range d.batches {
		r.pass(each)
	}
}

func (in *inlet) Last(sender string) (last uint64, known bool) {
	for _, rt := range in.routes {
		for _, o := range rt.to {
			if o.writers[0].spool == nil {
				return 0, false
			}
			here := o.safeLast(rt.sender(sender))
			if !known || here < last {
				last, known = here, true
			}
		}
	}
	return last, known
}

func (in *inlet) Missed(reason string, n int) {
	l := &in.router.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.sources[in.index]
	if s.Missed == nil {
		s.Missed = map[string]uint64{}
	}
	s.Missed[reason] += uint64(n)
}

func (in *inlet) Truncated(n int) {
	l := &in.router.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sources[in.index].Truncated += uint64(n)
}

// free gives back all that the batch holds.
func (b *Batch) free() {
	b.hold.budget.give(b.hold.claims, b.hold.size)
	b.recycle()
}

// discard is the end of a batch of which no route takes anything.
func (b *Batch) discard() {
	b.receipt.expect(1)
	b.receipt.settle(true)
	b.free()
}

// recycle returns the batch and its memory to the pools; its reservation has gone.
func (b *Batch) recycle() {
	b.mem.release()
	if b.base != nil {
		b.base.release()
	}
	for i, rows := range b.rows {
		giveRows(rows)
		b.rows[i] = nil
	}
	clear(b.live)
	clear(b.bad)
	clear(b.turn)
	*b = Batch{live: b.live[:0], rows: b.rows[:0], bad: b.bad[:0], stops: b.stops[:0]}
	if cap(b.live) > 4096 {
		b.live = nil
	}
	batches.Put(b)
}
