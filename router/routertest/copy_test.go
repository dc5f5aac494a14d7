package routertest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlog/weir/router"
)

// What a copy of this weir has stored meanwhile is passed by, and counted once,
// also when the next attempt fails and the disk is read again.
func TestWhatACopyHasStoredIsCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := NewSpool()
		msgs, _ := Messages("m", 1000)
		if _, err := before.Append(msgs, router.Mark{}); err != nil {
			t.Fatal(err)
		}
		before.Sync()
		table, attempts := &Table{}, 0
		db := &Database{Table: table, BeforeCommit: func() error {
			switch attempts++; attempts {
			case 1:
				if !table.commit(router.Span{Run: before.Run(), From: 0, To: 500}, make([]string, 500)) {
					t.Error("the copy could not store")
				}
			case 2:
				return errors.New("connection lost")
			}
			return nil
		}}
		idle := Func(func(ctx context.Context, _ router.Inlet) error { <-ctx.Done(); return nil })
		r, err := router.New(router.Config{Memory: 1 << 20, Lanes: 1, DeadLetters: &Letters{},
			Sources: []router.SourceConfig{{Name: "s", MaxMessage: 100, Source: idle}}, Routes: []router.Route{{Name: "r", From: []string{"s"}, To: []string{"db"}}},
			Destinations: []router.DestinationConfig{{Name: "db", Destination: db, Spool: before.Reopen(), Flush: router.Flush{Messages: 50, Bytes: 1 << 20, After: time.Second, Severity: -1}}}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, stop)
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
		a := r.Ledger().Destinations[0]
		if resumed, stored := a.Sum(router.FateResumed), a.Sum(router.FateStored); resumed != 1000 || stored != 1000 {
			t.Errorf("of 1000 messages %d were resumed and %d stored", resumed, stored)
		}
		Balanced(t, r.Ledger())
	})
}
