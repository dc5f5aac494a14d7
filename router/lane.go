package router

import (
	"context"
	"time"
)

// pass takes a delivered batch through its route: filters, then destinations.
// While a filter of the route holds an earlier batch, it queues behind that one.
func (r *Router) pass(b *Batch) {
	rt := b.route
	if len(rt.Filters) > 0 {
		rt.mu.Lock()
		if len(rt.parked) > 0 {
			rt.keep(b)
			rt.mu.Unlock()
			return
		}
		rt.mu.Unlock()
		if held := r.filter(b); held != nil {
			r.park(b, held)
			return
		}
	}
	r.handOver(b)
}

// filter runs the batch through what is left of its chain, on one lane.
func (r *Router) filter(b *Batch) *Held {
	lane := <-r.lanes
	defer r.release(lane)
	for stages := b.route.Filters; b.stage < len(stages) && len(b.live) > 0; b.stage++ {
		if len(b.Messages()) > 0 {
			held := stages[b.stage].Filters[lane].Apply(r.drain, b)
			if held != nil {
				b.from += held.Done
				return held
			}
		}
		drops, emitted := b.sweep()
		for len(b.stops) <= b.stage {
			b.stops = append(b.stops, len(b.bad))
		}
		r.swept(b.route, stages[b.stage].Name, drops, emitted)
	}
	return nil
}

// handOver gives what the filters left to the destinations.
func (r *Router) handOver(b *Batch) {
	safe := len(b.bad) == 0 || r.keepLetters(b)
	n, rt, receipt := len(b.live), b.route, b.receipt
	defer receipt.settle(safe)
	if n == 0 {
		b.free()
		return
	}
	for _, m := range b.live {
		m.size = m.Size()
	}
	b.worst, b.size = weigh(b.live)
	b.shrink()
	b.open.Store(int32(len(rt.to)))
	receipt.expect(len(rt.to))
	var lists [][]*Message // for each destination; nil: all get all
	if b.parts {
		lists = b.split(len(rt.to))
	}
	r.ledger.mu.Lock()
	r.ledger.routes[rt.index].settle(FateDelivered, "", n)
	for i, o := range rt.to {
		if lists != nil {
			n = len(lists[i])
		}
		r.ledger.dests[o.index].take(n)
	}
	r.ledger.mu.Unlock()
	for i, o := range rt.to {
		if lists != nil {
			o.push(b, lists[i])
		} else {
			o.push(b, b.live)
		}
	}
}

// split sorts the live messages by the destinations that they go to.
func (b *Batch) split(destinations int) [][]*Message {
	lists := make([][]*Message, destinations)
	for _, m := range b.live {
		for i := range lists {
			if m.to == 0 || m.to&(1<<i) != 0 {
				lists[i] = append(lists[i], m)
			}
		}
	}
	return lists
}

// swept counts what a filter dropped and created.
func (r *Router) swept(rt *route, filter string, drops, created int) {
	if drops == 0 && created == 0 {
		return
	}
	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()
	a := &r.ledger.routes[rt.index]
	a.create(filter, created)
	a.settle(FateDropped, filter, drops)
}

// keepLetters writes what the filters rejected to the dead letters, all of a
// filter's at once. While the store cannot write, the batch waits; it reports false when the drain ended before.
func (r *Router) keepLetters(b *Batch) (kept bool) {
	from := 0
	kept = true
	for stage, to := range b.stops {
		rows := b.bad[from:to]
		from = to
		if len(rows) == 0 {
			continue
		}
		name := b.route.Filters[stage].Name
		key := LetterKey{Route: b.route.Name, Filter: name}
		pause := newBackOff(100*time.Millisecond, 10*time.Second)
		for {
			err := r.letters.Keep(r.drain, key, rows)
			if err == nil {
				r.settleRoute(b.route, FateRejected, name, len(rows))
				break
			}
			r.log.Error("cannot keep dead letters", "route", b.route.Name, "filter", name, "messages", len(rows), "error", err)
			if !pause.wait(r.drain) {
				r.settleRoute(b.route, FateLost, "dead_letters", len(rows))
				kept = false
				break
			}
		}
	}
	return kept
}

