package routertest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router"
)

// quick are the transactions of these tests.
var quick = router.Flush{Messages: 10, Bytes: 1 << 20, After: time.Second, Severity: -1}

func oneHost(int) string { return "h" }

// deliverNumbered delivers the messages from, including, to to, including, of sender s.
func deliverNumbered(t *testing.T, ctx context.Context, in router.Inlet, from, to int, host func(n int) string, tell func(bool)) {
	b, err := in.Take(ctx, 4000, to-from+1)
	if err != nil {
		t.Error(err)
		return
	}
	o := &router.Origin{Source: "s"}
	for n := from; n <= to; n++ {
		m := b.Add(o)
		m.Serial = uint64(n)
		m.Text = b.Copy(fmt.Append(nil, n))
		m.Hostname = []byte(host(n))
	}
	b.Receipt(router.Mark{Sender: "s", Last: uint64(to)}, tell)
	in.Deliver(b)
}

func TestAStopCountsOnceWhatASenderHadSentTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		spool := NewSpool()
		spool.Fails = func(op string) error {
			if op == "append" && broken.Load() {
				return router.ErrSpoolFull
			}
			return nil
		}
		src := Func(func(ctx context.Context, in router.Inlet) error {
			deliverNumbered(t, ctx, in, 1, 2, oneHost, func(bool) {})
			time.Sleep(10 * time.Second)
			broken.Store(true)
			deliverNumbered(t, ctx, in, 1, 4, oneHost, func(bool) {})
			<-ctx.Done()
			return nil
		})
		d := &Database{Table: &Table{}}
		r, stop := run(t, router.Config{Memory: 4 << 20,
			Sources:      []router.SourceConfig{{Name: "s", MaxMessage: 100, Source: src}},
			Destinations: []router.DestinationConfig{{Name: "d", Destination: d, Spool: spool, Flush: quick}},
			Routes:       []router.Route{{Name: "r", From: []string{"s"}, To: []string{"d"}}},
		})
		time.Sleep(time.Minute)
		t.Log(stop())
		Balanced(t, r.Ledger())
	})
}

// Its messages come from several hosts, which would go over several connections.
func TestAResumingSendersBatchIsInOneDiskBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := Func(func(ctx context.Context, in router.Inlet) error {
			deliverNumbered(t, ctx, in, 1, 10, func(n int) string { return fmt.Sprint("host", n%7) }, func(bool) {})
			<-ctx.Done()
			return nil
		})
		table := &Table{}
		_, stop := run(t, router.Config{Memory: 4 << 20,
			Sources: []router.SourceConfig{{Name: "s", MaxMessage: 100, Source: src}},
			Destinations: []router.DestinationConfig{{Name: "d", Destination: &Database{Table: table}, Spool: NewSpool(), Flush: quick,
				Beside: []router.Connection{{Destination: &Database{Table: table}, Spool: NewSpool()}}}},
			Routes: []router.Route{{Name: "r", From: []string{"s"}, To: []string{"d"}}},
		})
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(strings.Fields("1 2 3 4 5 6 7 8 9 10"), slices.Concat(table.Transactions()...)); diff != "" {
			t.Error(diff)
		}
	})
}

// Each of them is no more than a part of what it sends.
func TestTwoRoutesBringAResumingSendersMessagesToOneDestination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := Func(func(ctx context.Context, in router.Inlet) error {
			deliverNumbered(t, ctx, in, 1, 3, oneHost, func(bool) {})
			<-ctx.Done()
			return nil
		})
		table := &Table{}
		keep := func(want string) router.Stage {
			s := router.Stage{Name: want}
			for range 4 {
				s.Filters = append(s.Filters, filterFunc(func(b *router.Batch) *router.Held {
					for _, m := range b.Messages() {
						if (string(m.Text) == "2") != (want == "two") {
							b.Drop(m)
						}
					}
					return nil
				}))
			}
			return s
		}
		_, stop := run(t, router.Config{Memory: 4 << 20, Lanes: 2,
			Sources:      []router.SourceConfig{{Name: "s", MaxMessage: 100, Source: src}},
			Destinations: []router.DestinationConfig{{Name: "d", Destination: &Database{Table: table}, Spool: NewSpool(), Flush: quick}},
			Routes: []router.Route{{Name: "r", From: []string{"s"}, To: []string{"d"}, Filters: []router.Stage{keep("two")}},
				{Name: "q", From: []string{"s"}, To: []string{"d"}, Filters: []router.Stage{keep("others")}}},
		})
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"1", "2", "3"}, slices.Sorted(slices.Values(slices.Concat(table.Transactions()...)))); diff != "" {
			t.Error(diff)
		}
	})
}
