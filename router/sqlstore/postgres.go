package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirlog/weir/router"
)

// postgres writes into a table of a PostgreSQL server (12 or newer), over one connection.
type postgres struct {
	*Store
	conn *pgconn.PgConn // nil: to be opened

	idle bool // conn was good at the end of the last Write or Position

	reached reached
	self    backend      // that of conn, or of the connection before
	locals  []string     // behind a pooler: cfg.locals
	span    *router.Span // of the Write under way; nil: no position

	pgTables
	partitions partitions
	rows
	insertion
	bad      []refused
	slow     int // transactions in a row that ended as slow
	bound    bound
	misled   int // in a row that ended as ours
	restless int // in a row in which a table was changed
	auto     resumed
}

func newPostgres(s *Store) *postgres {
	d := &postgres{Store: s}
	d.known = map[string]*pgTable{}
	if s.cfg.Pooler {
		d.locals = s.cfg.locals()
	}
	if s.naming.fixed != "" {
		d.newTable(s.naming.fixed)
	}
	return d
}

func (d *postgres) connect(ctx context.Context) (err error) {
	if d.conn != nil && !d.conn.IsClosed() {
		return nil
	}
	d.drop()
	settings, err := pgSettings(&d.cfg)
	if err != nil {
		return router.NeedsOperator(err)
	}
	conn, err := pgconn.ConnectConfig(ctx, settings)
	if err != nil {
		return beforeRows(pgFailure("connect to "+place(settings), err))
	}
	d.conn = conn
	d.metrics.connects.Inc()
	defer func() {
		if err != nil {
			d.drop()
		}
	}()
	if err := d.beginSession(ctx); err != nil {
		return err
	}
	if !d.cfg.autocommit() {
		if err := d.createPositions(ctx); err != nil {
			return err
		}
	}
	if t := d.known[d.naming.fixed]; t != nil {
		return d.open(ctx, t)
	}
	return d.findTables(ctx)
}

// beforeRows is f as the writer is to see it when no row was sent yet: it
// passes, or an operator has to do something.
func beforeRows(f *failure) error {
	switch f.class {
	case temp, slow:
		return f
	}
	return router.NeedsOperator(f)
}

// exec runs SQL without parameters and returns the result of its last statement.
func (d *postgres) exec(ctx context.Context, sql string) (*pgconn.Result, error) {
	results, err := d.execAll(ctx, sql)
	if err != nil {
		return nil, err
	}
	return results[len(results)-1], nil
}

// execAll returns the results of all statements.
func (d *postgres) execAll(ctx context.Context, sql string) ([]*pgconn.Result, error) {
	if d.cfg.Pooler && d.conn.TxStatus() == 'I' {
		return d.pooled(ctx, sql)
	}
	results, err := d.conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(results) == 0 {
		return []*pgconn.Result{{}}, nil
	}
	return results, results[len(results)-1].Err
}

// drop closes the connection; the next Write opens another.
func (d *postgres) drop() {
	if d.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), pgCloseTimeout)
	defer cancel()
	d.conn.Close(ctx)
	d.conn, d.idle = nil, false
	d.closeTables()
	d.reached = reached{}
}

func (d *postgres) close() error {
	d.drop()
	return nil
}

// pgFailure makes a failure of an error of pgx's or the server's.
func pgFailure(attempt string, err error) *failure {
	if server, ok := errors.AsType[*pgconn.PgError](err); ok {
		f := &failure{class: classifySQLState(server.Code), code: server.Code,
			err: fmt.Errorf("%s: %s (SQLSTATE %s)", attempt, server.Message, server.Code)}
		if f.code == "08P01" && server.Severity == "FATAL" {
			f.class = temp // what pgbouncer itself has to say, such as that the server does not answer
		}
		return f
	}
	class := temp
	if untrusted(err) {
		class = operator
	}
	// What pgx says of itself names hosts and users, never passwords.
	if connect, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		err = connect.Unwrap() // the attempt says where to
	}
	return &failure{class: class, err: fmt.Errorf("%s: %w", attempt, oneLine{err})}
}

// oneLine is an error whose text has no line ends: pgx gives each attempt a
// line. What two of them say is said once.
type oneLine struct{ error }

func (e oneLine) Error() string {
	var lines []string
	for line := range strings.SplitSeq(e.error.Error(), "\n") {
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

func (e oneLine) Unwrap() error { return e.error }

// literal makes an SQL string of s.
func literal(s string) string {
	return " E'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(s) + "'"
}
