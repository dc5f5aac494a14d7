package router

import (
	"context"
	"time"
)

// An attempt is what is known of the last try to write a transaction.
type attempt struct {
	span     Span
	lettered bool // it has put rows into the dead letters
	refused  int  // so many
}

// store brings a transaction into the destination, however long that takes, and
// settles its messages. It returns false when some of it was not settled: because ctx, the drain, has
// ended, or because it is to be read from the disk again.
func (w *writer) store(ctx context.Context, t transaction) bool {
	for {
		from, err := w.locate(ctx, t)
		back := false
		if err == nil {
			back, err = w.wentBack(ctx, t, from)
		}
		if back {
			return false
		}
		if err == nil {
			if t = w.skip(t, from); len(t.msgs) == 0 {
				w.told.works(w)
				return true
			}
			err = w.write(ctx, Span{t.run, from, t.to()}, t)
		}
		switch {
		case err == nil:
			w.works(reached{t.run, t.to()})
			w.finish(len(t.msgs), w.last.refused, w.done)
			w.last = attempt{}
			return true
		case ctx.Err() != nil:
			return false
		case IsPermanent(err) && len(t.msgs) > 1:
			half := len(t.msgs) / 2
			return w.store(ctx, t.slice(0, half)) && w.store(ctx, t.slice(half, len(t.msgs)))
		case IsPermanent(err):
			culprit := Rejected{Message: t.msgs[0], Number: t.to(), Code: "permanent", Reason: err.Error()}
			if err = w.refuse(ctx, Span{t.run, from, t.to()}, culprit); err == nil {
				continue // the position has moved: it is skipped
			}
		}
		w.told.waits(w, err)
		if !w.pause(ctx, err) {
			return false
		}
		if w.spool != nil {
			w.release() // it may take long: the disk has them
			return false
		}
		if IsNeedsOperator(err) && len(t.msgs) == w.taken {
			// With more rows the destination may see that the table is right and one row wrong.
			w.cut()
			t = w.tx
		}
	}
}

// write makes one attempt.
func (w *writer) write(ctx context.Context, span Span, t transaction) error {
	if v := w.last.span; w.last.lettered && (span.Run != v.Run || span.From < v.To) {
		// What an attempt before this one rejected is void, as it is not committed.
		if err := w.keep(ctx, Span{v.Run, v.From, v.From}, nil); err != nil {
			return err
		}
	}
	w.last = attempt{span: span}
	reject := func(rows []Rejected) error {
		i := 0
		for k := range rows {
			for t.msgs[i] != rows[k].Message {
				i++
			}
			rows[k].Number = t.numbers[i]
		}
		w.last.lettered, w.last.refused = true, len(rows)
		w.asked.answered() // it is the dead letters that are asked now
		defer w.asked.ask()
		if err := w.keep(ctx, w.last.span, rows); err != nil {
			return err
		}
		w.told.refuses(w, rows)
		return nil
	}
	began := time.Now()
	hung := time.AfterFunc(time.Minute, func() { w.told.hangs(w, began) })
	defer hung.Stop()
	var err error
	w.asked.ask()
	if w.at != nil {
		err = w.at.WriteAt(ctx, span, t.msgs, reject)
	} else {
		err = w.dest.Write(ctx, t.msgs, reject)
	}
	w.asked.answered()
	if err == nil {
		m := w.outlet.router.metrics
		m.transaction.WithLabelValues(w.outlet.name).Observe(float64(len(t.msgs)))
		m.write.WithLabelValues(w.outlet.name).Observe(time.Since(began).Seconds())
		w.committed.Store(time.Now().UnixNano())
	}
	return err
}

// refuse puts the culprit, which stands alone, into the dead letters, and moves the position over it.
func (w *writer) refuse(ctx context.Context, span Span, culprit Rejected) error {
	w.last = attempt{span: span, lettered: true, refused: 1}
	if err := w.keep(ctx, span, []Rejected{culprit}); err != nil {
		return err
	}
	w.told.refuses(w, []Rejected{culprit})
	if w.at == nil {
		w.done = reached{span.Run, span.To}
		return nil
	}
	w.asked.ask()
	defer w.asked.answered()
	return w.at.WriteAt(ctx, span, nil, nil)
}

// works notes a success.
func (w *writer) works(at reached) {
	w.done = at
	w.passing.reset()
	w.slow.reset()
	w.told.works(w)
}

// pause waits before the next attempt; it reports false when ctx ended, or when
// weir stops and the disk keeps what is left.
func (w *writer) pause(ctx context.Context, err error) bool {
	if w.keeps() {
		w.release()
		w.mu.Lock()
		w.disk.more = false
		w.mu.Unlock()
		return false
	}
	if IsNeedsOperator(err) {
		return w.slow.wait(ctx)
	}
	return w.passing.wait(ctx)
}

// pauseFirst is pause before anything was written: the stop ends it.
func (w *writer) pauseFirst(ctx context.Context, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if w.stopping.Err() == nil {
		defer context.AfterFunc(w.stopping, cancel)()
	} else if w.spool != nil {
		sleep(ctx, 100*time.Millisecond) // until fill has ended, then run is over
		return
	}
	w.pause(ctx, err)
}

