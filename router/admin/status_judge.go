package admin

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// When something is a problem although every part is ready.
const (
	unanswered   = 10 * time.Second // nobody takes so long to answer who is well
	behind       = time.Minute      // and the flush_timeout: so old may the oldest message be
	nearlyFull   = 0.8              // of a disk buffer
	fullSoon     = 10 * time.Minute // at the growth of the last minute
	nearlyAll    = 0.9              // of the messages of a filter in the last minute
	leastOfAll   = 20               // of them; fewer say nothing
	mostOfMemory = 0.9              // of the machine or the container
)

// judge lists what an operator must know now: what a stop may lose and what is lost or missed at the moment first, then what does not do its work,
// then what will not for much longer.
func (s *Status) judge(now time.Time) (problems, notes []Problem) {
	j := judgement{now: now, stop: s.Stopping, problems: []Problem{}, notes: []Problem{}}
	j.stopping(s)
	j.losses(s)
	for i := range s.Destinations {
		j.destination(&s.Destinations[i])
	}
	j.deadLetters(&s.DeadLetters)
	for i := range s.Filters {
		j.filter(&s.Filters[i])
	}
	for i := range s.Routes {
		j.route(&s.Routes[i])
	}
	for i := range s.Sources {
		j.source(&s.Sources[i])
	}
	for i := range s.Destinations {
		j.room(&s.Destinations[i])
	}
	if m := s.Memory; m.Machine > 0 && float64(m.Resident) > mostOfMemory*float64(m.Machine) {
		j.add("program", "weir", nil, "give the machine or the container more memory, or weir less: memory:, and memory: of the filters; weir check adds them up",
			"weir takes %d of the %d MiB that the machine or its container has: the system may kill it", m.Resident>>20, m.Machine>>20)
	}
	return j.problems, j.notes
}

type judgement struct {
	now      time.Time
	stop     *Stop // nil: weir does not stop
	problems []Problem
	notes    []Problem
}

func (j *judgement) add(kind, name string, since *time.Time, wayOut, what string, args ...any) {
	j.problems = append(j.problems, Problem{kind, name, fmt.Sprintf(what, args...), wayOut, since})
}

func (j *judgement) note(kind, name, wayOut, what string, args ...any) {
	j.notes = append(j.notes, Problem{kind, name, fmt.Sprintf(what, args...), wayOut, nil})
}

// ago is the moment that many seconds ago.
func (j *judgement) ago(seconds float64) *time.Time {
	t := j.now.Add(-time.Duration(seconds * float64(time.Second))).UTC().Truncate(time.Millisecond)
	return &t
}

func hangs(seconds float64) bool { return seconds >= unanswered.Seconds() }

// losses are messages that go at the moment.
func (j *judgement) losses(s *Status) {
	lost := func(kind, name string, all map[string]Count) {
		inOrder(all, func(reason string, c Count) {
			if n := c.LastMinute(); n > 0 {
				j.add(kind, name, nil, losses[reason].wayOut, "%d messages lost in the last minute: %s", n, cmp.Or(losses[reason].what, reason))
			}
		})
	}
	for _, d := range s.Destinations {
		lost("destination", d.Name, d.Lost)
	}
	for _, r := range s.Routes {
		lost("route", r.Name, r.Lost)
	}
	for _, d := range s.Destinations {
		if n := d.WentBack.LastMinute(); n > 0 {
			way := "they are gone, unless its files come back; a disk buffer (buffer: {disk: …}) could have sent again what it still had; find out who moved or restored the database"
			if d.Buffer != nil {
				way = "what its disk buffer still had of them is sent again; find out who moved or restored the database"
			}
			j.add("destination", d.Name, nil, way, "it no longer has %d messages that it had committed, found in the last minute: its files were moved or replaced, it was put back to an older state, or it crashed without durable commits", n)
		}
	}
	for _, src := range s.Sources {
		if n := src.Unrouted.LastMinute(); n > 0 {
			j.note("source", src.Name, "when that is not meant: a route with else: true takes what no other does; weir check warns of it", "%d of %d messages in the last minute reached no route and are stored nowhere", n, max(n, src.Received.LastMinute()))
		}
		inOrder(src.Missed, func(reason string, c Count) {
			if n := c.LastMinute(); n > 0 && misses[reason].what != "" {
				j.add("source", src.Name, nil, misses[reason].wayOut, "%d %s", n, misses[reason].what)
			}
		})
	}
}

