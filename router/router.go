package router

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Config says what a router is made of. Names are unique within their kind.
type Config struct {
	Memory       int64         // bytes that messages in flight may hold; a quarter of it is for unfinished ones
	Drain        time.Duration // how long a stop may take; 0: 30 s
	Lanes        int           // chains of filters that run at once; 0: GOMAXPROCS
	Sources      []SourceConfig
	Destinations []DestinationConfig
	Routes       []Route
	DeadLetters  DeadLetters // nil: nothing is ever rejected
	Log          *slog.Logger
}

// SourceConfig is a source and its name.
type SourceConfig struct {
	Name       string
	Source     Source
	MaxMessage int // bytes; a batch always has room for one such message
}

// DestinationConfig is a destination, its name and when its transactions end.
type DestinationConfig struct {
	Name        string
	Destination Destination
	Flush       Flush
	WhenFull    WhenFull      // "": Block
	Spool       Spool         // disk buffer in front of it; nil: none
	Sync        time.Duration // how long a message may wait for the disk buffer's sync; 0: for none
	Beside      []Connection  // further connections to the same, old ones last; each sender's messages go over one of them
}

// Connections are the first one and those beside it.
func (d *DestinationConfig) Connections() []Connection {
	return append([]Connection{{Destination: d.Destination, Spool: d.Spool, Sync: d.Sync}}, d.Beside...)
}

// A Connection is one of several to a destination, with a disk buffer of its own.
type Connection struct {
	Destination Destination
	Spool       Spool
	Sync        time.Duration
	Old         bool // takes nothing new: its spool is emptied before the other connections write
}

// A Router moves messages from sources through routes to destinations.
type Router struct {
	log     *slog.Logger
	letters DeadLetters
	timeout time.Duration // of the drain
	budget  *budget
	tails   *Tails
	inlets  []*inlet
	routes  []*route
	outlets []*outlet
	lanes   chan int
	due     []atomic.Bool // lanes that are to be ticked
	ticks   chan int      // lanes that are about to be
	tickers []ticker
	retry   chan time.Duration
	ledger  ledger
	metrics *metrics

	stopped atomic.Pointer[time.Time] // when the stop began; nil: it has not

	drain  context.Context // ends when weir gives up; what filters and destinations get
	giveUp context.CancelFunc

	mu      sync.Mutex
	cancel  context.CancelFunc // stops Run; nil before
	failure error              // why the router stopped by itself
}

// maxBatch and maxRows bound a batch when there is memory for more.
const (
	maxBatch = 256 << 10
	maxRows  = 1024
)

// What filters may add to a batch however full the memory is: guestSlack on top
// of one message's size, all of its bytes once more (every message is edited),
// and fieldRoom for each message (a few new fields); less where a batch is small.
const (
	guestSlack = 64 << 10
	fieldRoom  = 512
)

