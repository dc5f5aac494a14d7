package routertest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/router"
)

var origin = &router.Origin{Source: "src", Listener: "test"}

// run runs a router until the sources return on their own or stop is called.
func run(t *testing.T, c router.Config) (r *router.Router, stop func() error) {
	t.Helper()
	if c.DeadLetters == nil {
		c.DeadLetters = &Letters{}
	}
	if c.Memory == 0 {
		c.Memory = 64 << 20
	}
	c.Lanes = 1
	r, err := router.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	return r, func() error {
		cancel()
		err := <-done
		Balanced(t, r.Ledger())
		Empty(t, r)
		return err
	}
}

// Empty fails the test unless the router holds no memory any more.
func Empty(t testing.TB, r *router.Router) {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(r)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "weir_memory_bytes" {
			continue
		}
		for _, m := range f.GetMetric() {
			if v := m.GetGauge().GetValue(); v != 0 {
				t.Errorf("%v still holds %v bytes", m.GetLabel(), v)
			}
		}
	}
}

// one is a configuration of one source and one destination.
func one(src router.Source, d router.Destination, f router.Flush) router.Config {
	return router.Config{
		Sources:      []router.SourceConfig{{Name: "src", Source: src, MaxMessage: 4096}},
		Destinations: []router.DestinationConfig{{Name: "d", Destination: d, Flush: f}},
		Routes:       []router.Route{{Name: "main", From: []string{"src"}, To: []string{"d"}}},
	}
}

func lines(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprint("line ", i))
	}
	return out
}

func sizes(tx [][]string) (out []int) {
	for _, rows := range tx {
		out = append(out, len(rows))
	}
	return out
}

func TestTransactionsHaveExactlyFlushLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Recorder{}
		_, stop := run(t, one(Func(func(ctx context.Context, in router.Inlet) error {
			for range 10 {
				Send(ctx, in, origin, lines(33)...)
			}
			<-ctx.Done()
			return nil
		}), d, router.Flush{Messages: 100, Bytes: 1 << 20, After: time.Second, Severity: -1}))
		synctest.Wait()
		if got := fmt.Sprint(sizes(d.Transactions())); got != "[100 100 100]" {
			t.Errorf("before the timeout: %s", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := fmt.Sprint(sizes(d.Transactions())); got != "[100 100 100 30]" {
			t.Errorf("after flush_timeout: %s", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestFlushBytesBoundsATransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Recorder{}
		_, stop := run(t, one(Func(func(ctx context.Context, in router.Inlet) error {
			long := strings.Repeat("x", 400)
			Send(ctx, in, origin, long, long, long, strings.Repeat("y", 3000), long)
			<-ctx.Done()
			return nil
		}), d, router.Flush{Messages: 100, Bytes: 1000, After: time.Second, Severity: -1}))
		time.Sleep(2 * time.Second)
		if got := fmt.Sprint(sizes(d.Transactions())); got != "[2 1 1 1]" {
			t.Errorf("transactions of %s messages", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestSevereMessagesFlushAtOnceButTenTimesASecondAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Recorder{}
		_, stop := run(t, one(Func(func(ctx context.Context, in router.Inlet) error {
			for range 1000 { // one a millisecond
				b, err := in.Take(ctx, 10, 1)
				if err != nil {
					return nil
				}
				b.Add(origin).Severity = 2
				in.Deliver(b)
				time.Sleep(time.Millisecond)
			}
			<-ctx.Done()
			return nil
		}), d, router.Flush{Messages: 5000, Bytes: 1 << 20, After: time.Minute, Severity: 2}))
		time.Sleep(1500 * time.Millisecond)
		if n := len(d.Transactions()); n < 10 || n > 12 {
			t.Errorf("%d transactions in a second", n)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestASourceThatWaitsForMemoryFlushesItsDestinationAndNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full, calm := &Recorder{}, &Recorder{}
		flush := router.Flush{Messages: 1 << 20, Bytes: 1 << 30, After: time.Hour, Severity: -1}
		_, stop := run(t, router.Config{
			Memory: 4 << 20,
			Sources: []router.SourceConfig{
				{Name: "busy", MaxMessage: 4096, Source: Func(func(ctx context.Context, in router.Inlet) error {
					for range 400 {
						if Send(ctx, in, origin, strings.Repeat("x", 4000), strings.Repeat("y", 4000), strings.Repeat("z", 4000)) != nil {
							break
						}
					}
					<-ctx.Done()
					return nil
				})},
				{Name: "quiet", MaxMessage: 4096, Source: Func(func(ctx context.Context, in router.Inlet) error {
					Send(ctx, in, origin, "a single line")
					<-ctx.Done()
					return nil
				})}},
			Destinations: []router.DestinationConfig{{Name: "full", Destination: full, Flush: flush}, {Name: "calm", Destination: calm, Flush: flush}},
			Routes:       []router.Route{{Name: "r1", From: []string{"busy"}, To: []string{"full"}}, {Name: "r2", From: []string{"quiet"}, To: []string{"calm"}}},
		})
		time.Sleep(time.Second)
		if n := len(full.Rows()); n < 900 {
			t.Errorf("only %d rows although the source waits", n)
		}
		if n := len(calm.Rows()); n != 0 {
			t.Errorf("the neighbour flushed %d rows early", n)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestABlockedDestinationHoldsBackOnlyItsSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down, up := &Recorder{OnWrite: func(context.Context, []*router.Message) ([]router.Rejected, error) {
			return nil, errors.New("connection refused")
		}}, &Recorder{}
		flush := router.Flush{Messages: 100, Bytes: 1 << 20, After: time.Second, Severity: -1}
		sent := [2]int{}
		flood := func(i int) router.Source {
			return Func(func(ctx context.Context, in router.Inlet) error {
				for sent[i] < 20000 && Send(ctx, in, origin, strings.Repeat("x", 300)) == nil {
					sent[i]++
				}
				<-ctx.Done()
				return nil
			})
		}
		var log strings.Builder
		r, stop := run(t, router.Config{
			Memory: 4 << 20, Drain: 5 * time.Second, Log: slog.New(slog.NewTextHandler(&log, nil)),
			Sources:      []router.SourceConfig{{Name: "s0", Source: flood(0), MaxMessage: 4096}, {Name: "s1", Source: flood(1), MaxMessage: 4096}},
			Destinations: []router.DestinationConfig{{Name: "down", Destination: down, Flush: flush}, {Name: "up", Destination: up, Flush: flush}},
			Routes:       []router.Route{{Name: "r0", From: []string{"s0"}, To: []string{"down"}}, {Name: "r1", From: []string{"s1"}, To: []string{"up"}}},
		})
		time.Sleep(6 * time.Minute)
		if len(up.Rows()) != 20000 {
			t.Errorf("the neighbour got %d of 20000 rows", len(up.Rows()))
		}
		if sent[0] > 4000 {
			t.Errorf("%d messages taken for a destination that is down", sent[0])
		}
		for _, p := range r.Parts() {
			if p.Name == "down" && (p.Ready || p.Reason != "connection refused") {
				t.Errorf("the state of the destination is %+v", p)
			}
		}
		if err := stop(); err == nil || !strings.Contains(err.Error(), fmt.Sprint(sent[0], " messages lost")) {
			t.Errorf("the stop said: %v", err)
		}
		if got := strings.Count(log.String(), "destination waits"); got != 3 { // at once, after 1 and after 5 minutes
			t.Errorf("told %d times:\n%s", got, log.String())
		}
		if !strings.Contains(log.String(), "holds_back=s0") {
			t.Errorf("the log does not say whom it holds back:\n%s", log.String())
		}
	})
}

func TestAFilterThatHoldsLetsOtherRoutesGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &Recorder{}, &Recorder{}
		var closed atomic.Bool
		holder := filterFunc(func(batch *router.Batch) *router.Held {
			if !closed.Load() {
				return &router.Held{Retry: time.Second, Cause: errors.New("breaker open")}
			}
			return nil
		})
		flush := router.Flush{Messages: 10, Bytes: 1 << 20, After: time.Second, Severity: -1}
		r, stop := run(t, router.Config{
			Sources: []router.SourceConfig{{Name: "src", MaxMessage: 4096, Source: Func(func(ctx context.Context, in router.Inlet) error {
				for _, line := range lines(50) {
					Send(ctx, in, origin, line)
				}
				<-ctx.Done()
				return nil
			})}},
			Destinations: []router.DestinationConfig{{Name: "a", Destination: a, Flush: flush}, {Name: "b", Destination: b, Flush: flush}},
			Routes: []router.Route{
				{Name: "held", From: []string{"src"}, To: []string{"a"}, Filters: []router.Stage{{Name: "f", Filters: []router.Filter{holder}}}},
				{Name: "free", From: []string{"src"}, To: []string{"b"}}},
		})
		time.Sleep(10 * time.Second)
		if len(a.Rows()) != 0 || len(b.Rows()) != 50 {
			t.Errorf("%d rows behind the open breaker, %d beside it", len(a.Rows()), len(b.Rows()))
		}
		if p := r.Parts()[0]; p.Ready || !strings.Contains(p.Reason, "breaker open") {
			t.Errorf("the route's state is %+v", p)
		}
		closed.Store(true)
		time.Sleep(3 * time.Second)
		if got := strings.Join(a.Rows(), ","); got != strings.Join(lines(50), ",") {
			t.Errorf("after the breaker closed: %s", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAFilterMayStopTheRouterAndLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, stopped := &Recorder{}, false
		stopper := filterFunc(func(batch *router.Batch) *router.Held {
			for i, m := range batch.Messages() {
				if string(m.Text) == "line 3" {
					batch.Reject(m, "trap", "unreachable")
					stopped = true
					return &router.Held{Done: i + 1, Stop: true, Cause: errors.New("filter f: unreachable")}
				}
			}
			return nil
		})
		c := one(Func(func(ctx context.Context, in router.Inlet) error {
			Send(ctx, in, origin, lines(10)...)
			<-ctx.Done()
			return nil
		}), d, router.Flush{Messages: 100, Bytes: 1 << 20, After: time.Second, Severity: -1})
		c.Routes[0].Filters = []router.Stage{{Name: "f", Filters: []router.Filter{stopper}}}
		letters := &Letters{}
		c.DeadLetters = letters
		_, stop := run(t, c)
		time.Sleep(time.Minute)
		if err := stop(); !stopped || err == nil || err.Error() != "filter f: unreachable" {
			t.Errorf("the router stopped with %v", err)
		}
		if len(d.Rows()) != 9 || len(letters.All()) != 1 {
			t.Errorf("stored %v, dead letters %v", d.Rows(), letters.All())
		}
	})
}

type filterFunc func(b *router.Batch) *router.Held

func (f filterFunc) Apply(_ context.Context, b *router.Batch) *router.Held { return f(b) }

// The hot path allocates per batch and per transaction, never per message.
func TestMessagesCostNoAllocation(t *testing.T) {
	const n = 1000
	var in router.Inlet
	ready := make(chan struct{})
	_, stop := run(t, one(Func(func(ctx context.Context, inlet router.Inlet) error {
		in = inlet
		close(ready)
		<-ctx.Done()
		return nil
	}), discard{}, router.Flush{Messages: n, Bytes: 1 << 20, After: time.Second, Severity: -1}))
	<-ready
	text := []byte(strings.Repeat("x", 200))
	per := testing.AllocsPerRun(100, func() {
		b, err := in.Take(t.Context(), n*len(text), n)
		if err != nil {
			t.Fatal(err)
		}
		raw := b.Bytes(n * len(text))
		for i := range n {
			m := b.Add(origin)
			m.Raw = append(raw[i*200:i*200:(i+1)*200], text...)
			m.Text = m.Raw
			m.Fields = append(b.NewFields(1), router.Field{Name: m.Text[:3], Value: router.IntValue(1)})
		}
		in.Deliver(b)
	})
	if per > n/20 {
		t.Errorf("%v allocations for %d messages", per, n)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

type discard struct{}

func (discard) Write(context.Context, []*router.Message, func([]router.Rejected) error) error {
	return nil
}
func (discard) Close() error { return nil }

func TestAHeldTransactionIsOfferedWithTheRowsThatCameMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Recorder{}
		d.OnWrite = func(_ context.Context, msgs []*router.Message) ([]router.Rejected, error) {
			if len(msgs) == 1 { // a lone bad row: who is wrong, the row or the table?
				return nil, router.NeedsOperator(errors.New("the table takes none of 1 rows"))
			}
			return []router.Rejected{{Message: msgs[0], Code: "23514"}}, nil
		}
		letters := &Letters{}
		c := one(Func(func(ctx context.Context, in router.Inlet) error {
			Send(ctx, in, origin, "bad")
			time.Sleep(5 * time.Second)
			Send(ctx, in, origin, "good")
			<-ctx.Done()
			return nil
		}), d, router.Flush{Messages: 100, Bytes: 1 << 20, After: time.Second, Severity: -1})
		c.DeadLetters = letters
		_, stop := run(t, c)
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if fmt.Sprint(d.Rows()) != "[good]" || len(letters.All()) != 1 {
			t.Errorf("stored %v, dead letters %v", d.Rows(), letters.All())
		}
	})
}
