package meter

import (
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// stopped runs f and returns what it panics with.
func stopped(f func()) (e *Exceeded) {
	defer func() {
		if r := recover(); r != nil {
			e = r.(*Exceeded)
		}
	}()
	f()
	return nil
}

// works lets a guest work for d and use up its chunk.
func works(c *Clock, d time.Duration) int32 {
	time.Sleep(d)
	return c.Tick(-1)
}

func TestTimeIsCountedAtTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Clock{}
		c.Begin(10 * time.Millisecond)
		works(c, time.Millisecond) // begins
		for range 10 {
			works(c, time.Millisecond)
		}
		if c.Spent() != 10*time.Millisecond {
			t.Errorf("spent %v, want 10ms", c.Spent())
		}
		e := stopped(func() { works(c, time.Millisecond) })
		if e == nil || e.Cause != Time || e.Budget != 10*time.Millisecond {
			t.Errorf("got %+v, want the time used up", e)
		}
	})
}

func TestEachCallHasItsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Clock{}
		for range 100 {
			c.Begin(10 * time.Millisecond)
			for range 9 {
				works(c, time.Millisecond)
			}
			time.Sleep(time.Hour)
		}
	})
}

// TestAPausedMachineFaultsNobody: of a long time between two ticks 5 ms count, until 20 times the budget are gone.
func TestAPausedMachineFaultsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Clock{}
		c.Begin(50 * time.Millisecond)
		works(c, 0)
		works(c, 900*time.Millisecond)
		if c.Spent() != 5*time.Millisecond {
			t.Errorf("spent %v, want 5ms", c.Spent())
		}
		e := stopped(func() { works(c, 101*time.Millisecond) })
		if e == nil || e.Cause != Wall || e.Wall != 1001*time.Millisecond {
			t.Errorf("got %+v, want the wall deadline", e)
		}
	})
}

func TestChunksAimAtAMillisecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Clock{}
		c.Begin(time.Hour)
		chunk := works(c, 0)
		if chunk != FirstChunk {
			t.Errorf("the first chunk granted is %d, want %d", chunk, FirstChunk)
		}
		run := func(perUnit time.Duration, n int) int32 {
			for range n {
				time.Sleep(time.Duration(chunk) * perUnit)
				chunk = c.Tick(0)
			}
			return chunk
		}
		if got := run(20*time.Nanosecond, 1); got != 50_000 {
			t.Errorf("at 20 ns a unit the chunk is %d, want 50000", got)
		}
		if got := run(time.Microsecond, 1); got != minChunk {
			t.Errorf("at 1 µs a unit the chunk is %d, want %d at once", got, minChunk)
		}
		if got := run(2*time.Nanosecond, 1); got != 2*minChunk {
			t.Errorf("faster again the chunk is %d, want it doubled", got)
		}
		if got := run(2*time.Nanosecond, 20); got != 500_000 {
			t.Errorf("at 2 ns a unit the chunk is %d, want 500000", got)
		}
		if got := run(0, 20); got != maxChunk {
			t.Errorf("in no time the chunk is %d, want %d", got, maxChunk)
		}
	})
}

func TestUnitsAreCounted(t *testing.T) {
	c := &Clock{}
	c.Begin(time.Hour)
	granted := c.Tick(-5)
	if c.Units() != FirstChunk+5 {
		t.Errorf("%d units, want %d", c.Units(), FirstChunk+5)
	}
	c.Tick(-1 << 20)
	if want := uint64(FirstChunk) + 5 + uint64(granted) + 1<<20; c.Units() != want {
		t.Errorf("%d units, want %d", c.Units(), want)
	}
}

func TestHostWorkIsCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Clock{}
		c.Begin(10 * time.Millisecond)
		e := stopped(func() {
			for range 1_000_000 {
				time.Sleep(time.Microsecond)
				c.Charge(1600)
			}
		})
		if e == nil || e.Cause != Time {
			t.Fatalf("got %+v, want the time used up", e)
		}
		// 150 units a call: a look every 110 calls.
		if e.Wall > 11*time.Millisecond {
			t.Errorf("stopped after %v", e.Wall)
		}
	})
}

func TestChargeOfAHugePieceLooksAtOnce(t *testing.T) {
	c := &Clock{}
	c.Begin(time.Hour)
	c.Cancel()
	if e := stopped(func() { c.Charge(math.MaxInt) }); e == nil || e.Cause != Cancelled {
		t.Errorf("got %+v", e)
	}
}

func TestSleepIsBoundedByTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Clock{}
		c.Begin(100 * time.Millisecond)
		start := time.Now()
		c.Sleep(30 * time.Millisecond)
		if c.Spent() != 30*time.Millisecond {
			t.Errorf("spent %v of a sleep of 30ms: all of it counts", c.Spent())
		}
		e := stopped(func() { c.Sleep(time.Hour) })
		if e == nil || e.Cause != Time {
			t.Errorf("got %+v, want the time used up", e)
		}
		if waited := time.Since(start); waited != 100*time.Millisecond {
			t.Errorf("slept %v, want 100ms", waited)
		}
	})
}

func TestCancelStopsEveryCall(t *testing.T) {
	c := &Clock{}
	c.Begin(time.Hour)
	c.Tick(-1)
	c.Cancel()
	for range 2 {
		if e := stopped(func() { c.Tick(-1) }); e == nil || e.Cause != Cancelled {
			t.Errorf("got %+v, want cancelled", e)
		}
		c.Begin(time.Hour)
	}
}

func TestExceededSpeaksToThePerson(t *testing.T) {
	check := func(e Exceeded, want string) {
		t.Helper()
		if got := e.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	check(Exceeded{Cause: Time, Budget: 50 * time.Millisecond}, "guest stopped: its time (50ms) is used up")
	check(Exceeded{Cause: Wall, Budget: 50 * time.Millisecond, Wall: 1004500 * time.Microsecond}, "guest stopped: one call took 1.005s of wall time, the limit is 20 × its time (50ms)")
	check(Exceeded{Cause: Cancelled}, "guest stopped: cancelled")
	check(Exceeded{Cause: Stack}, "guest stopped: its stack is used up (calls nested too deep, or too many open try blocks)")
	if _, ok := errors.AsType[*Exceeded](error(&Exceeded{})); !ok {
		t.Error("not an error")
	}
}

func TestTickAndChargeDoNotAllocate(t *testing.T) {
	c := &Clock{}
	c.Begin(time.Hour)
	if n := testing.AllocsPerRun(100, func() { c.Tick(-1); c.Charge(100_000) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestExactUnitsAreTheWorkOfEachCall(t *testing.T) {
	var c Clock
	c.Begin(time.Minute)
	if c.Exact() {
		t.Error("exact before the first grant is used up")
	}
	if next := c.Tick(-3); next != 1 || c.Units() != FirstChunk+3 || !c.Exact() {
		t.Errorf("granted %d, %d units", next, c.Units())
	}
	if next := c.Tick(-9); next != 1 || c.Units() != FirstChunk+13 {
		t.Errorf("granted %d, %d units", next, c.Units())
	}
	if c.Charge(32); c.Units() != FirstChunk+13+hostCallUnits+2 {
		t.Errorf("%d units", c.Units())
	}
}
