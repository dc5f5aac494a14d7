package sqlstore

import (
	"context"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirlog/weir/router"
)

// exec runs one statement in a read-only transaction. The values of a row are lent to fn as text; fn returns false when
// it wants no more of them.
func (d *pgReader) exec(ctx context.Context, attempt, sql string, fn func(fields []pgconn.FieldDescription, values [][]byte) (more bool)) error {
	if d.conn == nil || d.conn.IsClosed() {
		d.close()
		if err := d.open(ctx); err != nil {
			return err
		}
	}
	if d.cfg.Pooler {
		sql = d.begin + sql + "; COMMIT"
	}
	results := d.conn.Exec(ctx, sql)
	more := true
	for results.NextResult() {
		r := results.ResultReader()
		for r.NextRow() {
			if more {
				more = fn(r.FieldDescriptions(), r.Values())
			}
		}
		r.Close() // its error is that of results
	}
	if err := results.Close(); err != nil {
		if d.conn.TxStatus() != 'I' {
			d.close() // the transaction of a pooler
		}
		return d.failed(attempt, err)
	}
	return ctx.Err()
}

// schemaSQL is the schema of the destination's tables, as an expression.
func (d *pgReader) schemaSQL() string {
	if d.schema == "" {
		return "pg_catalog.current_schema()"
	}
	return literal(d.schema)
}

func (d *pgReader) list(ctx context.Context) (names []string, err error) {
	err = d.exec(ctx, "list the tables", `SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
 AND NOT c.relispartition AND `+d.reachable()+` ORDER BY c.relname`, func(_ []pgconn.FieldDescription, row [][]byte) bool {
		if name := string(row[0]); !slices.ContainsFunc(reserved, func(r string) bool { return strings.HasPrefix(name, r) }) {
			names = append(names, name)
		}
		return true
	})
	return names, err
}

// reachable is the condition that a table is what its bare name means, or is in the schema that is named.
func (d *pgReader) reachable() string {
	if d.schema == "" {
		return "n.nspname NOT IN ('pg_catalog', 'information_schema') AND pg_catalog.pg_table_is_visible(c.oid)"
	}
	return "n.nspname = " + literal(d.schema)
}

func (d *pgReader) describe(ctx context.Context, name table) (*seen, error) {
	name.schema = d.schema
	t := &seen{table: name}
	attempt := "look at table " + t.String()
	relation := "pg_catalog.to_regclass(" + literal(t.sql()) + ")"
	kind := ""
	err := d.exec(ctx, attempt, "SELECT c.relkind FROM pg_catalog.pg_class c WHERE c.oid = "+relation, func(_ []pgconn.FieldDescription, row [][]byte) bool {
		kind = string(row[0])
		return true
	})
	if err != nil || kind == "" {
		return nil, err
	}
	err = d.exec(ctx, attempt, columnsSQL(literal(t.sql())), func(_ []pgconn.FieldDescription, row [][]byte) bool {
		oid, _ := strconv.ParseUint(string(row[1]), 10, 32)
		c := seenColumn{name: string(row[0]), pg: parsePgType(uint32(oid), -1, string(row[8]), string(row[9])), null: string(row[3]) != "t"}
		c.pg.words = string(row[7])
		t.columns = append(t.columns, c)
		return true
	})
	if err != nil || len(t.columns) == 0 {
		return nil, err
	}
	t.assign(d.cfg)
	return t, d.choose(ctx, t, kind)
}

// choose finds out whether rows come in order by themselves. Of views and foreign tables it cannot be known.
func (d *pgReader) choose(ctx context.Context, t *seen, kind string) error {
	if t.time < 0 {
		t.order = unordered
		return nil
	}
	isTable := strings.Contains("rpm", kind)
	// Rows of one moment need an order, for those that a page ends among. An incremental sort
	// gives it, which servers before 13 do not have.
	if major, _, _ := strings.Cut(d.conn.ParameterStatus("server_version"), "."); len(major) > 1 && major >= "13" {
		if t.ties = []string{"tableoid", "ctid"}; !isTable {
			t.ties = []string{"(" + quote(t.name) + ".*)::text"}
		}
	}
	if !isTable {
		return nil
	}
	c := t.columns[t.time]
	found := false
	err := d.exec(ctx, "look at the indexes of "+t.String(), `SELECT FROM pg_catalog.pg_index x JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid JOIN pg_catalog.pg_am m ON m.oid = i.relam
 JOIN pg_catalog.pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = x.indkey[0]
 WHERE x.indrelid = `+literal(t.sql())+`::regclass AND x.indisvalid AND x.indpred IS NULL AND m.amname = 'btree' AND a.attname = `+literal(c.name), func([]pgconn.FieldDescription, [][]byte) bool {
		found = true
		return false
	})
	if err != nil || found {
		return err
	}
	t.order = bySorting
	t.slow = fmt.Sprintf("table %s has no index on %s: all of it is sorted for each answer; CREATE INDEX ON %s (%s)", t, c.name, t.sql(), quote(c.name))
	return nil
}

// pgPiece is the condition for being in p.
func (t *seen) pgPiece(p piece) (conditions []string) {
	by := quote(t.columns[t.time].name)
	switch {
	case p.null:
		return []string{by + " IS NULL"}
	case p.low == nil && p.high == nil && t.mayBeNull():
		conditions = append(conditions, by+" IS NOT NULL")
	}
	add := func(op string, at key) {
		if at != nil {
			conditions = append(conditions, by+" "+op+literal(at.(string)))
		}
	}
	add(map[bool]string{false: ">=", true: ">"}[p.above], p.low)
	add(map[bool]string{false: "<", true: "<="}[p.upTo], p.high)
	return conditions
}

