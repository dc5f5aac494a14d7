package sqlstore

import (
	"context"
	"errors"
	"regexp"
	"slices"
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
		d.assign(msgs)
		for single, again := false, true; again; single = true {
			d.s.repaired = 0
			again, err = d.transaction(span, msgs, single, reject)
		}
		d.tidy()
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
	if err := d.beginOn(d.touched); err != nil {
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
	for _, t := range d.touched {
		t.stored = 0
		f := d.rows(t, msgs, single || t.single, known)
		if f != nil && f.class == row && d.conn.AutocommitEnabled() {
			return true, nil
		}
		if f != nil {
			return false, d.abort(f)
		}
		if t.blamed() && !d.cfg.rejectSchemaErrors() {
			d.abort(nil)
			return false, held(t.table, t.doubtful, len(t.pending))
		}
		if f := d.indexRows(t.table); f != nil {
			return false, d.abort(f)
		}
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
			if len(msgs) == 1 && len(d.touched) == 1 && !d.touched[0].proven && !d.cfg.rejectSchemaErrors() {
				f.class = operator
			}
			return false, router.Permanent(d.abort(f))
		}
		return false, d.abort(f)
	}
	for _, t := range d.touched {
		t.proven = t.proven || t.stored > 0
	}
	if span != nil {
		d.positions.at, d.positions.cached = span.To, true
	}
	return false, nil
}

// beginOn opens the transaction, for tables as they are now.
func (d *lite) beginOn(tables []*liteTable) error {
	version, err := d.schemaVersion()
	for range 5 {
		for _, t := range tables {
			if err == nil && t.version != version {
				if err = d.openTable(t); err == nil {
					version = t.version
				}
			}
		}
		if err != nil {
			d.drop()
			return err
		}
		if f := d.step("begin", d.begin); f != nil {
			return d.abort(notRows(f))
		}
		if version, err = d.schemaVersion(); err == nil && !slices.ContainsFunc(tables, func(t *liteTable) bool { return t.version != version }) {
			return nil
		}
		d.abort(nil)
	}
	return errors.New("begin: the definitions of the tables keep changing")
}

// rows inserts the messages that go into t, without the first known of d.bad.
// Refused rows are added to d.bad.
func (d *lite) rows(t *liteTable, msgs []*router.Message, single bool, known int) *failure {
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
	for i := 0; i < len(t.pending) || len(d.slots) > 0; {
		var stmt *sqlite.Stmt
		for {
			if n := liteRows[size]; n == 1 || len(t.pending)-i+len(d.slots) >= n {
				var f *failure
				if stmt, f = d.statement(t, size); f != nil {
					return f
				}
				if stmt != nil {
					break
				}
			}
			size++
		}
		n := liteRows[size]
		// What is bound for a statement that could not be filled goes into smaller ones.
		if pending := d.slots; len(pending) > 0 {
			d.slots = d.slots[:0]
			for _, j := range pending {
				counted := d.s.repaired
				f := d.insertOne(t, msgs, j)
				d.s.repaired = counted // at its first binding
				if f != nil {
					return f
				}
			}
			continue
		}
		for ; i < len(t.pending) && len(d.slots) < n; i++ {
			at := t.pending[i]
			if known > 0 && skip(at) {
				continue
			}
			if r := d.bind(t, stmt, len(d.slots), msgs[at]); r != nil {
				d.refuse(t, at, *r)
				continue
			}
			d.slots = append(d.slots, at)
		}
		if len(d.slots) < n {
			continue
		}
		f := d.step("insert", stmt)
		if f == nil {
			t.stored += n
			d.slots = d.slots[:0]
			continue
		}
		if f.class != row && f.class != suspect || d.conn.AutocommitEnabled() && n > 1 {
			return f
		}
		if n == 1 {
			d.refuse(t, d.slots[0], d.refusal(t, f))
			d.slots = d.slots[:0]
			if d.conn.AutocommitEnabled() {
				return f
			}
		}
		// Otherwise the statement is undone, the transaction open: its rows one by
		// one, in the next turn.
	}
	return nil
}

// insertOne inserts message i alone.
func (d *lite) insertOne(t *liteTable, msgs []*router.Message, i int) *failure {
	stmt := t.insert[len(liteRows)-1]
	if r := d.bind(t, stmt, 0, msgs[i]); r != nil {
		d.refuse(t, i, *r)
		return nil
	}
	f := d.step("insert", stmt)
	if f == nil {
		t.stored++
		return nil
	}
	if f.class != row && f.class != suspect {
		return f
	}
	d.refuse(t, i, d.refusal(t, f))
	if d.conn.AutocommitEnabled() && !d.cfg.autocommit() {
		return f
	}
	return nil
}

var quoted = regexp.MustCompile(`'[^']*'|"[^"]*"|near .*`)

// refusal is what SQLite has against a row, without the row's values.
func (d *lite) refusal(t *liteTable, f *failure) refusal {
	d.metrics.refused.Inc()
	words := strings.TrimSuffix(strings.TrimPrefix(f.Error(), "insert: "), " ("+f.code+")")
	r := refusal{code: f.code, column: columnIn(words), reason: words}
	switch f.code {
	case "SQLITE_CONSTRAINT_TRIGGER":
		if !strings.Contains(t.triggers, "'"+strings.ReplaceAll(words, "'", "''")+"'") {
			r.reason = "a trigger refuses it" // in words that it makes of values
		}
	case "SQLITE_ERROR":
		r.reason = quoted.ReplaceAllString(words, "…") // may be a value
	case "SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_ROWID":
		r.sure = true // there is a row of that key, so the table takes rows
	}
	return r
}

func (d *lite) refuse(t *liteTable, i int, r refusal) {
	d.bad = append(d.bad, refused{i, r})
	if !r.sure && t.doubtful == nil {
		t.doubtful = &refused{i, r}
	}
}

// blamed reports whether the table, not the rows, may be what refuses them, as postgres.unproven does.
func (t *liteTable) blamed() bool { return !t.proven && t.stored == 0 && t.doubtful != nil }

// bind gives the values of m to row slot of stmt.
func (d *lite) bind(t *liteTable, stmt *sqlite.Stmt, slot int, m *router.Message) *refusal {
	d.s.reset()
	p := slot * len(d.columns)
	for i := range d.columns {
		v := d.columns[i].cell(m, &d.s)
		if why := t.types[i].bind(stmt, p+i+1, v, &d.s); why != "" {
			return &refusal{code: sqlite.ResultMismatch.String(), column: d.columns[i].name, reason: "the value " + why, sure: t.sure[i]}
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
	t := d.tables[0]
	version, err := d.schemaVersion()
	if err == nil && version != t.version {
		err = d.openTable(t)
	}
	if err != nil {
		d.drop()
		return err
	}
	d.auto.begin(msgs)
	start, known := d.auto.next, len(d.auto.bad)
	d.bad = append(d.bad[:0], d.auto.bad...)
	t.doubtful, t.stored = nil, 0
	for i := start; i < len(msgs); i++ {
		if f := d.insertOne(t, msgs, i); f != nil {
			d.auto.stop(msgs, i, d.bad)
			return d.abort(f)
		}
		t.proven = t.proven || t.stored > 0
	}
	if f := d.indexRows(t.table); f != nil {
		d.auto.stop(msgs, len(msgs), d.bad)
		return d.abort(f)
	}
	if t.blamed() && !d.cfg.rejectSchemaErrors() {
		d.auto.stop(msgs, start, d.bad[:known])
		return held(t.table, t.doubtful, len(msgs)-start)
	}
	return d.auto.finish(msgs, d.bad, reject)
}
