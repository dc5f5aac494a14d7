package router

import "sync/atomic"

// A receipt tells a source when its batch is safe on all its ways: committed, or
// synced to a disk buffer, or dropped by a filter. nil: nobody asked.
type receipt struct {
	open atomic.Int32
	lost atomic.Bool
	tell func(safe bool)
}

// Receipt asks for word of the batch: tell is called once, from any goroutine,
// when every message of it is safe, or as soon as that cannot come true any more (safe is false then).
// The mark is kept with the messages where there is a disk buffer. A source calls it before Deliver.
func (b *Batch) Receipt(mark Mark, tell func(safe bool)) {
	b.mark, b.receipt = mark, &receipt{tell: tell}
}

// expect says that n more places have to be told of.
func (r *receipt) expect(n int) {
	if r != nil {
		r.open.Add(int32(n))
	}
}

// settle says that one place has the messages, or has lost them.
func (r *receipt) settle(safe bool) {
	if r == nil {
		return
	}
	if !safe {
		r.lost.Store(true)
	}
	if r.open.Add(-1) == 0 {
		r.tell(!r.lost.Load())
	}
}
