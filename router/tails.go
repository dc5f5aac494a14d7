package router

import (
	"sync"
	"time"
)

// Tails is the part of the memory that is set aside for unfinished messages, of
// all connections of all sources. When it is used up, the connection whose
// message has been unfinished for longest is closed: a few stuck senders must
// not keep the others from being read. It is safe for concurrent use.
type Tails struct {
	mu          sync.Mutex
	limit, used int64
	open        map[*Tail]struct{}
}

// A Tail is one connection's part. Its methods are called by the goroutine that
// reads the connection.
type Tail struct {
	all     *Tails
	evict   func()
	charged int64     // guarded by all.mu, as all below
	since   time.Time // when the unfinished message began; zero: there is none
	evicted bool
}

// NewTails sets limit bytes aside.
func NewTails(limit int64) *Tails { return &Tails{limit: limit, open: map[*Tail]struct{}{}} }

// Open adds a connection. evict is called when it is to end, at most once, by
// another goroutine that holds a lock: it must not wait.
func (a *Tails) Open(evict func()) *Tail {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := &Tail{all: a, evict: evict}
	a.open[t] = struct{}{}
	return t
}

// Used is how many bytes are taken.
func (a *Tails) Used() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used
}

// Close gives everything back. The connection has ended.
func (t *Tail) Close() {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	delete(t.all.open, t)
	t.all.used -= t.charged
	t.charged = 0
}

// Resize charges new instead of old bytes, and evicts others if there is no
// room. It returns false when the connection itself is to end: it is the oldest,
// or was evicted already.
func (t *Tail) Resize(old, new int) bool {
	a := t.all
	a.mu.Lock()
	defer a.mu.Unlock()
	more := int64(new - old)
	for !t.evicted && more > 0 && a.used+more > a.limit {
		oldest := t
		for o := range a.open {
			if o.charged > 0 && !o.since.IsZero() && (oldest.since.IsZero() || o.since.Before(oldest.since)) {
				oldest = o
			}
		}
		// Its memory follows as soon as its goroutine has seen it.
		oldest.evicted = true
		a.used -= oldest.charged
		oldest.charged = 0
		if oldest != t {
			oldest.evict()
		}
	}
	if t.evicted {
		return false // what it held was given to another
	}
	t.charged += more
	a.used += more
	if more > 0 && t.since.IsZero() {
		t.since = time.Now() // not only when the read is over: others may look for the oldest meanwhile
	}
	if t.charged < 0 {
		panic("BUG: a tail gives back more than it took")
	}
	return true
}

// Unfinished notes whether a message is unfinished now, and since when one is.
func (t *Tail) Unfinished(is bool) {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	switch {
	case !is:
		t.since = time.Time{}
	case t.since.IsZero():
		t.since = time.Now()
	}
}

// Evicted reports whether the connection was chosen to end.
func (t *Tail) Evicted() bool {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	return t.evicted
}
