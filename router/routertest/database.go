package routertest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/weirlog/weir/router"
)

// A Database is a destination that keeps positions, in memory, and fails on
// demand like a real one. Several connections may share its Table. Its methods
// are called by one writer; the Table is safe for concurrent use.
type Database struct {
	Table *Table
	// OnWrite decides about a transaction before it is stored; see Recorder.
	OnWrite func(ctx context.Context, msgs []*router.Message) ([]router.Rejected, error)
	// BeforeCommit and AfterCommit, when set, may lose the connection: before the
	// rows are in, or when they are and the answer is on its way.
	BeforeCommit, AfterCommit func() error
	// OnConnect, when set, may refuse a connection.
	OnConnect func() error

	known  map[router.RunID]uint64 // positions, as long as connected
	since  int                     // Table.restored when it connected
	closed bool
}

// A Table is what a Database stores.
type Table struct {
	mu           sync.Mutex
	transactions [][]string
	positions    map[router.RunID]uint64
	restored     int // times; it cuts the connections
}

var errNoConnection = errors.New("connection lost")

// Position implements router.Positioner.
func (d *Database) Position(_ context.Context, run router.RunID) (at uint64, known bool, err error) {
	if d.closed {
		panic("BUG: Position after Close")
	}
	if restored := d.Table.cuts(); d.known == nil || d.since != restored {
		if d.known = nil; d.OnConnect != nil {
			if err := d.OnConnect(); err != nil {
				return 0, false, err
			}
		}
		d.known, d.since = map[router.RunID]uint64{}, restored
	}
	if at, ok := d.known[run]; ok {
		return at, true, nil
	}
	d.Table.mu.Lock()
	defer d.Table.mu.Unlock()
	if d.Table.positions == nil {
		d.Table.positions = map[router.RunID]uint64{}
	}
	at, known = d.Table.positions[run]
	d.Table.positions[run], d.known[run] = at, at
	return at, known, nil
}

// WriteAt implements router.Positioner.
func (d *Database) WriteAt(ctx context.Context, span router.Span, msgs []*router.Message, reject func([]router.Rejected) error) (err error) {
	if at, ok := d.known[span.Run]; !ok || at != span.From || span.To < span.From+uint64(len(msgs)) {
		panic("BUG: WriteAt from another place than Position told")
	}
	if d.since != d.Table.cuts() {
		d.known = nil
		return errNoConnection
	}
	var bad []router.Rejected
	if d.OnWrite != nil {
		if bad, err = d.OnWrite(ctx, msgs); err != nil {
			return err
		}
	}
	if len(bad) > 0 {
		if err := reject(bad); err != nil {
			return err
		}
	}
	if d.BeforeCommit != nil {
		if err := d.BeforeCommit(); err != nil {
			d.known = nil
			return err
		}
	}
	var rows []string
	for _, m := range msgs {
		if !slices.ContainsFunc(bad, func(r router.Rejected) bool { return r.Message == m }) {
			rows = append(rows, string(m.Text))
		}
	}
	if !d.Table.commit(span, rows) {
		d.known = nil
		return router.ErrMoved
	}
	d.known[span.Run] = span.To
	if d.AfterCommit != nil {
		if err := d.AfterCommit(); err != nil {
			d.known = nil
			return err
		}
	}
	return nil
}

// Write is for destinations without positions.
func (d *Database) Write(context.Context, []*router.Message, func([]router.Rejected) error) error {
	panic("BUG: Write where there are positions")
}

// Close implements router.Destination.
func (d *Database) Close() error {
	d.closed = true
	return nil
}

func (t *Table) commit(span router.Span, rows []string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at, ok := t.positions[span.Run]; !ok || at != span.From {
		return false
	}
	t.positions[span.Run] = span.To
	t.transactions = append(t.transactions, rows)
	return true
}

// Transactions returns the texts that are stored, by transaction.
func (t *Table) Transactions() [][]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.transactions)
}

// Backup returns a copy, and Restore puts one back in place of what is there.
func (t *Table) Backup() *Table {
	t.mu.Lock()
	defer t.mu.Unlock()
	return &Table{transactions: slices.Clone(t.transactions), positions: maps.Clone(t.positions)}
}

func (t *Table) cuts() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.restored
}

// Restore puts a backup back.
func (t *Table) Restore(backup *Table) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.transactions, t.positions = backup.transactions, backup.positions
	t.restored++
}
