package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"
)

var (
	crashKills = flag.Int("crash", 0, "how often the crash tests kill weir in all; 0: a handful of times")
	crashSeed  = flag.Uint64("crash-seed", 0, "where in its life weir is killed; 0: another place each time")
)

// crashRandom makes the kill points of a test, which prints the seed.
func crashRandom(t *testing.T) (*rand.Rand, uint64) {
	seed := *crashSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-crash-seed %d", seed)
	return rand.New(rand.NewPCG(seed, 4)), seed
}

// kills is a share of all kills, in hundredths, or few.
func kills(few, share int) int {
	if *crashKills == 0 {
		return few
	}
	return *crashKills * share / 100
}

func TestKilledWeirStoresOnceWhatItAcknowledgedSQLite(t *testing.T) {
	t.Parallel()
	crash(t, newLiteCrash(t), kills(6, 35), func(r *crashRig) {})
}

func TestKilledWeirStoresOnceWhatItAcknowledgedSQLiteFilters(t *testing.T) {
	t.Parallel()
	crash(t, newLiteCrash(t), kills(6, 15), func(r *crashRig) { r.filters = true })
}

func TestKilledWeirStoresOnceWhatItAcknowledgedPostgres(t *testing.T) {
	t.Parallel()
	crash(t, newPGCrash(t, 1), kills(2, 25), func(r *crashRig) {})
}

func TestKilledWeirStoresOnceWhatItAcknowledgedPostgresThreeConnections(t *testing.T) {
	t.Parallel()
	crash(t, newPGCrash(t, 3), kills(2, 25), func(r *crashRig) { r.filters = true })
}

// Without a disk buffer the acknowledgement is the COMMIT.
func TestKilledWeirWithoutDiskBufferStoresOnceWhatItAcknowledged(t *testing.T) {
	t.Parallel()
	crash(t, newLiteCrash(t), kills(2, 10), func(r *crashRig) { r.buffer = "" })
	crash(t, newPGCrash(t, 1), kills(1, 10), func(r *crashRig) { r.buffer = "" })
}

// crash kills weir many times under senders that go on, and looks then for every message.
func crash(t *testing.T, db crashDatabase, kills int, set func(*crashRig)) {
	rng, seed := crashRandom(t)
	r := newCrashRig(t, rng, db)
	set(r)
	senders := crashSenders(r, seed)
	began := time.Now()
	for n := 0; n < kills; n++ {
		r.start()
		switch rng.IntN(5) {
		case 0: // while it starts
			time.Sleep(time.Duration(rng.IntN(150)) * time.Millisecond)
		case 1, 2:
			r.awaitReady()
			time.Sleep(time.Duration(rng.IntN(500)) * time.Millisecond)
		default: // at work
			r.loadUntilAcked(senders, 1)
			time.Sleep(time.Duration(rng.IntN(1500)) * time.Millisecond)
		}
		if rng.IntN(10) == 0 { // while it stops
			select {
			case <-r.log.ready:
				r.child.Process.Signal(syscall.SIGTERM)
				time.Sleep(time.Duration(rng.IntN(15)) * time.Millisecond)
				r.child.Process.Kill()
				r.gone()
				r.child = nil
				continue
			default:
			}
		}
		r.kill()
	}
	r.start()
	for _, s := range senders {
		if !s.plain {
			r.loadUntilAcked([]*crashSender{s}, 1)
		}
	}
	r.finish(senders)
	f := look(t, db, r.stateDir())
	all := r.expectNothingLost(f, senders)
	for _, s := range senders {
		if s.made.Load() == 0 || !s.plain && s.ackedUpTo.Load() == 0 {
			t.Errorf("%s: %d sent, %d acknowledged", s.name, s.made.Load(), s.ackedUpTo.Load())
		}
	}
	if r.told > 0 {
		t.Errorf("weir says that %d messages were lost in the database", r.told)
	}
	if all.letters == 0 {
		t.Error("there are no dead letters")
	}
	t.Logf("%d kills in %v", kills, time.Since(began).Round(time.Second))
	for _, s := range senders {
		if s.plain {
			t.Logf("%s: a kill cost %s", s.name, f.cost(s, r.filters))
		}
	}
}

// crashSenders are some of each kind.
func crashSenders(r *crashRig, seed uint64) (all []*crashSender) {
	for i := range 3 {
		s := newCrashSender(fmt.Sprint("a", i), r.acking(), seed)
		s.pause = time.Duration(2*i+1) * r.pace
		all = append(all, s.start())
		s = newCrashSender(fmt.Sprint("p", i), r.plain(), seed)
		s.plain, s.pause = true, time.Duration(4*i+2)*r.pace
		all = append(all, s.start())
		if r.buffer == "" {
			continue
		}
		s = newCrashSender(fmt.Sprint("r", i), r.acking(), seed)
		s.filters = r.filters
		s.resumes, s.pause = true, time.Duration(2*i+1)*r.pace
		all = append(all, s.start())
	}
	return all
}

// cost is what the ends of a plain sender's connections have cost, in messages that were written and never stored.
func (f found) cost(s *crashSender, filters bool) string {
	var costs []int
	for _, c := range s.broken {
		lost := 0
		for n := c[0]; n <= c[1]; n++ {
			if f.rows[s.name][n]+f.letters[s.name][n] == 0 && !(filters && wordOf(n) == dull) {
				lost++
			}
		}
		costs = append(costs, lost)
	}
	if len(costs) == 0 {
		return "nothing"
	}
	slices.Sort(costs)
	return fmt.Sprintf("%d messages in the median, %d at most (of %d connections)", costs[len(costs)/2], costs[len(costs)-1], len(costs))
}
