package router

import (
	"runtime/debug"
	"sync"
	"time"
)

// A Clock judges whether the wall clock may be used to tell how old something
// is. Boxes without a battery start in 1970 and jump when they learn the time. The
// zero value is ready; it is not safe for concurrent use.
type Clock struct {
	start  time.Time     // zero of ran
	wall   time.Time     // read together with ran
	ran    time.Duration // by the monotonic clock
	jumped bool          // then, and an hour has not passed since
}

// Trusted reports whether now, which must come from time.Now, is later than
// Built, and the wall clock has not moved by over an hour against the monotonic
// one within the last hour. It notices a jump only between two calls: ask
// regularly.
func (c *Clock) Trusted(now time.Time) bool {
	if c.start.IsZero() {
		c.start, c.wall = now, now
	}
	return c.judge(now, now.Sub(c.start))
}

func (c *Clock) judge(wall time.Time, ran time.Duration) bool {
	if off := wall.Round(0).Sub(c.wall.Round(0)) - (ran - c.ran); off.Abs() > time.Hour {
		c.wall, c.ran, c.jumped = wall, ran, true
	}
	if c.jumped && ran-c.ran > time.Hour {
		c.jumped = false
	}
	return !c.jumped && wall.After(Built())
}

// Built is when the program's sources were last committed, as far as the build
// knows, and never before 2026: a time that has passed wherever the program runs.
var Built = sync.OnceValue(func() time.Time {
	built := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key != "vcs.time" {
				continue
			}
			if t, err := time.Parse(time.RFC3339, s.Value); err == nil && t.After(built) {
				return t
			}
		}
	}
	return built
})
