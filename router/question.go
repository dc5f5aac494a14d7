package router

import (
	"sync/atomic"
	"time"
)

// A question is what one goroutine asks somebody outside, who may never answer; others see for how long it has been open.
type question struct{ at atomic.Int64 } // ns since epoch; 0: nothing is asked

// epoch is a moment to count from, on the clock that nobody puts right.
var epoch = time.Now()

func (q *question) ask()      { q.at.Store(int64(time.Since(epoch)) | 1) }
func (q *question) answered() { q.at.Store(0) }

// since is how long the question has been open; 0: there is none.
func (q *question) since() time.Duration {
	at := q.at.Load()
	if at == 0 {
		return 0
	}
	return max(0, time.Since(epoch)-time.Duration(at))
}
