package wasmhost

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/routertest"
)

var (
	hostileModules = flag.Int("hostile", 0, "put so many hostile modules through a running router, at least 200 make sense; 0: a handful")
	hostileSeed    = flag.Uint64("hostile-seed", 3, "makes other mutants")
	hostileOnly    = flag.String("hostile-only", "", "only modules whose names contain this")
)

// One filter's module is changed for a hostile one, again and again, while messages go through it. Whatever the modules
// are: the router never stops, each is refused with words or filters, every message has a fate, memory stays within
// bounds, and a route beside it misses nothing.
func TestHostileModulesThroughARunningRouter(t *testing.T) {
	before := runtime.NumGoroutine()
	log := &routertest.Transcript{}
	h := compiling(t, cacheDir(t), func(o *Options) { o.Log = slog.New(slog.NewTextHandler(log, nil)) })
	handful := *hostileModules == 0
	corpus := hostileCorpus(t, *hostileSeed, max(len(victims), *hostileModules/2))
	rand.New(rand.NewPCG(*hostileSeed, 2)).Shuffle(len(corpus), func(i, j int) { corpus[i], corpus[j] = corpus[j], corpus[i] })
	if handful {
		corpus = corpus[:12]
	} else if *hostileOnly == "" {
		corpus = corpus[:min(*hostileModules, len(corpus))]
	}
	if *hostileOnly != "" {
		var some []hostileModule
		for _, m := range corpus {
			if strings.Contains(m.name, *hostileOnly) {
				some = append(some, m)
			}
		}
		corpus = some
	}
	s := newSiege(t, h)
	var least, most int64
	ran := 0
	for i, m := range corpus {
		if s.swap(t, m) {
			ran++
		}
		if i%16 == 15 || i == len(corpus)-1 {
			if n := resident(t); least == 0 {
				least, most = n, n // what the first ones took is what all take
			} else {
				most = max(most, n)
			}
		}
	}
	s.swap(t, hostileModule{"peace", contents(t, "testdata/mask.c")})
	s.end(t)
	if grown := most - least; grown > 64<<20 && !raceDetector {
		t.Errorf("after some modules there are %d MiB more than after the first", grown>>20)
	}
	if text := log.String(); strings.Contains(text, "BUG:") {
		t.Errorf("a bug is told:\n%s", text[strings.Index(text, "BUG:"):][:min(3000, len(text)-strings.Index(text, "BUG:"))])
	}
	for began := time.Now(); runtime.NumGoroutine() > before+2 && time.Since(began) < 10*time.Second; {
		runtime.Gosched()
	}
	if n := runtime.NumGoroutine(); n > before+2 {
		t.Errorf("%d goroutines, there were %d", n, before)
	}
	t.Logf("%d modules: %d ran, %d were refused; %d messages, %d beside them with at most %v between two batches; %d MiB resident after the first, at most %d",
		len(corpus), ran, len(corpus)-ran, s.sent, s.beside, s.pause.Round(time.Millisecond), least>>20, most>>20)
}

// A siege is a running router with two routes: one with a filter whose module changes, and one beside it.
type siege struct {
	path  string
	guest *Guest
	*router.Router
	stop context.CancelFunc
	done chan error
	gone chan int // batches that went through the filter

	sent, beside int // messages; valid after end
	pause        time.Duration
	neighbour    inOrder
}

