package sqlstore

import (
	"slices"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/weirlog/weir/router"
)

const (
	liteOpen = 64  // tables that may keep their statements
	liteIdle = 256 // transactions without a row after which a table is forgotten
)

// assign says which messages go into which table: d.touched and their pending.
// Messages that would need one table too many are refused.
func (d *lite) assign(msgs []*router.Message) {
	for _, t := range d.touched {
		t.pending = t.pending[:0]
	}
	d.touched = d.touched[:0]
	d.turn++
	for i, m := range msgs {
		t := d.tableOf(m)
		if t == nil {
			d.bad = append(d.bad, refused{i, tooManyTables})
			continue
		}
		if t.used != d.turn {
			t.used, t.doubtful = d.turn, nil
			d.touched = append(d.touched, t)
		}
		t.pending = append(t.pending, i)
	}
}

// tableOf is the table of a message; nil: there are too many.
func (d *lite) tableOf(m *router.Message) *liteTable {
	if d.naming.fixed != "" {
		return d.tables[0]
	}
	d.tableName = d.naming.append(d.tableName[:0], m)
	if d.last != nil && d.last.name == string(d.tableName) {
		return d.last
	}
	i, ok := slices.BinarySearchFunc(d.tables, borrow(d.tableName), func(t *liteTable, name string) int { return strings.Compare(t.name, name) })
	if !ok {
		if !d.families.admit(m) {
			return nil
		}
		t := &liteTable{table: table{d.naming.schema, string(d.tableName)}}
		d.tables = slices.Insert(d.tables, i, t)
	}
	d.last = d.tables[i]
	return d.last
}

// findTables counts the tables that are there already.
func (d *lite) findTables() error {
	if d.naming.fixed != "" {
		return nil
	}
	d.families.reset()
	err := sqlitex.ExecuteTransient(d.conn, "SELECT name FROM "+quote(d.schemaName())+".sqlite_schema WHERE type IN ('table', 'view')", &sqlitex.ExecOptions{
		ResultFunc: func(s *sqlite.Stmt) error { d.families.found(s.ColumnText(0)); return nil }})
	if err != nil {
		return beforeRows(liteFailure("list the tables", err))
	}
	return nil
}

// tidy forgets tables that have had no row for long, and takes the statements of those
// that have waited longest when there are many.
func (d *lite) tidy() {
	if len(d.tables) == 1 {
		return
	}
	d.last = nil
	open := 0
	d.tables = slices.DeleteFunc(d.tables, func(t *liteTable) bool {
		if d.turn-t.used > liteIdle {
			t.finalize()
			return true
		}
		if t.insert[len(liteRows)-1] != nil {
			open++
		}
		return false
	})
	for ; open > liteOpen; open-- {
		var oldest *liteTable
		for _, t := range d.tables {
			if t.insert[len(liteRows)-1] != nil && (oldest == nil || t.used < oldest.used) {
				oldest = t
			}
		}
		oldest.finalize()
	}
}
