package router

import (
	"math"
	"slices"
)

// queued is messages of a batch that wait; the first from of them are settled.
type queued struct {
	b     *Batch
	msgs  []*Message
	from  int
	share int // bytes of the destination's share that go back when it is done
	run   RunID
	first uint64 // number of msgs[0]
}

// A transaction is messages at the head of the queue, all of one run.
type transaction struct {
	run     RunID
	msgs    []*Message
	numbers []uint64 // of the messages
}

func (t transaction) to() uint64 { return t.numbers[len(t.numbers)-1] }

// slice is the transaction of some of the messages.
func (t transaction) slice(from, to int) transaction {
	return transaction{t.run, t.msgs[from:to], t.numbers[from:to]}
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
	if reason == "full" {
		w.told.loses(w, len(q.msgs)-q.from)
	}
	q.b.receipt.settle(false)
	q.b.done(w.outlet, q.share)
}

// mostTaken is how much of the destination's share a transaction may hold. With drop_oldest that is half of it: what is
// being written cannot be dropped, and were it all, the newest would be lost.
func (o *outlet) mostTaken() int {
	limit := o.router.budget.pools[o.share[0].pool].limit // never changed
	if o.whenFull == DropOldest {
		return limit / 2
	}
	return math.MaxInt
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
	bytes, held, most := 0, 0, w.outlet.mostTaken()
gather:
	for _, q := range w.queue {
		if held += q.share; q.run != t.run || held > most && len(t.msgs) > 0 {
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
		w.arrived = q.msgs[q.from-1].Received
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
