package sqlstore

import (
	"context"
	"slices"
	"strings"

	"github.com/weirlog/weir/router"
)

// A pgTable is one table of a destination: what is known of it, and its part in
// the transaction under way.
type pgTable struct {
	table
	catalogue
	open   bool // it is there, and the catalogue was read, on this connection
	proven bool // a row was stored under the catalogue
	form   form
	forced form   // no faster one works on this connection
	insert string // the statement of form insertRows

	turn   int     // the last transaction with rows for it
	mine   []int32 // messages of that transaction, by index
	stored int     // rows of it that went in
	bad    int     // of postgres.bad, the first that is its own; refused rows of a table lie together
}

// pgTables is what a destination knows of its tables, and how a transaction is
// divided among them.
type pgTables struct {
	known    map[string]*pgTable // by name; of a template, those that were in use lately
	families families            // of a template
	turn     int                 // number of the transaction
	parts    []*pgTable          // with rows in it, by name
	surplus  []int32             // messages for whose table there is no room
	lone     []int32             // of one message
	rendered []byte
}

func (d *postgres) newTable(name string) *pgTable {
	t := &pgTable{table: table{d.table.schema, name}}
	d.known[name] = t
	return t
}

// assign says which table each message goes into, and opens those that are not
// open. A table is made and altered before the transaction: DDL in it would hold
// everybody else up.
func (d *postgres) assign(ctx context.Context, msgs []*router.Message) error {
	d.turn++
	d.parts, d.surplus = d.parts[:0], d.surplus[:0]
	var t *pgTable
	for i, m := range msgs {
		if d.naming.fixed == "" {
			d.rendered = d.naming.append(d.rendered[:0], m)
			if t = d.known[string(d.rendered)]; t == nil {
				if !d.families.admit(m) {
					d.surplus = append(d.surplus, int32(i))
					continue
				}
				d.forgetIdle()
				t = d.newTable(string(d.rendered))
			}
		} else if t == nil {
			t = d.known[d.naming.fixed]
		}
		if t.turn != d.turn {
			t.turn, t.mine = d.turn, t.mine[:0]
			d.parts = append(d.parts, t)
		}
		t.mine = append(t.mine, int32(i))
	}
	// All weirs lock tables in the same order.
	slices.SortFunc(d.parts, func(a, b *pgTable) int { return strings.Compare(a.name, b.name) })
	return d.openParts(ctx)
}

// openParts opens what is not open of the transaction's tables.
func (d *postgres) openParts(ctx context.Context) error {
	for _, t := range d.parts {
		if !t.open {
			if err := d.open(ctx, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// open makes the table when it is missing, and reads its definition.
func (d *postgres) open(ctx context.Context, t *pgTable) error {
	if err := d.create(ctx, t); err != nil {
		return err
	}
	if err := d.readCatalogue(ctx, t); err != nil {
		return err
	}
	if err := d.openPartitions(ctx, t); err != nil {
		return err
	}
	t.open = true
	return nil
}

// closeTables says that nothing is known for sure any more.
func (d *postgres) closeTables() {
	for _, t := range d.known {
		t.open, t.forced = false, 0
	}
}

// forgetIdle makes room in known: half of the tables go, those that were not
// written into for the longest time.
func (d *postgres) forgetIdle() {
	if len(d.known) < d.cfg.maxTables()+100 {
		return
	}
	var idle []*pgTable
	for _, t := range d.known {
		if t.turn != d.turn {
			idle = append(idle, t)
		}
	}
	slices.SortFunc(idle, func(a, b *pgTable) int { return a.turn - b.turn })
	for _, t := range idle[:(len(idle)+1)/2] {
		delete(d.known, t.name)
	}
}

// findTables counts the tables that a template has made already.
func (d *postgres) findTables(ctx context.Context) error {
	if d.naming.fixed != "" {
		return nil
	}
	d.families.naming, d.families.most = &d.naming, d.cfg.maxTables()
	d.families.reset()
	schema := "current_schema()"
	if d.table.schema != "" {
		schema = literal(d.table.schema)
	}
	result, err := d.exec(ctx, `SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = `+schema+` AND c.relkind IN ('r', 'p', 'v', 'f') AND NOT c.relispartition AND (starts_with(c.relname::text, `+literal(d.naming.prefix)+
		`) OR starts_with(c.relname::text, `+literal("t_"+d.naming.prefix)+"))")
	if err != nil {
		return beforeRows(pgFailure("list the tables", err))
	}
	for _, r := range result.Rows {
		d.families.found(string(r[0]))
	}
	return nil
}
