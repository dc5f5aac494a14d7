package wasmhost

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// A breaker keeps a filter that always fails from failing through the whole stream. It is shared by a filter's lanes.
//
// It opens when an instance cannot be made five times in a row, when nine tenths of at least 200 messages in at least
// five seconds failed, or when a lane spends most of its time on faults: a few crafted lines do not open it. While it is
// open one message is tried every second; the first that works closes it.
type breaker struct {
	open atomic.Bool

	mu     sync.Mutex
	why    string
	since  time.Time // opened
	next   time.Time // of the next trial
	began  time.Time // of the count: at a failure; zero: none
	calls  int
	failed int
	unmade int // instances that could not be made, in a row
}

const (
	trialPause   = time.Second
	goByAfter    = 30 * time.Second // until on_error pass and drop let everything by
	leastCalls   = 200
	leastTime    = 5 * time.Second
	mostUnmade   = 5
	mostOfMinute = 30 * time.Second
)

func (k *breaker) isOpen() bool { return k.open.Load() }

// note counts calls, of which some failed, and reports whether the breaker opens by them.
func (k *breaker) note(now time.Time, calls, failed int) bool {
	if failed == 0 && calls == 0 {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.open.Load() {
		return false
	}
	if k.began.IsZero() {
		if failed == 0 {
			return false
		}
		k.began = now
	}
	k.calls += calls
	k.failed += failed
	if k.calls < leastCalls || now.Sub(k.began) < leastTime {
		return false
	}
	why := fmt.Sprintf("%d of %d messages failed in %v", k.failed, k.calls, now.Sub(k.began).Round(time.Second/10))
	bad := k.failed*10 >= k.calls*9
	k.began, k.calls, k.failed = time.Time{}, 0, 0
	return bad && k.tripped(now, why)
}

// trip opens the breaker and reports whether it was closed.
func (k *breaker) trip(now time.Time, why string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tripped(now, why)
}

func (k *breaker) tripped(now time.Time, why string) bool {
	if k.open.Load() {
		return false
	}
	k.open.Store(true)
	k.why, k.since, k.next = why, now, now.Add(trialPause)
	return true
}

// notMade notes an instance that could not be made and reports whether the breaker opens by it.
func (k *breaker) notMade(now time.Time, err error) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.unmade++; k.unmade < mostUnmade {
		return false
	}
	return k.tripped(now, fmt.Sprintf("no instance can be made: %v", err))
}

func (k *breaker) made() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.unmade = 0
}

// trial reports whether the caller is to try a message now; it is then nobody else's turn for a second.
func (k *breaker) trial(now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now.Before(k.next) {
		return false
	}
	k.next = now.Add(trialPause)
	return true
}

// mend closes the breaker and returns how long it was open; 0: it was not.
func (k *breaker) mend(now time.Time) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.open.Load() {
		return 0
	}
	k.open.Store(false)
	k.began, k.calls, k.failed, k.unmade = time.Time{}, 0, 0, 0
	return max(now.Sub(k.since), 1)
}

func (k *breaker) openFor(now time.Time) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return now.Sub(k.since)
}

func (k *breaker) cause() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return errors.New(k.why)
}

// state is what readiness tells.
func (k *breaker) state() (open bool, why string, since time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.open.Load(), k.why, k.since
}

// A minute adds up time within one minute at a time.
type minute struct {
	began time.Time
	spent time.Duration
}

// add reports whether over half of the minute is spent; it begins a new one then.
func (s *minute) add(now time.Time, d time.Duration) bool {
	if now.Sub(s.began) > time.Minute {
		s.began, s.spent = now, 0
	}
	if s.spent += d; s.spent <= mostOfMinute {
		return false
	}
	s.spent = 0
	return true
}
