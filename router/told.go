package router

import (
	"strings"
	"sync"
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
	refused  time.Time // when dead letters were last told of
}

var reminders = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour}

// waits says that an attempt failed and will be repeated.
func (t *told) waits(w *writer, err error) {
	now := time.Now()
	t.mu.Lock()
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
	messages, bytes, oldest := w.backlog()
	w.log.Warn(what, "destination", w.name, "error", err, "for", now.Sub(since).Round(time.Second),
		"messages", messages, "bytes", bytes, "oldest", oldest.Round(time.Second), "holds_back", strings.Join(w.router.heldBack(w), " "))
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
	w.log.Info("destination works again", "destination", w.name, "after", time.Since(since).Round(time.Millisecond), "messages", messages)
}

// refuses says that n rows became dead letters: at once, then at most once a minute.
func (t *told) refuses(w *writer, n int, first Rejected) {
	now := time.Now()
	if !t.refused.IsZero() && now.Sub(t.refused) < time.Minute {
		return
	}
	t.refused = now
	w.log.Warn("destination refuses rows; they are dead letters (weir dlq ls)", "destination", w.name, "rows", n,
		"code", first.Code, "column", first.Column, "reason", first.Reason)
}

// hangs says that a transaction has not answered for a minute.
func (t *told) hangs(w *writer, began time.Time) {
	messages, bytes, oldest := w.backlog()
	w.log.Warn("destination does not answer", "destination", w.name, "for", time.Since(began).Round(time.Second),
		"messages", messages, "bytes", bytes, "oldest", oldest.Round(time.Second), "holds_back", strings.Join(w.router.heldBack(w), " "))
}

// part is the state of the writer for /readyz.
func (t *told) part(name string) Part {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := Part{Kind: "destination", Name: name, Ready: t.err == nil}
	if t.err != nil {
		p.Reason, p.Since = t.err.Error(), t.since
	}
	return p
}

// backlog is what waits in the writer's queue, and how long the oldest has.
func (w *writer) backlog() (messages, bytes int, oldest time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) > 0 {
		oldest = max(0, time.Since(time.Unix(0, w.queue[0].b.since)))
	}
	return w.messages, w.bytes, oldest
}

// heldBack names the sources that wait in Take because of this destination.
func (r *Router) heldBack(w *writer) (names []string) {
	if !r.budget.short(w.share[0].pool) {
		return nil
	}
	for _, in := range r.inlets {
		for _, c := range in.claims {
			if c.pool == w.share[0].pool {
				names = append(names, in.name)
			}
		}
	}
	return names
}
