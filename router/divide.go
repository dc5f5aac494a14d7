package router

import (
	"slices"
	"sync"
	"time"
)

// A division is how a batch of a source is divided among its routes.
type division struct {
	batches  []*Batch   // one for each route that takes messages
	unrouted int        // messages that no route takes
	picked   []*Message // by choosy routes, one route's behind the other's
	ends     []int      // len(picked) behind each choosy route
	taken    []bool     // by message: a route takes it
}

var divisions = sync.Pool{New: func() any { return new(division) }}

func (d *division) recycle() {
	clear(d.batches)
	clear(d.picked)
	*d = division{batches: d.batches[:0], picked: d.picked[:0], ends: d.ends[:0], taken: d.taken[:0]}
	if cap(d.picked) <= 16*maxRows {
		divisions.Put(d)
	}
}

// order puts the routes into the order in which divide asks them: those that take everything, those with a Match,
// those that take what is left.
func (in *inlet) order() {
	turn := func(rt *route) int {
		switch {
		case rt.Else:
			return 2
		case rt.Match != nil:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(in.routes, func(a, b *route) int { return turn(a) - turn(b) })
	for in.all < len(in.routes) && turn(in.routes[in.all]) == 0 {
		in.all++
	}
}

// divide makes of b a batch for each route that takes messages of it, before any filter sees them, and gives back what
// was reserved for the other routes. When no route takes any, b stays as it is.
//
// Routes that take everything share the bytes of b. What a choosy one takes is copied, so that a
// destination that waits with a few messages does not keep the memory of all; unless b is free and it takes most of it.
func (in *inlet) divide(d *division, b *Batch) {
	in.pick(d, b.live)
	keeper := in.keeper(d, len(b.live))
	if keeper < 0 && len(d.picked) == 0 {
		return
	}
	b.since = time.Now().UnixNano()
	for i, rt := range in.routes {
		switch {
		case i == keeper:
			d.batches = append(d.batches, b)
		case i < in.all:
			d.batches = append(d.batches, b.copy().on(rt))
		case len(in.picks(d, i)) > 0:
			d.batches = append(d.batches, b.extract(rt, in.picks(d, i)).on(rt))
		default:
			b.hold.budget.give(rt.claims, b.hold.size)
		}
	}
	if keeper < 0 {
		b.recycle() // what it had reserved is the others' now
		return
	}
	if keeper >= in.all {
		b.live = append(b.live[:0], in.picks(d, keeper)...)
	}
	b.on(in.routes[keeper])
}

// pick asks the choosy routes.
func (in *inlet) pick(d *division, msgs []*Message) {
	if in.all == len(in.routes) {
		if in.all == 0 {
			d.unrouted = len(msgs)
		}
		return
	}
	d.taken = slices.Grow(d.taken, len(msgs))[:len(msgs)]
	for i := range d.taken {
		d.taken[i] = in.all > 0
	}
	left := true
	for _, rt := range in.routes[in.all:] {
		for i, m := range msgs {
			switch {
			case rt.Else && !d.taken[i]:
				d.picked = append(d.picked, m)
			case !rt.Else && rt.Match.Matches(m):
				d.picked = append(d.picked, m)
				d.taken[i] = true
			}
		}
		d.ends = append(d.ends, len(d.picked))
		left = left && !rt.Else
	}
	for _, taken := range d.taken {
		if left && !taken {
			d.unrouted++
		}
	}
}

// picks are the messages that a choosy route takes, the i-th of all.
func (in *inlet) picks(d *division, i int) []*Message {
	from := 0
	if i -= in.all; i > 0 {
		from = d.ends[i-1]
	}
	return d.picked[from:d.ends[i]]
}

// keeper is the route that gets the batch itself: the first that takes everything, or the one that takes the most of n
// messages if that is at least half; -1: none.
func (in *inlet) keeper(d *division, n int) int {
	if in.all > 0 {
		return 0
	}
	most := -1
	for i := range in.routes {
		if k := len(in.picks(d, i)); 2*k >= n && (most < 0 || k > len(in.picks(d, most))) {
			most = i
		}
	}
	return most
}

// on puts the batch on a route.
func (b *Batch) on(rt *route) *Batch {
	b.route, b.hold.claims, b.mark.Sender = rt, rt.claims, rt.sender(b.mark.Sender)
	return b
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
