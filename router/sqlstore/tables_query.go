package sqlstore

import (
	"context"
	"strconv"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// listed are the columns of Tables.
var listed = []string{"table", "rows", "column", "type"}

// Tables lists what may be asked for: a row for each column of each table and view, with about how many rows the table has (NULL where that is
// not known without counting). What the databases keep for themselves is left out, and so are partitions.
func (r *Reader) Tables(ctx context.Context, rows Rows) error {
	if r.pg != nil {
		return r.pg.query(ctx, pgTablesSQL, rows)
	}
	return r.lite.tables(ctx, rows)
}

const pgTablesSQL = `SELECT CASE WHEN pg_catalog.pg_table_is_visible(c.oid) THEN '' ELSE n.nspname || '.' END || c.relname AS "table",
 CASE WHEN c.relkind IN ('r', 'm') AND c.reltuples >= 0 THEN c.reltuples::bigint
  WHEN c.relkind = 'p' THEN (SELECT sum(l.reltuples)::bigint FROM pg_catalog.pg_partition_tree(c.oid) p JOIN pg_catalog.pg_class l ON l.oid = p.relid WHERE p.isleaf AND l.reltuples > 0) END AS rows,
 a.attname AS "column", pg_catalog.format_type(a.atttypid, a.atttypmod) AS type
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition AND a.attnum > 0 AND NOT a.attisdropped
 AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\_%'
ORDER BY n.nspname, c.relname, a.attnum`

func (d *liteReader) tables(ctx context.Context, rows Rows) error {
	defer d.conn.SetInterrupt(d.conn.SetInterrupt(ctx.Done()))
	if err := rows.Columns(listed); err != nil {
		return enough(err)
	}
	type found struct {
		name  string
		keyed bool // has a rowid
	}
	var all []found
	err := sqlitex.ExecuteTransient(d.conn, "SELECT name, type = 'table' AND NOT wr FROM pragma_table_list WHERE schema = ? AND type <> 'shadow' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
		&sqlitex.ExecOptions{Args: []any{d.schemaName()}, ResultFunc: func(s *sqlite.Stmt) error {
			all = append(all, found{s.ColumnText(0), s.ColumnBool(1)})
			return nil
		}})
	for _, t := range all {
		if err != nil {
			break
		}
		about := Value{}
		if t.keyed {
			about = d.about(table{d.schema, t.name})
		}
		err = sqlitex.ExecuteTransient(d.conn, "SELECT name, type FROM pragma_table_xinfo(?, ?) WHERE hidden <> 1",
			&sqlitex.ExecOptions{Args: []any{t.name, d.schemaName()}, ResultFunc: func(s *sqlite.Stmt) error {
				return rows.Row([]Value{{TextValue, []byte(t.name)}, about, {TextValue, []byte(s.ColumnText(0))}, {TextValue, []byte(s.ColumnText(1))}})
			}})
	}
	switch {
	case err == nil || enough(err) == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case sqlite.ErrCode(err) == sqlite.ResultError:
		return err // of rows
	}
	return d.failed("list the tables of", err)
}

// about is how many rows a table has, by its first and its last rowid.
func (d *liteReader) about(t table) Value {
	n := int64(-1)
	err := sqlitex.ExecuteTransient(d.conn, "SELECT (SELECT max(rowid) FROM "+t.sql()+") - (SELECT min(rowid) FROM "+t.sql()+") + 1",
		&sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error { n = s.ColumnInt64(0); return nil }})
	if err != nil || n < 0 { // a column may be called rowid
		return Value{}
	}
	return Value{NumberValue, strconv.AppendInt(nil, n, 10)}
}
