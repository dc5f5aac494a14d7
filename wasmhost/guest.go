package wasmhost

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirlog/weir/router"
)

// A Guest is one filter of the configuration: a module that was loaded and has run its weir_init.
type Guest struct {
	host     *Host
	name     string
	settings Config // as the configuration has them
	onError  string
	time     time.Duration // with the host's patience
	initTime time.Duration
	program  atomic.Pointer[program] // the newest; lanes change to it between batches
	shelf    *shelf
	appName  []byte // name, for messages of its own
	log      *slog.Logger

	counts  counts
	breaker breaker
	faults  faultLog
	lines   lineQuota
	near    atomic.Uint64 // the message's own keys whose near names were told, a bit each
	nursery nursery
	swap    swap
	profile profile

	one bool // all lanes share lanes[0]

	mu     sync.Mutex
	lanes  []*lane
	closed bool
}

// Name is the filter's name in the configuration.
func (g *Guest) Name() string { return g.name }

// Report tells what the module is.
func (g *Guest) Report() Report { return g.program.Load().about }

// Filter is the filter of one lane, counted from 0: the same one for each call with the same number. With
// `instances: one` all lanes get the same one, and batches take turns. Its instance is made when it is first used.
func (g *Guest) Filter(number int) router.Filter {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.one {
		number = 0
	}
	for len(g.lanes) <= number {
		g.lanes = append(g.lanes, &lane{guest: g})
	}
	if g.one {
		return (*turns)(g.lanes[0])
	}
	return g.lanes[number]
}

// Close ends the instances, each after its weir_close. No lane may be at work, or be used afterwards. It waits for a
// Reload.
func (g *Guest) Close(context.Context) error {
	g.swap.one.Lock()
	defer g.swap.one.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	g.closed = true
	g.nursery.close()
	for _, l := range g.lanes {
		l.leave()
	}
	h := g.host
	h.mu.Lock()
	h.guests = slices.DeleteFunc(h.guests, func(other *Guest) bool { return other == g })
	h.mu.Unlock()
	return g.program.Load().release()
}

// turns is a lane that all lanes share.
type turns lane

func (t *turns) Tick(ctx context.Context, b *router.Batch) {
	t.turn.Lock()
	defer t.turn.Unlock()
	if now := time.Now(); now.Sub(t.ticked) > sameTick { // else by another of them
		t.ticked = now
		(*lane)(t).Tick(ctx, b)
	}
}

func (t *turns) Finish(ctx context.Context, b *router.Batch) {
	t.turn.Lock()
	defer t.turn.Unlock()
	(*lane)(t).Finish(ctx, b)
}

// sameTick is how close together the lanes are ticked at most.
const sameTick = 500 * time.Millisecond

func (t *turns) Apply(ctx context.Context, b *router.Batch) *router.Held {
	t.turn.Lock()
	defer t.turn.Unlock()
	return (*lane)(t).Apply(ctx, b)
}
