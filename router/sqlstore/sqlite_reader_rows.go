package sqlstore

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"zombiezen.com/go/sqlite"

	"github.com/weirlog/weir/router"
)

// ready makes sure that conn sees what the path leads to, and that it is interrupted with ctx.
func (d *liteReader) ready(ctx context.Context) error {
	if !d.current() {
		d.close()
		if err := d.open(ctx); err != nil {
			return err
		}
	}
	d.conn.SetInterrupt(ctx.Done())
	return ctx.Err()
}

// exec runs a statement. fn returns false when it wants no more rows.
func (d *liteReader) exec(ctx context.Context, attempt, sql string, args []any, fn func(*sqlite.Stmt) (more bool)) error {
	if err := d.ready(ctx); err != nil {
		return err
	}
	stmt, err := d.conn.Prepare(sql)
	if err != nil {
		return d.failed(attempt, err)
	}
	defer stmt.Reset() // the end of the transaction
	for i, a := range args {
		switch a := a.(type) {
		case int64:
			stmt.BindInt64(i+1, a)
		case int:
			stmt.BindInt64(i+1, int64(a))
		case float64:
			stmt.BindFloat(i+1, a)
		case blob:
			stmt.BindBytes(i+1, []byte(a))
		case string:
			stmt.BindText(i+1, a)
		}
	}
	for {
		row, err := stmt.Step()
		if err != nil {
			return d.failed(attempt, err)
		}
		if !row || !fn(stmt) {
			return nil
		}
	}
}

func (d *liteReader) schemaName() string { return cmp.Or(d.schema, "main") }

func (d *liteReader) list(ctx context.Context) (names []string, err error) {
	err = d.exec(ctx, "list the tables of", "SELECT name, sql FROM "+quote(d.schemaName())+".sqlite_schema WHERE type IN ('table', 'view') ORDER BY name", nil, func(s *sqlite.Stmt) bool {
		name := s.ColumnText(0)
		if !slices.ContainsFunc(reserved, func(r string) bool { return strings.HasPrefix(name, r) }) {
			names = append(names, name)
		}
		return true
	})
	return names, err
}

func (d *liteReader) describe(ctx context.Context, name table) (*seen, error) {
	name.schema = d.schema
	t := &seen{table: name}
	attempt := "look at table " + name.String() + " of"
	view, withoutRowid := false, false
	err := d.exec(ctx, attempt, "SELECT type = 'view', wr FROM pragma_table_list(?) WHERE schema = ?", []any{name.name, d.schemaName()}, func(s *sqlite.Stmt) bool {
		view, withoutRowid = s.ColumnBool(0), s.ColumnBool(1)
		return true
	})
	if err != nil {
		return nil, err
	}
	err = d.exec(ctx, attempt, `SELECT name, type, "notnull", pk FROM pragma_table_xinfo(?, ?) WHERE hidden <> 1`, []any{name.name, d.schemaName()}, func(s *sqlite.Stmt) bool {
		c := seenColumn{name: s.ColumnText(0), lite: parseLiteType(s.ColumnText(1)), null: !s.ColumnBool(2)}
		c.json = c.lite.kind == liteJSON
		t.kept = t.kept || s.ColumnInt(3) == 1 && strings.EqualFold(s.ColumnText(1), "INTEGER")
		t.columns = append(t.columns, c)
		return true
	})
	if err != nil || len(t.columns) == 0 {
		return nil, err
	}
	if !view && !withoutRowid {
		for _, word := range []string{"rowid", "_rowid_", "oid"} {
			if t.index(word) < 0 {
				t.rowid = word
				break
			}
		}
	}
	t.assign(d.cfg)
	return t, d.choose(ctx, t)
}

// choose finds out in which order t can be walked through without sorting it.
func (d *liteReader) choose(ctx context.Context, t *seen) error {
	if t.time < 0 {
		if t.order = unordered; t.rowid != "" {
			t.order = byRowID
		}
		return nil
	}
	sql, args := t.liteRows(&Look{}, piece{back: true}, 0, 1)
	plan, err := d.plan(ctx, sql, args)
	if err != nil || !strings.Contains(plan, "TEMP B-TREE") {
		return err
	}
	column := t.columns[t.time].name
	what := fmt.Sprintf("table %s has no index on %s", t, column)
	index := quote(t.name + "_" + column + "_idx")
	if t.schema != "" {
		index = quote(t.schema) + "." + index
	}
	way := fmt.Sprintf("CREATE INDEX %s ON %s (%s)", index, quote(t.name), quote(column))
	if t.rowid == "" {
		t.order = bySorting
		t.slow = what + ": all of it is sorted for each answer; " + way
		return nil
	}
	t.order = byRowID
	t.slow = what + ": rows are shown in the order in which they were stored, and all of them are looked at to find those of a time; " + way
	return nil
}

