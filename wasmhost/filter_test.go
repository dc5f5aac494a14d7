package wasmhost

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router"
)

func TestFilterEditsAndDrops(t *testing.T) {
	g, log := loadFile(t, "mask.c")
	b := batch(t, "card 4711", "noise", "no digits")
	defer b.Discard()
	b.Messages()[1].Severity = 7
	if held := g.Filter(0).Apply(t.Context(), b); held != nil {
		t.Fatal(held)
	}
	want := []string{"keep card ####", "drop noise", "keep no digits"}
	if diff := cmp.Diff(want, outcomes(b)); diff != "" {
		t.Error(diff)
	}
	if log.String() != "" {
		t.Error(log)
	}
}

// counted is the field "n" that state.wat sets, or "-".
func counted(b *router.Batch) (all []string) {
	for _, m := range b.Messages() {
		text := "-"
		if f := m.Field([]byte("n")); f != nil {
			text = string(router.AppendText(nil, f.Value))
		}
		all = append(all, text)
	}
	return all
}

func TestFailedCallIsUndoneAndOnlyTrapsCostTheInstance(t *testing.T) {
	g, _ := loadFile(t, "state.wat")
	b := batch(t, "a", "fail", "b", "verdict", "c", "reject", "skip", "trap", "d")
	defer b.Discard()
	if held := g.Filter(0).Apply(t.Context(), b); held != nil {
		t.Fatal(held)
	}
	want := []string{"keep a", "reject(failed) fail", "keep b", "reject(verdict) verdict", "keep c", "reject(rejected) reject", "skip skip", "reject(trap) trap", "keep d"}
	if diff := cmp.Diff(want, outcomes(b)); diff != "" {
		t.Error(diff)
	}
	// The edits of the failed ones are gone, those of skip stay; the trap began a new instance.
	if diff := cmp.Diff([]string{"1", "-", "3", "-", "5", "-", "7", "-", "1"}, counted(b)); diff != "" {
		t.Error(diff)
	}
	msgs := b.Messages()
	if o := b.Outcome(msgs[5]); o.Reason != "because it says so" {
		t.Errorf("reason of verdict 3: %q", o.Reason)
	}
	if o := b.Outcome(msgs[1]); o.Reason != "because it says so" {
		t.Errorf("reason of a failure: %q", o.Reason)
	}
	if o := b.Outcome(msgs[3]); o.Reason != "verdict 77" {
		t.Errorf("reason of a wrong verdict: %q", o.Reason)
	}
}

func TestEditsLeaveSharedBytesAlone(t *testing.T) {
	g, _ := loadFile(t, "mask.c")
	state := load(t, g.host, settings(wasmOf(t, "testdata/state.wat")))
	b := batch(t, "card 4711")
	defer b.Discard()
	m := b.Messages()[0]
	// Fields with room behind them, as a copy on another route would see them.
	shared := make([]router.Field, 1, 8)
	shared[0] = router.Field{Name: []byte("a"), Value: router.IntValue(1)}
	m.Fields = shared
	other := *m
	for _, f := range []router.Filter{g.Filter(0), state.Filter(0)} {
		if held := f.Apply(t.Context(), b); held != nil {
			t.Fatal(held)
		}
	}
	if len(m.Fields) != 2 || string(m.Text) != "card ####" {
		t.Errorf("not edited: %s", router.AppendRecord(nil, m))
	}
	if string(other.Text) != "card 4711" || shared[:2][1].Name != nil {
		t.Errorf("the copy was changed: %s, %q", other.Text, shared[:2][1].Name)
	}
}

func TestStateIsOneWhereAskedFor(t *testing.T) {
	check := func(instances, want string) {
		t.Helper()
		g, _ := loadFile(t, "state.wat", func(c *Config) { c.Instances = instances })
		var got []string
		for lane := range 2 {
			b := batch(t, "a", "b")
			if held := g.Filter(lane).Apply(t.Context(), b); held != nil {
				t.Fatal(held)
			}
			got = append(got, counted(b)...)
			b.Discard()
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("instances: %s: %s, want %s", instances, s, want)
		}
	}
	check(PerCore, "1 2 1 2")
	check(One, "1 2 3 4")
}

