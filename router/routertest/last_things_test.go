package routertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router"
)

func TestAStopDoesNotWaitForWhatAFullBufferRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spool := NewSpool()
		spool.Fails = func(op string) error {
			if op == "append" {
				time.Sleep(time.Second)
				return router.ErrSpoolFull
			}
			return nil
		}
		src := Func(func(ctx context.Context, in router.Inlet) error {
			<-ctx.Done()
			deliverNumbered(t, context.Background(), in, 1, 2, oneHost, func(bool) {})
			time.Sleep(time.Second / 2)
			deliverNumbered(t, context.Background(), in, 3, 4, oneHost, func(bool) {})
			return nil
		})
		d := &Database{Table: &Table{}}
		_, stop := run(t, router.Config{Memory: 4 << 20,
			Sources:      []router.SourceConfig{{Name: "s", MaxMessage: 100, Source: src}},
			Destinations: []router.DestinationConfig{{Name: "d", Destination: d, Spool: spool, Flush: quick, WhenFull: router.DropNewest}},
			Routes:       []router.Route{{Name: "r", From: []string{"s"}, To: []string{"d"}}},
		})
		time.Sleep(time.Minute)
		began := time.Now()
		err := stop()
		if took := time.Since(began); took > 10*time.Second {
			t.Error(took, err)
		}
	})
}

// What was committed last is lost first when a database crashes: here that is what an earlier process had left.
func TestADatabaseThatLosesTheEndOfARunGetsItAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := NewSpool()
		b := router.NewBatch(1<<20, 10)
		var msgs []*router.Message
		for n := range 3 {
			m := b.Add(&router.Origin{Source: "s"})
			m.Text = b.Copy(fmt.Append(nil, "old", n))
			msgs = append(msgs, m)
		}
		old.Append(msgs, router.Mark{})
		old.Sync()
		spool := old.Reopen()
		table := &Table{}
		d := &Database{Table: table}
		backup := table.Backup()
		src := Func(func(ctx context.Context, in router.Inlet) error {
			time.Sleep(10 * time.Second)
			table.Restore(backup)
			deliverNumbered(t, ctx, in, 1, 3, oneHost, func(bool) {})
			<-ctx.Done()
			return nil
		})
		r, stop := run(t, router.Config{Memory: 4 << 20,
			Sources:      []router.SourceConfig{{Name: "s", MaxMessage: 100, Source: src}},
			Destinations: []router.DestinationConfig{{Name: "d", Destination: d, Spool: spool, Flush: quick}},
			Routes:       []router.Route{{Name: "r", From: []string{"s"}, To: []string{"d"}}},
		})
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(6, len(slices.Concat(table.Transactions()...))); diff != "" {
			t.Error(diff, table.Transactions())
		}
		Balanced(t, r.Ledger())
	})
}

func TestWhatTheDeadLettersCouldNotTakeIsNotAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		letters := &Letters{Fails: func() error { return errors.New("disk full") }}
		var told []bool
		src := Func(func(ctx context.Context, in router.Inlet) error {
			deliverNumbered(t, ctx, in, 1, 1, oneHost, func(safe bool) { told = append(told, safe) })
			<-ctx.Done()
			return nil
		})
		_, stop := run(t, router.Config{Memory: 4 << 20, DeadLetters: letters,
			Sources:      []router.SourceConfig{{Name: "s", MaxMessage: 100, Source: src}},
			Destinations: []router.DestinationConfig{{Name: "d", Destination: &Recorder{}, Flush: quick}},
			Routes: []router.Route{{Name: "r", From: []string{"s"}, To: []string{"d"}, Filters: []router.Stage{{Name: "f", Filters: []router.Filter{filterFunc(func(b *router.Batch) *router.Held {
				for _, m := range b.Messages() {
					b.Reject(m, "rejected", "no")
				}
				return nil
			})}}}}},
		})
		time.Sleep(time.Minute)
		err := stop()
		if err == nil {
			t.Error("nothing is said of a loss")
		}
		if diff := cmp.Diff([]bool{false}, told); diff != "" {
			t.Error(diff)
		}
	})
}
