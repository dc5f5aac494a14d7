package wasmhost

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weirlog/weir/router"
)

// A lane is the filter of one lane: an instance and its successors.
type lane struct {
	guest  *Guest
	turn   sync.Mutex  // see turns
	in     *instance   // nil before the first batch, and after a fault until there is a new one
	lost   bool        // the last one failed
	old    []*instance // were replaced, and are to have their last words
	ticked time.Time   // see turns
	spent  minute      // time that went into faults
	again  time.Time   // when a successor of an instance that is well is tried again, see change

	calls, failed int // of this batch, not yet in the guest's counts
}

const (
	turnTimes = 100 // × time: how long one batch may have the lane
	lookEvery = 64  // messages between two looks at the clock
)

var errTurn = errors.New("the batch has had its turn")

// Apply gives each message to the guest. It is never called concurrently.
func (l *lane) Apply(ctx context.Context, b *router.Batch) *router.Held {
	msgs, began, done := b.Messages(), time.Now(), 0
	if len(msgs) == 0 {
		return nil
	}
	defer l.settle()
	l.change(ctx)
	if l.guest.breaker.isOpen() {
		var held *router.Held
		if done, held = l.whileOpen(ctx, b, msgs, began); held != nil {
			return held
		}
	}
	if done == len(msgs) {
		return nil
	}
	held := l.filter(ctx, b, msgs[done:], began)
	if held != nil {
		held.Done += done
	}
	return held
}

// filter gives msgs to the guest, for as long as all is well.
func (l *lane) filter(ctx context.Context, b *router.Batch, msgs []*router.Message, began time.Time) *router.Held {
	for i, m := range msgs {
		if l.in == nil {
			if held := l.renew(ctx); held != nil {
				held.Done = i
				return held
			}
		}
		if t, ok := l.in.talk.(batcher); ok {
			rest := msgs[i:] // the others were another module's, which has failed and was replaced
			ok, stop := l.whole(ctx, t, b, rest)
			if !ok && stop == nil && l.failedTooOften() {
				stop = &router.Held{Done: len(rest), Retry: trialPause, Cause: l.guest.breaker.cause()}
			}
			if stop != nil {
				stop.Done += i
			}
			return stop
		}
		units := l.in.clock.Units()
		ok, stop := l.message(b, m)
		switch {
		case stop != nil:
			stop.Done = i + 1
			return stop
		case !ok && l.failedTooOften():
			return &router.Held{Done: i + 1, Retry: trialPause, Cause: l.guest.breaker.cause()}
		case i+1 == len(msgs), ok && i%lookEvery != lookEvery-1 && l.in.clock.Units() == units:
			continue
		}
		if time.Since(began) > turnTimes*l.guest.time {
			return &router.Held{Done: i + 1, Cause: errTurn}
		}
		if ctx.Err() != nil {
			return &router.Held{Done: i + 1, Retry: time.Second, Cause: context.Cause(ctx)}
		}
	}
	return nil
}

// whole gives all of msgs to an instance that lives for one batch. ok is false when the guest failed; stop is set when
// weir is to stop for it, or gives up.
func (l *lane) whole(ctx context.Context, t batcher, b *router.Batch, msgs []*router.Message) (ok bool, stop *router.Held) {
	in := l.in
	l.in = nil
	l.calls += len(msgs)
	in.begin(b, nil)
	cancel := context.AfterFunc(ctx, in.clock.Cancel)
	err := t.batch(in, b, msgs)
	cancel()
	in.flushOutput()
	if err == nil {
		in.discard()
		return true, nil
	}
	cause, text, trace := in.explain(err)
	if cause == causeCancelled { // nothing was done
		in.discard()
		l.calls -= len(msgs)
		return false, &router.Held{Retry: time.Second, Cause: context.Cause(ctx)}
	}
	l.costs(in.clock.Spent())
	in.discard()
	l.lost = true
	l.failed += len(msgs)
	l.guest.faulted(cause, text, trace)
	for _, m := range msgs {
		if stop = l.onError(b, m, cause, text); stop != nil {
			stop.Done = len(msgs)
		}
	}
	return false, stop
}

// The verdicts of weir_process (filters/ABI.md).
const (
	keep   = 0
	drop   = 1
	skip   = 2
	reject = 3
	failed = -1 // what the SDKs return for it; every other value means the same
)

// message gives m to the guest and does with m what it says. ok is false when the guest failed; stop is set when weir
// is to stop for it.
func (l *lane) message(b *router.Batch, m *router.Message) (ok bool, stop *router.Held) {
	l.calls++
	verdict, err := l.in.process(b, m)
	if err == nil {
		switch verdict {
		case keep:
			return true, nil
		case drop:
			b.Drop(m)
			return true, nil
		case skip:
			b.Skip(m)
			return true, nil
		case reject:
			l.in.undo()
			b.Reject(m, "rejected", reasonOr(l.in.reason, "the filter gave no reason"))
			return true, nil
		}
	}
	return false, l.fail(b, m, verdict, err)
}