func TestLanesRunInParallel(t *testing.T) {
	g, _ := loadFile(t, "state.wat")
	one := load(t, g.host, settings(wasmOf(t, "testdata/state.wat"), func(c *Config) { c.Instances = One }))
	var wait sync.WaitGroup
	for lane := range 4 {
		wait.Go(func() {
			for range 50 {
				b := batch(t, "a", "trap", "b")
				for _, f := range []router.Filter{g.Filter(lane), one.Filter(lane)} {
					if held := f.Apply(t.Context(), b); held != nil {
						t.Error(held)
					}
				}
				b.Discard()
			}
		})
	}
	wait.Wait()
	if n := one.counts.calls.Load(); n != 4*50*3 {
		t.Errorf("%d calls", n)
	}
}

func TestOneBatchMayNotKeepTheLane(t *testing.T) {
	g, _ := loadFile(t, "hostile/spin.wat", func(c *Config) { c.Time = time.Millisecond })
	b := router.NewBatch(1<<20, 1000)
	defer b.Discard()
	for range 1000 {
		b.Add(&router.Origin{}).Text = []byte("x")
	}
	held := g.Filter(0).Apply(t.Context(), b)
	if held == nil || held.Stop || held.Retry != 0 || held.Done < 1 || held.Done >= 1000 {
		t.Errorf("%+v", held)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if held = g.Filter(0).Apply(ctx, b); held == nil || held.Retry == 0 {
		t.Errorf("when the drain is over: %+v", held)
	}
}

func TestGoGuestRunsAndIsReplaced(t *testing.T) {
	g, log := loadFile(t, "gofail", func(c *Config) { c.Time = 10 * time.Second })
	next := apply(t, g.Filter(0), "a1", "panic", "b2")
	if diff := cmp.Diff([]string{"keep a#", "reject(trap) panic", "keep b#"}, next); diff != "" {
		t.Error(diff)
	}
	contains(t, log.String(), "on purpose", "level=WARN", "level=INFO", "hello from the guest")
}

func TestSlowGuestsAreMadeTenTimesASecond(t *testing.T) {
	g, _ := loadFile(t, "state.wat")
	g.program.Load().slow = true
	l := g.lanes[0]
	b := batch(t, "trap", "trap", "trap", "trap", "trap")
	defer b.Discard()
	began := time.Now()
	held := l.Apply(t.Context(), b)
	if held == nil || held.Done == 0 || held.Retry == 0 || held.Cause != errSoon {
		if time.Since(began) < 2*slowPause {
			t.Errorf("not held: %+v", held)
		}
	}
}

func TestNothingWorksBeforeThereIsAMessage(t *testing.T) {
	g, log := loadFile(t, "phases.c")
	if got := apply(t, g.Filter(0), "x"); got[0] != "drop x" {
		t.Error(got, log)
	}
	g.Close(t.Context())
	contains(t, log.String(), "closed", "level=WARN")
}

func TestNearlyOwnKeysAreToldOnce(t *testing.T) {
	g, log := loadFile(t, "near.wat")
	apply(t, g.Filter(0), "a", "b", "c")
	text := log.String()
	contains(t, text, "field=level", "message_has=severity")
	if n := strings.Count(text, "field=level"); n != 1 {
		t.Errorf("told %d times:\n%s", n, text)
	}
}

func TestConfigReachesTheGuest(t *testing.T) {
	check := func(json, want string) {
		t.Helper()
		g, _ := loadFile(t, "config.c", func(c *Config) { c.Config = []byte(json) })
		if got := apply(t, g.Filter(0), "x"); got[0] != "keep "+want {
			t.Errorf("%s: %s", json, got[0])
		}
	}
	check("", "{}")
	check("null", "{}")
	check(`{"mask":"#"}`, `{"mask":"#"}`)
}

func TestAssemblyScriptsImportsAreThere(t *testing.T) {
	g, log := loadFile(t, "assemblyscript.wat")
	if got := apply(t, g.Filter(0), "x"); got[0] != "reject(trap) x" {
		t.Error(got)
	}
	contains(t, log.String(), "abort: hé at hé:7:9", "msg=hé", `msg="hé 1.5 2"`)
}

func TestGuestsThatTakeLongToStartAreKnown(t *testing.T) {
	for source, slow := range map[string]bool{"mask.c": false, "state.wat": false, "maskgo": true} {
		if g, _ := loadFile(t, source); g.program.Load().slow != slow {
			t.Errorf("%s: slow is %v, %d units", source, g.program.Load().slow, g.counts.units.Load())
		}
	}
}
