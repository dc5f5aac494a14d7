package sqlstore

import (
	"fmt"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/weirlog/weir/router"
)

// liteTable is a table that rows go into.
type liteTable struct {
	table
	version  int64    // PRAGMA schema_version under which the types were read; 0: not read
	has      []string // its columns
	types    []liteType
	sure     []bool // the type is the one that weir asks for
	proven   bool   // a row was stored since then
	single   bool   // one row a statement: a constraint of the table would keep half a statement
	triggers string // their definitions
	insert   [len(liteRows)]*sqlite.Stmt

	// Of the transaction that is being written:
	pending  []int    // indexes of its messages
	stored   int      // rows that went in
	doubtful *refused // the first that may not be its row's fault

	used int // turn of the last transaction that had rows for it
}

// openTable prepares for a table as it is now: makes it and adds columns, when
// it is to, and compares the columns. It is called outside of transactions.
func (d *lite) openTable(t *liteTable) error {
	version, err := d.schemaVersion()
	if err != nil {
		return err
	}
	exists := false
	find := "SELECT 1 FROM " + quote(d.schemaName()) + ".sqlite_schema WHERE lower(name) = lower(?) AND type IN ('table', 'view')"
	if err := sqlitex.Execute(d.conn, find, &sqlitex.ExecOptions{Args: []any{t.name},
		ResultFunc: func(*sqlite.Stmt) error { exists = true; return nil }}); err != nil {
		return beforeRows(liteFailure("look for table "+t.String(), err))
	}
	switch {
	case exists:
	case !d.cfg.create():
		return router.NeedsOperator(fmt.Errorf("there is no table %s, and create: false", t))
	default:
		if version, err = d.define("create table "+t.String(), d.createSQL(t)...); err != nil {
			return err
		}
		if t.version != 0 {
			d.log.Warn("the table has gone; made it again", "table", t.String())
		} else {
			d.log.Info("created the table", "table", t.String(), "columns", len(d.columns))
		}
	}
	missing, err := d.readColumns(t)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		if version, err = d.addColumns(t, missing); err != nil {
			return err
		}
	}
	if err := d.readClauses(t); err != nil {
		return err
	}
	if made, err := d.openIndex(t.table); err != nil {
		return err
	} else if made != 0 {
		version = made
	}
	if t.version != version {
		t.finalize()
		t.proven, t.version = false, version
	}
	if _, f := d.statement(t, len(liteRows)-1); f != nil { // whatever is wrong with it shows now
		if on := d.cfg.OnConflict; on != nil && strings.Contains(f.Error(), "ON CONFLICT clause") {
			f.err = fmt.Errorf("%w: CREATE UNIQUE INDEX %s.%s ON %s (%s)", f.err,
				quote(d.schemaName()), quote(d.naming.index(t.table, "key")), quote(t.name), quoteAll(on.Key))
		}
		return beforeRows(f)
	}
	return nil
}

// schemaVersion is the number that changes with every change of a definition.
func (d *lite) schemaVersion() (int64, error) {
	_, err := d.schema.Step()
	version := d.schema.ColumnInt64(0)
	if e := d.schema.Reset(); err == nil {
		err = e
	}
	if err != nil {
		return 0, beforeRows(liteFailure("read the schema's version", err))
	}
	return version, nil
}

// define runs statements that change definitions, in a transaction of their own.
// What is known of other tables stays good.
func (d *lite) define(attempt string, statements ...string) (version int64, err error) {
	var before int64
	run := func(s string) {
		if err == nil {
			err = sqlitex.ExecuteTransient(d.conn, s, nil)
		}
	}
	run("BEGIN IMMEDIATE")
	if err == nil {
		before, err = d.schemaVersion()
	}
	for _, s := range statements {
		run(s)
	}
	if err == nil {
		version, err = d.schemaVersion()
	}
	run("COMMIT")
	if err != nil {
		f := liteFailure(attempt, err)
		if !d.conn.AutocommitEnabled() {
			sqlitex.ExecuteTransient(d.conn, "ROLLBACK", nil)
		}
		return 0, beforeRows(f)
	}
	for _, t := range d.tables {
		if t.version == before {
			t.version = version
		}
	}
	return version, nil
}

// createSQL makes the table and its indexes.
func (d *lite) createSQL(t *liteTable) []string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE IF NOT EXISTS %s (", t.sql())
	if len(d.cfg.Columns) == 0 {
		b.WriteString("id INTEGER PRIMARY KEY, ")
	}
	for i := range d.columns {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %s", quote(d.columns[i].name), d.columns[i].liteDeclared())
	}
	if on := d.cfg.OnConflict; on != nil && !on.Ignore {
		fmt.Fprintf(&b, ", UNIQUE (%s)", quoteAll(on.Key))
	}
	b.WriteString(") " + d.cfg.CreateSuffix)
	statements := []string{b.String()}
	for _, name := range d.cfg.indexes() {
		statements = append(statements, fmt.Sprintf("CREATE INDEX IF NOT EXISTS %s.%s ON %s (%s)",
			quote(d.schemaName()), quote(d.naming.index(t.table, name)), quote(t.name), quote(name)))
	}
	return statements
}

