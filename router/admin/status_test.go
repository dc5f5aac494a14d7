package admin

import (
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/router"
)

// A fake has the metrics of a router, by the names that /status reads them by.
type fake struct {
	*prometheus.Registry
	vectors map[string]*prometheus.GaugeVec
	totals  map[string]*prometheus.CounterVec
}

func newFake() *fake {
	return &fake{prometheus.NewPedanticRegistry(), map[string]*prometheus.GaugeVec{}, map[string]*prometheus.CounterVec{}}
}

func named(labels []string) prometheus.Labels {
	all := prometheus.Labels{}
	for i := 0; i < len(labels); i += 2 {
		all[labels[i]] = labels[i+1]
	}
	return all
}

func (f *fake) add(n float64, name string, labels ...string) {
	if f.totals[name] == nil {
		f.totals[name] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: "."}, slices.Sorted(maps.Keys(named(labels))))
		f.MustRegister(f.totals[name])
	}
	f.totals[name].With(named(labels)).Add(n)
}

func (f *fake) set(n float64, name string, labels ...string) {
	if f.vectors[name] == nil {
		f.vectors[name] = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: "."}, slices.Sorted(maps.Keys(named(labels))))
		f.MustRegister(f.vectors[name])
	}
	f.vectors[name].With(named(labels)).Set(n)
}

func sampledBy(t *testing.T, f *fake, h *history) {
	t.Helper()
	all, err := f.Gather()
	if err != nil {
		t.Fatal(err)
	}
	h.add(time.Now(), all)
}

func figuresOf(t *testing.T, f *fake, h *history) *figures {
	t.Helper()
	all, err := f.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return newFigures(time.Now(), all, h)
}

func TestRatesAreThoseOfTheLastTenSecondsAndTheLastMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, h := newFake(), newHistory(time.Now())
		pass := func(seconds int, perSecond float64) {
			for range seconds / 5 {
				f.add(perSecond*5, "weir_source_messages_total", "source", "edge")
				time.Sleep(5 * time.Second)
				sampledBy(t, f, h)
			}
		}
		check := func(want Count) {
			t.Helper()
			if diff := cmp.Diff(want, figuresOf(t, f, h).count("weir_source_messages_total", "source", "edge")); diff != "" {
				t.Error(diff)
			}
		}
		check(Count{})
		f.add(12, "weir_source_messages_total", "source", "edge")
		time.Sleep(2 * time.Second)
		check(Count{12, 6, 6}) // since the start
		time.Sleep(3 * time.Second)
		sampledBy(t, f, h)
		pass(300, 100)
		check(Count{30012, 100, 100})
		pass(10, 0)
		check(Count{30012, 0, 83.3333})
		pass(60, 0)
		check(Count{30012, 0, 0})
		if n := len(h.samples); n != mostSamples {
			t.Errorf("%d samples are kept", n)
		}
	})
}

func TestACounterThatAppearsLaterHasItsRateToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, h := newFake(), newHistory(time.Now())
		f.add(1, "weir_missed_total", "source", "edge", "reason", "partial")
		for range 30 {
			time.Sleep(5 * time.Second)
			sampledBy(t, f, h)
		}
		f.add(30, "weir_missed_total", "source", "edge", "reason", "kernel")
		got := figuresOf(t, f, h).by("reason", "weir_missed_total", "source", "edge")
		want := map[string]Count{"partial": {1, 0, 0}, "kernel": {30, 3, 0.5}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if n := got["kernel"].LastMinute(); n != 30 {
			t.Errorf("%d in the last minute", n)
		}
	})
}

func TestTheTimeUntilABufferIsFullIsThatOfItsGrowth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, h := newFake(), newHistory(time.Now())
		f.set(1e6, "weir_buffer_limit_bytes", "destination", "db", "connection", "1")
		plan := Status{Destinations: []DestinationStatus{{Name: "db"}}}
		waiting := 100e3
		pass := func(seconds int, perSecond float64) *float64 {
			for range seconds / 5 {
				waiting += perSecond * 5
				f.set(waiting, "weir_buffer_waiting_bytes", "destination", "db", "connection", "1")
				time.Sleep(5 * time.Second)
				sampledBy(t, f, h)
			}
			return arrange(plan, nil, figuresOf(t, f, h)).Destinations[0].Buffer.FullIn
		}
		if in := pass(5, 0); in != nil {
			t.Errorf("a buffer of which nothing is known is full in %v", *in)
		}
		if in := pass(120, 1000); in == nil || *in != (1e6-220e3)/1000 {
			t.Errorf("growing, full in %v", in)
		}
		if in := pass(120, -1000); in != nil {
			t.Errorf("shrinking, full in %v", *in)
		}
	})
}

