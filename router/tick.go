package router

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"
)

// A ticker is a filter that is ticked: in each lane, for all routes together.
type ticker struct {
	name    string
	filters []Ticker // of each lane
	places  []place  // where what it creates goes on
	claims  []claim  // of all these routes together
	route   *route   // what its batches belong to before they are handed over
}

// A place is a filter of a route, by its position.
type place struct {
	route *route
	stage int
}

// addTickers finds the filters that are to be ticked, in the order in which messages meet them.
func (r *Router) addTickers() {
	for stage, more := 0, true; more; stage++ {
		more = false
		for _, rt := range r.routes {
			if stage >= len(rt.Filters) {
				continue
			}
			more = true
			s := rt.Filters[stage]
			i := slices.IndexFunc(r.tickers, func(t ticker) bool { return t.name == s.Name })
			if i < 0 {
				t := ticker{name: s.Name, route: &route{}}
				for _, f := range s.Filters {
					if f, ok := f.(Ticker); ok {
						t.filters = append(t.filters, f)
					}
				}
				if len(t.filters) < len(s.Filters) {
					continue
				}
				i = len(r.tickers)
				r.tickers = append(r.tickers, t)
			}
			t := &r.tickers[i]
			t.places = append(t.places, place{rt, stage})
			t.claims = join(t.claims, rt.claims)
		}
	}
}

// join adds up claims.
func join(sum, more []claim) []claim {
	for _, c := range more {
		i := slices.IndexFunc(sum, func(s claim) bool { return s.pool == c.pool })
		if i < 0 {
			sum = append(sum, c)
		} else {
			sum[i].times += c.times
		}
	}
	return sum
}

// release gives a lane back; one that is due is ticked first.
func (r *Router) release(lane int) {
	if r.due[lane].Load() {
		r.ticks <- lane
		return
	}
	r.lanes <- lane
}

// tick ticks the filters of each lane about once a second, when the lane has no batch, until ctx ends.
func (r *Router) tick(ctx context.Context) {
	if len(r.tickers) == 0 {
		return
	}
	second := time.NewTicker(time.Second)
	defer second.Stop()
	var passing sync.WaitGroup // of what was created: it may have to wait for the dead letters, and lanes may not
	defer passing.Wait()
	for {
		select {
		case <-second.C:
			for i := range r.due {
				r.due[i].Store(true)
			}
			r.tickFree(&passing)
		case lane := <-r.ticks:
			r.tickLane(lane, &passing)
		case <-ctx.Done():
			return
		}
	}
}

// tickFree ticks the lanes that nobody uses.
func (r *Router) tickFree(passing *sync.WaitGroup) {
	for range len(r.due) {
		select {
		case lane := <-r.lanes:
			if r.due[lane].Load() {
				r.tickLane(lane, passing)
			} else {
				r.lanes <- lane
			}
		default:
			return
		}
	}
}

// tickLane ticks the filters of a lane that was taken, and gives the lane back.
func (r *Router) tickLane(lane int, passing *sync.WaitGroup) {
	r.due[lane].Store(false)
	var created []*Batch
	for i := range r.tickers {
		t := &r.tickers[i]
		b := r.tickBatch(t)
		t.filters[lane].Tick(r.drain, b)
		created = append(created, r.place(t, b)...)
	}
	r.lanes <- lane
	if len(created) > 0 {
		passing.Go(func() {
			for _, b := range created {
				r.pass(b)
			}
		})
	}
}

// finish lets the filters of all lanes say their last words. Nothing else uses a lane any more, and tick has ended.
func (r *Router) finish() {
	for i := range r.due {
		r.due[i].Store(false)
	}
	for len(r.ticks) > 0 {
		r.lanes <- <-r.ticks
	}
	for i := range r.tickers {
		t := &r.tickers[i]
		for _, f := range t.filters {
			b := r.tickBatch(t)
			f.Finish(r.drain, b)
			for _, b := range r.place(t, b) {
				r.pass(b)
			}
		}
	}
}

// tickBatch is an empty batch for what a filter creates by itself. It holds no memory, and takes what is free.
func (r *Router) tickBatch(t *ticker) *Batch {
	b := takeBatch(math.MaxInt, reservation{budget: r.budget, claims: t.claims})
	b.route = t.route
	return b
}

// place counts what a filter created by itself and readies it to go on behind the filter, in a batch for each place.
func (r *Router) place(t *ticker, b *Batch) []*Batch {
	b.sweep() // of what a failed call left
	n := len(b.live)
	if n == 0 {
		b.free()
		return nil
	}
	b.since = time.Now().UnixNano()
	r.ledger.mu.Lock()
	for _, p := range t.places {
		r.ledger.routes[p.route.index].create(t.name, n)
	}
	r.ledger.mu.Unlock()
	all := []*Batch{b}
	for range t.places[1:] {
		all = append(all, b.copy())
	}
	for i, p := range t.places {
		all[i].route, all[i].stage = p.route, p.stage+1
		all[i].stops = append(all[i].stops[:0], make([]int, p.stage+1)...) // the filters before it have rejected none
		all[i].hold.claims = p.route.claims
	}
	return all
}
