package wasmhost

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/routertest"
)

// hostile loads a guest of testdata/hostile, on a short leash.
func hostile(t *testing.T, name string, edit ...func(*Config)) (*Guest, *routertest.Transcript) {
	t.Helper()
	return loadFile(t, filepath.Join("hostile", name+".wat"), append([]func(*Config){func(c *Config) { c.Time = 20 * time.Millisecond }}, edit...)...)
}

func TestHostileGuestsFailAndHarmNobody(t *testing.T) {
	h, _ := open(t)
	mask := load(t, h, settings(wasmOf(t, "testdata/mask.c")))
	check := func(name string, want cause) {
		t.Run(name, func(t *testing.T) {
			g := load(t, h, settings(wasmOf(t, filepath.Join("testdata/hostile", name+".wat")), func(c *Config) {
				if c.Time = 10 * time.Second; want == causeTime {
					c.Time = 20 * time.Millisecond
				}
			}))
			b := batch(t, "one 1", "two 2")
			defer b.Discard()
			before := router.AppendRecord(nil, b.Messages()[0])
			if held := g.Filter(0).Apply(t.Context(), b); held != nil {
				t.Fatalf("held: %v", held)
			}
			code := "reject(" + want.String() + ")"
			if diff := cmp.Diff([]string{code + " one 1", code + " two 2"}, outcomes(b)); diff != "" {
				t.Error(diff)
			}
			if after := router.AppendRecord(nil, b.Messages()[0]); string(after) != string(before) {
				t.Errorf("the message was changed:\n%s\n%s", before, after)
			}
			if n := g.counts.faults[want].Load(); n != 2 {
				t.Errorf("%d faults counted", n)
			}
			if got := apply(t, mask.Filter(0), "three 3"); got[0] != "keep three #" {
				t.Errorf("the neighbour says %s", got)
			}
		})
	}
	check("spin", causeTime)
	check("calls", causeTime)
	check("bulk", causeTime)
	check("hostcalls", causeTime)
	check("records", causeTime)
	check("recurse", causeStack)
	check("trap", causeTrap)
	check("half", causeTrap)
	check("exit", causeExit)
	check("verdict", causeVerdict)
	check("grow", causeMemory)
	check("pointer_key", causeTrap)
	check("pointer_buffer", causeTrap)
	check("pointer_wrap", causeTrap)
	check("sleep", causeTime)
	check("poll", causeTrap)
	check("write", causeTime)
	check("random", causeTime)
}

func TestFieldOverTheQuotaIsRefusedAndCostsNoMemory(t *testing.T) {
	g, _ := hostile(t, "bigfield", func(c *Config) { c.Memory = 64 << 20 })
	if got := apply(t, g.Filter(0), "x"); got[0] != "keep x" {
		t.Error(got)
	}
}

func TestEditsStayWithinTheBatch(t *testing.T) {
	g, _ := hostile(t, "manyfields", func(c *Config) { c.Time = 5 * time.Second })
	if got := apply(t, g.Filter(0), "x", "y"); !slices.Equal(got, []string{"keep x", "keep y"}) {
		t.Error(got)
	}
}

func TestGuestsLogIsBounded(t *testing.T) {
	g, log := hostile(t, "logflood", func(c *Config) { c.Time = 5 * time.Second })
	if got := apply(t, g.Filter(0), "x"); got[0] != "keep x" {
		t.Error(got)
	}
	// A second may have passed while it wrote.
	if n := strings.Count(log.String(), "spam spam spam"); n < mostLines || n > 20*mostLines {
		t.Errorf("%d lines", n)
	}
}

func TestOnErrorDecides(t *testing.T) {
	path := wasmOf(t, "testdata/hostile/half.wat")
	check := func(onError, want string) {
		t.Helper()
		h, _ := open(t)
		g := load(t, h, settings(path, func(c *Config) { c.OnError = onError }))
		if got := apply(t, g.Filter(0), "x"); got[0] != want {
			t.Errorf("on_error %s: %s, want %s", onError, got[0], want)
		}
	}
	check(Reject, "reject(trap) x")
	check(Pass, "keep x")
	check(Drop, "drop x")

	h, _ := open(t)
	g := load(t, h, settings(path, func(c *Config) { c.OnError = Stop }))
	b := batch(t, "x", "y")
	defer b.Discard()
	held := g.Filter(0).Apply(t.Context(), b)
	if held == nil || !held.Stop || held.Done != 1 {
		t.Fatalf("on_error stop: %+v", held)
	}
	if got := outcomes(b); !slices.Equal(got, []string{"reject(trap) x", "keep y"}) {
		t.Error(got)
	}
}

func TestFirstFaultIsLoggedWithTheGuestsStack(t *testing.T) {
	g, log := hostile(t, "trap")
	apply(t, g.Filter(0), "x", "y", "z")
	text := log.String()
	contains(t, text, "filter=f", "cause=trap", "unreachable", "guest_stack=")
	if n := strings.Count(text, "filter failed"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, text)
	}
}
