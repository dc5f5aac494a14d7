package routertest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router"
)

// A sender that connects again while its messages are on their way to the disk:
// what it hears of them must be true after a crash too.
func TestAResumingSenderHearsOfNothingThatIsNotDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		broken.Store(true)
		spool := NewSpool()
		spool.Fails = func(op string) error {
			if op == "sync" && broken.Load() {
				return errors.New("the disk hangs")
			}
			return nil
		}
		var told []int
		var before, after uint64
		src := Func(func(ctx context.Context, in router.Inlet) error {
			o := &router.Origin{Source: "s", Peer: "192.0.2.1"}
			connect := func(which int) {
				b, err := in.Take(ctx, 1000, 3)
				if err != nil {
					t.Error(err)
					return
				}
				for n := range 3 {
					m := b.Add(o)
					m.Serial = uint64(n + 1)
					m.Text = b.Copy(fmt.Append(nil, n+1))
				}
				b.Receipt(router.Mark{Sender: "s", Last: 3}, func(safe bool) {
					if safe {
						told = append(told, which)
					}
				})
				in.Deliver(b)
				time.Sleep(10 * time.Second)
			}
			connect(1)
			before, _ = in.Last("s")
			connect(2) // the same ones
			if len(told) > 0 {
				t.Errorf("batches %v are acknowledged before the sync", told)
			}
			broken.Store(false)
			time.Sleep(10 * time.Second)
			after, _ = in.Last("s")
			<-ctx.Done()
			return nil
		})
		d := &Database{Table: &Table{}}
		r, stop := run(t, router.Config{Memory: 4 << 20,
			Sources:      []router.SourceConfig{{Name: "s", MaxMessage: 100, Source: src}},
			Destinations: []router.DestinationConfig{{Name: "d", Destination: d, Spool: spool, Flush: router.Flush{Messages: 10, Bytes: 1 << 20, After: time.Second, Severity: -1}}},
			Routes:       []router.Route{{Name: "r", From: []string{"s"}, To: []string{"d"}}},
		})
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if before != 0 || after != 3 {
			t.Errorf("the sender was to go on behind %d, and after the sync behind %d", before, after)
		}
		if diff := cmp.Diff([]int{1, 2}, told); diff != "" {
			t.Errorf("acknowledged: %s", diff)
		}
		if diff := cmp.Diff([][]string{{"1", "2", "3"}}, d.Table.Transactions()); diff != "" {
			t.Error(diff)
		}
		Balanced(t, r.Ledger())
		Empty(t, r)
	})
}
