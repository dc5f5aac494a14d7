package sqlstore

import (
	"fmt"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/weirlog/weir/router"
)

// The full-text index of a table t is an FTS5 table weir_fts_t that holds no
// text of its own (external content). New rows go into it in one statement at the end of their
// transaction: by a trigger they would cost twice as much, since FTS5 writes
// out what it has gathered at the end of each statement. What leaves or changes, by
// whatever hand, leaves it by triggers. Which rows are in it says its table weir_fts_t_docsize; a
// trigger may take out only those. So an index can begin at the newest rows and
// get the older ones by and by.

// fullText is the state of the indexes.
type fullText struct {
	tables map[string]*indexed // by the table's name
	broken bool                // SQLite says that an index is damaged: make them anew
	rows   int64               // of a step
}

// indexed is the index of one table.
type indexed struct {
	kept  keptTable
	base  int64 // the newest row when the index was empty
	older bool  // there may be rows older than the index
	todo  int64 // about so many
}

const (
	indexPrefix = "weir_fts_"
	indexMissed = 10000 // rows that others have put in meanwhile: more of them are indexed by and by
	indexRows   = 16    // of a step, at least
	indexMost   = 4096
)

// behind reports whether there are rows to be indexed.
func (t *fullText) behind() bool {
	for _, x := range t.tables {
		if x.older {
			return true
		}
	}
	return false
}

// left is about how many rows are to be indexed.
func (t *fullText) left() (n int64) {
	for _, x := range t.tables {
		if x.older {
			n += x.todo
		}
	}
	return n
}

// name is the index's name in its schema.
func (x *indexed) name() string { return indexPrefix + x.kept.name }

// sql is the quoted name of the index, or of one of the tables that FTS5 keeps for it.
func (x *indexed) sql(suffix string) string {
	return table{x.kept.schema, x.name() + suffix}.sql()
}

// definitions are the statements that make the index, without the schema, and the
// names of what they make. A table that a template names has letters, digits and _ only.
func (d *lite) definitions(x *indexed) (names, texts []string) {
	column, id, t, fts := quote(d.cfg.FullText), quote(x.kept.rowid), quote(x.kept.name), quote(x.name())
	within := fmt.Sprintf("EXISTS (SELECT 1 FROM %s WHERE id = old.%s)", quote(x.name()+"_docsize"), id)
	out := fmt.Sprintf("INSERT INTO %s(%[1]s, rowid, %s) VALUES ('delete', old.%s, old.%[2]s);", fts, column, id)
	return []string{x.name(), x.name() + "_delete", x.name() + "_update"}, []string{
		fmt.Sprintf("%s USING fts5(%s, content=%s, content_rowid=%s)", fts, column, t, id),
		fmt.Sprintf("%s AFTER DELETE ON %s WHEN %s BEGIN %s END", quote(x.name()+"_delete"), t, within, out),
		fmt.Sprintf("%s AFTER UPDATE ON %s WHEN (old.%s IS NOT new.%[3]s OR old.%[4]s IS NOT new.%[4]s) AND %s BEGIN %s INSERT INTO %s(rowid, %s) VALUES (new.%[3]s, new.%[4]s); END",
			quote(x.name()+"_update"), t, id, column, within, out, fts, column),
	}
}

// openIndexes opens those of tables that a template names, so that they are
// complete even where no row comes any more.
func (d *lite) openIndexes() error {
	c := &d.tending.index
	if d.cfg.FullText != "" && d.naming.fixed == "" {
		clear(c.tables)
		tables, f := d.stored()
		if f != nil {
			return f.told()
		}
		for _, t := range tables {
			if _, why, f := d.kept(t); f != nil || why != "" {
				continue // nobody has said that it is ours
			}
			if _, err := d.openIndex(t); err != nil {
				return err
			}
		}
	}
	c.broken = false
	return nil
}

// openIndex makes sure that a table has its index, when the configuration asks
// for it. version is the schema's when that has changed it, else 0.
func (d *lite) openIndex(t table) (version int64, err error) {
	if d.cfg.FullText == "" {
		return 0, nil
	}
	k, why, f := d.kept(t)
	if f != nil {
		return 0, f.told()
	}
	if why != "" {
		return 0, router.NeedsOperator(fmt.Errorf("full_text: table %s cannot have an index: %s", t, why))
	}
	// Without it REPLACE would remove rows and leave them in the index.
	if f := d.run("set up the full-text index", "PRAGMA recursive_triggers = ON"); f != nil {
		return 0, f.told()
	}
	c, x := &d.tending.index, &indexed{kept: k}
	fits, f := d.indexFits(x)
	if f != nil {
		return 0, f.told()
	}
	if !fits || c.broken {
		if version, err = d.makeIndex(x); err != nil {
			return 0, err
		}
	}
	if f := d.measureIndex(x); f != nil {
		return 0, f.told()
	}
	if c.tables == nil {
		c.tables = map[string]*indexed{}
	}
	c.tables[t.name] = x
	return version, nil
}

