package deadletter

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/weirlog/weir/router"
)

// A chunk is what became of some letters, to be brought to its destinations together.
type chunk struct {
	pieces  []*piece
	dropped []int64 // letters of which nothing is left
}

// A piece is a message that a letter became, and where it goes.
type piece struct {
	letter        int64 // 0: a filter made it when it ended
	destination   string
	route, filter string // or, with destination "", the filter that refused it
	blob          []byte
	run           router.RunID // of the replay at the destination
	number        uint64       // in that run

	state                int
	code, column, reason string
}

// States of a piece.
const (
	pending = iota // not known to be written
	stored
	refused
	stays // not written: its destination does not take rows now
)

// A traveller is a message on its way.
type traveller struct {
	letter int64
	blob   []byte
	to     []string // that filters chose; nil: all
}

// pass takes a message through the filters of its way from stage on and adds what comes out to the chunk.
func (p *replayer) pass(ctx context.Context, c *chunk, way *Way, stage int, t traveller) error {
	if stage == len(way.Stages) {
		p.arrive(c, way, t)
		return nil
	}
	p.used(way, stage)
	s := way.Stages[stage]
	b := router.NewBatch(roomFor(len(t.blob)), 1, way.To...)
	defer b.Discard()
	m, err := b.AddBlob(t.blob, &p.origins)
	if err != nil {
		return err
	}
	if err := apply(ctx, s, b); err != nil {
		return err
	}
	o := b.Outcome(m)
	if o.Verdict == "reject" {
		c.pieces = append(c.pieces, &piece{letter: t.letter, route: way.Route, filter: s.Name, blob: t.blob, state: refused, code: o.Code, reason: o.Reason})
		return nil
	}
	on := func(m *router.Message, to []string, next int) error {
		return p.pass(ctx, c, way, next, traveller{t.letter, router.AppendBlob(nil, m), join(t.to, to)})
	}
	switch o.Verdict {
	case "keep":
		err = on(m, o.To, stage+1)
	case "skip":
		err = on(m, o.To, len(way.Stages))
	}
	for _, e := range o.Emitted {
		if err == nil {
			err = on(e, b.Outcome(e).To, stage+1)
		}
	}
	return err
}

// join adds to what filters chose before.
func join(to, more []string) []string {
	to = slices.Clone(to)
	for _, name := range more {
		if !slices.Contains(to, name) {
			to = append(to, name)
		}
	}
	return to
}

// holds is how often a filter may say in a row that it cannot go on.
const holds = 10

// apply gives a batch of one message to a filter.
func apply(ctx context.Context, s Stage, b *router.Batch) error {
	for n := 1; ; n++ {
		held := s.Filter.Apply(ctx, b)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case held == nil || held.Done > 0:
			return nil
		case n == holds:
			return fmt.Errorf("filter %s: %w", s.Name, held)
		}
		select {
		case <-time.After(min(held.Retry, time.Second)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// arrive makes a piece for each destination of a message.
func (p *replayer) arrive(c *chunk, way *Way, t traveller) {
	to := t.to
	if to == nil {
		to = way.To
	}
	for _, destination := range to {
		c.pieces = append(c.pieces, &piece{letter: t.letter, destination: destination, blob: t.blob})
	}
}

// passed is a filter that the replay has used on a way.
type passed struct {
	way   *Way
	stage int
}

func (p *replayer) used(way *Way, stage int) {
	if at := (passed{way, stage}); !slices.Contains(p.passed, at) {
		p.passed = append(p.passed, at)
	}
}

// finish lets the filters that were used say their last words, as they do when weir stops.
func (p *replayer) finish(ctx context.Context, c *chunk) error {
	slices.SortStableFunc(p.passed, func(a, b passed) int { return a.stage - b.stage })
	done := map[router.Filter]bool{}
	for i := 0; i < len(p.passed); i++ { // what one creates may be the first that the next one sees
		f, ok := p.passed[i].way.Stages[p.passed[i].stage].Filter.(router.Ticker)
		if !ok || done[f] {
			continue
		}
		done[f] = true
		b := router.NewBatch(finishBytes, finishMessages, p.passed[i].way.To...)
		f.Finish(ctx, b)
		var err error
		for _, at := range p.passed {
			if at.way.Stages[at.stage].Filter != router.Filter(f) {
				continue
			}
			for _, m := range b.Messages() {
				if err == nil {
					err = p.pass(ctx, c, at.way, at.stage+1, traveller{blob: router.AppendBlob(nil, m), to: join(nil, b.Outcome(m).To)})
				}
			}
		}
		b.Discard()
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Room for what a filter creates when it ends.
const (
	finishBytes    = 64 << 20
	finishMessages = 100_000
)

// messageOf makes a letter's message of its record and raw bytes.
func messageOf(b *router.Batch, l *Letter) (*router.Message, error) {
	var weirs struct {
		ReceivedAt             time.Time `json:"received_at"`
		Source, Listener, Peer string
	}
	if err := json.Unmarshal(l.Record, &weirs); err != nil {
		return nil, err
	}
	addr, _ := netip.ParseAddr(weirs.Peer)
	m := b.Add(&router.Origin{Source: weirs.Source, Listener: weirs.Listener, Peer: weirs.Peer, Addr: addr})
	if m.Received = weirs.ReceivedAt.UnixNano(); weirs.ReceivedAt.IsZero() {
		m.Received = l.Time.UnixNano()
	}
	p := router.RecordParser{Ours: true}
	if err := p.Parse(m, b.Copy(l.Record), b); err != nil {
		return nil, err
	}
	if l.Raw != nil {
		m.Raw = b.Copy(l.Raw)
	}
	return m, nil
}
