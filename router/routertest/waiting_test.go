package routertest

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router"
)

// A router that stops says so, how long that may still take, and what waits: of a disk buffer that it keeps, else that it is
// in memory only. A disk buffer that takes nothing is trouble, and its reason is told.
func TestAStopTellsWhatWaitsAndForHowLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(hung)
		away := func() *Recorder {
			return &Recorder{OnWrite: func(context.Context, []*router.Message) ([]router.Rejected, error) { answers.wait(); return nil, nil }}
		}
		src := Func(func(ctx context.Context, in router.Inlet) error {
			deliverNumbered(t, context.Background(), in, 1, 5, oneHost, func(bool) {})
			<-ctx.Done()
			return nil
		})
		full := NewSpool()
		full.Fails = func(op string) error {
			if op == "append" {
				return router.ErrSpoolFull
			}
			return nil
		}
		r, stop := run(t, router.Config{Memory: 4 << 20, Drain: 20 * time.Second,
			Sources: []router.SourceConfig{{Name: "s", MaxMessage: 100, Source: src}},
			Destinations: []router.DestinationConfig{
				{Name: "plain", Destination: away(), Flush: quick},
				{Name: "kept", Destination: away(), Flush: quick, Spool: NewSpool()},
				{Name: "full", Destination: away(), Flush: quick, Spool: full},
			},
			Routes: []router.Route{{Name: "r", From: []string{"s"}, To: []string{"plain", "kept", "full"}}},
		})
		time.Sleep(5 * time.Second)
		if left, is := r.Stopping(); is {
			t.Errorf("it runs, and stops in %v", left)
		}
		for _, p := range r.Parts() {
			if want := map[string]string{"full": router.ErrSpoolFull.Error()}[p.Name]; p.Trouble != want {
				t.Errorf("%s: trouble %q, want %q", p.Name, p.Trouble, want)
			}
		}
		ended := make(chan struct{})
		go func() { stop(); close(ended) }()
		time.Sleep(12 * time.Second)
		if left, is := r.Stopping(); !is || left != 8*time.Second {
			t.Errorf("%v left, stops: %v", left, is)
		}
		want := []router.Waiting{{Kind: "destination", Name: "plain", Messages: 5}, {Kind: "destination", Name: "kept", Messages: 5, OnDisk: 5}, {Kind: "destination", Name: "full", Messages: 5}}
		if diff := cmp.Diff(want, r.Waiting()); diff != "" {
			t.Error(diff)
		}
		close(answers)
		<-ended
	})
}

// A destination that is slower than its senders leaves its disk buffer full for moments: told once a minute (C06). One that
// is full for good is told, too, when that begins within such a minute.
func TestADiskBufferThatIsFullForMomentsIsToldSparingly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log Transcript
		began := time.Now()
		spool := NewSpool()
		spool.Fails = func(op string) error {
			at := time.Since(began)
			if op == "append" && (at > 150*time.Second || at%(100*time.Millisecond) < 70*time.Millisecond) {
				return router.ErrSpoolFull
			}
			return nil
		}
		src := Func(func(ctx context.Context, in router.Inlet) error {
			for n := 1; ctx.Err() == nil; n++ {
				deliverNumbered(t, context.Background(), in, n, n, oneHost, func(bool) {})
				time.Sleep(50 * time.Millisecond)
			}
			return nil
		})
		_, stop := run(t, router.Config{Drain: time.Second, Log: slog.New(slog.NewTextHandler(&log, nil)),
			Sources:      []router.SourceConfig{{Name: "s", MaxMessage: 100, Source: src}},
			Destinations: []router.DestinationConfig{{Name: "d", Destination: &Recorder{}, Flush: quick, Spool: spool}},
			Routes:       []router.Route{{Name: "r", From: []string{"s"}, To: []string{"d"}}},
		})
		told := func(want int, when string) {
			t.Helper()
			synctest.Wait()
			if n := strings.Count(log.String(), "takes nothing"); n != want {
				t.Errorf("told %d times, want %d, %s:\n%s", n, want, when, log.String())
			}
		}
		time.Sleep(149 * time.Second)
		told(3, "after two minutes and a half of moments")
		if n := strings.Count(log.String(), "works again"); n != 3 {
			t.Errorf("%d times it works again:\n%s", n, log.String())
		}
		time.Sleep(60 * time.Second)
		told(4, "when it has been full for good for a minute")
		stop()
	})
}
