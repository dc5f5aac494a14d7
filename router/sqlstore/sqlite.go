package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/weirlog/weir/router"
)

// lite writes into a SQLite file, over one connection.
type lite struct {
	*Store
	path string
	conn *sqlite.Conn // nil: to be opened
	file os.FileInfo  // of what conn has open

	begin, commit, rollback, schema *sqlite.Stmt
	conflict                        string        // end of every INSERT
	positions                       litePositions // not with autocommit

	tables    []*liteTable // by name; one, or those of the names by parts that are in use
	touched   []*liteTable // that the transaction has rows for
	last      *liteTable   // that tableOf returned
	families  families
	tableName []byte
	turn      int // counts transactions

	s     scratch
	slots []int // index of the message in each row of the statement that is being bound
	bad   []refused
	auto  resumed

	tending tending
}

const (
	liteBusy       = 5 * time.Second // how long another writer is waited for
	liteWALPages   = 1000            // pages in the WAL from which on a commit moves them into the file
	liteWALBytes   = 16 << 20        // the WAL is cut to that after a checkpoint
	liteParameters = 32766           // SQLITE_MAX_VARIABLE_NUMBER
)

// liteRows are the numbers of rows in one INSERT: more of them gain nothing.
var liteRows = [...]int{50, 10, 1}

func newLite(s *Store, path string) *lite {
	d := &lite{Store: s, path: path, conflict: s.cfg.conflictSQL()}
	d.tending.disk, d.tending.filesystem = diskSpace, NetworkFilesystem
	d.tending.gauge = newTendingMetrics(s.name)
	if s.naming.fixed != "" {
		d.tables = []*liteTable{{table: s.table}}
	} else {
		d.families = families{naming: &s.naming, most: s.cfg.maxTables()}
	}
	return d
}

func (d *lite) connect(ctx context.Context) (err error) {
	if d.conn != nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(d.path), 0o750); err != nil {
		return router.NeedsOperator(fmt.Errorf("open database: %w", err))
	}
	if err := d.newFile(); err != nil {
		return router.NeedsOperator(err)
	}
	conn, err := sqlite.OpenConn(d.path, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		return liteFailure("open "+d.path, err).told()
	}
	defer func() {
		if err != nil {
			d.drop()
		}
	}()
	d.metrics.connects.Inc()
	d.conn = conn
	conn.SetBusyTimeout(liteBusy)
	mode := "PRAGMA journal_mode = WAL"
	if d.cfg.ownJournal() {
		mode = "PRAGMA journal_mode"
	}
	for _, s := range []string{
		"PRAGMA auto_vacuum = INCREMENTAL", // of a new file only, and before WAL: later it does nothing
		mode,
		"PRAGMA synchronous = FULL",
		fmt.Sprintf("PRAGMA wal_autocheckpoint = %d", liteWALPages),
		fmt.Sprintf("PRAGMA journal_size_limit = %d", liteWALBytes),
	} {
		if err := sqlitex.ExecuteTransient(conn, s, nil); err != nil {
			return liteFailure("set up "+d.path, err).told()
		}
	}
	for i, s := range d.cfg.SessionStatements {
		if err := sqlitex.ExecuteTransient(conn, strings.TrimRight(s, "; \t\n"), nil); err != nil {
			f := liteFailure(fmt.Sprintf("session statement %q", s), err)
			if f.class == bug || f.class == row {
				f.class = operator
			}
			return &StatementError{i, f.told()}
		}
	}
	if !d.cfg.autocommit() {
		if err := d.preparePositions(); err != nil {
			return err
		}
	}
	if err := d.prepare(); err != nil {
		return err
	}
	if err := d.findTables(); err != nil {
		return err
	}
	if d.naming.fixed != "" {
		if err := d.openTable(d.tables[0]); err != nil {
			return err
		}
	}
	if err := d.openIndexes(); err != nil {
		return err
	}
	if d.file, err = os.Stat(d.path); err != nil {
		return router.NeedsOperator(fmt.Errorf("open database: %w", err))
	}
	return nil
}

// moved reports whether the path does not lead to the open file any more: what
// is written there would be gone as soon as it is closed.
func (d *lite) moved() bool {
	now, err := os.Stat(d.path)
	return errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(now, d.file)
}

// prepare makes the statements that every transaction uses.
func (d *lite) prepare() (err error) {
	prep := func(sql string) *sqlite.Stmt {
		if err != nil {
			return nil
		}
		var stmt *sqlite.Stmt
		if stmt, err = d.conn.Prepare(sql); err != nil {
			err = beforeRows(liteFailure("prepare "+strings.Fields(sql)[0], err))
		}
		return stmt
	}
	d.begin, d.commit, d.rollback = prep("BEGIN IMMEDIATE"), prep("COMMIT"), prep("ROLLBACK")
	d.schema = prep("PRAGMA " + quote(d.schemaName()) + ".schema_version")
	return err
}

// finalize forgets the statements of a connection that is about to be closed.
func (d *lite) finalize() {
	d.begin, d.commit, d.rollback, d.schema = nil, nil, nil, nil
	for _, t := range d.tables {
		clear(t.insert[:])
	}
	d.positions.find, d.positions.move, d.positions.cached = nil, nil, false
}

// drop closes the connection; the next Write opens another.
func (d *lite) drop() {
	if err := d.close(); err != nil {
		d.log.Warn("cannot close the database", "error", err)
	}
}

func (d *lite) close() error {
	if d.conn == nil {
		return nil
	}
	d.finalize()
	err := d.conn.Close()
	d.conn = nil
	if err != nil {
		return fmt.Errorf("close %s: %w", d.path, err)
	}
	return nil
}
