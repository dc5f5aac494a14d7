package wasmhost

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/weirlog/weir/router"
)

// Try gives one record (filters/ABI.md, Record JSON) to a filter outside of a router, for tools and tests. It returns
// what the filter decided and the record as it is then: with reject as it came, with drop as the filter left it. What
// only weir sets (received_at, source, listener, peer) is taken from the record. It uses the first lane, so no router may.
func (g *Guest) Try(ctx context.Context, record []byte) (router.Outcome, []byte, error) {
	b := router.NewBatch(max(g.host.mostValue, len(record))*4+1<<20, 1)
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
		return router.Outcome{}, nil, fmt.Errorf("read record: %w", err)
	}
	for {
		held := g.Filter(0).Apply(ctx, b)
		if held == nil || held.Done > 0 {
			break
		}
		select {
		case <-time.After(held.Retry):
		case <-ctx.Done():
			return router.Outcome{}, nil, ctx.Err()
		}
	}
	return b.Outcome(m), router.AppendRecord(nil, m), nil
}
