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

// WhenFull says what happens when a destination's share of the memory, or its disk buffer, is used up.
type WhenFull string

const (
	Block      WhenFull = "block"       // its sources wait, nothing is lost
	DropOldest WhenFull = "drop_oldest" // the oldest that is not being written is lost
	DropNewest WhenFull = "drop_newest" // what does not fit is lost
)

// urgentPause bounds how often flush_severity may cut a transaction short: ten times a second.
const urgentPause = 100 * time.Millisecond

// writer gathers the messages of one connection into transactions. Batches come
// in by push, from any goroutine; run is the one goroutine that writes. With a
// disk buffer there is another one in between, fill (disk.go).
type writer struct {
	outlet *outlet
	dest   Destination
	at     Positioner // dest, when it is one
	tender Tender     // dest, when it is one
	spool  Spool      // nil: none
	sync   time.Duration
	old    bool  // only empties its spool, before the others begin
	own    RunID // in which messages are numbered without a spool
	flush  Flush
	log    *slog.Logger
	wake   chan struct{} // for run
	arrive chan struct{} // for fill
	ended  chan struct{} // closed when run is over
	told   told

	// Of run alone.
	tx            transaction
	done          reached // how far what the destination has reaches
	compared      bool    // the destination has what the spool knows to be committed
	last          attempt
	passing, slow backOff
	lastUrgent    time.Time
	tended        time.Time // when the destination is to be tended next

	mu       sync.Mutex
	incoming []queued // for fill
	queue    []queued
	messages int // in the queue
	bytes    int
	taken    int       // messages at the head that are being written
	urgent   bool      // one in the queue is as severe as flush.Severity
	closed   bool      // nothing will be pushed any more
	filled   bool      // and fill has ended
	until    time.Time // when run stops reading the disk, once closed
	disk     disk
	number   uint64 // of the last message, without a spool
}

// reached is a place in a run.
type reached struct {
	run RunID
	at  uint64
}

// A transaction is messages at the head of the queue, all of one run.
type transaction struct {
	run     RunID
	msgs    []*Message
	numbers []uint64 // of the messages
}

func (t transaction) to() uint64 { return t.numbers[len(t.numbers)-1] }

// part is the transaction of some of the messages.
func (t transaction) part(from, to int) transaction {
	return transaction{t.run, t.msgs[from:to], t.numbers[from:to]}
}

// queued is messages of a batch that wait; the first from of them are settled.
type queued struct {
	b     *Batch
	msgs  []*Message
	from  int
	share int // bytes of the destination's share that go back when it is done
	run   RunID
	first uint64 // number of msgs[0]
}

func newWriter(o *outlet, c Connection, f Flush) *writer {
	w := &writer{outlet: o, dest: c.Destination, spool: c.Spool, sync: c.Sync, old: c.Old, own: NewRun(), flush: f, log: o.router.log,
		wake: make(chan struct{}, 1), arrive: make(chan struct{}, 1), ended: make(chan struct{}),
		passing: newBackOff(100*time.Millisecond, 3*time.Second), slow: newBackOff(2*time.Second, 10*time.Second)}
	w.at, _ = c.Destination.(Positioner)
	w.tender, _ = c.Destination.(Tender)
	if w.spool != nil {
		o.resume(w.spool.Backlog().Messages)
		w.disk = disk{behind: true, more: true}
	}
	return w
}

// push queues messages of a delivered batch. It never waits.
func (w *writer) push(q queued) {
	if w.spool != nil {
		w.mu.Lock()
		w.incoming = append(w.incoming, q)
		w.mu.Unlock()
		w.feed()
		return
	}
	o := w.outlet
	if o.whenFull != Block && !o.router.budget.grow(o.share, q.share, false) {
		if o.whenFull == DropNewest || !w.makeRoom(q.share) {
			q.share = 0
			w.lose(q, "full")
			return
		}
	}
	w.mu.Lock()
	q.run, q.first = w.own, w.number+1
	w.number += uint64(len(q.msgs))
	signal := w.enqueue(q)
	w.mu.Unlock()
	if signal || w.pressed() {
		w.nudge()
	}
}

// enqueue puts q at the end of the queue and reports whether run is to look. w.mu is held.
func (w *writer) enqueue(q queued) bool {
	w.queue = append(w.queue, q)
	w.messages += len(q.msgs)
	worst, size := q.b.worst, q.b.size
	if len(q.msgs) < len(q.b.live) {
		worst, size = weigh(q.msgs)
	}
	w.bytes += size
	urgent := int(worst) <= w.flush.Severity
	w.urgent = w.urgent || urgent
	return urgent || w.messages == len(q.msgs) || w.messages >= w.flush.Messages || w.bytes >= w.flush.Bytes
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
		w.messages -= len(q.msgs) - q.from
		for _, m := range q.msgs[q.from:] {
			w.bytes -= m.size
		}
		w.mu.Unlock()
		w.lose(q, "full")
		if w.outlet.router.budget.grow(w.outlet.share, size, false) {
			return true
		}
	}
}

