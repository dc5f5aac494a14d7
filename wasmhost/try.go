package wasmhost

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/weirlog/weir/router"
)

// A Trial is what became of one record outside of a router.
type Trial struct {
	Verdict string   // keep, skip, drop or reject: what happens to the message
	Failed  bool     // the filter failed: Verdict is what on_error made of it
	Code    string   // of reject: rejected, or the cause of the failure
	Reason  string   // of reject
	Record  []byte   // record JSON: with reject as it came, with drop as the filter left it
	Emitted [][]byte // record JSON, in order
	To      []string // the destinations that it was sent to; none: all of the route's
	Units   int64    // of work (filters/ABI.md, Limits), when the instance lives on
}

// Try gives one record (filters/ABI.md, Record JSON) to a filter outside of a router, for tools and tests. What only weir
// sets (received_at, source, listener, peer) is taken from the record. destinations are those that a filter may choose
// among; none: every name is one. It uses the first lane, so no router may, and one goroutine at a time.
func (g *Guest) Try(ctx context.Context, record []byte, destinations ...string) (Trial, error) {
	b := router.NewBatch(max(g.host.mostValue, len(record))*4+1<<20, 1+mostEmits, destinations...)
	defer b.Discard()
	var weirs struct {
		ReceivedAt             time.Time `json:"received_at"`
		Source, Listener, Peer string
	}
	json.Unmarshal(record, &weirs) // what does not fit stays zero
	m := b.Add(&router.Origin{Source: weirs.Source, Listener: weirs.Listener, Peer: weirs.Peer})
	if m.Received = weirs.ReceivedAt.UnixNano(); weirs.ReceivedAt.IsZero() {
		m.Received = time.Now().UnixNano()
	}
	var p router.RecordParser
	if err := p.Parse(m, b.Copy(record), b); err != nil {
		return Trial{}, fmt.Errorf("read record: %w", err)
	}
	faults, units := g.faulty(), g.counts.units.Load()
	for {
		held := g.Filter(0).Apply(ctx, b)
		if held == nil || held.Done > 0 {
			break
		}
		select {
		case <-time.After(held.Retry):
		case <-ctx.Done():
			return Trial{}, ctx.Err()
		}
	}
	o := b.Outcome(m)
	t := Trial{Verdict: o.Verdict, Failed: g.faulty() > faults, Code: o.Code, Reason: o.Reason, Record: router.AppendRecord(nil, m), To: o.To,
		Units: int64(g.counts.units.Load() - units)}
	for _, e := range o.Emitted {
		t.Emitted = append(t.Emitted, router.AppendRecord(nil, e))
	}
	return t, nil
}

// TryTick ticks a filter as a router would about once a second: Emitted, Failed and Units are set.
func (g *Guest) TryTick(ctx context.Context) (Trial, error) {
	return g.tryBetween(ctx, router.Ticker.Tick)
}

func (g *Guest) tryBetween(ctx context.Context, call func(router.Ticker, context.Context, *router.Batch)) (Trial, error) {
	b := router.NewBatch(g.host.mostValue*4+1<<20, mostEmits)
	defer b.Discard()
	faults, units := g.faulty(), g.counts.units.Load()
	if f, ok := g.Filter(0).(router.Ticker); ok {
		call(f, ctx, b)
	}
	t := Trial{Failed: g.faulty() > faults, Units: int64(g.counts.units.Load() - units)}
	for _, m := range b.Messages() {
		t.Emitted = append(t.Emitted, router.AppendRecord(nil, m))
	}
	return t, ctx.Err()
}

// faulty is how often the guest has failed.
func (g *Guest) faulty() (n uint64) {
	for i := range g.counts.faults {
		n += g.counts.faults[i].Load()
	}
	return n
}

// Measured returns the metrics that the filter has set, by the names that it gave them.
func (g *Guest) Measured() map[string]float64 {
	g.shelf.mu.Lock()
	defer g.shelf.mu.Unlock()
	return maps.Clone(g.shelf.metrics)
}

// TryFinish ends a filter as a router would, with weir_tick and weir_close: Emitted, Failed and Units are set. It is
// begun anew by the next record.
func (g *Guest) TryFinish(ctx context.Context) (Trial, error) {
	return g.tryBetween(ctx, router.Ticker.Finish)
}

// Usage is what a filter has used since it was loaded.
type Usage struct {
	Calls, Faults uint64
	Units         uint64 // of work (filters/ABI.md, Limits)
	Memory        int64  // bytes of linear memory of all instances, now
}

// Usage tells what the filter has used, up to its last batch.
func (g *Guest) Usage() Usage {
	return Usage{Calls: g.counts.calls.Load(), Faults: g.faulty(), Units: g.counts.units.Load(), Memory: g.counts.memory.Load()}
}

// CountExactly makes the units that the first lane's instance uses from now on exact, rather than a multiple of what is
// granted at once, and tens of times slower. It reports whether they are already: that takes the work of a first grant.
func (g *Guest) CountExactly() (already bool) {
	l := g.lanes[0]
	return l.in != nil && l.in.clock.Exact()
}
