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

	version int64 // PRAGMA schema_version under which the types were read
	types   []liteType
	sure    []bool // the type is the one that weir asks for
	proven  bool   // a row was stored since then
	single  bool   // one row a statement: a constraint of the table would keep half a statement

	begin, commit, rollback, schema *sqlite.Stmt
	insert                          [len(liteRows)]*sqlite.Stmt
	positions                       litePositions // not with autocommit

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
			d.finalize()
			conn.Close()
			d.conn = nil
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
	for _, s := range d.cfg.SessionStatements {
		if err := sqlitex.ExecuteTransient(conn, strings.TrimRight(s, "; \t\n"), nil); err != nil {
			f := liteFailure(fmt.Sprintf("session statement %q", s), err)
			if f.class == bug || f.class == row {
				f.class = operator
			}
			return f.told()
		}
	}
	if !d.cfg.autocommit() {
		if err := d.preparePositions(); err != nil {
			return err
		}
	}
	if err := d.create(); err != nil {
		return err
	}
	if err := d.readCatalogue(); err != nil {
		return err
	}
	if err := d.openIndexes(); err != nil {
		return err
	}
	if d.file, err = os.Stat(d.path); err != nil {
		return router.NeedsOperator(fmt.Errorf("open database: %w", err))
	}
	return d.prepare()
}

// moved reports whether the path does not lead to the open file any more: what
// is written there would be gone as soon as it is closed.
func (d *lite) moved() bool {
	now, err := os.Stat(d.path)
	return errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(now, d.file)
}

