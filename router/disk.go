package router

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"
)

// disk is what a writer knows of its spool.
//
// Every message is appended and synced first, by fill. While the writer keeps up
// its batch stays in memory and goes into the queue (follow). When the share of
// the memory is nearly used up, or the destination fails, memory is let go: then
// the writer is behind, and reads from the disk until it has caught up. The
// spool's reader is always behind the last message of the queue.
type disk struct {
	behind  bool    // the spool has messages that were not in the queue
	more    bool    // there are some that read has not seen
	reading bool    // read is at work
	end     reached // the last message that read has put into the queue
}

// feed wakes fill.
func (w *writer) feed() {
	select {
	case w.arrive <- struct{}{}:
	default:
	}
}

// fill brings what is pushed into the spool, and behind a sync into the queue,
// until the writer is closed or ctx, the drain, ends.
func (w *writer) fill(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var fresh []queued // appended and not synced
	var due time.Time  // for the sync
	defer func() {
		for _, q := range fresh { // they may be on the disk, but nobody knows
			q.b.receipt.settle(false)
			q.b.done(w.outlet, q.share)
		}
		w.mu.Lock()
		w.filled = true
		w.mu.Unlock()
		w.nudge()
	}()
	for ctx.Err() == nil {
		w.mu.Lock()
		incoming, closed := w.incoming, w.closed
		w.incoming = nil
		w.mu.Unlock()
		for i, q := range incoming {
			if !w.append(ctx, &q, &fresh) {
				incoming[i] = q // what it had sent twice is settled
				w.mu.Lock()
				w.incoming = slices.Concat(incoming[i:], w.incoming) // abandon counts them
				w.mu.Unlock()
				break
			}
		}
		switch {
		case len(fresh) == 0 && closed: // incoming was the last
			return
		case len(fresh) == 0:
			timer.Reset(time.Hour)
		case w.sync == 0 || closed || w.pressed() || !due.IsZero() && !time.Now().Before(due):
			if !w.safe(ctx, &fresh) {
				return
			}
			due = time.Time{}
			continue
		default:
			if due.IsZero() {
				due = time.Now().Add(w.sync)
			}
			timer.Reset(time.Until(due))
		}
		select {
		case <-w.arrive:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

// append brings messages into the spool, or loses them by when_full, however
// long that takes. It reports false when ctx ended before.
func (w *writer) append(ctx context.Context, q *queued, fresh *[]queued) bool {
	if w.resent(q) {
		*fresh = append(*fresh, *q) // what is there already may not be durable yet
		return true
	}
	pause := newBackOff(20*time.Millisecond, time.Second)
	for {
		w.unsafe(q.b.mark.Sender) // again after safe
		w.filling.ask()
		first, err := w.spool.Append(q.msgs, q.b.mark)
		w.filling.answered()
		if err == nil {
			q.run, q.first = w.spool.Run(), first
			*fresh = append(*fresh, *q)
			return true
		}
		// What is fresh makes room when it is written, and may be dropped only when
		// it has left the memory.
		if len(*fresh) > 0 {
			if !w.safe(ctx, fresh) {
				return false
			}
			continue
		}
		if errors.Is(err, ErrSpoolFull) {
			switch w.outlet.whenFull {
			case DropOldest:
				n, dropErr := w.spool.DropOldest()
				w.told.loses(w, n)
				if w.outlet.settle(FateLost, "full", n); n > 0 {
					continue
				}
				if dropErr == nil {
					w.lose(*q, "full")
					return true
				}
				err = dropErr
			case DropNewest:
				w.lose(*q, "full")
				return true
			}
		}
		w.told.cannotFill(w, err)
		if !pause.wait(ctx) {
			return false
		}
	}
}

// safe syncs what is fresh and hands it on. It reports false when ctx ended before.
func (w *writer) safe(ctx context.Context, fresh *[]queued) bool {
	pause := newBackOff(20*time.Millisecond, time.Second)
	for {
		w.filling.ask()
		err := w.spool.Sync()
		w.filling.answered()
		if err == nil {
			break
		}
		w.told.cannotFill(w, err)
		if !pause.wait(ctx) {
			return false
		}
	}
	w.told.fills(w)
	w.mu.Lock()
	clear(w.marks)
	w.mu.Unlock()
	for i, q := range *fresh {
		q.b.receipt.settle(true)
		if len(q.msgs) > 0 {
			w.follow(q)
		} else {
			q.b.done(w.outlet, q.share)
		}
		(*fresh)[i] = queued{}
	}
	*fresh = (*fresh)[:0]
	return true
}

// follow puts messages that are safe into the queue, or leaves them to the disk.
func (w *writer) follow(q queued) {
	last := reached{q.run, q.first + uint64(len(q.msgs)) - 1}
	w.mu.Lock()
	read := w.disk.end.run == q.run && w.disk.end.at >= last.at // between the sync and now
	caughtUp := !w.disk.behind || !w.disk.more && !w.disk.reading
	kept := !read && caughtUp && w.outlet.roomy()
	signal := true
	switch {
	case kept:
		w.disk.behind = false
		w.spool.Seek(last.run, last.at)
		signal = w.enqueue(q)
	case !read:
		w.disk.behind, w.disk.more = true, true
	}
	w.mu.Unlock()
	if !kept {
		q.b.done(w.outlet, q.share)
	}
	if signal || w.pressed() {
		w.nudge()
	}
}

// roomy reports whether the destination's share has room for batches that only wait. They leave half of it,
// so that sources still find room for a batch while the destination takes nothing.
func (o *outlet) roomy() bool {
	g := o.router.budget
	g.mu.Lock()
	defer g.mu.Unlock()
	own, all := &g.pools[o.share[0].pool], &g.pools[0]
	return own.short == 0 && all.short == 0 && own.used <= own.limit/2 && all.used <= all.limit/2
}

// read fills the queue from the disk for the next transaction, while the writer is behind.
func (w *writer) read(ctx context.Context) {
	for {
		w.mu.Lock()
		messages, bytes := w.flush.Messages-w.messages, w.flush.Bytes-w.bytes
		if !w.disk.more || messages <= 0 || bytes <= 0 || w.closed && time.Now().After(w.until) {
			w.mu.Unlock()
			return
		}
		w.disk.more, w.disk.reading = false, true
		w.mu.Unlock()
		b := w.outlet.batch(messages)
		w.reading.ask()
		run, first, lost, err := w.spool.Read(b, bytes)
		w.reading.answered()
		w.outlet.settle(FateLost, "damaged", lost)
		w.mu.Lock()
		w.disk.reading = false
		if n := len(b.live); n > 0 {
			w.disk.more = true
			w.disk.end = reached{run, first + uint64(n) - 1}
			for _, m := range b.live {
				m.size = m.Size()
			}
			b.worst, b.size = weigh(b.live)
			b.since = time.Now().UnixNano()
			b.open.Store(1)
			b.hold.size, b.hold.used = 0, 0
			w.enqueue(queued{b: b, msgs: b.live, run: run, first: first})
			b = nil
		} else if err != io.EOF {
			w.disk.more = true
		}
		w.mu.Unlock()
		if b != nil {
			b.free()
		}
		if err != nil && err != io.EOF {
			w.told.waits(w, err)
			if !w.passing.wait(ctx) {
				return
			}
		}
	}
}

// batch is an empty batch for what comes from the disk. Its memory is beside the
// budget, so that it holds no source back however long the destination is away: at
// most two transactions of it exist, which check adds up.
func (o *outlet) batch(messages int) *Batch {
	return takeBatch(messages, reservation{budget: o.router.budget})
}

// release lets the memory of the queue go; it will be read from the disk.
func (w *writer) release() { w.goBack(false) }

// goBack empties the queue and puts the reader to the first message that is not
// acknowledged, or to the oldest that the disk still has.
func (w *writer) goBack(all bool) {
	w.mu.Lock()
	queue, n := w.queue, w.messages
	if n > 0 {
		w.arrived = queue[0].msgs[queue[0].from].Received
	}
	if all {
		w.arrived = 0
	}
	w.queue, w.messages, w.bytes, w.taken, w.urgent = nil, 0, 0, 0, false
	more := w.spool.Rewind(all) - n
	w.disk = disk{behind: true, more: true}
	w.mu.Unlock()
	w.outlet.resume(max(more, 0))
	w.outlet.settle(FateLost, "damaged", max(-more, 0))
	for _, q := range queue {
		q.b.done(w.outlet, q.share)
	}
}

// pass moves the reader over what the destination has already.
func (w *writer) pass(to reached) {
	if w.spool == nil {
		return
	}
	w.mu.Lock()
	n := 0
	if w.messages == 0 {
		n = w.spool.Seek(to.run, to.at)
	}
	w.spool.Ack(to.run, to.at)
	w.mu.Unlock()
	w.outlet.settle(FateStored, "", n)
}

// resent leaves out what a sender that resumes has sent twice. It reports true when nothing is left.
func (w *writer) resent(q *queued) bool {
	if q.b.mark.Sender == "" {
		return false
	}
	last := w.outlet.last(q.b.mark.Sender)
	msgs := slices.DeleteFunc(slices.Clone(q.msgs), func(m *Message) bool { return m.Serial <= last })
	w.outlet.settle(FateStored, "resent", len(q.msgs)-len(msgs))
	q.msgs = msgs
	return len(msgs) == 0
}

// unsafe says that more of a sender that numbers is about to be appended: until
// the next sync it is not durable.
func (w *writer) unsafe(sender string) {
	if sender == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, there := w.marks[sender]; !there {
		if w.marks == nil {
			w.marks = map[string]uint64{}
		}
		w.marks[sender] = w.spool.Last(sender)
	}
}

// safeLast is the highest number of a sender that is durable here.
func (w *writer) safeLast(sender string) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last, ok := w.marks[sender]; ok {
		return last
	}
	return w.spool.Last(sender)
}
