package socket

import (
	"sync"
	"time"

	"github.com/weirlog/weir/router"
)

// tails charges what connections store of unfinished frames to the part of the
// memory that is set aside for them. When that is used up, the connection
// whose frame has been unfinished for longest is closed.
type tails struct {
	mu    sync.Mutex
	quota *router.Quota
	conns map[*tail]struct{}
}

// A tail is one connection's part.
type tail struct {
	all   *tails
	close func() // called once, with all.mu held: the connection is to end

	charged int       // bytes; guarded by all.mu
	since   time.Time // when the unfinished frame began; zero: none; guarded by all.mu
	closed  bool      // guarded by all.mu
}

func (a *tails) set(q *router.Quota) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.quota = q
}

func (a *tails) add(t *tail) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.conns == nil {
		a.conns = map[*tail]struct{}{}
	}
	t.all = a
	a.conns[t] = struct{}{}
}

func (t *tail) remove() {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	delete(t.all.conns, t)
	t.all.quota.Give(t.charged)
	t.charged = 0
}

// grow is the Framer's hook.
func (t *tail) grow(old, new int) bool {
	a := t.all
	a.mu.Lock()
	defer a.mu.Unlock()
	if t.closed {
		return false // what we hold was given to another
	}
	if new <= old {
		a.quota.Give(old - new)
		t.charged -= old - new
		return true
	}
	for !a.quota.Take(new - old) {
		oldest := t
		for c := range a.conns {
			if c.charged > 0 && !c.since.IsZero() && (oldest.since.IsZero() || c.since.Before(oldest.since)) {
				oldest = c
			}
		}
		if oldest.charged == 0 || oldest == t {
			t.closed = true
			return false
		}
		// Its memory follows as soon as its goroutine has seen it.
		oldest.closed = true
		a.quota.Give(oldest.charged)
		oldest.charged = 0
		oldest.close()
	}
	t.charged += new - old
	return true
}

// unfinished notes whether a frame is unfinished. It is called after each read
// at whose beginning or end one is.
func (t *tail) unfinished(is bool) {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	switch {
	case !is:
		t.since = time.Time{}
	case t.since.IsZero():
		t.since = time.Now()
	}
}

func (t *tail) isClosed() bool {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	return t.closed
}
