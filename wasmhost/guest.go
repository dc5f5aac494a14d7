package wasmhost

import (
	"context"
	"errors"
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
	onError  string
	time     time.Duration // with the host's patience
	initTime time.Duration
	program  *program
	shelf    *shelf
	appName  []byte // name, for messages of its own
	log      *slog.Logger

	counts  counts
	breaker breaker
	faults  faultLog
	lines   lineQuota
	near    atomic.Uint64 // the message's own keys whose near names were told, a bit each
	nursery nursery

	one bool // all lanes share lanes[0]

	mu     sync.Mutex
	lanes  []*lane
	closed bool
}

// Name is the filter's name in the configuration.
func (g *Guest) Name() string { return g.name }

// Report tells what the module is.
func (g *Guest) Report() Report { return g.program.about }

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

// Close ends the instances, each after its weir_close. No lane may be at work, or be used afterwards.
func (g *Guest) Close(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	g.closed = true
	g.nursery.close()
	for _, l := range g.lanes {
		if l.in != nil {
			l.in.leave()
			l.in = nil
		}
	}
	h := g.host
	h.mu.Lock()
	h.guests = slices.DeleteFunc(h.guests, func(other *Guest) bool { return other == g })
	h.mu.Unlock()
	return g.program.close(ctx)
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

// nursery makes instances. Those that are quickly made are made when they are needed; of the others it keeps one in
// stock, and makes at most ten a second, so that a guest that always fails does not keep a core busy.
type nursery struct {
	mu     sync.Mutex
	spare  *instance
	next   time.Time // not before
	busy   bool      // a spare is being made
	closed bool
	ctx    context.Context
	stop   context.CancelFunc
	wait   sync.WaitGroup
}

const slowPause = 100 * time.Millisecond

// errSoon says that an instance can be made a little later.
var errSoon = errors.New("instances that take long to make are made ten times a second")

// take returns an instance. wait is set with errSoon.
func (g *Guest) take(ctx context.Context) (in *instance, wait time.Duration, err error) {
	if !g.program.slow {
		in, err = g.newInstance(ctx)
		return in, 0, err
	}
	n := &g.nursery
	n.mu.Lock()
	now := time.Now()
	in, n.spare = n.spare, nil
	wait = n.next.Sub(now)
	if in == nil && wait <= 0 && !n.busy {
		n.next = now.Add(slowPause)
		n.mu.Unlock()
		in, err = g.newInstance(ctx)
		return in, 0, err
	}
	g.refill(max(wait, 0))
	n.mu.Unlock()
	if in == nil {
		return nil, max(wait, time.Millisecond), errSoon
	}
	return in, 0, nil
}

// refill makes a spare after wait, unless that is being done already. n.mu is held.
func (g *Guest) refill(wait time.Duration) {
	n := &g.nursery
	if n.busy || n.closed {
		return
	}
	n.busy = true
	n.next = time.Now().Add(wait + slowPause)
	n.wait.Go(func() {
		var in *instance
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-n.ctx.Done():
		case <-timer.C:
			in, _ = g.newInstance(n.ctx) // its failure shows when there is no spare and a lane makes one
		}
		n.mu.Lock()
		n.spare, n.busy = in, false
		n.mu.Unlock()
	})
}

func (n *nursery) close() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.stop()
	n.wait.Wait()
	if n.spare != nil {
		n.spare.leave()
		n.spare = nil
	}
}
