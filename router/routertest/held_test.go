package routertest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlog/weir/router"
)

// Two routes with sources of their own share a destination, and a filter of one of them holds all that comes.
func TestARouteThatHoldsLeavesMemoryForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		holder := filterFunc(func(*router.Batch) *router.Held {
			return &router.Held{Retry: time.Second, Cause: errors.New("breaker open")}
		})
		sent := [2]int{}
		feed := func(i, most int) router.Source {
			return Func(func(ctx context.Context, in router.Inlet) error {
				for sent[i] < most && Send(ctx, in, origin, strings.Repeat("x", 300)) == nil {
					sent[i]++
				}
				<-ctx.Done()
				return nil
			})
		}
		d := &Recorder{}
		r, stop := run(t, router.Config{
			Memory: 4 << 20, Drain: 5 * time.Second,
			Sources:      []router.SourceConfig{{Name: "s0", Source: feed(0, 1e6), MaxMessage: 4096}, {Name: "s1", Source: feed(1, 20000), MaxMessage: 4096}},
			Destinations: []router.DestinationConfig{{Name: "d", Destination: d, Flush: router.Flush{Messages: 100, Bytes: 1 << 20, After: time.Second, Severity: -1}}},
			Routes: []router.Route{
				{Name: "held", From: []string{"s0"}, To: []string{"d"}, Filters: []router.Stage{{Name: "f", Filters: []router.Filter{holder}}}},
				{Name: "free", From: []string{"s1"}, To: []string{"d"}, Filters: []router.Stage{{Name: "g", Filters: []router.Filter{filterFunc(func(*router.Batch) *router.Held { return nil })}}}}},
		})
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(d.Rows()); n != 20000 {
			t.Errorf("%d of 20000 rows beside the route that holds", n)
		}
		if sent[0] < 100 || sent[0] > 4000 {
			t.Errorf("%d messages held", sent[0])
		}
		if err := stop(); err == nil || !strings.Contains(err.Error(), "messages lost") {
			t.Errorf("the stop: %v", err)
		}
		if n := r.Ledger().Routes[0].Sum(router.FateLost); n != uint64(sent[0]) {
			t.Errorf("%d lost of %d held", n, sent[0])
		}
	})
}
