package routertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlog/weir/router"
)

// A model is a random router: sources, routes that share or choose from them, filters that
// drop, reject, skip, hold, grow, create and choose, destinations that fail in all the ways
// there are. Whatever happens, the ledger balances, each message has one fate
// for each destination, and a source's messages keep their order.
type model struct {
	rng     *rand.Rand
	mu      sync.Mutex // of rng
	sent    map[string]int
	severe  map[string]*[8]int // sent, by severity
	made    map[string]int     // by filters, by what they call their messages
	routing bool               // filters choose destinations
	asked   int64              // receipts
	told    atomic.Int64
	dests   []stored
	letters Letters
}

// stored is what a destination of the model tells at the end.
type stored interface{ Transactions() [][]string }

func (m *model) chance(percent int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rng.IntN(100) < percent
}

func (m *model) upTo(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return 1 + m.rng.IntN(n)
}

func TestLedgerBalancesWhateverHappens(t *testing.T) {
	seeds := 60
	if os.Getenv("WEIR_LONG_TESTS") != "" {
		seeds = 5000
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) { runModel(t, uint64(seed)) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func runModel(t *testing.T, seed uint64) {
	m := &model{rng: rand.New(rand.NewPCG(seed, 7)), sent: map[string]int{}, severe: map[string]*[8]int{}, made: map[string]int{}}
	m.routing = m.chance(30)
	m.letters.Fails = func() error {
		if m.chance(5) {
			return errors.New("dead letters: disk full")
		}
		return nil
	}
	c := router.Config{Memory: int64(1+m.upTo(3)) << 19, Lanes: m.upTo(3), Drain: time.Hour, DeadLetters: &m.letters}
	hopeless := m.chance(10) // one destination never works again: the drain ends
	if hopeless {
		c.Drain = 10 * time.Second
	}
	nDests := m.upTo(3)
	for i := range nDests {
		d := router.DestinationConfig{Name: fmt.Sprint("d", i),
			Flush:    router.Flush{Messages: m.upTo(50), Bytes: m.upTo(5000), After: time.Duration(m.upTo(2000)) * time.Millisecond, Severity: m.upTo(9) - 2},
			WhenFull: []router.WhenFull{router.Block, router.Block, router.DropOldest, router.DropNewest}[m.upTo(4)-1],
		}
		m.connect(&d, hopeless && i == 0)
		c.Destinations = append(c.Destinations, d)
	}
	nSources := m.upTo(3)
	for i := range nSources {
		m.severe[fmt.Sprint("s", i)] = new([8]int)
		c.Sources = append(c.Sources, router.SourceConfig{Name: fmt.Sprint("s", i), MaxMessage: 4096, Source: m.source(fmt.Sprint("s", i))})
	}
	stages := map[string]router.Stage{} // a filter is the same in all routes
	for k := range 2 {
		stage := router.Stage{Name: fmt.Sprint("f", k)}
		for lane := range c.Lanes {
			stage.Filters = append(stage.Filters, &modelFilter{m: m, name: fmt.Sprint("f", k, ".", lane)})
		}
		stages[stage.Name] = stage
	}
	for i := range m.upTo(6) {
		rt := router.Route{Name: fmt.Sprint("r", i), From: []string{fmt.Sprint("s", i%nSources)}, To: []string{fmt.Sprint("d", i%nDests)}}
		for _, extra := range c.Sources {
			if extra.Name != rt.From[0] && m.chance(30) {
				rt.From = append(rt.From, extra.Name)
			}
		}
		switch m.upTo(4) {
		case 1:
			rt.Match = &router.Match{Severities: uint8(m.upTo(255))}
		case 2:
			rt.Else = true
		}
		for _, extra := range c.Destinations {
			if extra.Name != rt.To[0] && m.chance(30) {
				rt.To = append(rt.To, extra.Name)
			}
		}
		for k := range m.upTo(3) - 1 {
			rt.Filters = append(rt.Filters, stages[fmt.Sprint("f", k)])
		}
		c.Routes = append(c.Routes, rt)
	}
	r, err := router.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	time.AfterFunc(time.Duration(m.upTo(20_000))*time.Millisecond, stop)
	err = r.Run(ctx)
	if (err != nil) != (lostTo(r.Ledger(), "drain") > 0) {
		t.Errorf("run: %v", err)
	}
	m.verify(t, c, r.Ledger())
	if told := m.told.Load(); told != m.asked {
		t.Errorf("%d receipts of %d", told, m.asked)
	}
	Empty(t, r)
}

// source sends bursts of numbered messages until it is stopped, then one more.
func (m *model) source(name string) router.Source {
	return Func(func(ctx context.Context, in router.Inlet) error {
		o := &router.Origin{Source: name}
		send := func(ctx context.Context, reader string, n int) {
			b, err := in.Take(ctx, 200*n, n)
			if err != nil {
				return
			}
			for range m.upTo(n) {
				msg := b.Add(o)
				if msg == nil {
					break
				}
				msg.Severity = uint8(m.upTo(8) - 1)
				m.mu.Lock()
				msg.Text = b.Copy(fmt.Appendf(nil, "%s:%06d", reader, m.sent[reader]))
				m.sent[reader]++
				m.severe[name][msg.Severity]++
				m.mu.Unlock()
			}
			if m.chance(50) {
				m.mu.Lock()
				m.asked++
				m.mu.Unlock()
				b.Receipt(router.Mark{}, func(bool) { m.told.Add(1) })
			}
			in.Deliver(b)
		}
		read := func(reader string) {
			for ctx.Err() == nil {
				send(ctx, reader, m.upTo(100))
				select {
				case <-time.After(time.Duration(m.upTo(200)) * time.Millisecond):
				case <-ctx.Done():
				}
			}
		}
		var readers sync.WaitGroup
		for i := range m.upTo(3) { // connections, each with an order of its own
			readers.Go(func() { read(fmt.Sprint(name, ".", i)) })
		}
		readers.Wait()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		send(last, name+".0", 5)
		return nil
	})
}

type modelFilter struct {
	m    *model
	name string
}

// create names a message that the filter makes.
func (f *modelFilter) create(b *router.Batch, kind string) []byte {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	name := f.name + kind
	f.m.made[name]++
	return fmt.Appendf(nil, "%s:%06d", name, f.m.made[name])
}

func (f *modelFilter) Tick(_ context.Context, b *router.Batch) {
	if f.m.chance(30) {
		for range f.m.upTo(5) {
			if msg := b.Add(&router.Origin{}); msg != nil {
				msg.Text = f.create(b, "t")
			}
		}
	}
}

func (f *modelFilter) Finish(ctx context.Context, b *router.Batch) { f.Tick(ctx, b) }

func (f *modelFilter) Apply(_ context.Context, b *router.Batch) *router.Held {
	for i, msg := range b.Messages() {
		switch {
		case f.m.chance(1) && f.m.chance(30):
			return &router.Held{Done: i, Retry: time.Duration(f.m.upTo(3)-1) * time.Second, Cause: errors.New("breaker open")}
		case f.m.chance(5):
			b.Drop(msg)
		case f.m.chance(3):
			b.Reject(msg, "verdict", "not today")
		case f.m.chance(5):
			b.Skip(msg)
		case f.m.chance(3):
			after := msg
			for range f.m.upTo(4) {
				if e := b.Emit(after, msg); e != nil {
					e.Text = f.create(b, "e")
					after = e
				}
			}
			switch {
			case f.m.chance(20):
				b.Unemit(msg)
			case f.m.chance(30):
				b.Drop(msg)
			case f.m.chance(20):
				b.Reject(msg, "verdict", "and what came of it")
			}
		case f.m.routing && f.m.chance(20):
			b.Route(msg, fmt.Append(nil, "d", f.m.upTo(3)-1))
		case f.m.chance(10):
			if v := b.Bytes(f.m.upTo(3000)); v != nil {
				if fields := b.NewFields(1); fields != nil {
					msg.Fields = append(fields, router.Field{Name: v[:1], Value: router.Value{Kind: router.Bytes, Bytes: v}})
				}
			}
		}
	}
	return nil
}

// connect gives a destination what it consists of: a recorder, or a database
// that keeps positions, by one connection or several, with disk buffers or without.
func (m *model) connect(d *router.DestinationConfig, hopeless bool) {
	n, spools := 1, m.chance(40)
	var open func() router.Destination
	if m.chance(50) {
		rec := &Recorder{CommitFails: m.commit}
		rec.OnWrite = m.decide(func() bool { return hopeless && len(rec.Rows()) > 20 })
		m.dests = append(m.dests, rec)
		open = func() router.Destination { return rec }
	} else {
		table := &Table{}
		m.dests = append(m.dests, table)
		if n = m.upTo(3); hopeless {
			n = 1
		}
		open = func() router.Destination {
			return &Database{Table: table, OnConnect: m.commit, BeforeCommit: m.commit, AfterCommit: m.commit,
				OnWrite: m.decide(func() bool { return hopeless && len(table.Transactions()) > 5 })}
		}
	}
	for k := range n {
		conn := router.Connection{Destination: open()}
		if spools {
			s := NewSpool()
			s.Fails = func(string) error { return m.commit() }
			if m.chance(50) {
				s.Limit = 50 * m.upTo(5)
			}
			conn.Spool, conn.Sync = s, time.Duration(m.upTo(3)-1)*100*time.Millisecond
		}
		if k == 0 {
			d.Destination, d.Spool, d.Sync = conn.Destination, conn.Spool, conn.Sync
		} else {
			d.Beside = append(d.Beside, conn)
		}
	}
}

func (m *model) commit() error {
	if m.chance(5) {
		return errors.New("serialization failure")
	}
	return nil
}

// decide says what becomes of a transaction.
func (m *model) decide(gone func() bool) func(ctx context.Context, msgs []*router.Message) ([]router.Rejected, error) {
	return func(ctx context.Context, msgs []*router.Message) (bad []router.Rejected, err error) {
		if m.chance(20) {
			time.Sleep(time.Duration(m.upTo(500)) * time.Millisecond)
		}
		switch {
		case gone():
			return nil, errors.New("gone for ever")
		case m.chance(8):
			return nil, errors.New("connection refused")
		case m.chance(2):
			return nil, router.NeedsOperator(errors.New("no such table"))
		}
		for _, msg := range msgs {
			switch {
			case strings.HasSuffix(string(msg.Text), "13"):
				return nil, router.Permanent(errors.New("unlucky number"))
			case strings.HasSuffix(string(msg.Text), "7"):
				bad = append(bad, router.Rejected{Message: msg, Code: "22P02", Reason: "seven"})
			}
		}
		return bad, nil
	}
}

func lostTo(l router.Ledger, reason string) (n uint64) {
	for _, a := range slices.Concat(l.Routes, l.Destinations) {
		for _, e := range a.Fates {
			if e.Fate == router.FateLost && e.Reason == reason {
				n += e.N
			}
		}
	}
	return n
}

// takes is how many messages a route is to receive.
func (m *model) takes(c router.Config, rt router.Route) (n int) {
	for _, source := range rt.From {
		for severity, sent := range m.severe[source] {
			taken := func(other router.Route) bool {
				return slices.Contains(other.From, source) && !other.Else && (other.Match == nil || other.Match.Severities>>severity&1 != 0)
			}
			if !rt.Else && taken(rt) || rt.Else && !slices.ContainsFunc(c.Routes, taken) {
				n += sent
			}
		}
	}
	return n
}

func (m *model) verify(t *testing.T, c router.Config, l router.Ledger) {
	t.Helper()
	Balanced(t, l)
	received := map[string]uint64{}
	for i, a := range l.Routes {
		if want := m.takes(c, c.Routes[i]); a.Income != uint64(want) {
			t.Errorf("route %s received %d of %d", a.Name, a.Income, want)
		}
		for _, to := range c.Routes[i].To {
			received[to] += a.Sum(router.FateDelivered)
		}
	}
	for _, s := range c.Sources {
		want := m.takes(c, router.Route{From: []string{s.Name}, Else: true})
		if slices.ContainsFunc(c.Routes, func(rt router.Route) bool { return rt.Else && slices.Contains(rt.From, s.Name) }) {
			want = 0
		}
		if n := l.Sources[s.Name].Unrouted; n != uint64(want) {
			t.Errorf("source %s: %d unrouted, want %d", s.Name, n, want)
		}
	}
	rejected, doubts := uint64(0), uint64(0)
	for i, a := range l.Destinations {
		rows := slices.Concat(m.dests[i].Transactions()...)
		fewer := m.routing && a.Income < received[a.Name]
		// What was given up may be there all the same, when the answer to its commit was lost.
		doubt := a.Sum(router.FateKept) + lostTo(router.Ledger{Destinations: []router.Account{a}}, "drain")
		doubts += doubt
		if n := uint64(len(rows)); a.Income != received[a.Name] && !fewer || n < a.Sum(router.FateStored) || n > a.Sum(router.FateStored)+doubt {
			t.Errorf("destination %s: delivered %d (routes say %d), stored %d of which %d are there", a.Name, a.Income, received[a.Name], a.Sum(router.FateStored), len(rows))
		}
		rejected += a.Sum(router.FateRejected)
		routes := 0
		for _, rt := range c.Routes {
			if slices.Contains(rt.To, a.Name) {
				routes++
			}
		}
		if routes == 1 && len(c.Destinations[i].Beside) == 0 { // several routes may interleave, and created messages have no sender
			last := map[string]string{}
			for _, row := range rows {
				source, _, _ := strings.Cut(row, ":")
				if source[0] == 'f' {
					continue // a lane's own, and lanes overtake each other
				}
				if row <= last[source] {
					t.Errorf("destination %s: %s came after %s", a.Name, row, last[source])
				}
				last[source] = row
			}
		}
		for _, tx := range m.dests[i].Transactions() {
			if n := len(tx); n > c.Destinations[i].Flush.Messages {
				t.Errorf("destination %s: a transaction of %d messages", a.Name, n)
			}
		}
	}
	for _, a := range l.Routes {
		rejected += a.Sum(router.FateRejected)
	}
	if n := uint64(len(m.letters.All())); n < rejected || n > rejected+doubts {
		t.Errorf("%d dead letters for %d rejected messages", n, rejected)
	}
}
