package sqlstore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// keptTable is a table whose rows are in order of their arrival.
type keptTable struct {
	table
	rowid   string // the name of its rowid
	arrival string // the column of the time; "": there is none
	left    int64  // rows that a pass by age may still remove from it
}

// arrived reads a time as weir stores it in column i: RFC 3339, nanoseconds or seconds.
func arrived(s *sqlite.Stmt, i int) (at time.Time, ok bool) {
	switch s.ColumnType(i) {
	case sqlite.TypeInteger:
		return time.Unix(0, s.ColumnInt64(i)), true
	case sqlite.TypeFloat:
		return time.UnixMicro(int64(s.ColumnFloat(i) * 1e6)), true
	case sqlite.TypeText:
		at, err := time.Parse(time.RFC3339Nano, s.ColumnText(i))
		return at, err == nil
	}
	return time.Time{}, false
}

// newest is when the newest row arrived; known is false when the table has none or does not say.
func (d *lite) newest(t *keptTable) (at time.Time, known bool, f *failure) {
	err := sqlitex.Execute(d.conn, fmt.Sprintf("SELECT %s FROM %s ORDER BY %s DESC LIMIT 1", quote(t.arrival), t.sql(), t.rowid), &sqlitex.ExecOptions{
		ResultFunc: func(s *sqlite.Stmt) error { at, known = arrived(s, 0); return nil }})
	if err != nil {
		return at, false, notRows(liteFailure("read the newest row of "+t.String(), err))
	}
	return at, known, nil
}

// ends are the lowest and the highest rowid; high is below low when there is no row.
func (d *lite) ends(t *keptTable) (low, high int64, f *failure) {
	low, high = 0, -1
	err := sqlitex.Execute(d.conn, fmt.Sprintf("SELECT (SELECT min(%s) FROM %s), (SELECT max(%[1]s) FROM %[2]s)", t.rowid, t.sql()), &sqlitex.ExecOptions{
		ResultFunc: func(s *sqlite.Stmt) error {
			if s.ColumnType(0) != sqlite.TypeNull {
				low, high = s.ColumnInt64(0), s.ColumnInt64(1)
			}
			return nil
		}})
	if err != nil {
		return 0, 0, notRows(liteFailure("look at the rows of "+t.String(), err))
	}
	return low, high, nil
}

// oldest is the table of the pass with the row that arrived first, and about how
// many rows all of them have. Where rows do not say when they arrived it is the
// one with the most rows.
func (d *lite) oldest() (best *keptTable, rows int64, f *failure) {
	var first time.Time
	var most int64
	for i := range d.tending.removal.tables {
		t := &d.tending.removal.tables[i]
		low, high, f := d.ends(t)
		if f != nil {
			return nil, 0, f
		}
		if high < low {
			continue
		}
		n := high - low + 1
		rows += n
		var at time.Time
		known := false
		if t.arrival != "" && len(d.tending.removal.tables) > 1 {
			err := sqlitex.Execute(d.conn, fmt.Sprintf("SELECT %s FROM %s WHERE %s = ?", quote(t.arrival), t.sql(), t.rowid), &sqlitex.ExecOptions{
				Args: []any{low}, ResultFunc: func(s *sqlite.Stmt) error { at, known = arrived(s, 0); return nil }})
			if err != nil {
				return nil, 0, notRows(liteFailure("read the oldest row of "+t.String(), err))
			}
		}
		better := best == nil || n > most
		if known && !first.IsZero() {
			better = at.Before(first)
		}
		if better {
			best, first, most = t, at, n
		}
	}
	return best, rows, nil
}

// keptTables are the tables of the destination of which rows can be removed: not
// views, and not WITHOUT ROWID.
func (d *lite) keptTables() (list []keptTable, f *failure) {
	tables, f := d.stored()
	if f != nil {
		return nil, f
	}
	for _, t := range tables {
		k, why, f := d.kept(t)
		if f != nil {
			return nil, f
		}
		what := "remove rows of " + t.String()
		switch {
		case why == "":
			d.works(what)
			list = append(list, k)
		case d.naming.fixed != "": // else nobody has said that it is ours
			d.say(what, "", errors.New(why))
		}
	}
	return list, nil
}

// kept looks at a table; why is the reason for which it has no order of arrival.
func (d *lite) kept(t table) (k keptTable, why string, f *failure) {
	k = keptTable{table: t, rowid: "rowid", arrival: d.cfg.arrival()}
	kind, withoutRowid := "", false
	err := sqlitex.Execute(d.conn, "SELECT type, wr FROM pragma_table_list(?) WHERE schema = ?", &sqlitex.ExecOptions{
		Args: []any{t.name, d.schemaName()}, ResultFunc: func(s *sqlite.Stmt) error {
			kind, withoutRowid = s.ColumnText(0), s.ColumnInt(1) != 0
			return nil
		}})
	var names []string
	if err == nil {
		err = sqlitex.Execute(d.conn, "SELECT lower(name) FROM pragma_table_xinfo(?, ?)", &sqlitex.ExecOptions{
			Args: []any{t.name, d.schemaName()}, ResultFunc: func(s *sqlite.Stmt) error { names = append(names, s.ColumnText(0)); return nil }})
	}
	switch {
	case err != nil:
		return k, "", notRows(liteFailure("look at table "+t.String(), err))
	case kind == "":
		return k, "it is gone", nil
	case kind != "table":
		return k, "it is a " + kind, nil
	case withoutRowid:
		return k, "it is WITHOUT ROWID, so its rows have no order of arrival", nil
	}
	if d.naming.fixed == "" {
		for i := range d.columns {
			if !slices.Contains(names, strings.ToLower(d.columns[i].name)) {
				return k, "it has other columns", nil
			}
		}
	}
	for _, k.rowid = range []string{"rowid", "_rowid_", "oid"} {
		if !slices.Contains(names, k.rowid) {
			return k, "", nil
		}
	}
	return k, "columns hide its rowid", nil
}
