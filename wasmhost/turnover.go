package wasmhost

import (
	"context"
	"time"

	"github.com/weirlog/weir/router"
)

// Tick is called about once a second, between batches.
func (l *lane) Tick(ctx context.Context, b *router.Batch) {
	l.bury(ctx, b)
	l.change(ctx)
	in := l.in
	if in == nil || l.guest.breaker.isOpen() {
		return
	}
	stop := context.AfterFunc(ctx, in.clock.Cancel)
	defer stop()
	if err := in.between(b, in.talk.tick); err != nil {
		l.guest.failedIn("weir_tick", err)
		l.costs(in.clock.Spent())
		in.discard()
		l.in, l.lost = nil, true
	}
}

// Finish ends the instance, after its last words.
func (l *lane) Finish(ctx context.Context, b *router.Batch) {
	if l.in != nil {
		l.old = append(l.old, l.in)
		l.in = nil
	}
	l.bury(ctx, b)
}

// bury ends the instances that were replaced; what they emit goes into b.
func (l *lane) bury(ctx context.Context, b *router.Batch) {
	for i, in := range l.old {
		stop := context.AfterFunc(ctx, in.clock.Cancel)
		in.close(b)
		stop()
		l.old[i] = nil
	}
	l.old = l.old[:0]
}

// leave ends all instances where no router listens: what they emit is gone.
func (l *lane) leave() {
	b := router.NewBatch(0, 0)
	defer b.Discard()
	l.Finish(context.Background(), b)
}

// change replaces an instance that is well: by one of a newer program, or because it has served long enough. Its last
// words are heard at the next tick, for only then they can go to all routes.
func (l *lane) change(ctx context.Context) {
	in := l.in
	if in == nil || in.program == l.guest.program.Load() && (len(l.old) > 0 || !in.aged()) {
		return
	}
	now := time.Now()
	if now.Before(l.again) {
		return
	}
	next, err := l.guest.prepared(ctx)
	if err != nil { // it goes on until there is one; that is nothing for the breaker
		if err != errSoon && ctx.Err() == nil {
			l.again = now.Add(trialPause)
			l.guest.faulted(causeStart, err.Error(), "")
		}
		return
	}
	l.old = append(l.old, in)
	l.in = next
}
