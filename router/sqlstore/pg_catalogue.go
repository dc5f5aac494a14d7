package sqlstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/weirlog/weir/router"
)

// A catalogue is what the server says about the table. It is read at connect,
// and again when its fingerprint has changed: each transaction first takes the
// lock that COPY would take, then compares. So a column cannot change its type
// between the encoding of a value and its arrival. (Binary COPY of eight bytes
// of a time into a column that has become bigint would succeed.)
type catalogue struct {
	print    string
	names    []string // of all columns
	types    []pgType // of ours
	kind     byte     // relkind
	lockable bool     // LOCK TABLE works on that kind
	binary   bool     // every column has a known binary form
	deferred bool     // some constraint is checked at COMMIT
	secured  bool     // row-level security is active
}

// printSQL asks for everything whose change may change what happens to a row of
// the table that an expression names: the table, its columns and their domains, constraints,
// indexes, triggers and their functions, policies, rules, partitions of all levels.
func printSQL(name string) string {
	return `SELECT concat_ws(' ', c.oid, c.xmin,
 (SELECT string_agg(a.xmin::text, ' ' ORDER BY a.attnum) FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0),
 (SELECT string_agg(n.xmin::text, ' ' ORDER BY n.oid) FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_constraint n ON n.contypid = a.atttypid WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
 (SELECT string_agg(n.xmin::text, ' ' ORDER BY n.oid) FROM pg_catalog.pg_constraint n WHERE n.conrelid = c.oid),
 (SELECT string_agg(x.xmin::text, ' ' ORDER BY x.indexrelid) FROM pg_catalog.pg_index x WHERE x.indrelid = c.oid),
 (SELECT string_agg(g.xmin || '.' || f.xmin, ' ' ORDER BY g.oid) FROM pg_catalog.pg_trigger g JOIN pg_catalog.pg_proc f ON f.oid = g.tgfoid WHERE g.tgrelid = c.oid),
 CASE WHEN c.relrowsecurity THEN (SELECT string_agg(p.xmin::text, ' ' ORDER BY p.oid) FROM pg_catalog.pg_policy p WHERE p.polrelid = c.oid) END,
 CASE WHEN c.relhasrules THEN (SELECT string_agg(r.xmin::text, ' ' ORDER BY r.oid) FROM pg_catalog.pg_rewrite r WHERE r.ev_class = c.oid) END,
 CASE WHEN c.relhassubclass THEN (WITH RECURSIVE p AS (SELECT i.inhrelid, i.xmin AS x FROM pg_catalog.pg_inherits i WHERE i.inhparent = c.oid
  UNION ALL SELECT i.inhrelid, i.xmin FROM p JOIN pg_catalog.pg_inherits i ON i.inhparent = p.inhrelid) SELECT md5(string_agg(p.inhrelid || '.' || p.x, ' ' ORDER BY p.inhrelid)) FROM p) END)
 FROM pg_catalog.pg_class c WHERE c.oid = ` + name + `::regclass`
}

// columnsSQL asks for the columns. Domains are followed down to the type under them.
func columnsSQL(name string) string {
	return `WITH RECURSIVE t AS (
 SELECT a.attnum, a.attname, a.atttypid AS typ, a.atttypmod AS mod, a.attnotnull, a.atthasdef, a.attgenerated, a.attidentity,
  pg_catalog.format_type(a.atttypid, a.atttypmod) AS words, pg_catalog.format_type(a.atttypid, -1) AS plain, 0 AS level
  FROM pg_catalog.pg_attribute a WHERE a.attrelid = ` + name + `::regclass AND a.attnum > 0 AND NOT a.attisdropped
 UNION ALL
 SELECT t.attnum, t.attname, y.typbasetype, y.typtypmod, t.attnotnull, t.atthasdef OR y.typdefault IS NOT NULL, t.attgenerated, t.attidentity,
  t.words, t.plain, t.level + 1 FROM t JOIN pg_catalog.pg_type y ON y.oid = t.typ WHERE y.typtype = 'd')
SELECT DISTINCT ON (t.attnum) t.attname, t.typ, t.mod, t.attnotnull, t.atthasdef, t.attgenerated, t.attidentity, t.words, y.typtype, y.typname, t.plain
 FROM t JOIN pg_catalog.pg_type y ON y.oid = t.typ ORDER BY t.attnum, t.level DESC`
}

