package router

import "time"

// Waiting is what a route or a destination holds.
type Waiting struct {
	Kind     string // "route" or "destination"
	Name     string
	Messages int
	OnDisk   int // of Messages: its disk buffer has them, the next start sends them
}

// Waiting lists the routes and the destinations that hold messages, in the order of the configuration. A message that
// goes to several destinations waits for each of them. It is safe for concurrent use, and waits for none of them.
func (r *Router) Waiting() (all []Waiting) {
	l := r.Ledger()
	for _, a := range l.Routes {
		if a.InFlight > 0 {
			all = append(all, Waiting{Kind: "route", Name: a.Name, Messages: int(a.InFlight)})
		}
	}
	for i, a := range l.Destinations {
		if a.InFlight == 0 {
			continue
		}
		onDisk := 0
		for _, w := range r.outlets[i].writers {
			if w.spool != nil {
				onDisk += w.spool.Backlog().Messages
			}
		}
		all = append(all, Waiting{"destination", a.Name, int(a.InFlight), min(onDisk, int(a.InFlight))})
	}
	return all
}

// DrainTimeout is how long a stop may take.
func (r *Router) DrainTimeout() time.Duration { return r.timeout }

// Stopping reports whether the router stops, and how long that may still take, 0 or less when it has given up. It is safe for
// concurrent use.
func (r *Router) Stopping() (left time.Duration, is bool) {
	began := r.stopped.Load()
	if began == nil {
		return 0, false
	}
	return r.timeout - time.Since(*began), true
}