// words are what a reason means, and the way out.
type words struct{ what, wayOut string }

var losses = map[string]words{
	"full":         {"there was no room for them, and when_full drops", "see why the destination does not keep up; a larger buffer: {disk: …} bridges longer, when_full: block holds the sources instead"},
	"age":          {"they waited for longer than buffer.age", "see why the destination does not keep up, or raise buffer.age"},
	"damaged":      {"they could not be read from the disk buffer any more", "look at the disk; weir spool verify tells what can be read"},
	"drain":        {what: "weir stops, and drain_timeout is over"},
	"dead_letters": {what: "weir stops, and the dead letters could not be written"},
}

// misses are of what weir itself could have taken; what a sender broke off is its own matter.
var misses = map[string]words{
	"held":        {"datagrams dropped in the last minute: weir was held for longer than when_held allows", "see what holds the source; a disk buffer in front of a slow destination keeps it from being held"},
	"kernel":      {"datagrams dropped by the kernel in the last minute: they came faster than weir reads", "a larger receive_buffer for bursts; see what holds the source, or send by TCP or a unix socket, which wait"},
	"connections": {"connections refused in the last minute: max_connections are open", "raise max_connections, or find out who opens so many"},
}

func (j *judgement) destination(d *DestinationStatus) {
	var kept string
	switch b := d.Buffer; {
	case j.stop != nil:
		kept = "weir stops, and tries again until drain_timeout is over"
	case b == nil:
		kept = "weir tries again by itself; until then it holds what memory takes, and then its sources wait"
	case d.overflows():
		kept = "weir tries again by itself; its disk buffer is full until then"
	case b.Full != "":
		kept = "weir tries again by itself; its disk buffer takes nothing, and its sources wait: a larger disk:, a smaller keep_free, or room on the file system"
	case b.FullIn != nil:
		kept = fmt.Sprintf("weir tries again by itself; until then its disk buffer takes what comes, at this rate for about %s", about(*b.FullIn))
	default:
		kept = "weir tries again by itself; until then its disk buffer takes what comes"
	}
	switch {
	case !d.Ready:
		j.add("destination", d.Name, d.Since, kept, "is not ready: %s", d.Reason)
	case hangs(d.Unanswered):
		j.add("destination", d.Name, j.ago(d.Unanswered), "look whether its database hangs (locks, a stopped process, a full or failing disk, a network that swallows packets); "+kept,
			"does not answer what it was asked to store")
	}
	if b := d.Buffer; b != nil && hangs(b.Unanswered) {
		j.add("destination", d.Name, j.ago(b.Unanswered), "look at the disk under state_dir (dmesg, iostat); its sources wait until it answers", "the disk does not answer its disk buffer")
	}
}

func (j *judgement) deadLetters(d *DeadLettersStatus) {
	switch {
	case !d.Ready:
		j.add("dead_letters", "dead_letters", d.Since, "make room (weir dlq replay, weir dlq purge, dead_letters: {size: …}), or mend the disk; whoever rejects waits until then", "cannot be written: %s", d.Reason)
	case hangs(d.Unanswered):
		j.add("dead_letters", "dead_letters", j.ago(d.Unanswered), "look at the disk under state_dir (dmesg, iostat); whoever rejects waits until it answers", "the disk does not answer")
	}
	if n := d.Dropped["size"].LastMinute(); n > 0 {
		j.add("dead_letters", "dead_letters", nil, "weir dlq ls tells what was rejected and why; mend that, then weir dlq replay or purge, or a larger dead_letters: {size: …}",
			"%d of the oldest dropped in the last minute: they are full", n)
	}
}