// New builds a router. It starts nothing. The destinations and their spools are the router's
// from then on, also when New fails.
func New(c Config) (*Router, error) {
	if c.Lanes == 0 {
		c.Lanes = runtime.GOMAXPROCS(0)
	}
	if c.Drain == 0 {
		c.Drain = 30 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	r := &Router{log: c.Log, letters: c.DeadLetters, timeout: c.Drain,
		tails: NewTails(c.Memory / 4), lanes: make(chan int, c.Lanes), due: make([]atomic.Bool, c.Lanes), ticks: make(chan int, c.Lanes), retry: make(chan time.Duration, 1), metrics: newMetrics()}
	r.drain, r.giveUp = context.WithCancel(context.Background())
	for i := range c.Lanes {
		r.lanes <- i
	}
	r.addDestinations(c)
	err := r.addRoutes(c)
	if err == nil {
		r.addTickers()
		err = r.addSources(c)
	}
	if err != nil {
		r.closeDestinations()
		return nil, err
	}
	return r, nil
}

func (r *Router) addRoutes(c Config) error {
	for i, def := range c.Routes {
		if len(def.To) > MaxRoutes {
			return fmt.Errorf("route %s: %d destinations, a route may have %d", def.Name, len(def.To), MaxRoutes)
		}
		rt := &route{Route: def, index: i, claims: []claim{{pool: 0, times: 1}}}
		for _, name := range def.To {
			k := slices.IndexFunc(r.outlets, func(o *outlet) bool { return o.name == name })
			if k < 0 {
				return fmt.Errorf("route %s: there is no destination %s", def.Name, name)
			}
			rt.to = append(rt.to, r.outlets[k])
			if r.outlets[k].blocks() {
				rt.claims = append(rt.claims, claim{pool: k + 1, times: 1})
			}
		}
		rt.most = r.budget.pools[0].limit / 4
		for _, c := range rt.claims {
			rt.most = min(rt.most, r.budget.pools[c.pool].limit/4)
		}
		for _, s := range def.Filters {
			if len(s.Filters) < cap(r.lanes) {
				return fmt.Errorf("route %s: filter %s has %d instances for %d lanes", def.Name, s.Name, len(s.Filters), cap(r.lanes))
			}
		}
		r.routes = append(r.routes, rt)
	}
	r.ledger.routes = make([]account, len(r.routes))
	return nil
}

func (r *Router) addSources(c Config) error {
	for i, s := range c.Sources {
		in := &inlet{router: r, name: s.Name, source: s.Source, index: i}
		lines, filtered := maxRows, false
		for _, rt := range r.routes {
			if !slices.Contains(rt.From, s.Name) {
				continue
			}
			in.routes = append(in.routes, rt)
			filtered = filtered || len(rt.Filters) > 0
			in.claims = join(in.claims, rt.claims)
			for _, o := range rt.to {
				lines = min(lines, max(1, o.writers[0].flush.Messages))
			}
		}
		in.order()
		room := r.budget.pools[0].limit / 4
		for _, cl := range in.claims {
			room = min(room, r.budget.pools[cl.pool].limit/(4*cl.times))
		}
		whole := room
		if filtered {
			in.largest, in.slack = s.MaxMessage, room/4
			room -= in.slack
		}
		least := pieceSize(max(s.MaxMessage, minPiece)) + rowsFor(1)*rowSize
		if room < least {
			enough := int64(float64(c.Memory) * float64(least) / float64(room) * 1.01) // for rounding
			return fmt.Errorf("source %s: a quarter of the memory, divided among its routes and their destinations, is %d KiB, but one max_message of %d KiB needs %d KiB: raise memory to %dMiB or lower max_message",
				s.Name, whole>>10, s.MaxMessage>>10, (least+1023)>>10, (enough+1<<20-1)>>20)
		}
		in.limits.Bytes = max(s.MaxMessage, min(maxBatch, room/2))
		in.limits.Messages = min(lines, maxRows, max(1, (room-pieceSize(in.limits.Bytes))/rowSize))
		r.inlets = append(r.inlets, in)
	}
	r.ledger.sources = make([]Intake, len(r.inlets))
	return nil
}

// Run moves messages until ctx ends or a part fails, then drains: sources
// deliver what they hold, filters and writers finish, destinations are closed.
// It returns why it stopped by itself, or how much was lost because the drain
// took too long, or nil.
func (r *Router) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.mu.Lock()
	r.cancel = cancel
	r.mu.Unlock()
	defer r.giveUp()
	deadline := context.AfterFunc(ctx, func() {
		r.stopped.Store(new(time.Now()))
		time.AfterFunc(r.timeout, r.giveUp)
	})
	defer deadline()

	var sources, parked, ticks, writers sync.WaitGroup
	all := r.writers()
	for _, w := range all {
		writers.Go(func() { w.run(r.drain) })
		if w.spool != nil {
			writers.Go(func() { w.fill(r.drain) })
		}
	}
	flowing, dry := context.WithCancel(context.Background())
	parked.Go(func() { r.unpark(flowing) })
	ticking, still := context.WithCancel(context.Background())
	ticks.Go(func() { r.tick(ticking) })
	for _, in := range r.inlets {
		sources.Go(func() {
			if err := in.source.Run(ctx, in); err != nil {
				r.fail(fmt.Errorf("source %s: %w", in.name, err))
			}
		})
	}
	sources.Wait()
	dry()
	parked.Wait()
	still()
	ticks.Wait()
	r.finish()
	r.unpark(flowing) // what held the filters' last messages
	r.loseParked()
	for _, w := range all {
		w.close()
	}
	writers.Wait()
	for _, w := range all {
		w.abandon() // what came after it gave up
	}
	for _, o := range r.outlets {
		o.keep()
	}
	err := r.closeDestinations()
	if lost := r.Ledger().lostAtTheEnd(); lost > 0 {
		err = errors.Join(fmt.Errorf("%d messages lost: the stop took longer than %v", lost, r.timeout), err)
	}
	return errors.Join(r.failure, err)
}

// fail stops the router by itself; the first reason counts.
func (r *Router) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure == nil {
		r.failure = err
		r.log.Error("weir stops", "error", err)
	}
	r.cancel()
}

// stop is what a filter with on_error: stop asks for.
func (r *Router) stop(h *Held) { r.fail(h.Cause) }

func (r *Router) closeDestinations() (err error) {
	for _, w := range r.writers() {
		if e := w.dest.Close(); e != nil {
			err = errors.Join(err, fmt.Errorf("close destination %s: %w", w.outlet.name, e))
		}
		if w.spool == nil {
			continue
		}
		if e := w.spool.Close(); e != nil {
			err = errors.Join(err, fmt.Errorf("close the disk buffer of %s: %w", w.outlet.name, e))
		}
	}
	return err
}

func (r *Router) writers() (all []*writer) {
	for _, o := range r.outlets {
		all = append(all, o.writers...)
	}
	return all
}

// Parts is the state of the sources, the routes and the destinations.
// It is safe for concurrent use, and waits for none of them.
func (r *Router) Parts() (parts []Part) {
	for _, rt := range r.routes {
		rt.mu.Lock()
		p := Part{Kind: "route", Name: rt.Name, Ready: rt.cause == nil}
		if rt.cause != nil {
			p.Reason = fmt.Sprintf("%d batches held: %v", len(rt.parked), rt.cause)
		}
		rt.mu.Unlock()
		parts = append(parts, p)
	}
	for _, o := range r.outlets {
		parts = append(parts, o.part())
	}
	for _, in := range r.inlets {
		parts = append(parts, in.part())
	}
	return parts
}
