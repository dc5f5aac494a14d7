package router

import (
	"context"
	"slices"
	"sync"
	"time"
)

// inlet is the Inlet of one source.
type inlet struct {
	router  *Router
	name    string
	source  Source
	index   int // in the ledger
	routes  []*route
	claims  []claim // of all its routes together
	limits  Limits
	slack   int // bytes that filters may add to a batch whatever else is going on, at most
	largest int // message, in bytes
}

var batches = sync.Pool{New: func() any { return new(Batch) }}

func (in *inlet) Limits() Limits { return in.limits }
func (in *inlet) Tails() *Tails  { return in.router.tails }

func (in *inlet) Take(ctx context.Context, bytes, messages int) (*Batch, error) {
	for slices.ContainsFunc(in.routes, (*route).full) {
		if !sleep(ctx, heldPause) {
			return nil, ctx.Err()
		}
	}
	messages = min(max(messages, 1), in.limits.Messages)
	growth := min(guestSlack+in.largest+bytes+messages*fieldRoom, in.slack)
	size := pieceSize(bytes) + rowsFor(messages)*rowSize + growth
	if err := in.router.budget.take(ctx, in.claims, size); err != nil {
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

// heldPause is how often a source looks whether a route that holds a quarter of its memory still does.
const heldPause = 50 * time.Millisecond

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
	if n == 0 || len(in.routes) == 0 {
		r.ledger.mu.Lock()
		r.ledger.sources[in.index].Unrouted += uint64(n)
		r.ledger.mu.Unlock()
		b.receipt.expect(1)
		b.receipt.settle(true)
		b.free()
		return
	}
	b.receipt.expect(len(in.routes))
	r.metrics.batch.Observe(float64(n))
	b.since = time.Now().UnixNano()
	r.ledger.mu.Lock()
	for _, rt := range in.routes {
		r.ledger.routes[rt.index].take(n)
	}
	r.ledger.mu.Unlock()
	// Copies are made before any filter sees the original.
	var first [8]*Batch
	all := append(first[:0], b)
	for range in.routes[1:] {
		all = append(all, b.copy())
	}
	for i, rt := range in.routes {
		all[i].route = rt
		all[i].hold.claims = rt.claims
		all[i].mark.Sender = rt.sender(b.mark.Sender)
	}
	for _, b := range all {
		r.pass(b)
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

// copy returns a batch for a further route: own structs, shared bytes. What it
// holds was reserved with the original.
func (b *Batch) copy() *Batch {
	c := takeBatch(b.limit, b.hold)
	b.mem.refs.Add(1)
	c.base, c.since, c.mark, c.receipt = b.mem, b.since, b.mark, b.receipt
	for i, m := range b.live {
		last := len(c.rows) - 1
		if last < 0 || len(c.rows[last]) == cap(c.rows[last]) {
			c.rows = append(c.rows, takeRows(rowClass(i)))
			last++
		}
		c.rows[last] = append(c.rows[last], *m)
		c.live = append(c.live, &c.rows[last][len(c.rows[last])-1])
	}
	return c
}

// free gives back all that the batch holds.
func (b *Batch) free() {
	b.hold.budget.give(b.hold.claims, b.hold.size)
	b.recycle()
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