// plan is a router of each part.
func plan() Status {
	return Status{
		Sources:      []SourceStatus{{Name: "edge", Listen: []string{"tcp://127.0.0.1:5514"}}},
		Routes:       []RouteStatus{{Name: "main", From: []string{"edge"}, Filters: []string{"redact"}, To: []string{"db"}}},
		Filters:      []FilterStatus{{Name: "redact", Module: "redact.wasm"}},
		Destinations: []DestinationStatus{{Name: "db", Kind: "postgres", FlushTimeout: 1}},
	}
}

// Each case is something that happens in a minute, and the problem that it is; "": none.
func TestWhatAnOperatorMustKnowIsAProblem(t *testing.T) {
	check := func(name, want string, happen func(f *fake), parts ...router.Part) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, h := newFake(), newHistory(time.Now())
				for range 30 {
					time.Sleep(5 * time.Second)
					sampledBy(t, f, h)
				}
				happen(f)
				s := arrange(plan(), parts, figuresOf(t, f, h))
				if s.Degraded != (want != "") || s.Degraded != (len(s.Problems) > 0) {
					t.Fatalf("degraded: %v, %+v", s.Degraded, s.Problems)
				}
				if want == "" {
					return
				}
				p := s.Problems[0]
				if got := p.Kind + " " + p.Name + ": " + p.What; !strings.HasPrefix(got, want) || p.WayOut == "" || len(s.Problems) != 1 {
					t.Errorf("got %q, way out %q, %d problems", got, p.WayOut, len(s.Problems))
				}
			})
		})
	}
	nothing := func(*fake) {}
	ready := router.Part{Kind: "destination", Name: "db", Ready: true}
	check("all is well", "", nothing, ready)
	check("not ready", "destination db: is not ready: connection refused", nothing, router.Part{Kind: "destination", Name: "db", Reason: "connection refused"})
	check("a route is held", "route main: 3 batches held: no instance", nothing, router.Part{Kind: "route", Name: "main", Reason: "3 batches held: no instance"})
	check("given up", "filter redact: is given up, one message a second is tried: trap", nothing, router.Part{Kind: "filter", Name: "redact", Reason: "trap"})
	check("letters cannot be written", "dead_letters dead_letters: cannot be written: disk full", nothing, router.Part{Kind: "dead_letters", Name: "dead_letters", Reason: "disk full"})

	check("a new module is refused", "filter redact: the module of", nothing, router.Part{Kind: "filter", Name: "redact", Ready: true, Reason: "x", Trouble: "the module of 10:00 goes on, the changed one is refused since 11:00: no such file"})
	check("what was committed is gone", "destination db: it no longer has 50 messages that it had committed", func(f *fake) { f.add(50, "weir_destination_went_back_total", "destination", "db") })
	check("unrouted", "", func(f *fake) { f.add(500, "weir_unrouted_total", "source", "edge") })

	hung := func(seconds float64) func(*fake) {
		return func(f *fake) { f.set(seconds, "weir_destination_unanswered_seconds", "destination", "db") }
	}
	check("slow", "", hung(9))
	check("hangs", "destination db: does not answer", hung(11))
	check("hangs and is known to fail", "destination db: is not ready", hung(11), router.Part{Kind: "destination", Name: "db"})
	check("the disk of the buffer hangs", "destination db: the disk does not answer", func(f *fake) {
		f.set(64e6, "weir_buffer_limit_bytes", "destination", "db", "connection", "1")
		f.set(30, "weir_destination_buffer_unanswered_seconds", "destination", "db")
	})
	check("the disk of the letters hangs", "dead_letters dead_letters: the disk does not answer", func(f *fake) { f.set(30, "weir_dead_letters_unanswered_seconds") })

	check("lost, and so full", "destination db: 7 messages lost in the last minute: there was no room", func(f *fake) {
		f.add(7, "weir_destination_messages_total", "destination", "db", "fate", "lost", "reason", "full")
		f.set(100e6, "weir_buffer_limit_bytes", "destination", "db", "connection", "1")
		f.set(99e6, "weir_buffer_waiting_bytes", "destination", "db", "connection", "1")
	})
	check("lost", "destination db: 7 messages lost in the last minute: there was no room", func(f *fake) {
		f.add(7, "weir_destination_messages_total", "destination", "db", "fate", "lost", "reason", "full")
	})
	missed := func(reason string) func(*fake) {
		return func(f *fake) { f.add(3, "weir_missed_total", "source", "edge", "reason", reason) }
	}
	check("datagrams dropped", "source edge: 3 datagrams dropped by the kernel", missed("kernel"))
	check("connections refused", "source edge: 3 connections refused", missed("connections"))
	check("a sender breaks off", "", missed("partial"))
	check("letters dropped", "dead_letters dead_letters: 5 of the oldest dropped", func(f *fake) { f.add(5, "weir_dead_letters_dropped_total", "reason", "size") })
	check("letters expire", "", func(f *fake) { f.add(5, "weir_dead_letters_dropped_total", "reason", "age") })

	rejects := func(calls, rejected float64) func(*fake) {
		return func(f *fake) {
			f.add(calls, "weir_filter_calls_total", "filter", "redact")
			f.add(rejected, "weir_route_messages_total", "route", "main", "fate", "rejected", "reason", "redact")
		}
	}
	check("rejects half", "", rejects(100, 50))
	check("rejects nearly all", "filter redact: rejects nearly all messages, 95 of 100", rejects(100, 95))
	check("rejects all of a few", "", rejects(5, 5))
	check("fails on nearly all", "filter redact: fails on nearly all messages, 95 of 100", func(f *fake) {
		rejects(100, 95)(f)
		f.add(95, "weir_filter_faults_total", "filter", "redact", "cause", "time")
	})

	buffer := func(waiting float64) func(*fake) {
		return func(f *fake) {
			f.set(100e6, "weir_buffer_limit_bytes", "destination", "db", "connection", "1")
			f.set(waiting, "weir_buffer_waiting_bytes", "destination", "db", "connection", "1")
		}
	}
	check("a buffer half full", "", buffer(50e6))
	check("a buffer nearly full", "destination db: its disk buffer is 85% full", buffer(85e6))
	oldest := func(seconds float64) func(*fake) {
		return func(f *fake) { f.set(seconds, "weir_destination_oldest_message_seconds", "destination", "db") }
	}
	check("waits", "", oldest(50))
	check("behind", "destination db: is behind", oldest(70))

	held := func(for_ time.Duration) router.Part {
		return router.Part{Kind: "source", Name: "edge", Ready: true, Reason: "is held back: memory is used up", Since: time.Date(2000, 1, 1, 0, 2, 30, 0, time.UTC).Add(-for_)} // synctest's clock
	}
	check("held for a moment", "", nothing, held(5*time.Second))
	check("held and nothing read", "source edge: reads nothing: it is held back: memory is used up", nothing, held(15*time.Second))
	check("held under load", "", func(f *fake) { f.add(500, "weir_source_messages_total", "source", "edge") }, held(15*time.Second))
}

