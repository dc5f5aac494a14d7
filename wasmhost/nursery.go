package wasmhost

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A nursery makes instances. Those that are quickly made are made when they are needed; of the others it keeps one in
// stock, and makes at most ten a second, so that a guest that always fails does not keep a core busy.
type nursery struct {
	mu     sync.Mutex
	spare  *instance
	ready  []*instance // of a new program, one for each lane that is to change to it
	next   time.Time   // not before
	busy   bool        // a spare is being made
	closed bool
	ctx    context.Context
	stop   context.CancelFunc
	wait   sync.WaitGroup
}

const slowPause = 100 * time.Millisecond

// errSoon says that an instance can be made a little later.
var errSoon = errors.New("instances that take long to make are made ten times a second")

// take returns an instance of the newest program. wait is set with errSoon.
func (g *Guest) take(ctx context.Context) (in *instance, wait time.Duration, err error) {
	p := g.program.Load()
	if !p.slow {
		in, err = g.newInstance(ctx, p)
		return in, 0, err
	}
	n := &g.nursery
	n.mu.Lock()
	now := time.Now()
	in = n.pick(p)
	wait = n.next.Sub(now)
	if in == nil && wait <= 0 && !n.busy {
		n.next = now.Add(slowPause)
		n.mu.Unlock()
		in, err = g.newInstance(ctx, p)
		return in, 0, err
	}
	g.refill(max(wait, 0))
	n.mu.Unlock()
	if in == nil {
		return nil, max(wait, time.Millisecond), errSoon
	}
	return in, 0, nil
}

// prepared returns an instance to replace one that is well: at once when one can be made quickly or is there, else
// errSoon, and one will be there a little later.
func (g *Guest) prepared(ctx context.Context) (*instance, error) {
	p := g.program.Load()
	n := &g.nursery
	n.mu.Lock()
	in := n.pick(p)
	if in == nil && p.slow {
		g.refill(max(time.Until(n.next), 0))
		n.mu.Unlock()
		return nil, errSoon
	}
	n.mu.Unlock()
	if in != nil {
		return in, nil
	}
	return g.newInstance(ctx, p)
}

// inStock returns an instance if there is one.
func (g *Guest) inStock() *instance {
	n := &g.nursery
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pick(g.program.Load())
}

// pick takes what there is of a program. n.mu is held.
func (n *nursery) pick(p *program) (in *instance) {
	if last := len(n.ready) - 1; last >= 0 && n.ready[last].program == p {
		in, n.ready = n.ready[last], n.ready[:last]
		return in
	}
	if n.spare != nil && n.spare.program == p {
		in, n.spare = n.spare, nil
	}
	return in
}

// refill makes a spare after wait, unless that is being done already. n.mu is held.
func (g *Guest) refill(wait time.Duration) {
	n := &g.nursery
	if n.busy || n.closed || n.spare != nil {
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
			in, _ = g.newInstance(n.ctx, g.program.Load()) // its failure shows when there is no spare and a lane makes one
		}
		n.mu.Lock()
		n.spare, n.busy = in, false
		if in != nil && in.program != g.program.Load() {
			n.spare = nil
		} else {
			in = nil
		}
		n.mu.Unlock()
		if in != nil {
			in.leave()
		}
	})
}

// replace puts the instances of a new program into stock, and returns those that nobody needs any more.
func (n *nursery) replace(ready []*instance) (rest []*instance) {
	n.mu.Lock()
	defer n.mu.Unlock()
	rest, n.ready = n.ready, ready
	if n.spare != nil {
		rest, n.spare = append(rest, n.spare), nil
	}
	return rest
}

func (n *nursery) close() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.stop()
	n.wait.Wait()
	for _, in := range n.replace(nil) {
		in.leave()
	}
}
