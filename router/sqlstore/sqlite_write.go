package sqlstore

import (
	"context"
	"strings"

	"zombiezen.com/go/sqlite"

	"github.com/weirlog/weir/router"
)

func (d *lite) write(ctx context.Context, span *router.Span, msgs []*router.Message, reject func([]router.Rejected) error) error {
	err := d.ready(ctx)
	if err != nil {
		return err
	}
	if d.cfg.autocommit() {
		err = d.writeEach(msgs, reject)
	} else {
		d.bad = d.bad[:0]
		again, single := true, d.single
		for ; again; single = true {
			d.s.repaired = 0
			again, err = d.transaction(span, msgs, single, reject)
		}
	}
	if err == nil {
		d.metrics.repaired.Add(float64(d.s.repaired))
	}
	d.s.repaired = 0
	return err
}

// ready makes sure that there is a connection to the file that is there now.
func (d *lite) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.conn != nil && d.moved() {
		d.log.Warn("the database file was moved or deleted; opening it anew", "file", d.path)
		d.drop()
	}
	if err := d.room(ctx); err != nil {
		return err
	}
	return d.connect(ctx)
}

// transaction stores msgs but for those in d.bad, to which it adds. again means
// that a row ended the whole transaction (ON CONFLICT ROLLBACK): it is in d.bad
// now, or is to be found row by row.
func (d *lite) transaction(span *router.Span, msgs []*router.Message, single bool, reject func([]router.Rejected) error) (again bool, err error) {
	if f := d.step("begin", d.begin); f != nil {
		return false, d.abort(f)
	}
	if err := d.refresh(); err != nil {
		d.abort(nil)
		d.drop() // the next connection makes a table that has gone
		return false, err
	}
	if span != nil {
		moved, f := d.movePosition(span)
		if f != nil {
			err := d.abort(f)
			d.drop() // the next connection makes a table that has gone
			return false, err
		}
		if !moved {
			d.positions.cached = false
			d.abort(nil)
			return false, router.ErrMoved
		}
	}
	known := len(d.bad)
	stored, f := d.rows(msgs, single, known)
	if f != nil && f.class == row && d.conn.AutocommitEnabled() {
		return true, nil
	}
	if f != nil {
		return false, d.abort(f)
	}
	if r := unproven(d.bad, d.proven || stored > 0); r != nil {
		d.abort(nil)
		return false, held(d.table, r, len(msgs))
	}
	if f := d.indexRows(d.table); f != nil {
		return false, d.abort(f)
	}
	if len(d.bad) > 0 {
		if err := reject(letters(msgs, d.bad)); err != nil {
			d.abort(nil)
			return false, err
		}
	}
	if f := d.step("commit", d.commit); f != nil {
		d.positions.cached, d.positions.doubt = false, f.class == down
		if f.class == row { // a deferred foreign key: SQLite does not say of which row
			if !d.proven && len(msgs) == 1 {
				f.class = operator
			}
			return false, router.Permanent(d.abort(f))
		}
		return false, d.abort(f)
	}
	d.proven = d.proven || stored > 0
	if span != nil {
		d.positions.at, d.positions.cached = span.To, true
	}
	return false, nil
}

// refresh reads the catalogue again when somebody has changed it.
func (d *lite) refresh() error {
	_, err := d.schema.Step()
	version := d.schema.ColumnInt64(0)
	d.schema.Reset()
	if err != nil {
		return liteFailure("read the schema's version", err).told()
	}
	if version == d.version {
		return nil
	}
	return d.readCatalogue()
}

// rows inserts msgs, without the first known of d.bad, and returns how many
// went in. Refused rows are added to d.bad.
func (d *lite) rows(msgs []*router.Message, single bool, known int) (stored int, f *failure) {
	skip := func(i int) bool {
		for _, r := range d.bad[:known] {
			if r.index == i {
				return true
			}
		}
		return false
	}
	size := 0
	if single {
		size = len(liteRows) - 1
	}
	d.slots = d.slots[:0]
	for i := 0; i < len(msgs) || len(d.slots) > 0; {
		for size < len(liteRows)-1 && (d.insert[size] == nil || len(msgs)-i+len(d.slots) < liteRows[size]) {
			size++
		}
		stmt, n := d.insert[size], liteRows[size]
		// What is bound for a statement that could not be filled goes into smaller ones.
		if pending := d.slots; len(pending) > 0 {
			d.slots = d.slots[:0]
			for _, j := range pending {
				counted := d.s.repaired
				f := d.insertOne(msgs, j, &stored)
				d.s.repaired = counted // at its first binding
				if f != nil {
					return stored, f
				}
			}
			continue
		}
		for ; i < len(msgs) && len(d.slots) < n; i++ {
			if known > 0 && skip(i) {
				continue
			}
			if r := d.bind(stmt, len(d.slots), msgs[i]); r != nil {
				d.bad = append(d.bad, refused{i, *r})
				continue
			}
			d.slots = append(d.slots, i)
		}
		if len(d.slots) < n {
			continue
		}
		f := d.step("insert", stmt)
		if f == nil {
			stored += n
			d.slots = d.slots[:0]
			continue
		}
		if f.class != row && f.class != suspect || d.conn.AutocommitEnabled() && n > 1 {
			return stored, f
		}
		if n == 1 {
			d.refuse(d.slots[0], f)
			d.slots = d.slots[:0]
			if d.conn.AutocommitEnabled() {
				return stored, f
			}
		}
		// Otherwise the statement is undone, the transaction open: its rows one by
		// one, in the next turn.
	}
	return stored, nil
}