// locate asks the destination how far the run of a transaction reaches.
func (w *writer) locate(ctx context.Context, t transaction) (from uint64, err error) {
	if w.at == nil {
		from = t.numbers[0] - 1
		if w.done.run == t.run {
			from = max(from, w.done.at)
		}
		return from, w.settleLetters(ctx)
	}
	if err := w.settleLetters(ctx); err != nil {
		return 0, err
	}
	from, _, err = w.position(ctx, t.run)
	return from, err
}

// position asks the destination how far a run reaches.
func (w *writer) position(ctx context.Context, run RunID) (at uint64, known bool, err error) {
	w.asked.ask()
	defer w.asked.answered()
	return w.at.Position(ctx, run)
}

// compare connects once before anything is written, so that a destination that is not there is told at
// the start, and looks whether it has all that the spool knows to be committed: it may have been put back meanwhile.
// Where it lacks something, everything that is still there is read again.
func (w *writer) compare(ctx context.Context) error {
	if w.at == nil || w.compared {
		return nil
	}
	run, acked := w.own, uint64(0)
	if w.spool != nil {
		if run, acked = w.spool.Acked(); acked == 0 {
			run = w.spool.Run()
		}
	}
	at, _, err := w.position(ctx, run)
	if err != nil {
		return err
	}
	if at < acked {
		w.told.wentBack(w, acked-at)
		w.goBack(true)
	}
	w.passing.reset()
	w.slow.reset()
	w.told.works(w)
	w.compared = true
	return nil
}

// settleLetters finds out which letters of processes that died are void: those
// of transactions that were never committed. The destination's first writer that
// connects does it; the others wait, because they may be about to write such a transaction again.
func (w *writer) settleLetters(ctx context.Context) error {
	o, letters := w.outlet, w.outlet.router.letters
	o.settling.Lock()
	defer o.settling.Unlock()
	if o.settled || letters == nil {
		return nil
	}
	runs, err := letters.Unsettled(ctx, o.name)
	if err != nil {
		return err
	}
	for _, run := range runs {
		at, known := uint64(0), false
		if w.at != nil {
			if at, known, err = w.position(ctx, run); err != nil {
				return err
			}
		}
		if !known { // the database forgot, or never heard of positions
			at = 1<<64 - 1
		}
		if err := letters.Settle(ctx, o.name, run, at); err != nil {
			return err
		}
	}
	o.settled = true
	return nil
}

// wentBack looks whether the destination has lost what it had committed: it was
// put back to a backup, or its machine crashed without durable commits. With a
// spool what is still there of it is read again, and wentBack reports true.
func (w *writer) wentBack(ctx context.Context, t transaction, from uint64) (back bool, err error) {
	was, at := w.done, from
	if was.run != t.run {
		// What was committed last, and is lost first, is the end of another run.
		if at = was.at; w.at != nil && was.at > 0 {
			if at, _, err = w.position(ctx, was.run); err != nil {
				return false, err
			}
		}
	}
	w.done = reached{t.run, from}
	if at >= was.at {
		return false, nil
	}
	w.told.wentBack(w, was.at-at)
	if w.spool != nil {
		w.goBack(true)
	}
	return w.spool != nil, nil
}

// skip settles the messages of a transaction that are in the destination
// already, by an attempt whose answer was lost or by a copy of this weir, and returns the others.
func (w *writer) skip(t transaction, from uint64) transaction {
	n := 0
	for n < len(t.numbers) && t.numbers[n] <= from {
		n++
	}
	if n == 0 {
		return t
	}
	refused := 0
	if w.last.span.Run == t.run && from >= w.last.span.To {
		refused = min(n, w.last.refused)
		w.last = attempt{}
	}
	w.finish(n, refused, reached{t.run, t.numbers[n-1]})
	w.pass(reached{t.run, from})
	return t.slice(n, len(t.msgs))
}

func (w *writer) keep(ctx context.Context, span Span, rows []Rejected) error {
	return w.outlet.router.letters.Keep(ctx, LetterKey{Destination: w.outlet.name, Span: span}, rows)
}

// tend lets the destination look after itself between transactions, about once
// a second, and returns when it is to be called again.
func (w *writer) tend(ctx context.Context) time.Duration {
	if w.spool == nil && w.tender == nil {
		return time.Hour
	}
	now := time.Now()
	w.told.refusals(w)
	if wait := w.tended.Sub(now); wait > 0 {
		return wait
	}
	if w.spool != nil {
		w.reading.ask()
		n := w.spool.Expire()
		w.reading.answered()
		w.outlet.settle(FateLost, "age", n)
	}
	pause := time.Second
	if w.tender != nil && !w.told.waiting() {
		w.asked.ask()
		more, note := w.tender.Tend(ctx)
		w.asked.answered()
		if w.told.notes(note); more {
			pause = 10 * time.Millisecond
		}
	}
	w.tended = now.Add(pause)
	return pause
}
