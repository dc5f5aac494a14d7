package socket

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/routertest"
)

// A record is a message as it arrived at the destination.
type record struct {
	Message, Hostname, Peer, Listener, Source string
	AppName                                   string `json:"app_name"`
	Raw                                       string `json:"-"`
}

// A store keeps records. While gate is closed, transactions wait.
type store struct {
	mu      sync.Mutex
	records []record
	sizes   []int // of transactions
	open    chan struct{}
	arrived chan struct{} // capacity 1

	quiet   atomic.Bool // keep nothing, only count
	counted atomic.Int64
}

func (s *store) Write(ctx context.Context, msgs []*router.Message, _ func([]router.Rejected) error) error {
	select {
	case <-s.open:
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.counted.Add(int64(len(msgs))); s.quiet.Load() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sizes = append(s.sizes, len(msgs))
	for _, m := range msgs {
		var r record
		if err := json.Unmarshal(router.AppendRecord(nil, m), &r); err != nil {
			return err
		}
		r.Raw = string(m.Raw)
		s.records = append(s.records, r)
	}
	select {
	case s.arrived <- struct{}{}:
	default:
	}
	return nil
}

func (s *store) Close() error { return nil }

func (s *store) all() []record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.records)
}

// await waits until n records have been stored.
func (s *store) await(t testing.TB, n int) []record {
	t.Helper()
	for {
		if r := s.all(); len(r) >= n {
			return r
		}
		select {
		case <-s.arrived:
		case <-time.After(time.Minute):
			t.Fatalf("%d of %d messages arrived", len(s.all()), n)
		}
	}
}

// A flow is a running router behind one source.
type flow struct {
	t      testing.TB
	src    *Source
	router *router.Router
	store  *store
	cancel context.CancelFunc
	done   chan error
	ended  bool
	log    *routertest.Transcript
	tails  atomic.Pointer[router.Tails]
}

type flowOptions struct {
	memory int64 // 0: 64 MiB
	flush  router.Flush
	held   bool // the destination writes nothing before release
	idle   bool // do not run yet
}

// start opens the source and runs a router until the test ends.
func start(t testing.TB, o flowOptions, edit func(*Config)) *flow {
	t.Helper()
	goroutines := runtime.NumGoroutine()
	var c Config
	c.Defaults()
	edit(&c)
	if bad := c.Check(); bad != nil {
		t.Fatal(bad)
	}
	f := &flow{t: t, store: &store{open: make(chan struct{}), arrived: make(chan struct{}, 1)}, done: make(chan error, 1), log: &routertest.Transcript{}}
	log := slog.New(slog.NewTextHandler(f.log, nil))
	var err error
	if f.src, err = Listen("edge", c, log); err != nil {
		t.Fatal(err)
	}
	if o.memory == 0 {
		o.memory = 64 << 20
	}
	if o.flush == (router.Flush{}) {
		o.flush = router.Flush{Messages: 1000, Bytes: 4 << 20, After: time.Millisecond, Severity: -1}
	}
	f.router, err = router.New(router.Config{
		Memory:       o.memory,
		Lanes:        1,
		Sources:      []router.SourceConfig{{Name: "edge", Source: seen{f.src, f}, MaxMessage: int(c.MaxMessage)}},
		Destinations: []router.DestinationConfig{{Name: "store", Destination: f.store, Flush: o.flush}},
		Routes:       []router.Route{{Name: "main", From: []string{"edge"}, To: []string{"store"}}},
		DeadLetters:  &routertest.Letters{},
		Log:          log,
	})
	if err != nil {
		t.Fatal(err)
	}
	if !o.held {
		close(f.store.open)
	}
	if !o.idle {
		f.run()
	}
	t.Cleanup(func() {
		f.stop()
		if t.Failed() {
			t.Log(f.log)
			return
		}
		for range 100 { // goroutines end a little after what waits for them
			if runtime.NumGoroutine() <= goroutines {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		buf := make([]byte, 1<<16)
		t.Errorf("%d goroutines are left:\n%s", runtime.NumGoroutine()-goroutines, buf[:runtime.Stack(buf, true)])
	})
	return f
}

func (f *flow) run() {
	var ctx context.Context
	ctx, f.cancel = context.WithCancel(context.Background())
	go func() { f.done <- f.router.Run(ctx) }()
}

// release lets the destination write.
func (f *flow) release() { close(f.store.open) }

// stop stops the router and checks that the ledger balances.
func (f *flow) stop() []record {
	f.t.Helper()
	if !f.ended {
		f.ended = true
		f.cancel()
		if err := <-f.done; err != nil {
			f.t.Error(err)
		}
		routertest.Balanced(f.t, f.router.Ledger())
	}
	return f.store.all()
}

func (f *flow) intake() router.Intake { return f.router.Ledger().Sources["edge"] }

// dial connects to the n-th address of the source.
func (f *flow) dial(n int) net.Conn {
	f.t.Helper()
	network, address, _ := strings.Cut(f.src.Addrs()[n], "://")
	c, err := net.Dial(network, address)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { c.Close() })
	return c
}

func send(t testing.TB, c net.Conn, text string) {
	t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

func texts(all []record) (out []string) {
	for _, r := range all {
		out = append(out, r.Message)
	}
	return out
}

// until waits for what another goroutine brings about.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never: " + what)
		}
	}
}

var errTimeout interface{ Timeout() bool }

func timedOut(err error) bool { return errors.As(err, &errTimeout) && errTimeout.Timeout() }

// seen is a source whose inlet the test can look at.
type seen struct {
	*Source
	f *flow
}

func (s seen) Run(ctx context.Context, in router.Inlet) error {
	s.f.tails.Store(in.Tails())
	return s.Source.Run(ctx, in)
}

// tailBytes is what is charged for unfinished messages.
func (f *flow) tailBytes() int64 {
	if a := f.tails.Load(); a != nil {
		return a.Used()
	}
	return 0
}
