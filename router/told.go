package router

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// told remembers what the operator was told about a destination: the change of
// a state at once, then reminders after 1, 5 and 15 minutes and each hour.
type told struct {
	mu       sync.Mutex
	err      error     // why it waits; nil: it works
	operator bool      // only a person can mend it
	since    time.Time // it waits
	reminder time.Time
	steps    int
	refused  time.Time      // when dead letters were last told of
	codes    map[string]int // rows that are not told of yet, by code
	example  Rejected       // the last of them, without its message
	note     string         // of a destination that works
	lost     int            // messages given up because it is full, that were not told of
	lossTold time.Time
	full     error // why the disk buffer takes nothing; nil: it does
	fullFrom time.Time
	fullTold time.Time     // when it was last told that it takes nothing
	fullSaid bool          // of this time
	grown    growth        // of the disk buffer when the destination began to wait
	back     atomic.Uint64 // messages that the destination had committed and lost
	retries  atomic.Uint64 // attempts that failed
}

// A growth is how large a disk buffer was at a moment.
type growth struct {
	at    time.Time
	bytes int64
}

var reminders = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour}

// waits says that an attempt failed and will be repeated.
func (t *told) waits(w *writer, err error) {
	now := time.Now()
	t.retries.Add(1)
	t.mu.Lock()
	if t.err == nil && w.spool != nil {
		t.grown = growth{now, w.spool.Backlog().Waiting}
	}
	grown := t.grown
	first, changed := t.err == nil, t.operator != IsNeedsOperator(err)
	t.err, t.operator = err, IsNeedsOperator(err)
	if first {
		t.since, t.steps = now, 0
		t.reminder = now.Add(reminders[0])
	}
	due := !now.Before(t.reminder)
	if due {
		t.steps++
		if t.steps < len(reminders) {
			t.reminder = t.since.Add(reminders[t.steps])
		} else {
			t.reminder = now.Add(time.Hour)
		}
	}
	since := t.since
	t.mu.Unlock()
	if !first && !changed && !due {
		return
	}
	what := "destination waits"
	if IsNeedsOperator(err) {
		what = "destination waits for an operator"
	}
	w.log.Warn(what, append([]any{"destination", w.outlet.name, "error", err, "for", now.Sub(since).Round(time.Second)}, w.held(grown)...)...)
}

// held is what waits in a writer, as attributes of a log line.
func (w *writer) held(grown growth) []any {
	messages, bytes, oldest := w.backlog()
	out := []any{"messages", messages, "bytes", bytes, "oldest", oldest.Round(time.Second), "holds_back", w.outlet.heldBack()}
	if w.spool == nil {
		return out
	}
	b := w.spool.Backlog()
	out[3] = b.Waiting
	out = append(out, "disk_buffer", fmt.Sprintf("%d%%", b.Waiting*100/max(b.Limit, 1)))
	if more, d := b.Waiting-grown.bytes, time.Since(grown.at); more > 0 && d > time.Second {
		left := time.Duration(float64(b.Limit-b.Waiting) / float64(more) * float64(d))
		out = append(out, "full_in", left.Round(time.Second))
	}
	return out
}

// cannotFill says that the disk buffer took nothing: at once, then at most once a minute. A destination that is slower
// than its senders leaves the buffer full for a moment many times a second.
func (t *told) cannotFill(w *writer, err error) {
	now := time.Now()
	t.mu.Lock()
	if t.full == nil {
		t.fullFrom, t.fullSaid = now, false
	}
	t.full = err
	due := !t.fullSaid && (t.fullTold.IsZero() || now.Sub(t.fullTold) >= time.Minute)
	if due {
		t.fullSaid, t.fullTold = true, now
	}
	since := t.fullFrom
	t.mu.Unlock()
	if due {
		w.log.Warn("disk buffer takes nothing; its sources wait", append([]any{"destination", w.outlet.name, "error", err, "for", now.Sub(since).Round(time.Millisecond)}, w.held(growth{at: now})...)...)
	}
}

// fills says that the disk buffer took something, if it was told that it did not.
func (t *told) fills(w *writer) {
	t.mu.Lock()
	was, said, since := t.full, t.fullSaid, t.fullFrom
	t.full = nil
	t.mu.Unlock()
	if was != nil && said {
		w.log.Info("disk buffer works again", "destination", w.outlet.name, "after", time.Since(since).Round(time.Millisecond))
	}
}

