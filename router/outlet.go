package router

import (
	"slices"
	"strings"
	"sync"
)

// An outlet is a destination of the configuration: one writer for each of its
// connections, one share of the memory, one line of the ledger.
type outlet struct {
	name     string
	index    int // in the ledger
	router   *Router
	whenFull WhenFull
	share    []claim // its pool of the budget
	writers  []*writer
	takes    int // so many of the writers, the first, take what is new

	settling sync.Mutex
	settled  bool // dead letters of earlier processes are
}

// addDestinations makes the outlets, and the budget with a share for each.
func (r *Router) addDestinations(c Config) {
	memory := int(c.Memory - c.Memory/4)
	r.budget = &budget{pools: []pool{{limit: memory, press: func() {
		for _, o := range r.outlets {
			o.nudge()
		}
	}}}}
	r.ledger.dests = make([]account, len(c.Destinations))
	for i, d := range c.Destinations {
		o := &outlet{name: d.Name, index: i, router: r, whenFull: d.WhenFull, share: []claim{{pool: i + 1, times: 1}}}
		if o.whenFull == "" {
			o.whenFull = Block
		}
		for _, conn := range d.Connections() {
			o.writers = append(o.writers, newWriter(o, conn, d.Flush))
			if !conn.Old {
				o.takes = len(o.writers)
			}
		}
		r.outlets = append(r.outlets, o)
		r.budget.pools = append(r.budget.pools, pool{limit: memory / len(c.Destinations), press: o.nudge})
	}
}

// blocks reports whether sources wait for the destination's share. In front of a
// disk buffer they do: for as long as it takes to write.
func (o *outlet) blocks() bool { return o.whenFull == Block || o.writers[0].spool != nil }

func (o *outlet) nudge() {
	for _, w := range o.writers {
		w.nudge()
		w.feed()
	}
}

// push queues a delivered batch, of which msgs come here. It never waits.
func (o *outlet) push(b *Batch, msgs []*Message) {
	if len(msgs) == 0 {
		b.receipt.settle(true)
		if o.blocks() {
			b.done(o, b.hold.size)
		} else {
			b.done(o, 0)
		}
		return
	}
	if len(o.writers) == 1 || b.mark.Sender != "" {
		// A mark speaks for all of its batch, so one disk buffer has all of it.
		o.writerAt(hash(b.mark.Sender)).push(queued{b: b, msgs: msgs, share: b.hold.size})
		return
	}
	for _, q := range o.split(b, msgs) {
		q.writer.push(q.queued)
	}
}

// portion is what one writer gets of a batch.
type portion struct {
	writer *writer
	queued
}

// split sorts messages by the writers that their senders belong to. A batch of one sender stays whole.
func (o *outlet) split(b *Batch, msgs []*Message) []portion {
	var portions []portion
	for from := 0; from < len(msgs); {
		w := o.writerOf(msgs[from])
		to := from + 1
		for to < len(msgs) && (msgs[to].Origin == msgs[from].Origin && msgs[from].Origin.Peer != "" || o.writerOf(msgs[to]) == w) {
			to++
		}
		i := slices.IndexFunc(portions, func(p portion) bool { return p.writer == w })
		switch {
		case i < 0:
			portions = append(portions, portion{w, queued{b: b, msgs: msgs[from:to:to]}})
		default:
			portions[i].msgs = append(portions[i].msgs, msgs[from:to]...)
		}
		from = to
	}
	left := b.hold.size
	for i := range portions {
		portions[i].share = b.hold.size * len(portions[i].msgs) / len(msgs)
		left -= portions[i].share
	}
	portions[0].share += left
	b.open.Add(int32(len(portions) - 1))
	b.receipt.expect(len(portions) - 1)
	return portions
}

// writerOf goes by the sender: its address, or where there is none the
// hostname that it gives. So one sender's messages keep their order.
func (o *outlet) writerOf(m *Message) *writer {
	if m.Origin.Peer != "" {
		return o.writerAt(hash(m.Origin.Peer))
	}
	return o.writerAt(hash(m.Hostname))
}

// hash is FNV-1a.
func hash[T string | []byte](s T) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h
}

// writerAt is one of the writers that take what is new.
func (o *outlet) writerAt(h uint32) *writer { return o.writers[h%uint32(o.takes)] }

// settle notes in the ledger what became of n messages here.
func (o *outlet) settle(f Fate, reason string, n int) {
	if n == 0 {
		return
	}
	l := &o.router.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dests[o.index].settle(f, reason, n)
}

// resume notes n messages that were found in the disk buffer.
func (o *outlet) resume(n int) {
	if n == 0 {
		return
	}
	l := &o.router.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	a := &l.dests[o.index]
	a.inFlight += int64(n)
	a.add(FateResumed, "", n)
}

// safeLast is the highest number of a sender that numbers its messages which is durable in a disk buffer.
func (o *outlet) safeLast(sender string) (last uint64) {
	for _, w := range o.writers {
		last = max(last, w.safeLast(sender))
	}
	return last
}

// last is the highest number of such a sender in all disk buffers, with what is not durable yet.
func (o *outlet) last(sender string) (last uint64) {
	for _, w := range o.writers {
		last = max(last, w.spool.Last(sender))
	}
	return last
}

// keep notes at the end what is left in the disk buffer.
func (o *outlet) keep() {
	if o.writers[0].spool == nil {
		return
	}
	l := &o.router.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	a := &l.dests[o.index]
	a.settle(FateKept, "", int(a.inFlight))
}

// part is the destination's state for /readyz: that of the first writer that cannot go on.
func (o *outlet) part() Part {
	p := o.writers[0].part()
	for _, w := range o.writers[1:] {
		if q := w.part(); p.Ready && !q.Ready || p.Reason == "" {
			p = q
		}
	}
	return p
}

// heldBack names the sources that wait in Take because of this destination.
func (o *outlet) heldBack() string {
	if !o.router.budget.short(o.share[0].pool) {
		return ""
	}
	var names []string
	for _, in := range o.router.inlets {
		for _, c := range in.claims {
			if c.pool == o.share[0].pool {
				names = append(names, in.name)
			}
		}
	}
	return strings.Join(names, " ")
}

// done says that share bytes of the batch are settled at o. It gives them back to
// the destination's share and, at the last one, the batch's memory.
func (b *Batch) done(o *outlet, share int) {
	budget := b.hold.budget
	budget.give(o.share, share)
	if b.open.Add(-1) == 0 {
		budget.give(memoryClaim, b.hold.size)
		b.recycle()
	}
}

// memoryClaim is the claim to the memory alone.
var memoryClaim = []claim{{pool: 0, times: 1}}