func reasonOr(reason []byte, otherwise string) string {
	if len(reason) == 0 {
		return otherwise
	}
	return string(reason)
}

// fail undoes what the guest did to m and does with m what on_error says. A trap or a limit costs the instance.
func (l *lane) fail(b *router.Batch, m *router.Message, verdict int32, err error) (stop *router.Held) {
	g, in := l.guest, l.in
	cause, text, trace := causeFailed, reasonOr(in.reason, "the filter gave no reason"), ""
	switch {
	case err != nil:
		cause, text, trace = in.explain(err)
	case verdict != failed:
		cause, text = causeVerdict, fmt.Sprintf("verdict %d", verdict)
		if len(in.reason) > 0 {
			text += ": " + string(in.reason)
		}
	}
	in.undo()
	if err != nil {
		l.costs(in.clock.Spent())
		in.discard()
		l.in, l.lost = nil, true
	}
	l.failed++
	g.faulted(cause, text, trace)
	return l.onError(b, m, cause, text)
}

// onError does with a message on which the guest failed what the configuration says.
func (l *lane) onError(b *router.Batch, m *router.Message, cause cause, text string) (stop *router.Held) {
	g := l.guest
	switch g.onError {
	case Pass:
	case Drop:
		b.Drop(m)
	default:
		b.Reject(m, cause.String(), text)
	}
	if g.onError == Stop {
		return &router.Held{Stop: true, Cause: fmt.Errorf("filter %s failed: %s: %s", g.name, cause, text)}
	}
	return nil
}

// costs counts time that went into faults.
func (l *lane) costs(d time.Duration) {
	if l.spent.add(time.Now(), d) {
		l.guest.trip("over half of a minute of one lane went into its faults")
	}
}

// renew gets an instance.
func (l *lane) renew(ctx context.Context) *router.Held {
	g := l.guest
	began := time.Now()
	var in *instance
	var wait time.Duration
	var err error
	if l.lost {
		in, wait, err = g.take(ctx)
	} else if in = g.inStock(); in == nil { // the first of its lane is no fault's
		in, err = g.newInstance(ctx, g.program.Load())
	}
	if err == errSoon {
		return &router.Held{Retry: wait, Cause: err}
	}
	if err != nil && ctx.Err() != nil { // weir gives up, the guest is not to blame
		return &router.Held{Retry: time.Second, Cause: context.Cause(ctx)}
	}
	if err != nil {
		l.costs(time.Since(began))
		g.unmade(err)
		return &router.Held{Retry: slowPause, Cause: fmt.Errorf("filter %s: no instance can be made: %w", g.name, err)}
	}
	if l.lost {
		l.costs(time.Since(began))
	}
	g.breaker.made()
	l.in, l.lost = in, false
	return nil
}

// whileOpen is what happens to messages while the breaker is open: one a second is tried, the others are held, or go by
// where on_error allows that. done messages are finished; the rest is to be filtered as usual when held is nil.
func (l *lane) whileOpen(ctx context.Context, b *router.Batch, msgs []*router.Message, now time.Time) (done int, held *router.Held) {
	g := l.guest
	if g.breaker.trial(now) {
		if l.in == nil {
			l.renew(ctx)
		}
		if l.in != nil {
			ok, stop := l.try(ctx, b, msgs[:1])
			if ok {
				g.mend()
				return 1, nil
			}
			if stop != nil {
				return stop.Done, stop
			}
			done = 1
		}
	}
	if (g.onError == Pass || g.onError == Drop) && g.breaker.openFor(now) > goByAfter {
		if g.onError == Drop {
			for _, m := range msgs[done:] {
				b.Drop(m)
			}
		}
		return len(msgs), nil
	}
	if done == len(msgs) {
		return done, nil
	}
	return done, &router.Held{Done: done, Retry: trialPause, Cause: g.breaker.cause()}
}

// try gives one message to the guest.
func (l *lane) try(ctx context.Context, b *router.Batch, msgs []*router.Message) (ok bool, stop *router.Held) {
	if t, ok := l.in.talk.(batcher); ok {
		return l.whole(ctx, t, b, msgs)
	}
	if ok, stop = l.message(b, msgs[0]); stop != nil {
		stop.Done = 1
	}
	return ok, stop
}

// failedTooOften adds this batch up to now and reports whether the breaker is open.
func (l *lane) failedTooOften() bool {
	l.settleCounts()
	return l.guest.breaker.isOpen()
}

// settle ends a batch.
func (l *lane) settle() {
	if l.in != nil {
		l.in.rest()
	}
	l.settleCounts()
}

func (l *lane) settleCounts() {
	g := l.guest
	g.counts.calls.Add(uint64(l.calls))
	g.note(l.calls, l.failed)
	l.calls, l.failed = 0, 0
}