// loses says that n messages were given up because there is no room for them: at once, then at most once a minute.
func (t *told) loses(w *writer, n int) {
	if n == 0 {
		return
	}
	now := time.Now()
	t.mu.Lock()
	t.lost += n
	due := t.lossTold.IsZero() || now.Sub(t.lossTold) >= time.Minute
	if n = t.lost; due {
		t.lost, t.lossTold = 0, now
	}
	t.mu.Unlock()
	if due {
		w.log.Warn("destination loses messages: there is no room for them", append([]any{"destination", w.outlet.name, "when_full", string(w.outlet.whenFull), "lost", n}, w.held(growth{at: now})...)...)
	}
}

// wentBack says that the destination no longer has n messages that it had committed.
func (t *told) wentBack(w *writer, n uint64) {
	t.back.Add(n)
	then := "they are gone: only a disk buffer could send them again"
	if w.spool != nil {
		then = "what the disk buffer still has of them is sent again"
	}
	w.log.Error("the destination has lost what it had committed: it was put back to an older state, or crashed without durable commits", "destination", w.outlet.name, "messages", n, "then", then)
}

// notes keeps what there is to know about a destination that works.
func (t *told) notes(note string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.note = note
}

// waiting reports whether the last attempt failed.
func (t *told) waiting() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err != nil
}

// works says that an attempt succeeded.
func (t *told) works(w *writer) {
	t.mu.Lock()
	was, since := t.err, t.since
	t.err = nil
	t.mu.Unlock()
	if was == nil {
		return
	}
	messages, _, _ := w.backlog()
	w.log.Info("destination works again", "destination", w.outlet.name, "after", time.Since(since).Round(time.Millisecond), "messages", messages)
}

// refuses says that rows became dead letters: at once, then at most once a minute. Of run alone.
func (t *told) refuses(w *writer, rows []Rejected) {
	if t.codes == nil {
		t.codes = map[string]int{}
	}
	for _, r := range rows {
		t.codes[r.Code]++
	}
	t.example = Rejected{Code: rows[0].Code, Column: rows[0].Column, Reason: rows[0].Reason}
	t.refusals(w)
}

// refusals tells of what is untold, when it is time.
func (t *told) refusals(w *writer) {
	now := time.Now()
	if len(t.codes) == 0 || !t.refused.IsZero() && now.Sub(t.refused) < time.Minute {
		return
	}
	t.refused = now
	n, codes := 0, ""
	for _, code := range slices.Sorted(maps.Keys(t.codes)) {
		n += t.codes[code]
		codes += fmt.Sprintf(" %s:%d", code, t.codes[code])
	}
	clear(t.codes)
	w.log.Warn("destination refuses rows; they are dead letters (weir dlq ls)", "destination", w.outlet.name, "rows", n, "codes", codes[1:],
		"code", t.example.Code, "column", t.example.Column, "reason", t.example.Reason)
}

// hangs says that a transaction has not answered for a minute.
func (t *told) hangs(w *writer, began time.Time) {
	w.log.Warn("destination does not answer", append([]any{"destination", w.outlet.name, "for", time.Since(began).Round(time.Second)}, w.held(growth{at: began})...)...)
}

// part is the state of the writer for /readyz.
func (w *writer) part() Part {
	t := &w.told
	t.mu.Lock()
	defer t.mu.Unlock()
	p := Part{Kind: "destination", Name: w.outlet.name, Ready: true, Reason: t.note}
	switch {
	case t.err != nil:
		p.Ready, p.Reason, p.Since = false, t.err.Error(), t.since
		if t.full != nil {
			p.Reason += "; and its disk buffer takes nothing: " + t.full.Error()
		}
	case t.full != nil:
		p.Ready, p.Reason, p.Since = false, "disk buffer: "+t.full.Error(), t.fullFrom
	}
	if t.full != nil {
		p.Trouble = t.full.Error()
	}
	return p
}

// backlog is what waits in the writer's queue, and how long the oldest has.
func (w *writer) backlog() (messages, bytes int, oldest time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	age := func(ns int64) time.Duration { return max(0, time.Since(time.Unix(0, ns))) }
	if w.spool == nil {
		if len(w.queue) > 0 {
			oldest = age(w.queue[0].b.since)
		}
		return w.messages, w.bytes, oldest
	}
	b := w.spool.Backlog()
	switch {
	case b.Messages == 0:
	case len(w.queue) > 0:
		oldest = age(w.queue[0].msgs[w.queue[0].from].Received)
	case w.arrived > 0:
		oldest = age(w.arrived)
	case !b.Oldest.IsZero():
		oldest = age(b.Oldest.UnixNano())
	}
	return b.Messages, w.bytes, oldest
}
