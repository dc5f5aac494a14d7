package routertest

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weirlog/weir/router"
)

// Positioner holds router.Positioner's contract against an implementation. open
// returns an empty database: a function that opens a connection to it, and one
// that reads the message texts that it holds, in any order.
func Positioner(t *testing.T, open func(t *testing.T) (connect func() router.Positioner, texts func() []string)) {
	noRejects := func([]router.Rejected) error { return errors.New("nothing here is to be rejected") }
	at := func(t *testing.T, d router.Positioner, run router.RunID) (uint64, bool) {
		t.Helper()
		at, known, err := d.Position(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		return at, known
	}
	write := func(t *testing.T, d router.Positioner, span router.Span, msgs []*router.Message) {
		t.Helper()
		if err := d.WriteAt(t.Context(), span, msgs, noRejects); err != nil {
			t.Fatal(err)
		}
	}
	want := func(t *testing.T, texts func() []string, want []string) {
		t.Helper()
		got, want := texts(), slices.Clone(want)
		slices.Sort(got)
		slices.Sort(want)
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("stored (-want +got):\n%s", d)
		}
	}

	t.Run("ARunBeginsAtZeroAndIsKnownThen", func(t *testing.T) {
		connect, _ := open(t)
		run := router.NewRun()
		if n, known := at(t, connect(), run); n != 0 || known {
			t.Errorf("a new run is at %d, known: %v", n, known)
		}
		if n, known := at(t, connect(), run); n != 0 || !known {
			t.Errorf("for the next connection it is at %d, known: %v", n, known)
		}
	})

	t.Run("PositionsMoveWithTheRows", func(t *testing.T) {
		connect, texts := open(t)
		d, run, other := connect(), router.NewRun(), router.NewRun()
		at(t, d, run)
		at(t, d, other)
		a, lines := Messages("a", 20)
		write(t, d, router.Span{Run: run, From: 0, To: 20}, a)
		b, more := Messages("b", 3)
		write(t, d, router.Span{Run: run, From: 20, To: 29}, b) // with gaps
		if n, _ := at(t, d, run); n != 29 {
			t.Errorf("it knows itself at %d", n)
		}
		if n, _ := at(t, connect(), run); n != 29 {
			t.Errorf("another finds it at %d", n)
		}
		if n, _ := at(t, connect(), other); n != 0 {
			t.Errorf("another run moved to %d", n)
		}
		want(t, texts, append(lines, more...))
	})

	t.Run("WithoutMessagesThePositionMovesAlone", func(t *testing.T) {
		connect, texts := open(t)
		d, run := connect(), router.NewRun()
		at(t, d, run)
		write(t, d, router.Span{Run: run, From: 0, To: 5}, nil)
		if n, _ := at(t, connect(), run); n != 5 {
			t.Errorf("it is at %d", n)
		}
		want(t, texts, nil)
	})

	t.Run("FromAnotherPlaceNothingIsStored", func(t *testing.T) {
		connect, texts := open(t)
		d, copy, run := connect(), connect(), router.NewRun()
		at(t, d, run)
		at(t, copy, run)
		a, lines := Messages("a", 10)
		write(t, d, router.Span{Run: run, From: 0, To: 10}, a)
		b, _ := Messages("b", 12)
		if err := copy.WriteAt(t.Context(), router.Span{Run: run, From: 0, To: 12}, b, noRejects); !errors.Is(err, router.ErrMoved) {
			t.Errorf("a copy that knew it at 0 got %v", err)
		}
		if n, _ := at(t, copy, run); n != 10 {
			t.Errorf("then it finds it at %d", n)
		}
		c, more := Messages("c", 2)
		write(t, copy, router.Span{Run: run, From: 10, To: 12}, c)
		want(t, texts, append(lines, more...))
	})
}