// readCatalogue reads the table's columns and compares them with ours. What
// does not fit is an error that needs an operator.
func (d *postgres) readCatalogue(ctx context.Context, t *pgTable) error {
	missing, err := d.compare(ctx, t)
	if err != nil || len(missing) == 0 {
		return err
	}
	if d.cfg.Alter && (t.kind == 'r' || t.kind == 'p') {
		if err := d.alter(ctx, t, missing); err != nil {
			return err
		}
		if missing, err = d.compare(ctx, t); err != nil || len(missing) == 0 {
			return err
		}
	}
	return router.NeedsOperator(fmt.Errorf("table %s has no column %s (it has %s): %s", t, missing[0].name, strings.Join(t.names, ", "), alterSQL(t.table, missing)))
}

// compare reads the table's columns, and returns those of ours that it lacks.
func (d *postgres) compare(ctx context.Context, t *pgTable) (missing []*column, err error) {
	attempt := "read the columns of " + t.String()
	name := literal(t.sql())
	// Together, for one round trip. The fingerprint comes first: what is changed after it is read again.
	results, err := d.execAll(ctx, printSQL(name)+`; SELECT c.relkind, pg_catalog.row_security_active(c.oid),
 EXISTS (SELECT FROM pg_catalog.pg_trigger g WHERE g.tgrelid = c.oid AND g.tgdeferrable)
 FROM pg_catalog.pg_class c WHERE c.oid = `+name+`::regclass; `+columnsSQL(name))
	if err != nil {
		return nil, beforeRows(pgFailure(attempt, err))
	}
	if len(results) != 3 || len(results[0].Rows) != 1 || len(results[1].Rows) != 1 {
		return nil, fmt.Errorf("%s: it has gone", attempt)
	}
	next, about := catalogue{print: string(results[0].Rows[0][0])}, results[1].Rows[0]
	next.kind = about[0][0]
	next.lockable = next.kind == 'r' || next.kind == 'p'
	next.secured = string(about[1]) == "t"
	next.deferred = string(about[2]) == "t"
	next.types = make([]pgType, len(d.columns))
	next.binary = true
	found := make([]bool, len(d.columns))
	var missed []string
	var bad []error
	for _, r := range results[2].Rows {
		name, notNull, fallback := string(r[0]), string(r[3]) == "t", string(r[4]) == "t"
		next.names = append(next.names, name)
		i := d.indexOf(name)
		if i < 0 {
			if notNull && !fallback && len(r[5]) == 0 && len(r[6]) == 0 {
				missed = append(missed, name)
			}
			continue
		}
		if len(r[5]) > 0 || string(r[6]) == "a" {
			bad = append(bad, generated(t.table, name))
		}
		oid, _ := strconv.ParseUint(string(r[1]), 10, 32)
		mod, _ := strconv.Atoi(string(r[2]))
		typ := &next.types[i]
		*typ = parsePgType(uint32(oid), mod, string(r[8]), string(r[9]))
		typ.words, typ.plain, typ.notNull = string(r[7]), string(r[10]), notNull
		c := &d.columns[i]
		typ.sure = typ.kind == c.pgKind() && typ.long == lengthIn(c.pgDeclared())
		if typ.kind == pgOther || typ.isTime() && (c.natural() != cellTime || c.other.kind != cellNull) {
			next.binary = false // the server reads more kinds of time than weir
			typ.serverReads = true
		}
		found[i] = true
	}
	for i, ok := range found {
		if !ok {
			missing = append(missing, &d.columns[i])
		}
	}
	if err := unfit(t.table, missed, bad); err != nil {
		return nil, err
	}
	t.proven = t.proven && t.print == next.print
	t.catalogue, t.insert = next, ""
	d.choose(t)
	return missing, nil
}

// indexOf is the place of the column of exactly that name among ours, or -1.
func (d *postgres) indexOf(name string) int {
	for i := range d.columns {
		if d.columns[i].name == name {
			return i
		}
	}
	return -1
}

// choose takes the fastest form in which rows can be sent, unless a slower one
// was found to be needed on this connection.
func (d *postgres) choose(t *pgTable) {
	best := copyBinary
	switch {
	case t.kind == 'v' || t.secured || d.cfg.autocommit(): // COPY FROM works on neither
		best = insertRows
	case d.cfg.OnConflict != nil:
		best = insertRows
	case !t.binary:
		best = copyText
	}
	t.form = max(t.forced, best)
}

// form is how rows go to the server.
type form uint8

const (
	copyBinary form = iota
	copyText
	insertRows
)