// plan is how SQLite would run a statement.
func (d *liteReader) plan(ctx context.Context, sql string, args []any) (string, error) {
	var lines []string
	err := d.exec(ctx, "plan a query of", "EXPLAIN QUERY PLAN "+sql, args, func(s *sqlite.Stmt) bool {
		lines = append(lines, s.ColumnText(3))
		return true
	})
	return strings.Join(lines, "\n"), err
}

// liteOrder is the expression by which rows are ordered.
func (t *seen) liteOrder() string {
	if t.order == byRowID {
		return t.rowid
	}
	return quote(t.columns[t.time].name)
}

// litePiece is the condition for being in p.
func (t *seen) litePiece(p piece) (conditions []string, args []any) {
	by := t.liteOrder()
	switch {
	case p.null:
		return []string{by + " IS NULL"}, nil
	case p.low == nil && p.high == nil && t.mayBeNull():
		conditions = append(conditions, by+" IS NOT NULL")
	}
	add := func(op string, at key) {
		if at != nil {
			conditions, args = append(conditions, by+" "+op+" ?"), append(args, any(at))
		}
	}
	add(map[bool]string{false: ">=", true: ">"}[p.above], p.low)
	add(map[bool]string{false: "<", true: "<="}[p.upTo], p.high)
	return conditions, args
}

// liteRows is the statement for the rows of p that q wants.
func (t *seen) liteRows(q *Look, p piece, skip, limit int) (sql string, args []any) {
	conditions, args := t.litePiece(p)
	more, values := t.liteFilter(q)
	conditions, args = append(conditions, more...), append(args, values...)
	var b strings.Builder
	fmt.Fprintf(&b, "SELECT %s, %s, %s FROM %s", cmp.Or(t.rowid, "NULL"), t.liteOrder(), quoteAll(t.names), t.sql())
	if len(conditions) > 0 {
		b.WriteString(" WHERE " + strings.Join(conditions, " AND "))
	}
	back := ""
	if p.back {
		back = " DESC"
	}
	fmt.Fprintf(&b, " ORDER BY %s%s", t.liteOrder(), back)
	if t.rowid != "" && t.order != byRowID {
		fmt.Fprintf(&b, ", %s%s", t.rowid, back)
	}
	b.WriteString(" LIMIT ? OFFSET ?")
	return b.String(), append(args, limit, skip)
}

// liteFilter are the conditions of q. They are written so that no index of another column is used for them: that would mean to sort.
func (t *seen) liteFilter(q *Look) (conditions []string, args []any) {
	add := func(condition string, values ...any) {
		conditions, args = append(conditions, condition), append(args, values...)
	}
	text := func(key router.Key) string {
		return "CAST(coalesce(" + quote(t.columns[t.role(key)].name) + ", '') AS TEXT)"
	}
	if t.order == byRowID && t.time >= 0 {
		by := "+" + quote(t.columns[t.time].name)
		if !q.Since.IsZero() {
			add(by+" >= ?", t.moment(q.Since))
		}
		if !q.Until.IsZero() {
			add(by+" < ?", t.moment(q.Until))
		}
	}
	if q.Severities != 0 {
		c := &t.columns[t.role(router.KeySeverity)]
		switch c.lite.kind {
		case liteInteger, liteReal, liteNumber:
			add("+" + quote(c.name) + " IN (" + severityNumbers(q.Severities) + ")")
		default:
			add("lower(" + text(router.KeySeverity) + ") IN ('" + strings.Join(severityTexts(q.Severities), "', '") + "')")
		}
	}
	globs := func(key router.Key, list []string, op string, pattern func(string) string) {
		if len(list) == 0 {
			return
		}
		var some []string
		for _, g := range list {
			some, args = append(some, text(key)+" "+op), append(args, pattern(g))
		}
		conditions = append(conditions, oneOf(some))
	}
	globs(router.KeyHostname, q.Hosts, `LIKE ? ESCAPE '\'`, likePattern)
	globs(router.KeyAppName, q.Apps, "GLOB ?", liteGlob)
	switch {
	case q.Text == "":
	case q.Fold:
		add(text(router.KeyMessage)+` LIKE ? ESCAPE '\'`, "%"+strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(q.Text)+"%")
	default:
		add("instr("+text(router.KeyMessage)+", ?) > 0", q.Text)
	}
	return conditions, args
}

