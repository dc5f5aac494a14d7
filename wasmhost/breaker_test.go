package wasmhost

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlog/weir/router"
)

func TestFewCraftedLinesDoNotOpenTheBreaker(t *testing.T) {
	var k breaker
	now := time.Unix(1000, 0)
	step := func(after time.Duration, calls, failed int, want bool) {
		t.Helper()
		now = now.Add(after)
		if got := k.note(now, calls, failed); got != want {
			t.Errorf("%d of %d at %v: opened %v", failed, calls, now, got)
		}
	}
	step(0, 5, 5, false)              // five crafted lines
	step(10*time.Second, 5, 5, false) // and five more
	step(time.Second, 190, 190, true) // 200 messages in 11 s, all of them failed

	k = breaker{}
	step(0, 1000, 1000, false) // many, but in no time
	step(5*time.Second, 1, 1, true)

	k = breaker{}
	step(0, 100, 85, false)
	step(6*time.Second, 900, 810, false) // 89.5 %
	step(time.Second, 100, 100, false)   // a new count begins
	step(5*time.Second, 100, 100, true)

	k = breaker{}
	step(0, 1000, 0, false) // the count begins with a failure
	step(time.Hour, 200, 200, false)
	step(5*time.Second, 1, 0, true)
}

func TestBreakerOpensWhenNoInstanceCanBeMade(t *testing.T) {
	var k breaker
	now, err := time.Unix(1000, 0), errors.New("no memory")
	for range mostUnmade - 1 {
		if k.notMade(now, err) {
			t.Fatal("opened early")
		}
	}
	k.made()
	for range mostUnmade - 1 {
		k.notMade(now, err)
	}
	if !k.notMade(now, err) || !strings.Contains(k.cause().Error(), "no memory") {
		t.Errorf("not opened: %v", k.cause())
	}
	if k.mend(now.Add(time.Second)) != time.Second || k.isOpen() {
		t.Error("not closed")
	}
}

func TestHalfAMinuteOfFaultsOpensTheBreaker(t *testing.T) {
	var s minute
	now := time.Unix(1000, 0)
	for i := range 30 { // a second in every two
		if now = now.Add(2 * time.Second); s.add(now, time.Second) {
			t.Fatalf("after %d s", i)
		}
	}
	for range 10 { // a bit more in the new minute
		now = now.Add(3500 * time.Millisecond)
		if s.add(now, 3*time.Second+100*time.Millisecond) {
			return
		}
	}
	t.Error("not opened")
}

// fails is a batch on which state.wat fails, and works, as the words say.
func words(n int, word string) []string { return slices.Repeat([]string{word}, n) }

func TestOpenBreakerTriesOneMessageASecond(t *testing.T) {
	h, log := open(t)
	path := wasmOf(t, "testdata/state.wat")
	check := func(onError string, run func(f router.Filter, part func() router.Part)) {
		g := load(t, h, settings(path, func(c *Config) { c.OnError = onError }))
		synctest.Test(t, func(t *testing.T) {
			f := g.Filter(0)
			send := func(texts ...string) (*router.Held, []string) {
				b := batch(t, texts...)
				defer b.Discard()
				held := f.Apply(t.Context(), b)
				return held, outcomes(b)
			}
			send(words(300, "fail")...)
			time.Sleep(leastTime)
			if held, _ := send("fail", "a", "a"); held == nil || held.Done != 1 || held.Retry != trialPause {
				t.Errorf("not held when the breaker opens: %+v", held)
			}
			if p := h.Parts()[0]; p.Ready || !strings.Contains(p.Reason, "301 of 301 messages failed") || !strings.Contains(p.Reason, "because it says so") {
				t.Errorf("readiness: %+v", p)
			}
			if held, got := send("a"); held == nil || held.Done != 0 || got[0] != "keep a" {
				t.Errorf("tried before its time: %+v", held)
			}
			time.Sleep(trialPause)
			if held, got := send("fail", "a"); held == nil || held.Done != 1 {
				t.Errorf("trial that fails: %+v %v", held, got)
			}
			run(f, func() router.Part { return h.Parts()[0] })
		})
		g.Close(t.Context())
	}
	check(Reject, func(f router.Filter, part func() router.Part) {
		time.Sleep(time.Minute)
		b := batch(t, "a", "fail", "a")
		defer b.Discard()
		if held := f.Apply(t.Context(), b); held != nil {
			t.Errorf("trial that works: %+v", held)
		}
		if got := outcomes(b); !slices.Equal(got, []string{"keep a", "reject(failed) fail", "keep a"}) {
			t.Error(got)
		}
		if p := part(); !p.Ready || !strings.HasPrefix(p.Reason, "last fault: failed: ") {
			t.Errorf("readiness: %+v", p)
		}
	})
	for onError, word := range map[string]string{Pass: "keep", Drop: "drop"} {
		check(onError, func(f router.Filter, part func() router.Part) {
			time.Sleep(goByAfter)
			b := batch(t, "fail", "fail", "a")
			defer b.Discard()
			if held := f.Apply(t.Context(), b); held != nil {
				t.Errorf("on_error %s does not let by: %+v", onError, held)
			}
			if got := outcomes(b); !slices.Equal(got, []string{word + " fail", word + " fail", word + " a"}) {
				t.Error(got)
			}
			if part().Ready {
				t.Error("closed without a trial that worked")
			}
		})
	}
	contains(t, log.String(), "filter given up for now", "filter works again")
}