// addColumns makes the columns that a table lacks, when it is to.
func (d *lite) addColumns(t *liteTable, missing []*column) (version int64, err error) {
	var add, lacks []string
	for _, c := range missing {
		add = append(add, fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s %s", t.sql(), quote(c.name), c.liteAdded()))
		lacks = append(lacks, c.name)
	}
	if !d.cfg.Alter {
		return 0, router.NeedsOperator(fmt.Errorf("table %s has no column %s (it has %s): %s; or alter: true",
			t, strings.Join(lacks, ", "), strings.Join(t.has, ", "), strings.Join(add, "; ")))
	}
	version, err = d.define("alter table "+t.String(), add...)
	if err == nil {
		d.log.Info("added columns to the table", "table", t.String(), "added", strings.Join(lacks, ", "))
	}
	left, again := d.readColumns(t)
	switch {
	case again != nil:
		return 0, again
	case len(left) == 0 && err != nil: // somebody else was quicker
		return d.schemaVersion()
	}
	return version, err
}

// readColumns reads the table's columns and compares them with ours. missing are
// those that it lacks. What does not fit otherwise is an error that needs an
// operator.
func (d *lite) readColumns(t *liteTable) (missing []*column, err error) {
	type found struct {
		declared string
		fits     bool
	}
	columns := map[string]found{}
	var missed []string
	t.has = t.has[:0]
	err = sqlitex.Execute(d.conn, `SELECT name, type, "notnull", dflt_value IS NOT NULL, pk, hidden FROM pragma_table_xinfo(?, ?)`, &sqlitex.ExecOptions{
		Args: []any{t.name, d.schemaName()},
		ResultFunc: func(s *sqlite.Stmt) error {
			name, declared := s.ColumnText(0), s.ColumnText(1)
			notNull, fallback, pk, hidden := s.ColumnInt(2) != 0, s.ColumnInt(3) != 0, s.ColumnInt(4) != 0, s.ColumnInt(5)
			t.has = append(t.has, name)
			columns[strings.ToLower(name)] = found{declared: declared, fits: hidden == 0}
			rowID := pk && strings.EqualFold(declared, "INTEGER")
			if notNull && !fallback && !rowID && hidden == 0 && d.column(name) == nil {
				missed = append(missed, name)
			}
			return nil
		}})
	if err != nil {
		return nil, beforeRows(liteFailure("read the columns of "+t.String(), err))
	}
	types, sure := make([]liteType, len(d.columns)), make([]bool, len(d.columns))
	var bad []error
	for i := range d.columns {
		c := &d.columns[i]
		f, ok := columns[strings.ToLower(c.name)]
		switch {
		case !ok:
			missing = append(missing, c)
		case !f.fits:
			bad = append(bad, generated(t.table, c.name))
		}
		types[i] = parseLiteType(f.declared)
		sure[i] = types[i] == parseLiteType(c.liteDeclared())
	}
	if err := unfit(t.table, missed, bad); err != nil {
		return nil, err
	}
	t.types, t.sure = types, sure
	return missing, nil
}

// readClauses looks for ON CONFLICT FAIL and RAISE(FAIL, …): they keep the rows
// of a statement that come before the bad one.
func (d *lite) readClauses(t *liteTable) error {
	t.single, t.triggers = false, ""
	err := sqlitex.Execute(d.conn, "SELECT sql, type FROM "+quote(d.schemaName())+".sqlite_schema WHERE lower(tbl_name) = lower(?)", &sqlitex.ExecOptions{
		Args: []any{t.name},
		ResultFunc: func(s *sqlite.Stmt) error {
			sql := s.ColumnText(0)
			t.single = t.single || strings.Contains(strings.ToUpper(sql), "FAIL")
			if s.ColumnText(1) == "trigger" {
				t.triggers += sql
			}
			return nil
		}})
	if err != nil {
		return beforeRows(liteFailure("read the definition of "+t.String(), err))
	}
	return nil
}

// statement is the INSERT of liteRows[size] rows; nil when that many have too many values.
func (d *lite) statement(t *liteTable, size int) (*sqlite.Stmt, *failure) {
	n := liteRows[size]
	if t.insert[size] != nil || n > 1 && n*len(d.columns) > liteParameters {
		return t.insert[size], nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "INSERT INTO %s (%s) VALUES ", t.sql(), d.names)
	one := "(" + strings.TrimSuffix(strings.Repeat("?,", len(d.columns)), ",") + ")"
	b.WriteString(strings.TrimSuffix(strings.Repeat(one+",", n), ","))
	b.WriteString(d.conflict)
	stmt, err := d.conn.Prepare(b.String())
	if err != nil {
		return nil, notRows(liteFailure("prepare the rows of "+t.String(), err))
	}
	t.insert[size] = stmt
	return stmt, nil
}

// finalize gives the statements back.
func (t *liteTable) finalize() {
	for _, stmt := range t.insert {
		if stmt != nil {
			stmt.Finalize()
		}
	}
	clear(t.insert[:])
}
