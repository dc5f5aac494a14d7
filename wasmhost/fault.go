package wasmhost

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/tetratelabs/wazero/sys"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/wasmhost/meter"
)

// A cause is why a guest failed.
type cause uint8

const (
	causeTrap cause = iota
	causeTime
	causeMemory
	causeStack
	causeExit
	causeVerdict
	causeFailed
	causeStart
	causeCancelled // by us; no fault
	causes         = int(causeCancelled)
)

// causeNames are the values of the label cause, and the codes of dead letters.
var causeNames = [...]string{"trap", "time", "memory", "stack", "exit", "verdict", "failed", "start", "cancelled"}

func (c cause) String() string { return causeNames[c] }

// A guestFault is what host functions panic with to trap the guest.
type guestFault struct{ text string }

func (f *guestFault) Error() string { return f.text }

// explain sorts an error of a call into the guest: its cause, what happened in one line, and the guest's stack.
func explain(err error) (c cause, text, trace string) {
	if e, ok := errors.AsType[*meter.Exceeded](err); ok {
		_, trace = splitTrace(err)
		switch e.Cause {
		case meter.Cancelled:
			return causeCancelled, e.Error(), trace
		case meter.Stack, meter.Exceptions:
			return causeStack, e.Error(), trace
		default:
			return causeTime, e.Error(), trace
		}
	}
	if e, ok := errors.AsType[*sys.ExitError](err); ok {
		return causeExit, fmt.Sprintf("the guest left with proc_exit(%d)", e.ExitCode()), ""
	}
	if e, ok := errors.AsType[*badAnswer](err); ok {
		return causeFailed, e.text, ""
	}
	text, trace = splitTrace(err)
	if _, ok := errors.AsType[runtime.Error](err); ok { // in a host function: the guest's trap, but our mistake
		_, stack, _ := strings.Cut(err.Error(), "\n\nGo runtime stack trace:\n")
		return causeTrap, "BUG: host function: " + text, trace + "\n" + stack
	}
	// wazero's own errors are in a package that others cannot name.
	if strings.Contains(text, "stack overflow") {
		return causeStack, text, trace
	}
	return causeTrap, text, trace
}

// explain does the same with what is known of the instance.
func (in *instance) explain(err error) (c cause, text, trace string) {
	c, text, trace = explain(err)
	if c == causeTrap && len(in.reason) > 0 { // a panic's own words
		text += ": " + string(in.reason)
	}
	// Whether memory.grow was refused is not seen; guests trap when their allocator gives up.
	if size := in.size(); c == causeTrap && in.program.atLimit && size >= in.program.memory/10*9 {
		c, text = causeMemory, fmt.Sprintf("%s, with %d of at most %d bytes of memory in use", text, size, in.program.memory)
	}
	return c, text, trace
}

// splitTrace parts wazero's error text from the guest's stack trace.
func splitTrace(err error) (text, trace string) {
	text, trace, _ = strings.Cut(err.Error(), "\nwasm stack trace:\n")
	text = strings.TrimPrefix(text, "wasm error: ")
	if i := strings.LastIndex(text, " failed: wasm error: "); i >= 0 { // instantiation wraps it
		text = text[i+len(" failed: wasm error: "):]
	}
	trace, _, _ = strings.Cut(trace, "\n\nGo runtime stack trace:")
	trace = strings.ReplaceAll(strings.TrimPrefix(strings.TrimSpace(trace), "."), "\n\t.", "\n") // modules have no name
	return strings.TrimSuffix(text, " (recovered by wazero)"), trace
}

// A faultLog tells of faults: the first of a cause at once, the others in a summary once a minute.
type faultLog struct {
	mu     sync.Mutex
	last   string // what happened last, for readiness
	when   time.Time
	at     [causes]time.Time // of the last of each cause
	told   [causes]time.Time
	hushed [causes]int
}

const faultPause = time.Minute

// faulted counts and tells a fault.
func (g *Guest) faulted(c cause, text, trace string) {
	if c == causeCancelled {
		return
	}
	g.counts.faults[c].Add(1)
	now := time.Now()
	f := &g.faults
	f.mu.Lock()
	f.last = c.String() + ": " + text
	f.when, f.at[c] = now, now
	hush := !g.host.tellAll && !f.told[c].IsZero() && now.Sub(f.told[c]) < faultPause
	hushed := f.hushed[c]
	if hush {
		f.hushed[c]++
	} else {
		f.told[c], f.hushed[c] = now, 0
	}
	f.mu.Unlock()
	if hush {
		return
	}
	args := []any{"cause", c.String(), "what", text, "on_error", g.onError}
	if hushed > 0 {
		args = append(args, "since_last_told", hushed)
	}
	if trace != "" {
		args = append(args, "guest_stack", trace)
	}
	g.log.Error("filter failed", args...)
}

// failedIn tells a fault in a call that had no message.
func (g *Guest) failedIn(function string, err error) {
	cause, text, trace := explain(err)
	g.faulted(cause, function+": "+text, trace)
}

// note counts calls for the breaker.
func (g *Guest) note(calls, failed int) {
	if failed > 0 || calls > 0 {
		if g.breaker.note(time.Now(), calls, failed) {
			g.tellOpen()
		}
	}
}

func (g *Guest) trip(why string) {
	if g.breaker.trip(time.Now(), why) {
		g.tellOpen()
	}
}

// unmade tells and counts an instance that could not be made.
func (g *Guest) unmade(err error) {
	g.faulted(causeStart, err.Error(), "")
	if g.breaker.notMade(time.Now(), err) {
		g.tellOpen()
	}
}

func (g *Guest) tellOpen() {
	_, why, _ := g.breaker.state()
	does := "messages wait"
	if g.onError == Pass || g.onError == Drop {
		does = fmt.Sprintf("messages wait, and go by on_error %s after %v", g.onError, goByAfter)
	}
	g.log.Error("filter given up for now; one message a second is tried", "why", why, "meanwhile", does, "last_fault", g.lastFault())
}

// mend closes the breaker after a trial that went well.
func (g *Guest) mend() {
	if d := g.breaker.mend(time.Now()); d > 0 {
		g.log.Info("filter works again", "after", d.Round(time.Second))
	}
}

func (g *Guest) lastFault() string {
	g.faults.mu.Lock()
	defer g.faults.mu.Unlock()
	if g.faults.last == "" {
		return ""
	}
	return fmt.Sprintf("%s (%s)", g.faults.last, g.faults.when.UTC().Format(time.RFC3339))
}

func (g *Guest) part() router.Part {
	p := router.Part{Kind: "filter", Name: g.name, Ready: true}
	if open, why, since := g.breaker.state(); open {
		p.Ready, p.Since = false, since
		p.Reason = why + "; last fault: " + g.lastFault()
	} else if last := g.lastFault(); last != "" {
		p.Reason = "last fault: " + last
	}
	if why := g.swap.refusal(); why != "" {
		p.Reason, p.Trouble = strings.TrimPrefix(p.Reason+"; "+why, "; "), why
	}
	return p
}