// indexFits reports whether the index is there as weir makes it, and does not
// disagree with its table at the ends.
func (d *lite) indexFits(x *indexed) (fits bool, f *failure) {
	names, texts := d.definitions(x)
	for i, name := range names {
		found := ""
		err := sqlitex.ExecuteTransient(d.conn, "SELECT sql FROM "+quote(d.schemaName())+".sqlite_schema WHERE name = ?", &sqlitex.ExecOptions{
			Args: []any{name}, ResultFunc: func(s *sqlite.Stmt) error { found = s.ColumnText(0); return nil }})
		if err != nil {
			return false, notRows(liteFailure("look for the full-text index", err))
		}
		if _, text, _ := strings.Cut(found, quote(name)); found == "" || quote(name)+text != texts[i] {
			return false, nil
		}
	}
	lowest, highest, some, f := d.indexEnds(x)
	if f != nil || !some {
		return true, f
	}
	low, high, f := d.ends(&x.kept)
	if f != nil {
		return false, f
	}
	missed := int64(0)
	err := sqlitex.ExecuteTransient(d.conn, fmt.Sprintf("SELECT count(*) FROM (SELECT 1 FROM %s WHERE %s > ? LIMIT %d)", x.kept.sql(), x.kept.rowid, indexMissed+1),
		&sqlitex.ExecOptions{Args: []any{highest}, ResultFunc: func(s *sqlite.Stmt) error { missed = s.ColumnInt64(0); return nil }})
	if err != nil {
		return false, notRows(liteFailure("look for rows without index", err))
	}
	return lowest >= low && highest <= high && missed <= indexMissed, nil
}

// indexEnds are the lowest and the highest row in the index.
func (d *lite) indexEnds(x *indexed) (low, high int64, some bool, f *failure) {
	err := sqlitex.ExecuteTransient(d.conn, fmt.Sprintf("SELECT (SELECT min(id) FROM %s), (SELECT max(id) FROM %[1]s)", x.sql("_docsize")), &sqlitex.ExecOptions{
		ResultFunc: func(s *sqlite.Stmt) error {
			low, high, some = s.ColumnInt64(0), s.ColumnInt64(1), s.ColumnType(0) != sqlite.TypeNull
			return nil
		}})
	if err != nil {
		return 0, 0, false, notRows(liteFailure("look at the full-text index", err))
	}
	return low, high, some, nil
}

// makeIndex makes an empty index, instead of one that is there.
func (d *lite) makeIndex(x *indexed) (version int64, err error) {
	schema := quote(d.schemaName())
	names, texts := d.definitions(x)
	return d.define("make the full-text index "+x.name(),
		"DROP TRIGGER IF EXISTS "+schema+"."+quote(names[1]), "DROP TRIGGER IF EXISTS "+schema+"."+quote(names[2]), "DROP TABLE IF EXISTS "+x.sql(""),
		"CREATE VIRTUAL TABLE "+schema+"."+texts[0], "CREATE TRIGGER "+schema+"."+texts[1], "CREATE TRIGGER "+schema+"."+texts[2])
}

// measureIndex looks how much there is to be indexed.
func (d *lite) measureIndex(x *indexed) *failure {
	low, high, f := d.ends(&x.kept)
	if f != nil {
		return f
	}
	lowest, _, some, f := d.indexEnds(x)
	if f != nil {
		return f
	}
	switch {
	case high < low: // no rows
		x.base, x.todo = minRowID, 0
	case !some:
		x.base, x.todo = high, high-low+1
	default:
		x.base, x.todo = minRowID, lowest-low
	}
	before := d.tending.index.tables[x.kept.name]
	if x.older = x.todo > 0; x.older && (before == nil || !before.older) {
		d.log.Info("the full-text index is being built, from the newest rows on, while rows go on being stored", "table", x.kept.String(), "rows", x.todo)
	}
	return nil
}

// indexRows puts rows that are new in a table into its index. It belongs into the transaction of the rows.
func (d *lite) indexRows(t table) *failure {
	x := d.tending.index.tables[t.name]
	if x == nil {
		return nil
	}
	column, id := quote(d.cfg.FullText), quote(x.kept.rowid)
	return d.run("index the text", fmt.Sprintf("INSERT INTO %s(rowid, %s) SELECT %s, %[2]s FROM %[4]s WHERE %[3]s > coalesce((SELECT max(id) FROM %[5]s), ?)",
		x.sql(""), column, id, x.kept.sql(), x.sql("_docsize")), x.base)
}

// indexOlder puts some of the rows into an index that were there before it.
func (d *lite) indexOlder(now time.Time, _ bool) (worked bool, f *failure) {
	c := &d.tending.index
	for _, x := range c.tables {
		if !x.older {
			continue
		}
		c.rows = max(c.rows, indexRows)
		column, id := quote(d.cfg.FullText), quote(x.kept.rowid)
		// FTS5 wants them in rising order.
		began := time.Now()
		f := d.run("index older text", fmt.Sprintf("INSERT INTO %s(rowid, %s) SELECT * FROM (SELECT %s, %[2]s FROM %[4]s WHERE %[3]s < coalesce((SELECT min(id) FROM %[5]s), ?) ORDER BY %[3]s DESC LIMIT ?) ORDER BY 1",
			x.sql(""), column, id, x.kept.sql(), x.sql("_docsize")), x.base+1, c.rows)
		if f != nil {
			x.older = f.class == temp // else at the next connection
			return false, f
		}
		n := int64(d.conn.Changes())
		if x.todo = max(x.todo-n, 0); n < c.rows {
			x.older, x.todo = false, 0
			d.log.Info("the full-text index is complete", "table", x.kept.String())
		}
		c.rows = adapt(c.rows, time.Since(began), indexRows, indexMost)
		return true, nil
	}
	return false, nil
}

// metBroken makes of a damaged index what passes: the next connection makes it anew.
func (d *lite) metBroken(f *failure) {
	if d.cfg.FullText == "" || f.code != sqlite.ResultCorruptVTab.String() {
		return
	}
	d.log.Warn("the full-text index is damaged; it is built anew", "error", f)
	d.tending.index.broken = true
	f.class = down
}
