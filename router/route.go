package router

import (
	"sync"
	"sync/atomic"
)

// A Route takes the messages of its sources, or those that match, through a chain of filters to its
// destinations.
type Route struct {
	Name    string
	From    []string // names of sources
	Match   *Match   // what it takes, as the source parsed it; nil: everything
	Else    bool     // takes instead what no route without Else takes of the same source
	Filters []Stage  // in order
	To      []string // names of destinations
}

// A Stage is a filter's place in a chain. Filters has one instance for each
// lane; a filter that keeps state has the same one in every lane and takes turns.
type Stage struct {
	Name    string
	Filters []Filter
}

// route is a Route at work.
type route struct {
	Route
	index  int       // in the ledger
	to     []*outlet // in the order of To
	claims []claim   // what a batch on it costs

	most int          // bytes of parked batches, beyond which its sources wait
	held atomic.Int64 // bytes of parked batches

	mu     sync.Mutex
	parked []*Batch // held by a filter, in order; later ones queue behind
	cause  error    // why, when parked is not empty
}

// sender is the name under which disk buffers know, for this route, a sender that numbers its messages: another route may
// bring other ones of the same numbers to the same destination.
func (rt *route) sender(name string) string {
	if name == "" {
		return ""
	}
	return name + "\x00" + rt.Name
}
