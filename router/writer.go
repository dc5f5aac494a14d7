package router

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"
)

// A Flush says when a writer ends a transaction: whichever comes first.
type Flush struct {
	Messages int           // exactly so many when there are that many
	Bytes    int           // at most so many, but at least one message
	After    time.Duration // the longest that a message waits for others
	Severity int           // at once for a message as severe as this or worse (RFC 5424 numbers); negative: never
}

// WhenFull says what happens when a destination's share of the memory is used up.
type WhenFull string

const (
	Block      WhenFull = "block"       // its sources wait, nothing is lost
	DropOldest WhenFull = "drop_oldest" // the oldest batch that is not being written is lost
	DropNewest WhenFull = "drop_newest" // the batch that does not fit is lost
)

// urgentPause bounds how often flush_severity may cut a transaction short: ten times a second.
const urgentPause = 100 * time.Millisecond

// writer gathers the messages of one destination into transactions. Batches
// come in by push, from any goroutine; run is the one goroutine that writes.
type writer struct {
	name     string
	runID    RunID
	dest     Destination
	flush    Flush
	whenFull WhenFull
	router   *Router
	log      *slog.Logger
	index    int     // in the ledger
	share    []claim // its pool of the budget
	wake     chan struct{}
	told     told

	// Of run alone.
	tx         []*Message
	number     uint64 // of the transaction, for its dead letters
	refused    int    // rows that the attempt at hand put into the dead letters
	lastUrgent time.Time

	mu       sync.Mutex
	queue    []queued
	messages int // in the queue
	bytes    int
	taken    int  // messages at the head that are being written
	urgent   bool // one in the queue is as severe as flush.Severity
	closed   bool // nothing will be pushed any more
}

// queued is a batch that waits; the first from messages of it are settled.
type queued struct {
	b    *Batch
	msgs []*Message
	from int
}

// push queues a delivered batch, of which msgs come here. It never waits.
func (w *writer) push(b *Batch, msgs []*Message) {
	if len(msgs) == 0 {
		if w.whenFull == Block {
			b.done(w)
		} else {
			b.done(nil)
		}
		return
	}
	if w.whenFull != Block && !w.router.budget.grow(w.share, b.hold.size, false) {
		if w.whenFull == DropNewest || !w.makeRoom(b.hold.size) {
			w.settle(FateLost, "full", len(msgs))
			b.done(nil)
			return
		}
	}
	w.mu.Lock()
	w.queue = append(w.queue, queued{b: b, msgs: msgs})
	w.messages += len(msgs)
	worst, size := b.worst, b.size
	if len(msgs) < len(b.live) {
		worst, size = weigh(msgs)
	}
	w.bytes += size
	urgent := int(worst) <= w.flush.Severity
	w.urgent = w.urgent || urgent
	signal := urgent || w.messages == len(msgs) || w.messages >= w.flush.Messages || w.bytes >= w.flush.Bytes
	w.mu.Unlock()
	if signal || w.pressed() {
		w.nudge()
	}
}

// weigh is the most severe severity of messages and their bytes.
func weigh(msgs []*Message) (worst uint8, size int) {
	worst = math.MaxUint8
	for _, m := range msgs {
		size += m.size
		worst = min(worst, m.Severity)
	}
	return worst, size
}

// makeRoom loses the oldest batches that are not being written, until size
// bytes of the share could be taken for a new one.
func (w *writer) makeRoom(size int) bool {
	for {
		w.mu.Lock()
		i, n := 0, 0 // the first batch behind what is being written
		for i < len(w.queue) && n < w.taken {
			n += len(w.queue[i].msgs) - w.queue[i].from
			i++
		}
		if i == len(w.queue) {
			w.mu.Unlock()
			return false
		}
		q := w.queue[i]
		w.queue = slices.Delete(w.queue, i, i+1)
		n = len(q.msgs) - q.from
		w.messages -= n
		for _, m := range q.msgs[q.from:] {
			w.bytes -= m.size
		}
		w.mu.Unlock()
		w.settle(FateLost, "full", n)
		q.b.done(w)
		if w.router.budget.grow(w.share, size, false) {
			return true
		}
	}
}

