package router

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

func newBudget(limits ...int) *budget {
	g := &budget{}
	for _, n := range limits {
		g.pools = append(g.pools, pool{limit: n})
	}
	return g
}

func TestTakeIsAllOrNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newBudget(100, 50)
		both := []claim{{0, 1}, {1, 1}}
		g.add([]claim{{1, 1}}, 40)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.take(ctx, both, 20); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("take from a full share: %v", err)
		}
		if g.pools[0].used != 0 || g.pools[1].used != 40 || g.pools[0].short+g.pools[1].short != 0 {
			t.Errorf("a take that gave up left %+v", g.pools)
		}
	})
}

func TestSmallTakesDoNotStarveALargeOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, memory := newBudget(100), []claim{{0, 1}}
		g.add(memory, 60)
		large := make(chan struct{})
		go func() { g.take(t.Context(), memory, 80); close(large) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if g.take(ctx, memory, 10) == nil {
			t.Error("a small take went ahead of a large one that waits")
		}
		g.give(memory, 60)
		<-large
	})
}

func TestAWaiterForOneShareDoesNotHoldUpAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newBudget(1000, 10, 10)
		a, b := []claim{{0, 1}, {1, 1}}, []claim{{0, 1}, {2, 1}}
		g.add(a, 10)
		waits := make(chan struct{})
		go func() { g.take(t.Context(), a, 5); close(waits) }()
		synctest.Wait()
		if err := g.take(t.Context(), b, 5); err != nil {
			t.Error(err)
		}
		g.give(a, 10)
		<-waits
	})
}

func TestAnEmptyPoolTakesAnything(t *testing.T) {
	g := newBudget(10)
	if err := g.take(t.Context(), memoryClaim, 11); err != nil {
		t.Error(err)
	}
}

func TestBudgetNeverExceedsItsLimitsAndForgetsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newBudget(1000, 400, 300)
		shapes := [][]claim{{{0, 1}}, {{0, 1}, {1, 1}}, {{0, 2}, {1, 1}, {2, 2}}, {{0, 1}, {2, 1}}}
		done := make(chan struct{})
		for seed := range 20 {
			go func() {
				rng := rand.New(rand.NewPCG(uint64(seed), 1))
				for range 200 {
					claims, size := shapes[rng.IntN(len(shapes))], 1+rng.IntN(150)
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rng.IntN(1000))*time.Millisecond)
					if g.take(ctx, claims, size) == nil {
						time.Sleep(time.Duration(rng.IntN(50)) * time.Millisecond)
						for i, p := range g.usage() {
							if p.used > p.limit {
								t.Errorf("pool %d holds %d of %d", i, p.used, p.limit)
							}
						}
						g.give(claims, size)
					}
					cancel()
				}
				done <- struct{}{}
			}()
		}
		for range 20 {
			<-done
		}
		for i, p := range g.usage() {
			if p.used != 0 || p.short != 0 {
				t.Errorf("pool %d still holds %d, %d wait for it", i, p.used, p.short)
			}
		}
	})
}

// manyRoutes are 50 routes of one source, to 5 destinations.
func manyRoutes(memory int64) error {
	c := Config{Memory: memory, Sources: []SourceConfig{{Name: "in", MaxMessage: 64 << 10}}}
	for i := range 5 {
		c.Destinations = append(c.Destinations, DestinationConfig{Name: fmt.Sprint(i), Destination: nowhere{}})
	}
	for i := range 50 {
		c.Routes = append(c.Routes, Route{Name: fmt.Sprint(i), From: []string{"in"}, Match: &Match{Severities: 1}, To: []string{fmt.Sprint(i % 5)}})
	}
	_, err := New(c)
	return err
}

type nowhere struct{}

func (nowhere) Write(context.Context, []*Message, func([]Rejected) error) error { return nil }
func (nowhere) Close() error                                                    { return nil }

func TestFiftyRoutesFitIntoTheMemoryByDefault(t *testing.T) {
	if err := manyRoutes(64 << 20); err != nil {
		t.Error(err)
	}
}

func TestMemoryThatIsTooSmallIsToldWithWhatSuffices(t *testing.T) {
	err := manyRoutes(8 << 20)
	if err == nil {
		t.Fatal("accepted")
	}
	m := regexp.MustCompile(`raise memory to (\d+)MiB`).FindStringSubmatch(err.Error())
	if m == nil {
		t.Fatal(err)
	}
	enough, _ := strconv.ParseInt(m[1], 10, 64)
	if err := manyRoutes(enough << 20); err != nil {
		t.Errorf("with %d MiB: %v", enough, err)
	}
	if manyRoutes((enough-2)<<20) == nil {
		t.Errorf("%d MiB would do, too", enough-2)
	}
}
