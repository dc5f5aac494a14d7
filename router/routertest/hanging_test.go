package routertest

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/weirlog/weir/router"
)

// A hung is whoever never answers, until it is released.
type hung chan struct{}

func (h hung) wait() { <-h }

// figure is a gauge or a counter of one destination or source.
func figure(t *testing.T, all []*dto.MetricFamily, name, of string) float64 {
	t.Helper()
	for _, f := range all {
		for _, m := range f.Metric {
			if f.GetName() != name || len(m.Label) != 1 || m.Label[0].GetValue() != of {
				continue
			}
			if m.Counter != nil {
				return m.Counter.GetValue()
			}
			return m.Gauge.GetValue()
		}
	}
	t.Fatalf("no %s of %s", name, of)
	return 0
}

// What /readyz, /metrics and /status ask waits for nobody outside: the destination, the filter, the disk buffer and the dead
// letters of this router never answer, and its memory is used up.
func TestARouterInWhichEverythingHangsStillTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := make(hung)
		feed := func(size int) router.Source {
			return Func(func(ctx context.Context, in router.Inlet) error {
				for Send(ctx, in, origin, strings.Repeat("x", size)) == nil {
				}
				return nil
			})
		}
		spool := NewSpool()
		spool.Fails = func(op string) error {
			if op == "sync" {
				hangs.wait()
			}
			return nil
		}
		letters := &Letters{Fails: func() error { hangs.wait(); return nil }}
		flush := router.Flush{Messages: 10, Bytes: 1 << 20, After: time.Second, Severity: -1}
		silent := &Recorder{OnWrite: func(context.Context, []*router.Message) ([]router.Rejected, error) { hangs.wait(); return nil, nil }}
		picky := &Recorder{OnWrite: func(_ context.Context, msgs []*router.Message) ([]router.Rejected, error) {
			return []router.Rejected{{Message: msgs[0], Code: "22P02"}}, nil
		}}
		filter := filterFunc(func(*router.Batch) *router.Held { hangs.wait(); return nil })
		var sources []router.SourceConfig
		for _, name := range []string{"a", "b", "c", "d"} {
			sources = append(sources, router.SourceConfig{Name: name, Source: feed(1000), MaxMessage: 4096})
		}
		r, stop := run(t, router.Config{
			Memory: 4 << 20, Drain: time.Second, Sources: sources, DeadLetters: letters,
			Destinations: []router.DestinationConfig{
				{Name: "silent", Destination: silent, Flush: flush},
				{Name: "buffered", Destination: &Recorder{}, Flush: flush, Spool: spool},
				{Name: "picky", Destination: picky, Flush: flush},
				{Name: "other", Destination: &Recorder{}, Flush: flush},
			},
			Routes: []router.Route{
				{Name: "a", From: []string{"a"}, To: []string{"silent"}},
				{Name: "b", From: []string{"b"}, To: []string{"buffered"}},
				{Name: "c", From: []string{"c"}, To: []string{"picky"}},
				{Name: "d", From: []string{"d"}, To: []string{"other"}, Filters: []router.Stage{{Name: "f", Filters: []router.Filter{filter}}}},
			},
		})
		time.Sleep(30 * time.Second)
		synctest.Wait()

		reg := prometheus.NewPedanticRegistry()
		reg.MustRegister(r)
		all, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		if n := figure(t, all, "weir_destination_unanswered_seconds", "silent"); n < 25 {
			t.Errorf("a destination that has not answered for half a minute is told as %v s", n)
		}
		if n := figure(t, all, "weir_destination_buffer_unanswered_seconds", "buffered"); n < 25 {
			t.Errorf("a disk that has not answered for half a minute is told as %v s", n)
		}
		if n := figure(t, all, "weir_destination_unanswered_seconds", "picky"); n != 0 {
			t.Errorf("what the dead letters do not answer is told of the destination: %v s", n)
		}
		if n := figure(t, all, "weir_source_messages_total", "a"); n < 100 {
			t.Errorf("source a delivered %v messages", n)
		}
		for _, name := range []string{"a", "b", "c"} {
			if n := figure(t, all, "weir_source_held_seconds_total", name); n < 25 {
				t.Errorf("source %s was held for %v s", name, n)
			}
		}
		reasons := map[string]string{}
		for _, p := range r.Parts() {
			reasons[p.Kind+" "+p.Name] = p.Reason
		}
		if why := reasons["source a"]; why != "is held back: the share of memory of destination silent is used up" {
			t.Errorf("source a: %q", why)
		}
		if l := r.Ledger(); l.Routes[0].Sum(router.FateDelivered) == 0 || l.Destinations[0].InFlight == 0 {
			t.Errorf("the ledger: %+v", l)
		}
		close(hangs)
		stop()
		Balanced(t, r.Ledger())
	})
}

// A source that nothing holds is not told as held, and one that was is not any more.
func TestASourceIsHeldForAsLongAsItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs, most := make(hung), 10000
		d := &Recorder{OnWrite: func(context.Context, []*router.Message) ([]router.Rejected, error) { hangs.wait(); return nil, nil }}
		c := one(Func(func(ctx context.Context, in router.Inlet) error {
			for range most {
				if Send(ctx, in, origin, strings.Repeat("x", 1000)) != nil {
					break
				}
			}
			<-ctx.Done()
			return nil
		}), d, router.Flush{Messages: 100, Bytes: 1 << 20, After: time.Second, Severity: -1})
		c.Memory = 2 << 20
		r, stop := run(t, c)
		reg := prometheus.NewPedanticRegistry()
		reg.MustRegister(r)
		held := func() (float64, router.Part) {
			all, err := reg.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range r.Parts() {
				if p.Kind == "source" {
					return figure(t, all, "weir_source_held_seconds_total", p.Name), p
				}
			}
			t.Fatal("no source among the parts")
			return 0, router.Part{}
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if n, p := held(); n < 19 || n > 20 || p.Reason == "" || !p.Ready || time.Since(p.Since) < 19*time.Second {
			t.Errorf("held for %v s: %+v", n, p)
		}
		close(hangs)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n, p := held(); n > 21 || p.Reason != "" {
			t.Errorf("after it went on, held for %v s: %+v", n, p)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