func TestStatusIsOneDocument(t *testing.T) {
	f := newFake()
	f.add(10, "weir_source_messages_total", "source", "edge")
	f.set(64e6, "weir_memory_limit_bytes", "pool", "memory")
	p := plan()
	p.Program = ProgramStatus{Version: "1.2.3", PID: 7, Started: time.Now()}
	s, err := Listen(Config{Listen: "127.0.0.1:0"}, Subject{Gatherer: f, Parts: noParts, Plan: p}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := httptest.NewRecorder()
	s.http.Handler.ServeHTTP(w, httptest.NewRequest("GET", "/status", nil))
	text, _ := io.ReadAll(w.Body)
	if strings.Contains(string(text), "null") {
		t.Errorf("an empty list is not null:\n%s", text)
	}
	var got Status
	if err := json.Unmarshal(text, &got); err != nil || w.Code != 200 {
		t.Fatal(w.Code, err)
	}
	if got.Degraded || got.Sources[0].Received.Total != 10 || got.Memory.Limit != 64e6 || got.Program.PID != 7 || got.Routes[0].To[0] != "db" || got.Destinations[0].Buffer != nil {
		t.Errorf("%s", text)
	}
	if plan := s.reporter.subject.Plan; plan.Sources[0].Received.Total != 0 || plan.Problems != nil {
		t.Error("the plan was written to")
	}
}

func TestWhatNoRouteTakesIsNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, h := newFake(), newHistory(time.Now())
		f.add(531, "weir_source_messages_total", "source", "edge")
		f.add(500, "weir_unrouted_total", "source", "edge")
		time.Sleep(20 * time.Second)
		s := arrange(plan(), nil, figuresOf(t, f, h))
		if len(s.Notes) != 1 || s.Degraded || s.Notes[0].What != "500 of 531 messages in the last minute reached no route and are stored nowhere" || !strings.Contains(s.Notes[0].WayOut, "else: true") {
			t.Errorf("degraded: %v, %+v", s.Degraded, s.Notes)
		}
	})
}

