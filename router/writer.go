package router

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
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

	stopping context.Context // ends with close
	stopped  context.CancelFunc

	told      told
	asked     question     // of the destination
	filling   question     // of the spool's disk, by fill
	reading   question     // of the spool's disk, by run
	committed atomic.Int64 // Unix ns of the last commit; 0: none yet

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
	number   uint64            // of the last message, without a spool
	arrived  int64             // Unix ns: no message that the spool has and the queue has not is older
	marks    map[string]uint64 // durable numbers of senders, where the spool has some that are not
}

// reached is a place in a run.
type reached struct {
	run RunID
	at  uint64
}

func newWriter(o *outlet, c Connection, f Flush) *writer {
	w := &writer{outlet: o, dest: c.Destination, spool: c.Spool, sync: c.Sync, old: c.Old, own: NewRun(), flush: f, log: o.router.log,
		wake: make(chan struct{}, 1), arrive: make(chan struct{}, 1), ended: make(chan struct{}),
		passing: newBackOff(100*time.Millisecond, 3*time.Second), slow: newBackOff(2*time.Second, 10*time.Second)}
	w.stopping, w.stopped = context.WithCancel(context.Background())
	w.at, _ = c.Destination.(Positioner)
	w.tender, _ = c.Destination.(Tender)
	if w.spool != nil {
		o.resume(w.spool.Backlog().Messages)
		w.disk = disk{behind: true, more: true}
	}
	return w
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
	w.stopped()
	w.nudge()
	w.feed()
}

// run writes until the writer is closed and empty, or until ctx, the drain, ends.
func (w *writer) run(ctx context.Context) {
	defer close(w.ended)
	// What waits for old connections goes first, one after the other: a sender may be in several of them.
	waited := false
	for _, o := range w.outlet.writers {
		if w.old && o == w {
			break
		}
		if o.old {
			<-o.ended
			waited = true
		}
	}
	if w.mu.Lock(); w.old && waited && w.closed {
		w.disk.more = false // weir stops: it stays where it is
	}
	w.mu.Unlock()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		if w.old && w.over() {
			break
		}
		if err := w.compare(ctx); err != nil {
			w.told.waits(w, err)
			if w.over() || w.keeps() {
				break
			}
			w.pauseFirst(ctx, err)
			continue
		}
		if w.spool != nil {
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
	return w.messages == 0 && (w.filled || w.old && !w.disk.more)
}

// keeps reports whether weir stops and the spool has all that is left.
func (w *writer) keeps() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.spool != nil && w.filled
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
