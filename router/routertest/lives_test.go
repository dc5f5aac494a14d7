package routertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlog/weir/router"
)

// lives is a weir that dies again and again and starts anew with what it had on
// disk: two destinations with disk buffers whose connections break before and
// behind the commit, a sender that resumes, and one that waits for
// acknowledgements and never sends anything twice.
type lives struct {
	rng     *rand.Rand
	mu      sync.Mutex // of rng
	dead    atomic.Bool
	calm    atomic.Bool // nothing fails any more
	through atomic.Bool // the sender that resumes has sent all of it again
	tables  []*Table
	spools  []map[int][]*Spool // of each destination, by the number of connections, of each connection
	limited bool               // disk buffers are small
	divided bool               // a route takes some of the messages, another one the rest
	letters Letters

	resumed int          // what the sender that resumes has sent
	sent    int          // the other one
	acked   map[int]bool // of it
	ackedMu sync.Mutex
}

var errDead = errors.New("the process is dead")

func (l *lives) chance(percent int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rng.IntN(100) < percent
}

func (l *lives) upTo(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return 1 + l.rng.IntN(n)
}

// trouble is what happens to an operation.
func (l *lives) trouble(percent int) error {
	if l.dead.Load() {
		return errDead
	}
	if !l.calm.Load() && l.chance(percent) {
		return errors.New("trouble")
	}
	return nil
}

