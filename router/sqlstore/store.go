// Package sqlstore is the destination that stores messages in an SQL table, in
// transactions: SQLite and PostgreSQL.
package sqlstore

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/router"
)

// A Store is a router.Destination; what the router is to use is its Destination.
// Its rows are durable when Write returns nil,
// as far as the session statements leave the database's durability alone.
type Store struct {
	cfg     Config
	name    string
	naming  naming
	table   table // its name is "" when messages say which
	columns []column
	names   string // of columns, quoted, for a statement
	log     *slog.Logger
	metrics metrics
	db      database
}

// database is one kind of SQL database.
type database interface {
	// connect opens the connection, unless it is open: settings, session
	// statements, the table, the comparison of its columns.
	connect(ctx context.Context) error
	// write stores msgs in one transaction. With a span it moves the position of
	// its run with them, as router.Positioner says; nil is a plain Write.
	write(ctx context.Context, span *router.Span, msgs []*router.Message, reject func([]router.Rejected) error) error
	// position is that of router.Positioner.
	position(ctx context.Context, run router.RunID) (at uint64, known bool, err error)
	close() error
}

// Open makes the destination of that name. cfg must have passed Check. Relative
// paths begin at stateDir.
//
// A SQLite file is opened at once, and what is wrong with it is an error here. A
// PostgreSQL server is connected to by the first Write, and again by every Write
// that finds no connection: an absent server is no error of the start.
func Open(ctx context.Context, cfg Config, name, stateDir string, log *slog.Logger) (*Store, error) {
	s, err := newStore(cfg, name, log)
	if err != nil {
		return nil, err
	}
	if cfg.SQLite == "" {
		s.db = newPostgres(s)
		return s, nil
	}
	path := cfg.SQLite
	if !filepath.IsAbs(path) {
		path = filepath.Join(stateDir, path)
	}
	d := newLite(s, path)
	s.db = d
	if err := d.first(ctx); err != nil {
		return nil, fmt.Errorf("destination %s: %w", name, err)
	}
	return s, nil
}

// newStore is a Store without its database.
func newStore(cfg Config, name string, log *slog.Logger) (*Store, error) {
	s := &Store{cfg: cfg, name: name, names: quoteAll(cfg.columns().Names()), log: log.With("destination", name)}
	s.metrics.init(name)
	var err error
	if s.naming, err = parseNaming(string(cfg.Table)); err != nil {
		return nil, err
	}
	s.table = table{s.naming.schema, s.naming.fixed}
	s.columns, err = plan(cfg.columns())
	return s, err
}

// Connect opens the connection, runs the session statements, makes the table
// when it is missing and compares its columns. It is for `check --connect`;
// Write does it by itself.
func (s *Store) Connect(ctx context.Context) error {
	if err := s.db.connect(ctx); err != nil {
		return err
	}
	if d, ok := s.db.(*postgres); ok {
		return d.planInsert(ctx)
	}
	return nil
}

// Write implements router.Destination.
func (s *Store) Write(ctx context.Context, msgs []*router.Message, reject func([]router.Rejected) error) error {
	if len(msgs) == 0 {
		return nil
	}
	return s.db.write(ctx, nil, msgs, reject)
}

// Close implements router.Destination.
func (s *Store) Close() error { return s.db.close() }

// Describe and Collect implement prometheus.Collector.
func (s *Store) Describe(ch chan<- *prometheus.Desc) {
	s.metrics.describe(ch)
	if d, ok := s.db.(*lite); ok {
		d.tending.gauge.describe(ch)
	}
}

func (s *Store) Collect(ch chan<- prometheus.Metric) {
	s.metrics.collect(ch)
	if d, ok := s.db.(*lite); ok {
		d.tending.gauge.collect(ch)
	}
}

// column returns ours of that name, in any case, or nil.
func (s *Store) column(name string) *column {
	for i := range s.columns {
		if strings.EqualFold(s.columns[i].name, name) {
			return &s.columns[i]
		}
	}
	return nil
}