func (w *writer) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// pressed reports whether a source waits for memory or for this destination's share.
func (w *writer) pressed() bool { return w.router.budget.pressed(w.share[0].pool) }

// close says that nothing will be pushed any more.
func (w *writer) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.nudge()
}

// run writes until the writer is closed and empty, or until ctx, the drain, ends.
func (w *writer) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		wait := w.untilDue()
		if wait <= 0 {
			w.store(ctx, w.cut())
			continue
		}
		w.mu.Lock()
		over := w.closed && w.messages == 0
		w.mu.Unlock()
		if over {
			return
		}
		timer.Reset(wait)
		select {
		case <-w.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	w.lose()
}

// untilDue is how long the transaction that gathers has to wait for more.
func (w *writer) untilDue() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.messages == 0 {
		return time.Hour
	}
	now := time.Now()
	if w.messages >= w.flush.Messages || w.bytes >= w.flush.Bytes || w.closed || w.pressed() {
		return 0
	}
	wait := time.Unix(0, w.queue[0].b.since).Add(w.flush.After).Sub(now)
	if w.urgent {
		if pause := w.lastUrgent.Add(urgentPause).Sub(now); pause > 0 {
			return min(wait, pause)
		}
		w.lastUrgent = now
		return 0
	}
	return wait
}

// cut takes the next transaction's messages off the queue's head, where they
// stay until they are settled.
func (w *writer) cut() []*Message {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tx = w.tx[:0]
	bytes := 0
gather:
	for _, q := range w.queue {
		for _, m := range q.msgs[q.from:] {
			if n := len(w.tx); n == w.flush.Messages || n > 0 && bytes+m.size > w.flush.Bytes {
				break gather
			}
			bytes += m.size
			w.tx = append(w.tx, m)
		}
	}
	w.taken = len(w.tx)
	w.urgent = w.urgent && w.taken < w.messages
	return w.tx
}

// finish takes n written messages off the queue; rejected of them went to the
// dead letters. Batches that are done leave.
func (w *writer) finish(n, rejected int) {
	w.settle(FateRejected, "", rejected)
	w.settle(FateStored, "", n-rejected)
	w.mu.Lock()
	w.taken -= n
	w.messages -= n
	var done []*Batch
	for n > 0 {
		q := &w.queue[0]
		k := min(n, len(q.msgs)-q.from)
		for _, m := range q.msgs[q.from : q.from+k] {
			w.bytes -= m.size
		}
		q.from += k
		n -= k
		if q.from == len(q.msgs) {
			done = append(done, q.b)
			w.queue[0] = queued{}
			w.queue = w.queue[1:]
		}
	}
	w.mu.Unlock()
	for _, b := range done {
		b.done(w)
	}
}

// lose gives up what is left when the drain is over.
func (w *writer) lose() {
	w.mu.Lock()
	queue, n := w.queue, w.messages
	w.queue, w.messages, w.bytes = nil, 0, 0
	w.mu.Unlock()
	w.settle(FateLost, "drain", n)
	for _, q := range queue {
		q.b.done(w)
	}
}

func (w *writer) settle(f Fate, reason string, n int) {
	if n == 0 {
		return
	}
	l := &w.router.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dests[w.index].settle(f, reason, n)
}

// done says that the batch is settled at w, or was never queued there when w is
// nil. It gives back the destination's share and, at the last one, the memory.
func (b *Batch) done(w *writer) {
	size, budget := b.hold.size, b.hold.budget
	if w != nil {
		budget.give(w.share, size)
	}
	if b.open.Add(-1) == 0 {
		budget.give(memoryClaim, size)
		b.recycle()
	}
}

// memoryClaim is the claim to the memory alone.
var memoryClaim = []claim{{pool: 0, times: 1}}