// insertOne inserts message i alone.
func (d *lite) insertOne(msgs []*router.Message, i int, stored *int) *failure {
	stmt := d.insert[len(liteRows)-1]
	if r := d.bind(stmt, 0, msgs[i]); r != nil {
		d.bad = append(d.bad, refused{i, *r})
		return nil
	}
	f := d.step("insert", stmt)
	if f == nil {
		*stored++
		return nil
	}
	if f.class != row && f.class != suspect {
		return f
	}
	d.refuse(i, f)
	if d.conn.AutocommitEnabled() && !d.cfg.autocommit() {
		return f
	}
	return nil
}

func (d *lite) refuse(i int, f *failure) {
	d.metrics.refused.Inc()
	words := strings.TrimSuffix(strings.TrimPrefix(f.Error(), "insert: "), " ("+f.code+")")
	r := refusal{code: f.code, column: columnIn(words), reason: words}
	switch f.code {
	case "SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_ROWID":
		r.sure = true // there is a row of that key, so the table takes rows
	}
	d.bad = append(d.bad, refused{i, r})
}

// bind gives the values of m to row slot of stmt.
func (d *lite) bind(stmt *sqlite.Stmt, slot int, m *router.Message) *refusal {
	d.s.reset()
	p := slot * len(d.columns)
	for i := range d.columns {
		v := d.columns[i].cell(m, &d.s)
		if why := d.types[i].bind(stmt, p+i+1, v, &d.s); why != "" {
			return &refusal{code: sqlite.ResultMismatch.String(), column: d.columns[i].name, reason: "the value " + why, sure: d.sure[i]}
		}
	}
	return nil
}

// step runs a statement that returns no rows.
func (d *lite) step(attempt string, stmt *sqlite.Stmt) *failure {
	_, err := stmt.Step()
	if err == nil {
		err = stmt.Reset()
	}
	if err == nil {
		return nil
	}
	f := liteFailure(attempt, err)
	if attempt == "insert" && f.code == sqlite.ResultError.String() {
		f.class = suspect // a trigger's, a CHECK's or a generated column's: such as malformed JSON
	}
	return f
}

// abort ends the transaction, if there is still one, and returns f for the
// writer, if there is one.
func (d *lite) abort(f *failure) error {
	if !d.conn.AutocommitEnabled() {
		if g := d.step("rollback", d.rollback); g != nil {
			d.drop()
		}
	}
	if f == nil {
		return nil
	}
	d.metFull(f)
	d.metBroken(f)
	if f.class == down {
		d.drop()
	}
	return f.told()
}

// writeEach stores each row in a transaction of its own, as the database does
// by itself. A failed Write goes on where it stopped when it is tried again.
func (d *lite) writeEach(msgs []*router.Message, reject func([]router.Rejected) error) error {
	if err := d.refresh(); err != nil {
		d.drop()
		return err
	}
	d.auto.begin(msgs)
	start, known := d.auto.next, len(d.auto.bad)
	d.bad = append(d.bad[:0], d.auto.bad...)
	for i := start; i < len(msgs); i++ {
		stored := 0
		if f := d.insertOne(msgs, i, &stored); f != nil {
			d.auto.stop(msgs, i, d.bad)
			return d.abort(f)
		}
		d.proven = d.proven || stored > 0
	}
	if f := d.indexRows(d.table); f != nil {
		d.auto.stop(msgs, len(msgs), d.bad)
		return d.abort(f)
	}
	if r := unproven(d.bad[known:], d.proven); r != nil {
		d.auto.stop(msgs, start, d.bad[:known])
		return held(d.table, r, len(msgs)-start)
	}
	return d.auto.finish(msgs, d.bad, reject)
}
