package sqlstore

import (
	"context"

	"github.com/weirlog/weir/router"
)

// positionTable is where the database keeps how far it is in each run. It is
// made by weir, one for all of its tables in the database.
const positionTable = "weir_positions"

// Destination is the store as the router uses it: a router.Positioner, except
// with explicit_commits: false, where no transaction holds a row and its
// position together.
func (s *Store) Destination() router.Destination {
	if s.cfg.autocommit() {
		return s
	}
	return positioned{s}
}

// positioned is a Store that keeps positions.
type positioned struct{ *Store }

// Position implements router.Positioner.
func (p positioned) Position(ctx context.Context, run router.RunID) (at uint64, known bool, err error) {
	return p.db.position(ctx, run)
}

// WriteAt implements router.Positioner.
func (p positioned) WriteAt(ctx context.Context, span router.Span, msgs []*router.Message, reject func([]router.Rejected) error) error {
	return p.db.write(ctx, &span, msgs, reject)
}
