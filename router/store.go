package router

import (
	"context"
	"time"
)

// store brings the transaction into the destination, however long that takes,
// and settles its messages. It returns early only when ctx, the drain, ends;
// then what is not settled stays in the queue.
func (w *writer) store(ctx context.Context, msgs []*Message) {
	w.number++
	lettered := false // an attempt that failed has put rows into the dead letters
	reject := func(rows []Rejected) error {
		lettered, w.refused = true, len(rows)
		if err := w.keep(ctx, rows); err != nil {
			return err
		}
		w.told.refuses(w, len(rows), rows[0])
		return nil
	}
	passing := newBackOff(100*time.Millisecond, 3*time.Second)
	slow := newBackOff(2*time.Second, 10*time.Second)
	for {
		w.refused = 0
		if lettered {
			// What an attempt before this one rejected is void.
			if err := w.keep(ctx, nil); err != nil {
				w.told.waits(w, err)
				if !passing.wait(ctx) {
					return
				}
				continue
			}
			lettered = false
		}
		began := time.Now()
		hung := time.AfterFunc(time.Minute, func() { w.told.hangs(w, began) })
		err := w.dest.Write(ctx, msgs, reject)
		hung.Stop()
		switch {
		case err == nil:
			w.told.works(w)
			w.router.metrics.transaction.WithLabelValues(w.name).Observe(float64(len(msgs)))
			w.router.metrics.write.WithLabelValues(w.name).Observe(time.Since(began).Seconds())
			w.finish(len(msgs), w.refused)
			return
		case ctx.Err() != nil:
			return
		case IsPermanent(err) && len(msgs) > 1:
			if lettered && w.keep(ctx, nil) != nil {
				continue
			}
			half := len(msgs) / 2
			if w.store(ctx, msgs[:half]); ctx.Err() == nil {
				w.store(ctx, msgs[half:])
			}
			return
		case IsPermanent(err):
			culprit := []Rejected{{Message: msgs[0], Code: "permanent", Reason: err.Error()}}
			if err = w.keep(ctx, culprit); err == nil {
				w.told.refuses(w, 1, culprit[0])
				w.told.works(w)
				w.finish(1, 1)
				return
			}
		}
		w.told.waits(w, err)
		if !IsNeedsOperator(err) {
			if !passing.wait(ctx) {
				return
			}
			continue
		}
		if !slow.wait(ctx) {
			return
		}
		if len(msgs) == w.taken {
			// With more rows the destination may see that the table is right and one row wrong.
			msgs = w.cut()
		}
	}
}

func (w *writer) keep(ctx context.Context, rows []Rejected) error {
	return w.router.letters.Keep(ctx, LetterKey{Destination: w.name, Span: Span{Run: w.runID, From: w.number - 1, To: w.number}}, rows)
}