// pgRows is the statement for the rows of p that q wants.
func (t *seen) pgRows(q *Look, p piece, skip, limit int) string {
	conditions := append(t.pgPiece(p), t.pgFilter(q)...)
	sql := "SELECT " + quoteAll(t.names) + " FROM " + t.sql()
	if len(conditions) > 0 {
		sql += " WHERE " + strings.Join(conditions, " AND ")
	}
	by := append([]string{quote(t.columns[t.time].name)}, t.ties...)
	back := ""
	if p.back {
		back = " DESC"
	}
	return fmt.Sprintf("%s ORDER BY %s%s LIMIT %d OFFSET %d", sql, strings.Join(by, back+", "), back, limit, skip)
}

// pgFilter are the conditions of q, of the same meaning as in SQLite: the collation C knows the case of ASCII only.
func (t *seen) pgFilter(q *Look) (conditions []string) {
	text := func(key router.Key) string {
		return "coalesce(" + quote(t.columns[t.role(key)].name) + `::text, '') COLLATE "C"`
	}
	if q.Severities != 0 {
		c := &t.columns[t.role(router.KeySeverity)]
		switch c.pg.kind {
		case pgInt2, pgInt4, pgInt8, pgFloat4, pgFloat8:
			conditions = append(conditions, quote(c.name)+" IN ("+severityNumbers(q.Severities)+")")
		default:
			conditions = append(conditions, "lower("+text(router.KeySeverity)+") IN ('"+strings.Join(severityTexts(q.Severities), "', '")+"')")
		}
	}
	globs := func(key router.Key, list []string, op string) {
		var some []string
		for _, g := range list {
			some = append(some, text(key)+" "+op+literal(likePattern(g)))
		}
		if len(some) > 0 {
			conditions = append(conditions, oneOf(some))
		}
	}
	globs(router.KeyHostname, q.Hosts, "ILIKE")
	globs(router.KeyAppName, q.Apps, "LIKE")
	switch {
	case q.Text == "":
	case q.Fold:
		conditions = append(conditions, "strpos(lower("+text(router.KeyMessage)+"), "+literal(lowerASCII(q.Text))+") > 0")
	default:
		conditions = append(conditions, "strpos("+text(router.KeyMessage)+", "+literal(q.Text)+") > 0")
	}
	return conditions
}

func (t *seen) pgBoundary(p piece, n int) string {
	by := quote(t.columns[t.time].name)
	sql := "SELECT " + by + " FROM " + t.sql()
	if conditions := t.pgPiece(p); len(conditions) > 0 {
		sql += " WHERE " + strings.Join(conditions, " AND ")
	}
	sql += " ORDER BY " + by
	if p.back {
		sql += " DESC"
	}
	return fmt.Sprintf("%s LIMIT 1 OFFSET %d", sql, n)
}

func (d *pgReader) boundary(ctx context.Context, t *seen, p piece, n int) (at key, ok bool, err error) {
	err = d.exec(ctx, "read "+t.String(), t.pgBoundary(p, n), func(_ []pgconn.FieldDescription, row [][]byte) bool {
		if ok = row[0] != nil; ok {
			at = string(row[0])
		}
		return false
	})
	return at, ok, err
}

func (d *pgReader) rows(ctx context.Context, t *seen, q *Look, p piece, skip, limit int, fn func(key, *Row) bool) error {
	return d.exec(ctx, "read "+t.String(), t.pgRows(q, p, skip, limit), func(fields []pgconn.FieldDescription, values [][]byte) bool {
		var at key
		if v := values[t.time]; v != nil {
			at = string(v)
		}
		return fn(at, t.pgRow(fields, values, q.Regexp))
	})
}

// pgRow makes a row of what pgRows selects; nil when re does not want it.
func (t *seen) pgRow(fields []pgconn.FieldDescription, values [][]byte, re *regexp.Regexp) *Row {
	if re != nil && !re.Match(values[t.role(router.KeyMessage)]) {
		return nil
	}
	row := &Row{t: t, Values: make([]Value, len(values))}
	for i, v := range values {
		row.Values[i] = pgShown(fields[i].DataTypeOID, v)
	}
	return row
}

// pgShown is a value of the server's text form, which is lent.
func pgShown(oid uint32, text []byte) Value {
	v := pgValue(oid, slices.Clone(text))
	switch kind := pgKinds[oid]; {
	case text == nil:
		return Value{}
	case kind == pgBytea:
		if b, err := hex.DecodeString(strings.TrimPrefix(string(text), `\x`)); err == nil {
			v.Text = b
		}
	case kind == pgTimestamp || kind == pgTimestamptz:
		// A time before Christ, or infinity, stays as the server writes it.
		if at, ok := momentOf(v); ok {
			v.Text = []byte(microTime(at))
		}
	}
	return v
}

// Tables of PostgreSQL have no rowid.

func (d *pgReader) end(context.Context, *seen, key) (int64, key, bool, error) { panic("BUG: no rowid") }

func (d *pgReader) after(context.Context, *seen, *Look, int64, int64, int, func(key, *Row) bool) error {
	panic("BUG: no rowid")
}

// news asks for the snapshot, which is another one when any transaction that writes has begun or ended.
func (d *pgReader) news(ctx context.Context) (n news, err error) {
	now := ""
	ctx, cancel := context.WithTimeout(ctx, d.patience)
	defer cancel()
	err = d.exec(ctx, "look at the server", "SELECT pg_catalog.txid_current_snapshot()", func(_ []pgconn.FieldDescription, row [][]byte) bool {
		now = string(row[0])
		return false
	})
	n.rows = now != d.told
	d.told = now
	return n, err
}