// A young weir has no more in the last minute than in all.
func TestAYoungFilterFailsOnWhatItHadAndNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, h := newFake(), newHistory(time.Now())
		f.add(10, "weir_filter_calls_total", "filter", "redact")
		f.add(10, "weir_filter_faults_total", "filter", "redact", "cause", "time")
		time.Sleep(10 * time.Second)
		if s := arrange(plan(), nil, figuresOf(t, f, h)); s.Degraded {
			t.Errorf("ten messages are too few to judge by: %+v", s.Problems)
		}
		f.add(10, "weir_filter_calls_total", "filter", "redact")
		f.add(10, "weir_filter_faults_total", "filter", "redact", "cause", "time")
		s := arrange(plan(), nil, figuresOf(t, f, h))
		if len(s.Problems) != 1 || !strings.Contains(s.Problems[0].What, "20 of 20 in the last minute") {
			t.Errorf("%+v", s.Problems)
		}
	})
}

func TestAStopTellsWhatItMayLose(t *testing.T) {
	check := func(buffered, inFlight float64, problem, note string) {
		t.Helper()
		f, h := newFake(), newHistory(time.Now())
		f.set(inFlight, "weir_in_flight", "kind", "destination", "name", "db")
		if buffered >= 0 {
			f.set(100e6, "weir_buffer_limit_bytes", "destination", "db", "connection", "1")
			f.set(buffered, "weir_buffer_messages", "destination", "db", "connection", "1")
		}
		p := plan()
		p.Stopping = &Stop{8}
		s := arrange(p, nil, figuresOf(t, f, h))
		if on := s.Sources[0].Listen; len(on) > 0 || len(p.Sources[0].Listen) == 0 {
			t.Errorf("listens on %v while weir stops", on)
		}
		first := func(all []Problem) string {
			if len(all) == 0 {
				return ""
			}
			return all[0].What
		}
		if got := first(s.Problems); got != problem || s.Degraded != (problem != "") {
			t.Errorf("problem %q, degraded %v", got, s.Degraded)
		}
		if got := first(s.Notes); got != note {
			t.Errorf("note %q", got)
		}
	}
	check(-1, 0, "", "")
	check(-1, 10, "weir stops, 8 seconds left of drain_timeout: 10 messages wait for it in memory, and are lost when it does not take them by then", "")
	check(10, 10, "", "10 messages wait in its disk buffer: what is left of them at the end of the stop is sent at the next start")
	check(7, 10, "weir stops, 8 seconds left of drain_timeout: 3 messages wait for it in memory, and are lost when it does not take them by then",
		"7 messages wait in its disk buffer: what is left of them at the end of the stop is sent at the next start")
}

func TestAFullDiskBufferIsNotSaidToTakeWhatComes(t *testing.T) {
	f, h := newFake(), newHistory(time.Now())
	f.set(500e12, "weir_buffer_limit_bytes", "destination", "db", "connection", "1")
	why := "the disk buffer is full: 5000 MiB of its file system are free, and keep_free is 900TB"
	s := arrange(plan(), []router.Part{{Kind: "destination", Name: "db", Reason: "disk buffer: " + why, Trouble: why}}, figuresOf(t, f, h))
	if len(s.Problems) != 1 || !strings.Contains(s.Problems[0].What, "keep_free is 900TB") || !strings.Contains(s.Problems[0].WayOut, "takes nothing") {
		t.Errorf("%+v", s.Problems)
	}
}
