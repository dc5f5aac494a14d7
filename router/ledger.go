package router

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
)

// A Fate is what became of messages, as the ledger counts them.
type Fate string

const (
	FateReceived  Fate = "received"  // by a route, from its sources
	FateCreated   Fate = "created"   // in a route, by a filter
	FateDelivered Fate = "delivered" // by a route to its destinations; a destination's income
	FateDropped   Fate = "dropped"   // a filter said so
	FateRejected  Fate = "rejected"  // nobody will ever take it: dead letters
	FateLost      Fate = "lost"      // given up by a policy that the user chose
	FateStored    Fate = "stored"    // durable in the destination
	FateResumed   Fate = "resumed"   // found in a disk buffer: at the start, or again when the database was put back
	FateKept      Fate = "kept"      // left in a disk buffer at the end
)

// The ledger is the account of every message. For each route
//
//	received + created = dropped + rejected + lost + delivered + in_flight
//
// and for each destination
//
//	delivered + resumed = stored + rejected + lost + kept + in_flight
//
// hold whenever it is read. Each change moves messages under one lock, so that no reader
// sees a message twice or not at all; there is one change a batch, none a message.
type ledger struct {
	mu      sync.Mutex
	routes  []account
	dests   []account
	sources []Intake
}

type account struct {
	income   uint64
	inFlight int64
	fates    map[entryKey]uint64
}

type entryKey struct {
	fate   Fate
	reason string
}

// Intake is what a source counts outside of the equations.
type Intake struct {
	Received  uint64            // delivered by the source, once however many routes take them
	Missed    map[string]uint64 // never accepted, by reason
	Unrouted  uint64            // that no route takes
	Truncated uint64            // cut at max_message
}

// take notes that n messages entered an account.
func (a *account) take(n int) {
	a.income += uint64(n)
	a.inFlight += int64(n)
}

// create notes that a filter made n messages in an account.
func (a *account) create(filter string, n int) {
	if n > 0 {
		a.inFlight += int64(n)
		a.add(FateCreated, filter, n)
	}
}

// settle notes what became of n messages of an account.
func (a *account) settle(f Fate, reason string, n int) {
	if n == 0 {
		return
	}
	a.inFlight -= int64(n)
	if a.inFlight < 0 {
		panic(fmt.Sprintf("BUG: %d more messages %s than there were", -a.inFlight, f))
	}
	a.add(f, reason, n)
}

func (a *account) add(f Fate, reason string, n int) {
	if a.fates == nil {
		a.fates = map[entryKey]uint64{}
	}
	a.fates[entryKey{f, reason}] += uint64(n)
}

// An Account is one line of the ledger.
type Account struct {
	Name     string
	Income   uint64 // a route's received, a destination's delivered
	InFlight int64
	Fates    []Entry // by fate, then reason
}

// An Entry counts messages of one fate. The reason is the filter's name for
// created, dropped and rejected, else a word such as "full" or "drain".
type Entry struct {
	Fate   Fate
	Reason string
	N      uint64
}

// Sum is the number of messages of a fate, whatever the reason.
func (a Account) Sum(f Fate) (n uint64) {
	for _, e := range a.Fates {
		if e.Fate == f {
			n += e.N
		}
	}
	return n
}

// Ledger is a copy of the whole account, taken in one moment.
type Ledger struct {
	Routes, Destinations []Account
	Sources              map[string]Intake
}

// lostAtTheEnd is how many messages were lost because a stop took too long.
func (l Ledger) lostAtTheEnd() (n uint64) {
	for _, a := range slices.Concat(l.Routes, l.Destinations) {
		for _, e := range a.Fates {
			if e.Fate == FateLost && (e.Reason == "drain" || e.Reason == "dead_letters") {
				n += e.N
			}
		}
	}
	return n
}

func (a *account) copy(name string) Account {
	out := Account{Name: name, Income: a.income, InFlight: a.inFlight}
	for k, n := range a.fates {
		out.Fates = append(out.Fates, Entry{k.fate, k.reason, n})
	}
	slices.SortFunc(out.Fates, func(x, y Entry) int {
		return cmp.Or(cmp.Compare(x.Fate, y.Fate), cmp.Compare(x.Reason, y.Reason))
	})
	return out
}

// Ledger returns the account of every message so far. It is safe for concurrent use.
func (r *Router) Ledger() Ledger {
	l := &r.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	out := Ledger{Sources: map[string]Intake{}}
	for i, rt := range r.routes {
		out.Routes = append(out.Routes, l.routes[i].copy(rt.Name))
	}
	for i, o := range r.outlets {
		out.Destinations = append(out.Destinations, l.dests[i].copy(o.name))
	}
	for i, in := range r.inlets {
		s := l.sources[i]
		s.Missed = maps.Clone(s.Missed)
		out.Sources[in.name] = s
	}
	return out
}

// WriteTo prints the ledger, a line for each route and each destination, and one
// for each source that did not accept, route or keep whole all that came.
func (l Ledger) WriteTo(w io.Writer) (n int64, err error) {
	line := func(format string, args ...any) {
		if err == nil {
			var k int
			k, err = fmt.Fprintf(w, format+"\n", args...)
			n += int64(k)
		}
	}
	for _, a := range l.Routes {
		line("ledger route=%s received=%d created=%d dropped=%d rejected=%d lost=%d delivered=%d in_flight=%d",
			a.Name, a.Income, a.Sum(FateCreated), a.Sum(FateDropped), a.Sum(FateRejected), a.Sum(FateLost), a.Sum(FateDelivered), a.InFlight)
	}
	for _, a := range l.Destinations {
		line("ledger destination=%s delivered=%d resumed=%d stored=%d rejected=%d lost=%d kept=%d in_flight=%d",
			a.Name, a.Income, a.Sum(FateResumed), a.Sum(FateStored), a.Sum(FateRejected), a.Sum(FateLost), a.Sum(FateKept), a.InFlight)
	}
	for _, name := range slices.Sorted(maps.Keys(l.Sources)) {
		s, missed := l.Sources[name], ""
		for _, reason := range slices.Sorted(maps.Keys(s.Missed)) {
			missed += fmt.Sprintf(" missed_%s=%d", reason, s.Missed[reason])
		}
		if missed != "" || s.Unrouted > 0 || s.Truncated > 0 {
			line("ledger source=%s unrouted=%d truncated=%d%s", name, s.Unrouted, s.Truncated, missed)
		}
	}
	return n, err
}