// create makes the table and its indexes when there is none.
func (d *lite) create() error {
	schema := d.table.schema
	if schema == "" {
		schema = "main"
	}
	exists := false
	err := sqlitex.ExecuteTransient(d.conn, "SELECT 1 FROM "+quote(schema)+".sqlite_schema WHERE lower(name) = lower(?) AND type IN ('table', 'view')",
		&sqlitex.ExecOptions{Args: []any{d.table.name}, ResultFunc: func(*sqlite.Stmt) error { exists = true; return nil }})
	if err != nil {
		return liteFailure("look for table "+d.table.String(), err).told()
	}
	if exists {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE IF NOT EXISTS %s (", d.table.sql())
	if len(d.cfg.Columns) == 0 {
		b.WriteString("id INTEGER PRIMARY KEY, ")
	}
	for i := range d.columns {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %s", quote(d.columns[i].name), d.columns[i].liteDeclared())
	}
	b.WriteString(")")
	statements := []string{"BEGIN IMMEDIATE", b.String()}
	for _, name := range d.cfg.indexes() {
		statements = append(statements, fmt.Sprintf("CREATE INDEX IF NOT EXISTS %s.%s ON %s (%s)",
			quote(schema), quote(d.table.name+"_"+name+"_idx"), quote(d.table.name), quote(name)))
	}
	for _, s := range append(statements, "COMMIT") {
		if err := sqlitex.ExecuteTransient(d.conn, s, nil); err != nil {
			f := liteFailure("create table "+d.table.String(), err)
			if f.class == bug || f.class == row {
				f.class = operator
			}
			if !d.conn.AutocommitEnabled() {
				sqlitex.ExecuteTransient(d.conn, "ROLLBACK", nil)
			}
			return f.told()
		}
	}
	d.log.Info("created the table", "table", d.table.String(), "columns", len(d.columns))
	return nil
}

// readCatalogue reads the table's columns and compares them with ours. What
// does not fit is an error that needs an operator.
func (d *lite) readCatalogue() error {
	type found struct {
		declared string
		fits     bool
	}
	table, args := "pragma_table_xinfo(?)", []any{d.table.name}
	if d.table.schema != "" {
		table, args = "pragma_table_xinfo(?, ?)", append(args, d.table.schema)
	}
	columns := map[string]found{}
	var names, missed []string
	err := sqlitex.ExecuteTransient(d.conn, `SELECT name, type, "notnull", dflt_value IS NOT NULL, pk, hidden FROM `+table, &sqlitex.ExecOptions{
		Args: args,
		ResultFunc: func(s *sqlite.Stmt) error {
			name, declared := s.ColumnText(0), s.ColumnText(1)
			notNull, fallback, pk, hidden := s.ColumnInt(2) != 0, s.ColumnInt(3) != 0, s.ColumnInt(4) != 0, s.ColumnInt(5)
			names = append(names, name)
			columns[strings.ToLower(name)] = found{declared: declared, fits: hidden == 0}
			rowID := pk && strings.EqualFold(declared, "INTEGER")
			if notNull && !fallback && !rowID && hidden == 0 && d.column(name) == nil {
				missed = append(missed, name)
			}
			return nil
		}})
	if err != nil {
		return liteFailure("read the columns of "+d.table.String(), err).told()
	}
	types, sure := make([]liteType, len(d.columns)), make([]bool, len(d.columns))
	var bad []error
	for i := range d.columns {
		c := &d.columns[i]
		f, ok := columns[strings.ToLower(c.name)]
		switch {
		case !ok:
			bad = append(bad, fmt.Errorf("table %s has no column %s (it has %s): ALTER TABLE %s ADD COLUMN %s %s",
				d.table, c.name, strings.Join(names, ", "), d.table.sql(), quote(c.name), strings.TrimSuffix(c.liteDeclared(), " NOT NULL")))
		case !f.fits:
			bad = append(bad, fmt.Errorf("column %s of table %s is generated and cannot be filled", c.name, d.table))
		}
		types[i] = parseLiteType(f.declared)
		sure[i] = types[i] == parseLiteType(c.liteDeclared())
	}
	if len(missed) > 0 {
		bad = append(bad, fmt.Errorf("table %s wants a value for %s, which no column of the configuration fills: list it, or give it a DEFAULT",
			d.table, strings.Join(missed, ", ")))
	}
	if len(bad) > 0 {
		return router.NeedsOperator(errors.Join(bad...))
	}
	single := false
	schema := d.table.schema
	if schema == "" {
		schema = "main"
	}
	err = sqlitex.ExecuteTransient(d.conn, "SELECT sql FROM "+quote(schema)+".sqlite_schema WHERE lower(tbl_name) = lower(?)", &sqlitex.ExecOptions{
		Args: []any{d.table.name},
		ResultFunc: func(s *sqlite.Stmt) error {
			// ON CONFLICT FAIL and RAISE(FAIL, …) keep the rows before the bad one.
			single = single || strings.Contains(strings.ToUpper(s.ColumnText(0)), "FAIL")
			return nil
		}})
	if err != nil {
		return liteFailure("read the definition of "+d.table.String(), err).told()
	}
	version, err := sqlitex.ResultInt64(d.conn.Prep("PRAGMA schema_version"))
	if err != nil {
		return liteFailure("read the schema's version", err).told()
	}
	d.proven = d.proven && d.version == version
	d.types, d.sure, d.single, d.version = types, sure, single, version
	return nil
}

// prepare makes the statements that every transaction uses.
func (d *lite) prepare() (err error) {
	prep := func(sql string) *sqlite.Stmt {
		if err != nil {
			return nil
		}
		var stmt *sqlite.Stmt
		if stmt, err = d.conn.Prepare(sql); err != nil {
			err = liteFailure("prepare "+strings.Fields(sql)[0], err).told()
		}
		return stmt
	}
	d.begin, d.commit, d.rollback = prep("BEGIN IMMEDIATE"), prep("COMMIT"), prep("ROLLBACK")
	d.schema = prep("PRAGMA schema_version")
	var b strings.Builder
	fmt.Fprintf(&b, "INSERT INTO %s (", d.table.sql())
	for i := range d.columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quote(d.columns[i].name))
	}
	b.WriteString(") VALUES ")
	one := "(" + strings.TrimSuffix(strings.Repeat("?,", len(d.columns)), ",") + ")"
	for i, n := range liteRows {
		if n > 1 && n*len(d.columns) > liteParameters {
			continue
		}
		d.insert[i] = prep(b.String() + strings.TrimSuffix(strings.Repeat(one+",", n), ","))
	}
	return err
}

// finalize forgets the statements of a connection that is about to be closed.
func (d *lite) finalize() {
	d.begin, d.commit, d.rollback, d.schema = nil, nil, nil, nil
	clear(d.insert[:])
	d.positions.find, d.positions.move, d.positions.cached = nil, nil, false
}

// drop closes the connection; the next Write opens another.
func (d *lite) drop() {
	if d.conn == nil {
		return
	}
	d.finalize()
	if err := d.conn.Close(); err != nil {
		d.log.Warn("close the database", "error", err)
	}
	d.conn = nil
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
