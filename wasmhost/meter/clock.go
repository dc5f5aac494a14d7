package meter

import (
	"fmt"
	"sync/atomic"
	"time"
)

const (
	minChunk = 1 << 10
	// maxChunk bounds what a guest gains by running cheap instructions first and dear ones (loads that miss every
	// cache) in the chunk that was measured by them.
	maxChunk = 1 << 20
	hostPart = 16 << 10 // units of host work between two looks at the clock

	aim = time.Millisecond // between two ticks

	// mostPerLook is how much of the time between two looks counts as the guest's: the rest is a machine that
	// was paused or busy elsewhere.
	mostPerLook = 5 * time.Millisecond
	wallFactor  = 20

	hostCallUnits  = 50 // a host call, whatever it does
	hostBytesShift = 4  // 16 bytes of host work a unit
)

// Clock is the host's end of one instance's leash: it grants chunks of units, measures time at each tick and stops
// the guest when its time is used up. An instance has its own Clock for as long as it lives, from before it is
// instantiated; the zero value is ready.
//
// Only [Clock.Cancel] may be called by another goroutine than the one that runs the guest. Tick, Charge and Sleep
// stop the guest by panicking with an [*Exceeded]; wazero returns it from the call, to be found by errors.AsType. Such
// an instance is not to be used again.
type Clock struct {
	granted int32 // units the guest had when it last left Go; 0: FirstChunk
	debt    int32 // units of host work since the last look
	chunk   int32 // what the next tick grants; 0: FirstChunk
	running bool  // began and last are set
	exact   bool  // see Exact

	units   uint64 // spent, chunks in progress excluded
	looked  uint64 // units at the last look
	budget  time.Duration
	spent   time.Duration // of budget
	began   time.Duration // since epoch: the first look of this call
	last    time.Duration // since epoch: the last look
	stopped atomic.Bool

	kept []kept
}

// epoch makes readings of the monotonic clock small and cheap.
var epoch = time.Now()

// Begin starts the time of one call into the guest: budget of the guest's own work (Tick counts at most 5 ms between two
// looks), and 20 × budget of wall time. It does not read the clock: time starts at the call's first tick, one chunk or
// about a millisecond late, which most calls never reach.
func (c *Clock) Begin(budget time.Duration) {
	c.budget = budget
	c.spent = 0
	c.running = false
}

// Tick answers the guest's call of weir_meter.tick: left is the guest's counter (below zero), the result the new one. The
// smallest numbers there are stand for no counter, but say that the guest's stack is used up or that it threw too often.
func (c *Clock) Tick(left int32) int32 {
	switch left {
	case stackUsedUp:
		panic(c.exceeded(Stack))
	case thrownTooOften:
		panic(c.exceeded(Exceptions))
	}
	granted := c.granted
	if granted == 0 {
		granted = FirstChunk
	}
	c.units += uint64(int64(granted)-int64(left)) + uint64(c.debt)
	c.debt = 0
	c.look()
	c.granted = c.chunk
	return c.chunk
}

// Charge counts one host call that did n bytes of work, or one piece of at most 64 KiB of a longer one.
func (c *Clock) Charge(n int) {
	c.debt += hostCallUnits + int32(min(n>>hostBytesShift, maxChunk))
	if c.debt >= hostPart || c.exact {
		c.settle()
	}
}

func (c *Clock) settle() {
	c.units += uint64(c.debt)
	c.debt = 0
	c.look()
}

// Sleep waits for d or for what is left of the budget, whichever is shorter, and counts all of it. It stops the
// guest when the budget did not suffice.
func (c *Clock) Sleep(d time.Duration) {
	c.look()
	if d <= 0 {
		return
	}
	// Cancel is seen after the wait: a budget is short.
	short := d > c.budget-c.spent
	if short {
		d = c.budget - c.spent
	}
	time.Sleep(d)
	c.spent += d
	c.last = time.Since(epoch)
	if short {
		panic(c.exceeded(Time))
	}
	c.look()
}

// Cancel stops the guest at its next tick or charge, now and in every later call. It may be called from any goroutine.
func (c *Clock) Cancel() { c.stopped.Store(true) }

// Units is what the guest and its host calls have spent in all calls. It advances by whole chunks.
func (c *Clock) Units() uint64 { return c.units }

// Exact makes Units exact from the next tick on, and reports whether it is already: the guest then ticks at every block,
// which makes it tens of times slower. It is for tools that tell what a call costs.
func (c *Clock) Exact() (already bool) {
	c.exact = true
	return c.granted == 1
}

// Spent is how much of the budget this call has used, as far as ticks have told.
func (c *Clock) Spent() time.Duration { return c.spent }

// look reads the clock, counts the time since the last look, sizes the next chunk, and stops the guest if it must.
func (c *Clock) look() {
	if c.stopped.Load() {
		panic(c.exceeded(Cancelled))
	}
	now := time.Since(epoch)
	if c.chunk == 0 {
		c.chunk = FirstChunk
	}
	if c.exact {
		c.chunk = 1
	}
	if !c.running {
		c.running = true
		c.began, c.last, c.looked = now, now, c.units
		return
	}
	passed := now - c.last
	c.last = now
	c.spent += min(passed, mostPerLook)
	if !c.exact {
		c.adapt(passed)
	}
	c.looked = c.units
	if c.spent > c.budget {
		panic(c.exceeded(Time))
	}
	if now-c.began > wallFactor*c.budget {
		panic(c.exceeded(Wall))
	}
}

// adapt aims the next tick at a millisecond from now: upwards by doubling, downwards at once.
func (c *Clock) adapt(passed time.Duration) {
	units := c.units - c.looked
	if passed <= 0 {
		c.chunk = min(2*c.chunk, maxChunk)
		return
	}
	want := float64(units) * float64(aim) / float64(passed)
	c.chunk = int32(max(minChunk, min(want, 2*float64(c.chunk), maxChunk)))
}

// Cause tells why a guest was stopped.
type Cause int

// The causes.
const (
	Time       Cause = iota // the budget of the guest's own work
	Wall                    // 20 × the budget of wall time
	Cancelled               // Clock.Cancel
	Stack                   // MaxStack, or too many try_tables open
	Exceptions              // thrown too often in one call
)

// Exceeded is what a Clock panics with to stop a guest.
type Exceeded struct {
	Cause  Cause
	Budget time.Duration
	Spent  time.Duration // of Budget
	Wall   time.Duration // since the call's first tick
	Units  uint64        // spent by the instance so far
}

func (c *Clock) exceeded(cause Cause) *Exceeded {
	e := &Exceeded{Cause: cause, Budget: c.budget, Spent: c.spent, Units: c.units}
	if c.running {
		e.Wall = c.last - c.began
	}
	return e
}

func (e *Exceeded) Error() string {
	switch e.Cause {
	case Cancelled:
		return "guest stopped: cancelled"
	case Stack:
		return "guest stopped: its stack is used up (calls nested too deep, or too many open try blocks)"
	case Exceptions:
		return fmt.Sprintf("guest stopped: it threw more than %d exceptions in one call", maxThrown)
	case Wall:
		return fmt.Sprintf("guest stopped: one call took %v of wall time, the limit is %d × its time (%v)", e.Wall.Round(time.Millisecond), wallFactor, e.Budget)
	default:
		return fmt.Sprintf("guest stopped: its time (%v) is used up", e.Budget)
	}
}
