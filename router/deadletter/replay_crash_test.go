package deadletter

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/routertest"
)

func TestAKilledReplayStoresNothingTwice(t *testing.T) {
	texts := []string{"a", "bad b", "c", "d", "bad e"}
	want := []string{"a", "c", "d"}
	for kill := 1; kill <= 3; kill++ {
		for _, committed := range []bool{true, false} {
			dir, _ := kept(t, texts...)
			d := &table{}
			ctx, cancel := context.WithCancel(t.Context())
			die := func() error {
				if d.calls == kill {
					cancel()
					return errors.New("killed")
				}
				return nil
			}
			if d.before = die; committed {
				d.before, d.after = nil, die
			}
			if _, err := replayIn(t, ctx, dir, to(map[string]router.Destination{"db": d})); !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v", err)
			}
			d.before, d.after = nil, nil
			got := replay(t, dir, to(map[string]router.Destination{"db": d}))
			has(t, d, want...)
			left(t, dir, "db 23514 violates: bad b", "db 23514 violates: bad e")
			if earlier := committed && kill < 3 || kill > 1; got.Earlier > 0 != earlier { // the last transaction has a bad row only
				t.Errorf("killed at %d, committed %v: %+v", kill, committed, got)
			}
		}
	}
}

func TestALostAnswerIsNoSecondRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, _ := kept(t, "a", "bad b", "c")
		d := &table{}
		d.after = func() error {
			if d.calls == 1 {
				return errors.New("connection reset")
			}
			return nil
		}
		d.before = func() error {
			if d.calls == 3 {
				return errors.New("not now")
			}
			return nil
		}
		got := replay(t, dir, to(map[string]router.Destination{"db": d}))
		has(t, d, "a", "c")
		left(t, dir, "db 23514 violates: bad b")
		reports(t, got, Report{Replayed: 2, Refused: 1, To: map[string]int{"db": 2}, Reasons: map[string]int{"db: 23514: violates": 1}})
	})
}

func TestADestinationThatIsGoneEndsTheReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, _ := kept(t, "a", "b", "c")
		d := &table{asked: func() error { return errors.New("connection refused") }}
		got, err := replayIn(t, t.Context(), dir, to(map[string]router.Destination{"db": d}))
		if err == nil || !strings.Contains(err.Error(), "db: connection refused") {
			t.Errorf("got %v", err)
		}
		reports(t, got, Report{LeftOut: 3, Reasons: map[string]int{"db: " + notReached: 3}})
		left(t, dir, "db 22P02 row 0: a", "db 22P02 row 1: b", "db 22P02 row 2: c")
		// It goes in doubt: nobody knows what it has, and nobody guesses.
		d.asked = nil
		d.after = func() error {
			d.asked = func() error { return errors.New("connection refused") }
			return errors.New("connection reset")
		}
		if _, err = replayIn(t, t.Context(), dir, to(map[string]router.Destination{"db": d})); err == nil {
			t.Error("no error")
		}
		got = replay(t, dir, to(map[string]router.Destination{"other": &table{}}))
		if got.LeftOut != 3 {
			t.Errorf("got %+v", got)
		}
		got = replay(t, dir, to(map[string]router.Destination{"db": d}))
		if got.LeftOut != 3 || got.Refused != 0 {
			t.Errorf("got %+v", got)
		}
		d.asked, d.after = nil, nil
		got = replay(t, dir, to(map[string]router.Destination{"db": d}))
		has(t, d, "a", "b", "c")
		left(t, dir)
		reports(t, got, Report{Replayed: 3, Earlier: 2, To: map[string]int{"db": 3}})
	})
}

func TestWhatADestinationCannotBlameIsHalved(t *testing.T) {
	dir, _ := kept(t, "a", "poison", "c", "d")
	d := &table{}
	plain := &routertest.Recorder{OnWrite: func(_ context.Context, msgs []*router.Message) ([]router.Rejected, error) {
		for _, m := range msgs {
			if string(m.Text) == "poison" {
				return nil, router.Permanent(errors.New("deferred constraint"))
			}
		}
		return nil, nil
	}}
	got := replay(t, dir, to(map[string]router.Destination{"db": plain}))
	if diff := cmp.Diff([]string{"a", "c", "d"}, plain.Rows()); diff != "" {
		t.Error(diff)
	}
	left(t, dir, "db permanent deferred constraint: poison")
	if got.Replayed != 3 || got.Refused != 1 {
		t.Errorf("got %+v", got)
	}
	has(t, d)
}

// Whoever refuses for a while is no reason to forget why the letter is one; and
// what follows moves the position beyond what was not written.
func TestWhatIsNotWrittenDoesNotSeemStored(t *testing.T) {
	dir, _ := kept(t, "a", "b", "c", "d")
	d := &table{}
	ctx, cancel := context.WithCancel(t.Context())
	d.before = func() error {
		if d.calls == 1 {
			return router.NeedsOperator(errors.New("the table is wrong"))
		}
		return nil
	}
	d.after = func() error {
		cancel()
		return errors.New("killed")
	}
	if _, err := replayIn(t, ctx, dir, to(map[string]router.Destination{"db": d})); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	has(t, d, "c", "d")
	d.before, d.after = nil, nil
	replay(t, dir, to(map[string]router.Destination{"db": d}))
	has(t, d, "c", "d", "a", "b")
	left(t, dir)
}
