package main

import (
	"context"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/wasmhost"
)

// A stopwatch is a filter that takes another one's time: that of the processor,
// so that a busy machine shows as little as it can.
type stopwatch struct {
	router.Filter
	spent    time.Duration
	messages int
	kept     int
}

func (s *stopwatch) Apply(ctx context.Context, b *router.Batch) *router.Held {
	s.messages += len(b.Messages())
	start := threadTime()
	held := s.Filter.Apply(ctx, b)
	s.spent += threadTime() - start
	for _, m := range b.Messages() {
		if m.Field([]byte("kind")) != nil {
			s.kept++
		}
	}
	return held
}

// threadTime is the processor time of this thread. The source is locked to its thread.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

// A function is a source that a function plays.
type function func(ctx context.Context, in router.Inlet) error

func (f function) Run(ctx context.Context, in router.Inlet) error { return f(ctx, in) }

// nowhere is a destination that forgets.
type nowhere struct{}

func (nowhere) Write(context.Context, []*router.Message, func([]router.Rejected) error) error {
	return nil
}
func (nowhere) Close() error                                                    { return nil }
func (nowhere) Keep(context.Context, router.LetterKey, []router.Rejected) error { return nil }
func (nowhere) Unsettled(context.Context, string) ([]router.RunID, error)       { return nil, nil }
func (nowhere) Settle(context.Context, string, router.RunID, uint64) error      { return nil }

// through runs source with a guest in its route and one lane, and returns the guest's stopwatch.
func through(b *testing.B, guest string, limit time.Duration, source function) *stopwatch {
	b.Helper()
	host, err := wasmhost.Open(b.Context(), wasmhost.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer host.Close(context.Background())
	var cfg wasmhost.Config
	cfg.Defaults()
	cfg.Module, cfg.OnError = guestFile(b, guest), wasmhost.Drop
	if limit > 0 {
		cfg.Time = limit
	}
	g, err := host.Load(b.Context(), guest, cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close(context.Background())
	watch := &stopwatch{Filter: g.Filter(0)}
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	r, err := router.New(router.Config{
		Memory: 64 << 20, Lanes: 1, DeadLetters: nowhere{},
		Sources: []router.SourceConfig{{Name: "in", MaxMessage: 64 << 10, Source: function(func(ctx context.Context, in router.Inlet) error {
			defer stop()
			runtime.LockOSThread()
			return source(ctx, in)
		})}},
		Destinations: []router.DestinationConfig{{Name: "out", Destination: nowhere{}, Flush: router.Flush{Messages: 1000, Bytes: 4 << 20, After: time.Second}}},
		Routes:       []router.Route{{Name: "main", From: []string{"in"}, To: []string{"out"}, Filters: []router.Stage{{Name: guest, Filters: []router.Filter{watch}}}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := r.Run(ctx); err != nil {
		b.Fatal(err)
	}
	return watch
}

// deliver hands over a batch of n messages of 256 bytes, or fewer if it has no room for more.
func deliver(ctx context.Context, in router.Inlet, n int) (int, error) {
	batch, err := in.Take(ctx, n*256, n)
	if err != nil {
		return 0, err
	}
	now := time.Now().UnixNano()
	for range n {
		m := batch.Add(origin)
		if m == nil {
			break
		}
		m.Received, m.Raw = now, line
		m.Hostname, m.AppName, m.ProcID, m.Text = line[20:29], line[30:36], line[37:41], line[44:]
	}
	n = batch.Len()
	in.Deliver(batch)
	return n, nil
}

var (
	origin = &router.Origin{Source: "in", Listener: "unix:///in.sock"}
	line   = func() []byte {
		b := []byte("<14>Nov 30 10:00:00 localhost loggen[1234]: seq: 0000000042, conn: 0003, ")
		for len(b) < 255 {
			b = append(b, 'x')
		}
		return b
	}()
)

// How many messages a second and core does a metered C filter take that reads two fields and sets one?
func BenchmarkFilter(b *testing.B) {
	watch := through(b, "touch", 0, func(ctx context.Context, in router.Inlet) error {
		for b.Loop() {
			if _, err := deliver(ctx, in, 1000); err != nil {
				return err
			}
		}
		return nil
	})
	b.ReportMetric(float64(watch.spent.Nanoseconds())/float64(watch.messages), "ns/msg")
	b.ReportMetric(float64(watch.messages)/watch.spent.Seconds(), "msg/s")
	b.ReportMetric(float64(watch.messages)/float64(b.N), "msg/op")
}

// How long after its time is a hostile guest stopped, and how long does the garbage collector take meanwhile? Without
// a leash neither would ever end.
func BenchmarkLeash(b *testing.B) {
	const limit = 50 * time.Millisecond
	for _, guest := range []string{"spin", "recurse", "calltree", "fill", "sleep", "hostcalls"} {
		b.Run("guest="+guest, func(b *testing.B) {
			var worst, collected time.Duration
			through(b, guest, limit, func(ctx context.Context, in router.Inlet) error {
				for b.Loop() {
					stop, done := make(chan struct{}), make(chan time.Duration)
					go func() { done <- collect(stop) }()
					start := time.Now()
					if _, err := deliver(ctx, in, 1); err != nil {
						return err
					}
					worst = max(worst, time.Since(start))
					close(stop)
					collected = max(collected, <-done)
				}
				return nil
			})
			b.ReportMetric(float64((worst-limit).Microseconds())/1000, "ms-over-time")
			b.ReportMetric(float64(collected.Microseconds())/1000, "ms-gc")
		})
	}
}

// collect collects garbage every 10 ms until stop is closed, and returns the longest time that it took.
func collect(stop chan struct{}) (worst time.Duration) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return worst
		case <-tick.C:
			start := time.Now()
			runtime.GC()
			worst = max(worst, time.Since(start))
		}
	}
}
