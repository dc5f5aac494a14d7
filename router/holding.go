package router

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// A holding adds up how long a source is held back: the time in which at least one of its readers waits in Take.
type holding struct {
	mu      sync.Mutex
	waiting int
	since   time.Time // at least one has been waiting
	total   time.Duration
}

func (h *holding) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting++; h.waiting == 1 {
		h.since = time.Now()
	}
}

func (h *holding) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting--; h.waiting == 0 {
		h.total += time.Since(h.since)
		h.since = time.Time{}
	}
}

// state is since when somebody has been waiting, zero when nobody does, and for how long in all.
func (h *holding) state() (since time.Time, total time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting > 0 {
		total = time.Since(h.since)
	}
	return h.since, h.total + total
}

// reserve takes memory for a batch of the source, waiting until there is some and until no route holds too much of it, or until ctx ends.
func (in *inlet) reserve(ctx context.Context, size int) error {
	if !in.full() && in.router.budget.try(in.claims, size) {
		return nil
	}
	in.holding.begin()
	defer in.holding.end()
	for in.full() {
		if !sleep(ctx, heldPause) {
			return ctx.Err()
		}
	}
	return in.router.budget.take(ctx, in.claims, size)
}

// full reports whether a route of the source holds so much that the source waits.
func (in *inlet) full() bool { return slices.ContainsFunc(in.routes, (*route).full) }

// heldPause is how often a source looks whether a route that holds a quarter of its memory still does.
const heldPause = 50 * time.Millisecond

// heldLong is how long a source waits before it is worth a word: under load it is held for moments all the time.
const heldLong = time.Second

// part is the state of the source. It is ready also while it is held back, for that is no fault of its own.
func (in *inlet) part() Part {
	p := Part{Kind: "source", Name: in.name, Ready: true}
	if since, _ := in.holding.state(); !since.IsZero() && time.Since(since) >= heldLong {
		p.Since, p.Reason = since, "is held back: "+in.lack()
	}
	return p
}

// lack says what the source waits for.
func (in *inlet) lack() string {
	var full []string
	for _, rt := range in.routes {
		if rt.full() {
			full = append(full, fmt.Sprintf("route %s holds as much as it may while its filter takes nothing", rt.Name))
		}
	}
	pools := in.router.budget.usage()
	for _, c := range in.claims {
		switch {
		case pools[c.pool].short == 0:
		case c.pool == 0:
			full = append(full, "memory is used up")
		default:
			full = append(full, fmt.Sprintf("the share of memory of destination %s is used up", in.router.outlets[c.pool-1].name))
		}
	}
	if len(full) == 0 {
		return "for moments, at a rate that memory just allows"
	}
	return strings.Join(full, ", ")
}
