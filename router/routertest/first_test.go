package routertest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlog/weir/router"
)

// A destination that is not there is told of before there is anything to store,
// and does not hold up a stop.
func TestADestinationThatIsAwayIsToldOfAtTheStart(t *testing.T) {
	for _, spool := range []router.Spool{nil, NewSpool()} {
		synctest.Test(t, func(t *testing.T) {
			d := router.DestinationConfig{Name: "db", Spool: spool, Destination: &Database{Table: &Table{}, OnConnect: func() error { return router.NeedsOperator(errors.New("no such database")) }},
				Flush: router.Flush{Messages: 10, Bytes: 1000, After: time.Second, Severity: -1}}
			idle := Func(func(ctx context.Context, _ router.Inlet) error { <-ctx.Done(); return nil })
			r, err := router.New(router.Config{Memory: 1 << 20, Lanes: 1, DeadLetters: &Letters{}, Destinations: []router.DestinationConfig{d},
				Sources: []router.SourceConfig{{Name: "s", MaxMessage: 100, Source: idle}}, Routes: []router.Route{{Name: "r", From: []string{"s"}, To: []string{"db"}}}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			over := make(chan error, 1)
			go func() { over <- r.Run(ctx) }()
			time.Sleep(100 * time.Millisecond)
			for _, p := range r.Parts() {
				if p.Kind == "destination" && (p.Ready || p.Reason != "no such database") {
					t.Errorf("it is said to be ready: %+v", p)
				}
			}
			began := time.Now()
			stop()
			if err := <-over; err != nil || time.Since(began) > time.Second {
				t.Errorf("the stop took %v: %v", time.Since(began), err)
			}
		})
	}
}