// lose gives up messages that are in no queue any more.
func (w *writer) lose(q queued, reason string) {
	w.outlet.settle(FateLost, reason, len(q.msgs)-q.from)
	q.b.receipt.settle(false)
	q.b.done(w.outlet, q.share)
}

func (w *writer) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// pressed reports whether a source waits for memory or for this destination's share.
func (w *writer) pressed() bool { return w.outlet.router.budget.pressed(w.outlet.share[0].pool) }

// close says that nothing will be pushed any more.
func (w *writer) close() {
	w.mu.Lock()
	w.closed, w.filled = true, w.spool == nil
	w.until = time.Now().Add(w.outlet.router.timeout / 3)
	w.mu.Unlock()
	w.nudge()
	w.feed()
}

// run writes until the writer is closed and empty, or until ctx, the drain, ends.
func (w *writer) run(ctx context.Context) {
	defer close(w.ended)
	if !w.old {
		for _, o := range w.outlet.writers {
			if o.old {
				<-o.ended
			}
		}
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		if w.spool != nil {
			if err := w.compare(ctx); err != nil {
				w.told.waits(w, err)
				if !w.pause(ctx, err) {
					break
				}
				continue
			}
			w.read(ctx)
		}
		wait := w.untilDue()
		if wait <= 0 {
			w.cut()
			w.store(ctx, w.tx)
			w.tend(ctx)
			continue
		}
		if w.over() {
			break
		}
		timer.Reset(min(wait, w.tend(ctx)))
		select {
		case <-w.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	w.abandon()
}

// over reports whether run has nothing left to do.
func (w *writer) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.old {
		return w.messages == 0 && !w.disk.more
	}
	return w.filled && w.messages == 0
}

// untilDue is how long the transaction that gathers has to wait for more.
func (w *writer) untilDue() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.messages == 0 {
		return time.Hour
	}
	now := time.Now()
	if w.messages >= w.flush.Messages || w.bytes >= w.flush.Bytes || w.filled || w.old || w.pressed() {
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

// cut makes the next transaction of the messages at the queue's head, where they
// stay until they are settled.
func (w *writer) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := &w.tx
	t.msgs, t.numbers = t.msgs[:0], t.numbers[:0]
	if len(w.queue) == 0 {
		return
	}
	t.run = w.queue[0].run
	bytes := 0
gather:
	for _, q := range w.queue {
		if q.run != t.run {
			break
		}
		for i, m := range q.msgs[q.from:] {
			if n := len(t.msgs); n == w.flush.Messages || n > 0 && bytes+m.size > w.flush.Bytes {
				break gather
			}
			bytes += m.size
			t.msgs, t.numbers = append(t.msgs, m), append(t.numbers, q.first+uint64(q.from+i))
		}
	}
	w.taken = len(t.msgs)
	w.urgent = w.urgent && w.taken < w.messages
}

// finish takes n written messages off the queue; rejected of them went to the
// dead letters. Batches that are done leave.
func (w *writer) finish(n, rejected int, to reached) {
	w.outlet.settle(FateRejected, "", rejected)
	w.outlet.settle(FateStored, "", n-rejected)
	w.mu.Lock()
	w.taken -= n
	w.messages -= n
	var done []queued
	for n > 0 {
		q := &w.queue[0]
		k := min(n, len(q.msgs)-q.from)
		for _, m := range q.msgs[q.from : q.from+k] {
			w.bytes -= m.size
		}
		q.from += k
		n -= k
		if q.from == len(q.msgs) {
			done = append(done, *q)
			w.queue[0] = queued{}
			w.queue = w.queue[1:]
		}
	}
	w.mu.Unlock()
	if w.spool != nil {
		w.spool.Ack(to.run, to.at)
	}
	for _, q := range done {
		if w.spool == nil {
			q.b.receipt.settle(true)
		}
		q.b.done(w.outlet, q.share)
	}
}

// abandon gives up what is left when the drain is over. What a spool has stays there.
func (w *writer) abandon() {
	w.mu.Lock()
	queue, incoming := w.queue, w.incoming
	w.queue, w.incoming, w.messages, w.bytes = nil, nil, 0, 0
	w.mu.Unlock()
	for _, q := range queue {
		if w.spool != nil {
			q.b.done(w.outlet, q.share)
		} else {
			w.lose(q, "drain")
		}
	}
	for _, q := range incoming {
		w.lose(q, "drain")
	}
}
