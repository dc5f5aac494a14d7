package sqlstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/weirlog/weir/router"
)

// create makes the table and its indexes when there is none.
func (d *postgres) create(ctx context.Context, t *pgTable) error {
	made, err := d.make(ctx, t.table, d.createSQL(t.table))
	if f, ok := err.(*failure); ok {
		return beforeRows(f)
	}
	if made {
		d.log.Info("created the table", "table", t.String(), "columns", len(d.columns))
	}
	return err
}

func (d *postgres) createSQL(t table) string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE IF NOT EXISTS %s (", t.sql())
	for i := range d.columns {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %s", quote(d.columns[i].name), d.columns[i].pgDeclared())
	}
	b.WriteString(")")
	if p := d.cfg.Partition; p != nil {
		fmt.Fprintf(&b, " PARTITION BY RANGE (%s)", quote(p.Column))
	}
	if d.cfg.CreateSuffix != "" {
		b.WriteString(" " + d.cfg.CreateSuffix)
	}
	if on := d.cfg.OnConflict; on != nil && !on.Ignore {
		b.WriteString("; " + d.keySQL(t))
	}
	for _, name := range d.cfg.indexes() {
		fmt.Fprintf(&b, "; CREATE INDEX IF NOT EXISTS %s ON %s (%s)", quote(pgName(d.naming.index(t, name))), t.sql(), quote(name))
	}
	return b.String()
}

// keySQL makes the index by which on_conflict sees what is there already.
func (d *postgres) keySQL(t table) string {
	return fmt.Sprintf("CREATE UNIQUE INDEX IF NOT EXISTS %s ON %s (%s)", quote(pgName(d.naming.index(t, "key"))), t.sql(), quoteAll(d.cfg.OnConflict.Key))
}

// pgName cuts a name to the 63 bytes that the server keeps, so that two that
// begin alike stay different.
func pgName(s string) string {
	if len(s) <= 63 {
		return s
	}
	return string(appendSum([]byte(strings.ToValidUTF8(s[:54], "")), []byte(s)))
}

// make runs statements that make table t when there is none. An error of the
// statements is a *failure.
func (d *postgres) make(ctx context.Context, t table, sql string) (made bool, err error) {
	result, err := d.exec(ctx, "SELECT to_regclass("+literal(t.sql())+") IS NULL")
	if err != nil {
		return false, beforeRows(pgFailure("look for table "+t.String(), err))
	}
	if string(result.Rows[0][0]) != "t" {
		return false, nil
	}
	if !d.cfg.create() {
		return false, router.NeedsOperator(fmt.Errorf("there is no table %s, and create is false: %s", t, sql))
	}
	return d.define(ctx, "create table "+t.String(), t, sql)
}

// define runs DDL in a transaction of its own. Other sessions may be doing the
// same: one after the other, and what is there already is no error.
func (d *postgres) define(ctx context.Context, attempt string, t table, sql string) (done bool, err error) {
	_, err = d.exec(ctx, fmt.Sprintf("BEGIN; SELECT pg_advisory_xact_lock(hashtextextended(%s, 0)); %s; COMMIT", literal("weir "+t.sql()), sql))
	if err == nil {
		return true, nil
	}
	f := pgFailure(attempt, err)
	d.rollback(ctx)
	if d.conn == nil {
		return false, beforeRows(f)
	}
	switch f.code {
	case "42P07", "42710", "42701", "23505": // somebody else was quicker
		return false, nil
	}
	return false, f
}

// alter adds columns to a table that lacks them.
func (d *postgres) alter(ctx context.Context, t *pgTable, missing []*column) error {
	f, err := d.define(ctx, "alter table "+t.String(), t.table, alterSQL(t.table, missing))
	if bad, ok := err.(*failure); ok {
		return beforeRows(bad)
	}
	if f {
		for _, c := range missing {
			d.log.Info("added the column", "table", t.String(), "column", c.name)
		}
	}
	return err
}

// alterSQL adds columns. They hold nothing for the rows that are there.
func alterSQL(t table, missing []*column) string {
	var b strings.Builder
	fmt.Fprintf(&b, "ALTER TABLE %s ", t.sql())
	for i, c := range missing {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "ADD COLUMN IF NOT EXISTS %s %s", quote(c.name), strings.TrimSuffix(c.pgDeclared(), " NOT NULL"))
	}
	return b.String()
}
