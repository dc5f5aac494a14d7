package router

import (
	"context"
	"math/rand/v2"
	"time"
)

// backOff spaces attempts: each pause is twice the one before, up to a limit,
// give or take a fifth, so that many routers do not knock in step.
type backOff struct {
	first, next, limit time.Duration
}

func newBackOff(first, limit time.Duration) backOff {
	return backOff{first, first, limit}
}

// reset begins anew, after a success.
func (o *backOff) reset() { o.next = o.first }

// wait pauses; it reports false when ctx ended meanwhile.
func (o *backOff) wait(ctx context.Context) bool {
	d := o.next
	o.next = min(2*o.next, o.limit)
	return sleep(ctx, d*4/5+rand.N(d*2/5+1))
}

// sleep waits for d or for the end of ctx, which it reports as false.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