func (d *liteReader) boundary(ctx context.Context, t *seen, p piece, n int) (at key, ok bool, err error) {
	sql, args := t.liteBoundary(p, n)
	err = d.exec(ctx, "read "+t.String()+" of", sql, args, func(s *sqlite.Stmt) bool {
		at, ok = liteKey(s, 0), true
		return false
	})
	return at, ok, err
}

func (t *seen) liteBoundary(p piece, n int) (sql string, args []any) {
	conditions, args := t.litePiece(p)
	by := t.liteOrder()
	sql = "SELECT " + by + " FROM " + t.sql()
	if len(conditions) > 0 {
		sql += " WHERE " + strings.Join(conditions, " AND ")
	}
	sql += " ORDER BY " + by
	if p.back {
		sql += " DESC"
	}
	return sql + " LIMIT 1 OFFSET ?", append(args, n)
}

func (d *liteReader) rows(ctx context.Context, t *seen, q *Look, p piece, skip, limit int, fn func(key, *Row) bool) error {
	sql, args := t.liteRows(q, p, skip, limit)
	return d.exec(ctx, "read "+t.String()+" of", sql, args, func(s *sqlite.Stmt) bool { return fn(liteKey(s, 1), t.liteRow(s, q.Regexp)) })
}

// liteRow makes a row of what liteRows selects; nil when re does not want it.
func (t *seen) liteRow(s *sqlite.Stmt, re *regexp.Regexp) *Row {
	if re != nil && !re.MatchString(s.ColumnText(2+t.role(router.KeyMessage))) {
		return nil
	}
	row := &Row{t: t, id: s.ColumnInt64(0), Values: make([]Value, len(t.columns))}
	for i := range row.Values {
		row.Values[i], _ = liteValue(s, i+2, nil)
		if t.columns[i].json && row.Values[i].Kind == TextValue {
			row.Values[i].Kind = JSONValue
		}
	}
	return row
}

func liteKey(s *sqlite.Stmt, i int) key {
	switch s.ColumnType(i) {
	case sqlite.TypeInteger:
		return s.ColumnInt64(i)
	case sqlite.TypeFloat:
		return s.ColumnFloat(i)
	case sqlite.TypeText:
		return s.ColumnText(i)
	case sqlite.TypeBlob:
		v, _ := liteValue(s, i, nil)
		return blob(v.Text)
	}
	return nil
}

func (d *liteReader) end(ctx context.Context, t *seen, before key) (id int64, at key, some bool, err error) {
	by, where := "NULL", ""
	var args []any
	if t.time >= 0 {
		by = quote(t.columns[t.time].name)
	}
	if before != nil {
		where, args = " WHERE +"+by+" <= ?", []any{before}
	}
	err = d.exec(ctx, "read "+t.String()+" of", fmt.Sprintf("SELECT %s, %s FROM %s%s ORDER BY %[1]s DESC LIMIT 1", t.rowid, by, t.sql(), where), args, func(s *sqlite.Stmt) bool {
		id, at, some = s.ColumnInt64(0), liteKey(s, 1), true
		return false
	})
	return id, at, some, err
}

func (d *liteReader) after(ctx context.Context, t *seen, q *Look, id, to int64, limit int, fn func(key, *Row) bool) error {
	stored := *t
	stored.order = byRowID
	sql, args := stored.liteRows(q, piece{low: id, above: true, high: to, upTo: true}, 0, limit)
	return d.exec(ctx, "read "+t.String()+" of", sql, args, func(s *sqlite.Stmt) bool { return fn(liteKey(s, 1), t.liteRow(s, q.Regexp)) })
}

func (d *liteReader) news(ctx context.Context) (n news, err error) {
	before, now := d.told, liteVersion{}
	for _, v := range []struct {
		pragma string
		is     *int64
	}{{"data_version", &now.data}, {"schema_version", &now.schema}} {
		if err := d.exec(ctx, "look at", "PRAGMA "+quote(d.schemaName())+"."+v.pragma, nil, func(s *sqlite.Stmt) bool { *v.is = s.ColumnInt64(0); return false }); err != nil {
			return n, err
		}
	}
	now.file = d.file // each connection has one of its own
	d.told = now
	return news{rows: now != before, tables: now.file != before.file || now.schema != before.schema, replaced: before.file != nil && !os.SameFile(before.file, now.file)}, nil
}