func (r *Router) settleRoute(rt *route, f Fate, reason string, n int) {
	if n == 0 {
		return
	}
	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()
	r.ledger.routes[rt.index].settle(f, reason, n)
}

// park keeps a batch that a filter holds, until unpark tries it again.
func (r *Router) park(b *Batch, h *Held) {
	rt := b.route
	rt.mu.Lock()
	rt.keep(b)
	rt.cause = h.Cause
	rt.mu.Unlock()
	if h.Stop {
		r.stop(h)
	}
	r.wake(h.Retry)
}

// keep parks a batch behind the others. It holds no more than what it has: what was set aside for its filters would keep
// other routes from their memory. rt.mu is held.
func (rt *route) keep(b *Batch) {
	b.shrink()
	b.held = b.hold.size
	rt.held.Add(int64(b.held))
	rt.parked = append(rt.parked, b)
}

// full reports whether the route holds so much that its sources wait: the rest of the memory is for other routes.
func (rt *route) full() bool { return rt.held.Load() > int64(rt.most) }

// wake makes unpark look at the parked batches after d.
func (r *Router) wake(d time.Duration) {
	select {
	case r.retry <- d:
	default: // it is about to look
	}
}

// unpark runs parked batches, in order, until ctx ends, and then until none is
// left or the drain is over.
func (r *Router) unpark(ctx context.Context) {
	tick := time.NewTimer(time.Second)
	defer tick.Stop()
	for {
		left := 0
		for _, rt := range r.routes {
			left += r.unparkRoute(rt)
		}
		done := ctx.Done()
		if ctx.Err() != nil {
			if done = nil; left == 0 {
				return
			}
		}
		var again <-chan time.Time // nil, so never, while nothing is parked
		if left > 0 {
			tick.Reset(time.Second)
			again = tick.C
		}
		select {
		case <-again:
		case d := <-r.retry:
			if d > 0 && !sleep(r.drain, min(d, time.Second)) {
				return
			}
		case <-done:
		case <-r.drain.Done():
			return
		}
	}
}

// unparkRoute takes the parked batches of one route as far as its filters let
// them and returns how many are left.
func (r *Router) unparkRoute(rt *route) int {
	for {
		rt.mu.Lock()
		if len(rt.parked) == 0 {
			rt.cause = nil
			rt.mu.Unlock()
			return 0
		}
		b, left := rt.parked[0], len(rt.parked)
		rt.mu.Unlock()
		if held := r.filter(b); held != nil {
			rt.mu.Lock()
			rt.cause = held.Cause
			rt.mu.Unlock()
			if held.Stop {
				r.stop(held)
			}
			if held.Retry > 0 {
				return left
			}
			continue
		}
		kept := b.held
		b.held = 0
		r.handOver(b)
		rt.held.Add(int64(-kept))
		rt.mu.Lock()
		rt.parked[0] = nil
		rt.parked = rt.parked[1:]
		rt.mu.Unlock()
	}
}

// loseParked gives up what is still parked when the drain is over.
func (r *Router) loseParked() {
	for _, rt := range r.routes {
		rt.mu.Lock()
		parked := rt.parked
		rt.parked = nil
		rt.mu.Unlock()
		for _, b := range parked {
			if b.stage < len(rt.Filters) { // else it was created behind the last one
				drops, created := b.sweep()
				r.swept(rt, rt.Filters[b.stage].Name, drops, created)
			}
			r.settleRoute(rt, FateLost, "drain", len(b.live)+len(b.bad))
			b.receipt.settle(false)
			b.free()
		}
		rt.held.Store(0)
	}
}
