package routertest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router"
)

// idle is a source that sends one line and waits.
var idle = Func(func(ctx context.Context, in router.Inlet) error {
	Send(ctx, in, origin, "line")
	<-ctx.Done()
	return nil
})

// A ticking filter adds a message whenever it is ticked, and one at its end.
type ticking struct {
	filterFunc
	tick, finish string // their texts; "": none
}

func (k ticking) Tick(_ context.Context, b *router.Batch)   { add(b, k.tick) }
func (k ticking) Finish(_ context.Context, b *router.Batch) { add(b, k.finish) }

func add(b *router.Batch, text string) {
	if text != "" {
		b.Add(&router.Origin{}).Text = []byte(text)
	}
}

func passAll(*router.Batch) *router.Held { return nil }

func stages(filters ...router.Filter) (all []router.Stage) {
	for i, f := range filters {
		all = append(all, router.Stage{Name: string(rune('f' + i)), Filters: []router.Filter{f}})
	}
	return all
}

var atOnce = router.Flush{Messages: 100, Bytes: 1 << 20, After: time.Millisecond, Severity: -1}

// A filter that holds the route to the end of the drain, and creates messages behind it, which is where the chain ends.
func TestLastMessagesBehindAHeldRouteAreLostWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := func(*router.Batch) *router.Held {
			return &router.Held{Retry: time.Second, Cause: errors.New("breaker open")}
		}
		c := one(idle, &Recorder{}, atOnce)
		c.Drain = 10 * time.Second
		c.Routes[0].Filters = stages(ticking{held, "", "last"})
		r, stop := run(t, c)
		time.Sleep(time.Second)
		if err := stop(); err == nil {
			t.Error("nothing was told of the loss")
		}
		if a := r.Ledger().Routes[0]; a.Sum(router.FateCreated) != 1 || a.Sum(router.FateLost) != 2 {
			t.Errorf("the ledger has %v", a.Fates)
		}
	})
}

func TestRejectedMessageOfATickIsTheRejectingFilters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rejects := filterFunc(func(b *router.Batch) *router.Held {
			for _, m := range b.Messages() {
				if string(m.Text) == "last" {
					b.Reject(m, "verdict", "no")
				}
			}
			return nil
		})
		c := one(idle, &Recorder{}, atOnce)
		c.Routes[0].Filters = stages(ticking{passAll, "", "last"}, rejects)
		r, stop := run(t, c)
		time.Sleep(time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		for _, e := range r.Ledger().Routes[0].Fates {
			if e.Fate == router.FateRejected && e.Reason != "g" {
				t.Errorf("%d messages rejected by %s, want by g", e.N, e.Reason)
			}
		}
	})
}

func TestTicksGoOnWhileDeadLettersCannotBeKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ticks atomic.Int32
		refused := filterFunc(func(b *router.Batch) *router.Held {
			for _, m := range b.Messages() {
				b.Reject(m, "verdict", "no")
			}
			return nil
		})
		letters := &Letters{}
		full := time.Now().Add(10 * time.Second)
		letters.Fails = func() error {
			if time.Now().Before(full) {
				return errors.New("no space left on device")
			}
			return nil
		}
		c := one(Func(func(ctx context.Context, _ router.Inlet) error { <-ctx.Done(); return nil }), &Recorder{}, atOnce)
		c.DeadLetters = letters
		c.Routes[0].Filters = stages(counting{ticking{passAll, "tick", ""}, &ticks}, refused)
		_, stop := run(t, c)
		time.Sleep(9*time.Second + time.Second/2)
		if n := ticks.Load(); n != 9 {
			t.Errorf("%d ticks in nine seconds", n)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if n := len(letters.All()); n != 9 {
			t.Errorf("%d dead letters", n)
		}
	})
}

// counting counts the ticks of a filter.
type counting struct {
	ticking
	ticks *atomic.Int32
}

func (c counting) Tick(ctx context.Context, b *router.Batch) {
	c.ticks.Add(1)
	c.ticking.Tick(ctx, b)
}

// The writers give up when the drain is over; what filters create at their end comes after that.
func TestLastMessagesAfterTheDrainAreLostAndTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Recorder{}
		d.OnWrite = func(ctx context.Context, _ []*router.Message) ([]router.Rejected, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		held := func(b *router.Batch) *router.Held {
			return &router.Held{Retry: time.Second, Cause: errors.New("breaker open")}
		}
		c := one(idle, d, atOnce)
		c.Drain = 10 * time.Second
		c.Routes = append(c.Routes, router.Route{Name: "ticked", To: []string{"d"}, Filters: stages(ticking{passAll, "", "last"})})
		c.Routes[0].Filters = []router.Stage{{Name: "holds", Filters: []router.Filter{filterFunc(held)}}}
		r, stop := run(t, c)
		time.Sleep(time.Second)
		if err := stop(); err == nil || err.Error() != "2 messages lost: the stop took longer than 10s" {
			t.Errorf("the router stopped with %v", err)
		}
		if a := r.Ledger().Destinations[0]; a.Sum(router.FateLost) != 1 {
			t.Errorf("the ledger has %v", a.Fates)
		}
	})
}

// splitter makes two of each message, rejects what comes with "bad", and goes on with "tick" by itself.
type splitter struct{}

func (splitter) Apply(_ context.Context, b *router.Batch) *router.Held {
	for _, m := range b.Messages() {
		text := string(m.Text)
		last := m
		for _, part := range []string{"-a", "-b"} {
			last = b.Emit(last, m)
			last.Text = b.Copy([]byte(text + part))
		}
		switch text {
		case "drop":
			b.Drop(m)
		case "bad":
			b.Reject(m, "verdict", "bad")
		case "skip":
			b.Skip(m)
		case "undone":
			b.Unemit(m)
		}
	}
	return nil
}

func (splitter) Tick(context.Context, *router.Batch) {}

func (splitter) Finish(_ context.Context, b *router.Batch) {
	b.Add(&router.Origin{}).Text = []byte("last")
}

type marker struct{}

func (marker) Apply(_ context.Context, b *router.Batch) *router.Held {
	for _, m := range b.Messages() {
		m.Text = b.Copy(append([]byte(nil), append(m.Text, '!')...))
	}
	return nil
}

func TestWhatAFilterEmitsFollowsItsOriginal(t *testing.T) {
	src := Func(func(ctx context.Context, in router.Inlet) error {
		b, err := in.Take(ctx, 1000, 10)
		if err != nil {
			return err
		}
		for _, text := range []string{"one", "drop", "bad", "skip", "undone"} {
			b.Add(&router.Origin{Source: "src"}).Text = b.Copy([]byte(text))
		}
		in.Deliver(b)
		<-ctx.Done()
		return nil
	})
	f := Start(t, src, splitter{}, marker{})
	rows := f.Stop(t)
	want := []string{"one!", "one-a!", "one-b!", "drop-a!", "drop-b!", "skip", "skip-a!", "skip-b!", "undone!", "last!"}
	if d := cmp.Diff(want, rows); d != "" {
		t.Error(d)
	}
	if n := f.Ledger().Routes[0].Sum(router.FateCreated); n != 7 {
		t.Errorf("%d created, want 7", n)
	}
}