func (j *judgement) filter(f *FilterStatus) {
	if !f.Ready {
		j.add("filter", f.Name, f.Since, "mend the module: weir takes the new file by itself; what waits is given to it then", "is given up, one message a second is tried: %s", f.Reason)
		return
	}
	if f.Refused != "" {
		j.add("filter", f.Name, nil, "mend or bring back "+f.Module+": weir takes it by itself, weir reload tells at once; until then a restart fails", "%s", f.Refused)
	}
	calls, failed, rejected := float64(f.Messages.LastMinute()), 0.0, float64(f.Rejected.LastMinute())
	for _, c := range f.Faults {
		failed += float64(c.LastMinute())
	}
	switch {
	case calls < leastOfAll:
	case failed >= nearlyAll*calls:
		j.add("filter", f.Name, nil, "weir dlq ls and the log tell more; mend the module: weir takes the new file by itself", "fails on nearly all messages, %.0f of %.0f in the last minute: %s",
			failed, calls, f.Reason)
	case rejected >= nearlyAll*calls:
		j.add("filter", f.Name, nil, "weir dlq ls tells its reasons; weir dlq replay sends the letters again when the filter is mended", "rejects nearly all messages, %.0f of %.0f in the last minute",
			rejected, calls)
	}
}

func (j *judgement) route(r *RouteStatus) {
	if !r.Ready {
		j.add("route", r.Name, r.Since, "see its filters; other routes go on, and its sources wait when it holds a quarter of their memory", "%s", r.Reason)
	}
}

func (j *judgement) source(s *SourceStatus) {
	switch {
	case !s.Ready:
		j.add("source", s.Name, s.Since, "see the log", "is not ready: %s", s.Reason)
	case s.Since != nil && j.now.Sub(*s.Since) >= unanswered && s.Received.Rate10s == 0:
		j.add("source", s.Name, s.Since, "nothing is lost by that but datagrams; see the destinations and filters of its routes", "reads nothing: it %s", strings.TrimPrefix(s.Reason, "it "))
	}
}

// overflows reports whether messages are lost at the moment because there is no room for them.
func (d *DestinationStatus) overflows() bool { return d.Lost["full"].LastMinute() > 0 }

// room tells what goes on for now and will not for long.
func (j *judgement) room(d *DestinationStatus) {
	b := d.Buffer
	if b != nil && b.Limit > 0 && b.Full == "" && !d.overflows() {
		const way = "see why the destination does not keep up; then when_full decides: buffer: {disk: …} may be larger"
		share := float64(b.Waiting) / float64(b.Limit)
		switch {
		case share >= nearlyFull:
			j.add("destination", d.Name, nil, way, "its disk buffer is %.0f%% full", share*100)
		case d.Ready && b.FullIn != nil && *b.FullIn < fullSoon.Seconds():
			j.add("destination", d.Name, nil, way, "its disk buffer is %.0f%% full, and will be full in about %s at the rate of the last minute",
				share*100, about(*b.FullIn))
		}
	}
	if d.Ready && !hangs(d.Unanswered) && d.Oldest > (behind.Seconds()+d.FlushTimeout) {
		j.add("destination", d.Name, j.ago(d.Oldest), "it stores, but slower than messages came; after an outage this passes by itself; else the database is too slow for what comes: fewer indexes, larger transactions (flush_lines), more connections:", "is behind: the oldest of %d messages has waited since then", d.InFlight)
	}
}

// about is a time in one unit.
func about(seconds float64) string {
	switch {
	case seconds < 100:
		return fmt.Sprintf("%.0f seconds", seconds)
	case seconds < 100*60:
		return fmt.Sprintf("%.0f minutes", seconds/60)
	case seconds < 48*60*60:
		return fmt.Sprintf("%.0f hours", seconds/60/60)
	}
	return fmt.Sprintf("%.0f days", seconds/24/60/60)
}
