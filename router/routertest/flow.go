package routertest

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/weirlog/weir/router"
)

// A Func is a source made of a function.
type Func func(ctx context.Context, in router.Inlet) error

// Run implements router.Source.
func (f Func) Run(ctx context.Context, in router.Inlet) error { return f(ctx, in) }

// A Flow is a router with one source, one route and a Recorder, for tests of
// sources and filters: what goes in at one end is seen at the other.
type Flow struct {
	*router.Router
	Stored *Recorder
	Letters
	stop context.CancelFunc
	done chan error
	once sync.Once
}

// Start runs src through filters into a Recorder until the test ends or Stop is
// called. Each message is written at once; memory is 64 MiB.
func Start(t testing.TB, src router.Source, filters ...router.Filter) *Flow {
	t.Helper()
	var stages []router.Stage
	for i, f := range filters {
		stages = append(stages, router.Stage{Name: fmt.Sprintf("filter%d", i+1), Filters: []router.Filter{f}})
	}
	f := &Flow{Stored: &Recorder{}, done: make(chan error, 1)}
	rt := router.Route{Name: "main", From: []string{"src"}, To: []string{"rec"}, Filters: stages}
	var err error
	f.Router, err = router.New(router.Config{
		Memory:       64 << 20,
		Lanes:        1,
		Sources:      []router.SourceConfig{{Name: "src", Source: src, MaxMessage: 64 << 10}},
		Destinations: []router.DestinationConfig{{Name: "rec", Destination: f.Stored, Flush: router.Flush{Messages: 1000, Bytes: 4 << 20, After: time.Millisecond, Severity: -1}}},
		Routes:       []router.Route{rt},
		DeadLetters:  &f.Letters,
		Log:          slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, f.stop = context.WithCancel(context.Background())
	go func() { f.done <- f.Run(ctx) }()
	t.Cleanup(func() { f.Stop(t) })
	return f
}

// Stop stops the router, waits for the drain, checks that the ledger balances
// with nothing in flight, and returns the rows that were stored.
func (f *Flow) Stop(t testing.TB) []string {
	t.Helper()
	f.once.Do(func() {
		f.stop()
		if err := <-f.done; err != nil {
			t.Error(err)
		}
		Balanced(t, f.Router.Ledger())
	})
	return f.Stored.Rows()
}

// Balanced fails the test unless the ledger's equations hold with nothing in flight.
func Balanced(t testing.TB, l router.Ledger) {
	t.Helper()
	check := func(a router.Account) {
		t.Helper()
		sum := uint64(0)
		for _, e := range a.Fates {
			if e.Fate != router.FateCreated && e.Fate != router.FateResumed {
				sum += e.N
			}
		}
		if a.InFlight != 0 || sum != a.Income+a.Sum(router.FateCreated)+a.Sum(router.FateResumed) {
			t.Errorf("ledger of %s does not balance: income %d, fates %v, in flight %d", a.Name, a.Income, a.Fates, a.InFlight)
		}
	}
	for _, a := range l.Routes {
		check(a)
	}
	for _, a := range l.Destinations {
		check(a)
	}
}