func TestEveryMessageArrivesOnceThroughManyLives(t *testing.T) {
	seeds := 12
	if os.Getenv("WEIR_LONG_TESTS") != "" {
		seeds = 500
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) { live(t, uint64(seed)) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func live(t *testing.T, seed uint64) {
	l := &lives{rng: rand.New(rand.NewPCG(seed, 11)), acked: map[int]bool{}}
	l.letters.Fails = func() error { return l.trouble(3) }
	for range 2 {
		l.tables = append(l.tables, &Table{})
		l.spools = append(l.spools, map[int][]*Spool{})
	}
	backup := l.tables[0].Backup()
	restores := l.chance(30)
	l.limited = !restores && l.chance(50)
	l.divided = l.chance(50)
	for life := range 6 {
		last := life == 5
		l.dead.Store(false)
		l.calm.Store(last)
		r := l.router(t)
		ctx, stop := context.WithCancel(t.Context())
		if last {
			go func() {
				for !l.through.Load() || r.Ledger().Destinations[0].InFlight+r.Ledger().Destinations[1].InFlight > 0 || ctx.Err() == nil && l.upTo(20) > 1 {
					time.Sleep(time.Second)
				}
				stop()
			}()
		} else {
			time.AfterFunc(time.Duration(l.upTo(20_000))*time.Millisecond, func() {
				l.dead.Store(true)
				stop()
			})
		}
		err := r.Run(ctx)
		stop()
		if last && err != nil {
			t.Errorf("run: %v", err)
		}
		Balanced(t, r.Ledger())
		Empty(t, r)
		if restores && !last {
			if l.chance(50) {
				l.tables[0].Restore(backup)
			}
			backup = l.tables[0].Backup()
		}
	}
	for i, table := range l.tables {
		l.verify(t, i, table)
	}
}

// router makes the router of the next life out of what the one before has left on disk.
func (l *lives) router(t *testing.T) *router.Router {
	l.letters.Reopen()
	c := router.Config{Memory: 1 << 20, Lanes: 2, Drain: time.Minute, DeadLetters: &l.letters}
	if !l.calm.Load() {
		c.Drain = 100 * time.Millisecond
	}
	for i, table := range l.tables {
		d := router.DestinationConfig{Name: fmt.Sprint("d", i), Flush: router.Flush{Messages: l.upTo(50), Bytes: 4 << 20, After: time.Duration(l.upTo(2000)) * time.Millisecond, Severity: -1}}
		for k, conn := range l.open(i, 1+l.upTo(3)/2) {
			db := &Database{Table: table, OnWrite: l.decide, OnConnect: func() error { return l.trouble(20) },
				BeforeCommit: func() error { return l.trouble(5) }, AfterCommit: func() error { return l.trouble(10) }}
			conn.Destination, conn.Sync = db, time.Duration(l.upTo(3)-1)*200*time.Millisecond
			if k == 0 {
				d.Destination, d.Spool, d.Sync = conn.Destination, conn.Spool, conn.Sync
			} else {
				d.Beside = append(d.Beside, conn)
			}
		}
		c.Destinations = append(c.Destinations, d)
	}
	c.Sources = []router.SourceConfig{{Name: "resumes", MaxMessage: 100, Source: Func(l.resumer)}, {Name: "waits", MaxMessage: 100, Source: Func(l.waiter)}}
	c.Routes = []router.Route{{Name: "both", From: []string{"resumes", "waits"}, To: []string{"d0", "d1"}}}
	if l.divided {
		c.Routes[0].Match = &router.Match{Severities: 1<<1 | 1<<4}
		c.Routes = append(c.Routes, router.Route{Name: "rest", From: c.Routes[0].From, Else: true, To: []string{"d1", "d0"}})
	}
	r, err := router.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// open opens the disk buffers of a destination for n connections, and what other numbers have left behind.
func (l *lives) open(destination, n int) (all []router.Connection) {
	spools := l.spools[destination]
	for len(spools[n]) < n {
		s := NewSpool()
		if l.limited {
			s.Limit = 200
		}
		spools[n] = append(spools[n], s)
	}
	for _, number := range []int{n, 1, 2, 3} {
		if number == n && all != nil {
			continue
		}
		for k, s := range spools[number] {
			s = s.Reopen()
			s.Fails = func(string) error { return l.trouble(2) }
			spools[number][k] = s
			all = append(all, router.Connection{Spool: s, Old: number != n})
		}
	}
	return all
}

func (l *lives) decide(ctx context.Context, msgs []*router.Message) (bad []router.Rejected, err error) {
	if l.chance(10) {
		time.Sleep(time.Duration(l.upTo(500)) * time.Millisecond)
	}
	if err := l.trouble(10); err != nil {
		return nil, err
	}
	for _, m := range msgs {
		switch {
		case strings.HasSuffix(string(m.Text), "13"):
			return nil, router.Permanent(errors.New("unlucky number"))
		case strings.HasSuffix(string(m.Text), "7"):
			bad = append(bad, router.Rejected{Message: m, Code: "22P02", Reason: "seven"})
		}
	}
	return bad, nil
}

// resumer asks where to go on and sends from there, however often.
func (l *lives) resumer(ctx context.Context, in router.Inlet) error {
	o := &router.Origin{Source: "resumes", Peer: "192.0.2.7"}
	last, known := in.Last("r")
	if !known {
		return errors.New("a disk buffer does not know")
	}
	for next := int(last); ctx.Err() == nil && (l.calm.Load() == false || next < l.resumed); {
		b, err := in.Take(ctx, 1000, 40)
		if err != nil {
			return nil
		}
		for range l.upTo(40) {
			m := b.Add(o)
			if m == nil {
				break
			}
			next++
			m.Serial, m.Severity = uint64(next), uint8(next/7%8)
			m.Text = b.Copy(fmt.Appendf(nil, "r%06d", next))
		}
		l.resumed = max(l.resumed, next)
		b.Receipt(router.Mark{Sender: "r", Last: uint64(next)}, func(bool) {})
		in.Deliver(b)
		time.Sleep(time.Duration(l.upTo(100)) * time.Millisecond)
	}
	l.through.Store(l.calm.Load())
	<-ctx.Done()
	return nil
}

// waiter sends the next message when it knows of the one before, or does not get to know.
func (l *lives) waiter(ctx context.Context, in router.Inlet) error {
	o := &router.Origin{Source: "waits", Peer: "192.0.2.8"}
	for i := 0; ctx.Err() == nil && (i == 0 || !l.calm.Load()); i++ {
		b, err := in.Take(ctx, 100, 1)
		if err != nil {
			return nil
		}
		l.sent++
		n, told := l.sent, make(chan bool, 1)
		b.Add(o).Text = b.Copy(fmt.Appendf(nil, "w%06d", n))
		b.Receipt(router.Mark{}, func(safe bool) { told <- safe })
		in.Deliver(b)
		select {
		case safe := <-told:
			if safe {
				l.ackedMu.Lock()
				l.acked[n] = true
				l.ackedMu.Unlock()
			}
		case <-ctx.Done():
		}
	}
	<-ctx.Done()
	return nil
}

// verify counts the rows and the letters of a destination.
func (l *lives) verify(t *testing.T, i int, table *Table) {
	t.Helper()
	count := map[string]int{}
	for _, tx := range table.Transactions() {
		for _, row := range tx {
			count[row]++
			if strings.HasSuffix(row, "7") || strings.HasSuffix(row, "13") {
				t.Errorf("d%d: row %s is stored", i, row)
			}
		}
	}
	l.letters.mu.Lock()
	for _, e := range l.letters.kept {
		if e.key.Destination == fmt.Sprint("d", i) {
			count[e.letter.Text]++
		}
	}
	l.letters.mu.Unlock()
	for n := 1; n <= l.resumed; n++ {
		if k := count[fmt.Sprintf("r%06d", n)]; k != 1 {
			t.Errorf("d%d: message %d of the sender that resumes: %d times (of %d)", i, n, k, l.resumed)
			return
		}
	}
	for n := 1; n <= l.sent; n++ {
		if k := count[fmt.Sprintf("w%06d", n)]; k > 1 || k == 0 && l.acked[n] {
			t.Errorf("d%d: message %d of the sender that waits: %d times, acknowledged: %v", i, n, k, l.acked[n])
			return
		}
	}
	if l.resumed < 100 || len(l.acked) < 3 {
		t.Errorf("only %d messages, %d acknowledged", l.resumed, len(l.acked))
	}
}