func newSiege(t *testing.T, h *Host) *siege {
	t.Helper()
	s := &siege{path: filepath.Join(t.TempDir(), "hostile.wasm"), done: make(chan error, 1), gone: make(chan int)}
	s.write(t, contents(t, "testdata/state.wat"))
	s.guest = load(t, h, settings(s.path, func(c *Config) {
		c.Time, c.InitTime, c.Exceptions = 4*time.Millisecond, 200*time.Millisecond, true
		if raceDetector {
			c.InitTime = 2 * time.Second
		}
	}))
	g, err := h.Load(t.Context(), "neighbour", settings(wasmOf(t, "testdata/state.wat")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close(context.Background()) })

	flush := router.Flush{Messages: 1000, Bytes: 4 << 20, After: time.Millisecond, Severity: -1}
	s.Router, err = router.New(router.Config{
		Memory: 64 << 20, Lanes: 2, DeadLetters: forgotten{},
		Sources: []router.SourceConfig{
			{Name: "in", Source: routertest.Func(s.feed), MaxMessage: 64 << 10},
			{Name: "quiet", Source: routertest.Func(s.neighbours), MaxMessage: 64 << 10},
		},
		Destinations: []router.DestinationConfig{
			{Name: "out", Destination: forgotten{}, Flush: flush},
			{Name: "rec", Destination: &s.neighbour, Flush: flush},
		},
		Routes: []router.Route{
			{Name: "hostile", From: []string{"in"}, To: []string{"out"}, Filters: []router.Stage{
				{Name: "f", Filters: []router.Filter{s.guest.Filter(0), s.guest.Filter(1)}}}},
			{Name: "beside", From: []string{"quiet"}, To: []string{"rec"}, Filters: []router.Stage{
				{Name: "neighbour", Filters: []router.Filter{g.Filter(0), g.Filter(1)}}}},
		},
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	t.Cleanup(s.stop)
	go func() { s.done <- s.Run(ctx) }()
	return s
}

// inOrder is a destination that counts messages "n0", "n1" and so on, and notes the first that is another one.
type inOrder struct {
	forgotten
	rows  int
	wrong string
}

func (d *inOrder) Write(_ context.Context, msgs []*router.Message, _ func([]router.Rejected) error) error {
	for _, m := range msgs {
		if want := fmt.Sprint("n", d.rows); string(m.Text) != want && d.wrong == "" {
			d.wrong = fmt.Sprintf("%q, where %q was to be", m.Text, want)
		}
		d.rows++
	}
	return nil
}

// forgotten is a destination, and a store of dead letters, that keeps nothing.
type forgotten struct{}

func (forgotten) Write(context.Context, []*router.Message, func([]router.Rejected) error) error {
	return nil
}
func (forgotten) Keep(context.Context, router.LetterKey, []router.Rejected) error { return nil }
func (forgotten) Unsettled(context.Context, string) ([]router.RunID, error)       { return nil, nil }
func (forgotten) Settle(context.Context, string, router.RunID, uint64) error      { return nil }
func (forgotten) Close() error                                                    { return nil }

// feed sends batches until the router stops, and says so after each.
func (s *siege) feed(ctx context.Context, in router.Inlet) error {
	o := &router.Origin{Source: "in", Listener: "udp://127.0.0.1:514", Peer: "192.0.2.7"}
	texts := []string{"keep one", "", "trap \xff\xfe", "drop " + strings.Repeat("long ", 1500), `{"message":"json","a":[1,2.5,null]}`, "reject two"}
	for n := 1; ; n++ {
		if err := routertest.Send(ctx, in, o, texts...); err != nil {
			return nil // the drain
		}
		s.sent += len(texts)
		select {
		case s.gone <- n:
		case <-ctx.Done():
			return nil
		}
	}
}

// neighbours sends numbers until the router stops.
func (s *siege) neighbours(ctx context.Context, in router.Inlet) error {
	o := &router.Origin{Source: "quiet"}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	last := time.Now()
	for ctx.Err() == nil {
		var texts []string
		for range 10 {
			texts = append(texts, fmt.Sprint("n", s.beside+len(texts)))
		}
		if err := routertest.Send(ctx, in, o, texts...); err != nil {
			return nil
		}
		s.beside += len(texts)
		s.pause = max(s.pause, time.Since(last))
		last = time.Now()
		<-tick.C
	}
	return nil
}

func (s *siege) write(t *testing.T, module []byte) {
	t.Helper()
	if err := os.WriteFile(s.path+".new", module, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(s.path+".new", s.path); err != nil {
		t.Fatal(err)
	}
}

// swap puts a module in the place of the one before it, and waits until messages went through it.
func (s *siege) swap(t *testing.T, m hostileModule) (ran bool) {
	t.Helper()
	s.write(t, m.bytes)
	began := time.Now()
	type answer struct {
		changed bool
		err     error
	}
	loaded := make(chan answer, 1)
	go func() {
		changed, err := s.guest.Reload(context.Background())
		loaded <- answer{changed, err}
	}()
	var got answer
	for waits := true; waits; {
		select {
		case got = <-loaded:
			waits = false
		case <-s.gone: // traffic goes on meanwhile
		}
	}
	if got.err != nil {
		if text := got.err.Error(); strings.Contains(text, "BUG:") || strings.Contains(text, "goroutine ") || !strings.Contains(text, s.path) {
			t.Errorf("%s: refused with %s", m.name, text)
		}
	}
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for batches := 0; batches < 3; {
		select {
		case <-s.gone:
			batches++
		case <-look.C:
			if s.guest.breaker.isOpen() {
				batches = 3 // it is given up, and messages wait
			}
		case err := <-s.done:
			t.Fatalf("%s: the router has stopped: %v", m.name, err)
		case <-deadline.C:
			t.Fatalf("%s: nothing goes through any more", m.name)
		}
	}
	for _, a := range s.Ledger().Routes {
		sum := uint64(a.InFlight)
		for _, e := range a.Fates {
			if e.Fate != router.FateCreated {
				sum += e.N
			}
		}
		if sum != a.Income+a.Sum(router.FateCreated) {
			t.Fatalf("%s: the ledger of %s does not balance: %+v", m.name, a.Name, a)
		}
	}
	if *hostileModules > 0 {
		t.Logf("%-40s %6v changed %v %v; %s", m.name, time.Since(began).Round(time.Millisecond), got.changed, got.err, s.guest.lastFault())
	}
	return got.changed
}

// end stops the router and checks what is left.
func (s *siege) end(t *testing.T) {
	t.Helper()
	s.stop()
	if err := <-s.done; err != nil {
		t.Errorf("the router: %v", err)
	}
	routertest.Balanced(t, s.Ledger())
	if n := s.neighbour.rows; n != s.beside || s.neighbour.wrong != "" {
		t.Errorf("beside it %d messages arrived of %d; %s", n, s.beside, s.neighbour.wrong)
	}
}
