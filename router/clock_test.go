package router

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestClockIsNotTrustedForAnHourAfterAJump(t *testing.T) {
	start := Built().Add(time.Hour)
	var c Clock
	c.start, c.wall = start, start
	check := func(ran, off time.Duration, want bool) {
		t.Helper()
		if got := c.judge(start.Add(ran+off), ran); got != want {
			t.Errorf("after %v, moved by %v: trusted %v", ran, off, got)
		}
	}
	check(time.Second, 0, true)
	check(2*time.Second, 59*time.Minute, true)
	check(3*time.Second, 2*time.Hour, false)
	check(time.Hour, 2*time.Hour, false)
	check(time.Hour+4*time.Second, 2*time.Hour, true)
	check(time.Hour+5*time.Second, 0, false)
	check(3*time.Hour, 0, true)
	check(4*time.Hour, -365*24*time.Hour, false)
	check(6*time.Hour, -365*24*time.Hour, false) // before the build, however long ago
}

func TestClockBeforeTheBuildIsNotTrusted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // its clock starts in 2000
		var c Clock
		if c.Trusted(time.Now()) {
			t.Error("a clock in 2000 is trusted")
		}
		time.Sleep(time.Until(Built()) + time.Second)
		if !c.Trusted(time.Now()) {
			t.Error("a clock that went on by itself is not trusted")
		}
	})
}
