package router

import (
	"context"
	"slices"
	"sync"
)

// budget is the one valve: all memory of messages in flight, in pools. Pool 0
// is the memory itself, the others are the shares of the destinations. What is
// taken is taken from several pools in one step or not at all, so that nobody
// ever waits for one pool while holding another.
type budget struct {
	mu      sync.Mutex
	pools   []pool
	waiting []*waiter // in the order in which they came
}

type pool struct {
	limit, used int
	short       int    // waiters that lack this pool
	press       func() // told, with mu held, when short rises from 0
}

// A claim is what one byte of a batch costs in one pool.
type claim struct {
	pool  int
	times int // copies of the batch that are charged to the pool
}

// A reservation is what a batch holds: so many bytes, in each of its pools.
type reservation struct {
	budget *budget
	claims []claim // shared, never changed
	size   int     // reserved
	used   int     // of size
}

type waiter struct {
	claims []claim
	size   int
	lacks  []int // pools counted in short
	ready  chan struct{}
}

// take reserves size bytes in all pools of claims, waiting in turn until there
// is room or ctx ends.
func (g *budget) take(ctx context.Context, claims []claim, size int) error {
	g.mu.Lock()
	if g.grant(claims, size) {
		g.mu.Unlock()
		return nil
	}
	w := &waiter{claims: claims, size: size, ready: make(chan struct{})}
	g.waiting = append(g.waiting, w)
	g.lack(w)
	g.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.waiting, w); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
		g.unlack(w)
		g.admit() // those behind it may fit now
		return ctx.Err()
	}
	return nil // granted in the same moment
}

// try is take where nobody has to wait.
func (g *budget) try(claims []claim, size int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.grant(claims, size)
}

// grow is take without waiting or a turn; with overdraw it takes what is not there.
func (g *budget) grow(claims []claim, size int, overdraw bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !overdraw && !g.fits(claims, size) {
		return false
	}
	g.add(claims, size)
	return true
}

// give returns size bytes to all pools of claims.
func (g *budget) give(claims []claim, size int) {
	if size == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.add(claims, -size)
	for _, c := range claims {
		if g.pools[c.pool].used < 0 {
			panic("BUG: more memory given back than was taken")
		}
	}
	g.admit()
}

// admit grants, in order, what fits. One that does not fit keeps its place in
// the pools that it lacks, so that small ones cannot starve it.
func (g *budget) admit() {
	for _, w := range g.waiting {
		g.unlack(w)
	}
	for i := 0; i < len(g.waiting); {
		w := g.waiting[i]
		if g.grant(w.claims, w.size) {
			g.waiting = slices.Delete(g.waiting, i, i+1)
			close(w.ready)
			continue
		}
		g.lack(w)
		i++
	}
}

// grant reserves size bytes if there is room and nobody waits for it.
func (g *budget) grant(claims []claim, size int) bool {
	if g.blocked(claims) || !g.fits(claims, size) {
		return false
	}
	g.add(claims, size)
	return true
}

func (g *budget) fits(claims []claim, size int) bool {
	for _, c := range claims {
		if p := &g.pools[c.pool]; p.used > 0 && p.used+c.times*size > p.limit {
			return false // a pool with nothing in it takes anything: so one batch always passes
		}
	}
	return true
}

func (g *budget) add(claims []claim, size int) {
	for _, c := range claims {
		g.pools[c.pool].used += c.times * size
	}
}

// blocked reports whether somebody waits for one of these pools already.
func (g *budget) blocked(claims []claim) bool {
	for _, c := range claims {
		if g.pools[c.pool].short > 0 {
			return true
		}
	}
	return false
}

// lack notes the pools that w waits for; where nobody waited before, the pool's
// destinations are told to flush.
func (g *budget) lack(w *waiter) {
	for _, c := range w.claims {
		p := &g.pools[c.pool]
		if p.short == 0 && (p.used == 0 || p.used+c.times*w.size <= p.limit) {
			continue
		}
		w.lacks = append(w.lacks, c.pool)
		if p.short++; p.short == 1 && p.press != nil {
			p.press()
		}
	}
}

func (g *budget) unlack(w *waiter) {
	for _, i := range w.lacks {
		g.pools[i].short--
	}
	w.lacks = w.lacks[:0]
}

// pressed reports whether a source waits for memory or for this pool.
func (g *budget) pressed(i int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pools[0].short > 0 || g.pools[i].short > 0
}

// short reports whether a source waits for this pool.
func (g *budget) short(i int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pools[i].short > 0
}

// charge uses n bytes of the batch's reservation and grows it when that is not
// enough and the budget has room. It never waits; see Batch.Bytes.
func (b *Batch) charge(n int) bool {
	h := &b.hold
	if more := h.used + n - h.size; more > 0 {
		if !h.budget.grow(h.claims, more, b.route == nil) {
			return false
		}
		h.size += more
	}
	h.used += n
	return true
}

// shrink gives back what the batch reserved and does not use.
func (b *Batch) shrink() {
	h := &b.hold
	h.budget.give(h.claims, h.size-h.used)
	h.size = h.used
}

// usage returns a copy of the pools.
func (g *budget) usage() []pool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.pools)
}
