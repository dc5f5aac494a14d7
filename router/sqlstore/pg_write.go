package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirlog/weir/router"
)

func (d *postgres) write(ctx context.Context, span *router.Span, msgs []*router.Message, reject func([]router.Rejected) error) error {
	if err := d.connect(ctx); err != nil {
		return err
	}
	d.span = span
	err := d.store(ctx, msgs, reject)
	d.idle = err == nil && d.conn != nil
	d.msgs, d.span, d.parts = nil, nil, d.parts[:0]
	return err
}

// first runs the first statement of a Write. Where the server ended the
// connection while nothing was to be written, it does so on a new one: nobody
// needs to hear of a server that was restarted meanwhile.
func (d *postgres) first(ctx context.Context, sql func() string) ([]*pgconn.Result, error) {
	results, err := d.execAll(ctx, sql())
	if err == nil || !d.idle || !d.conn.IsClosed() || ctx.Err() != nil {
		return results, err
	}
	d.drop()
	if err := d.connect(ctx); err != nil {
		return nil, finished{err}
	}
	if err := d.openParts(ctx); err != nil {
		return nil, finished{err}
	}
	return d.execAll(ctx, sql())
}

// finished is an error as the writer is to see it.
type finished struct{ error }

func (d *postgres) store(ctx context.Context, msgs []*router.Message, reject func([]router.Rejected) error) error {
	if d.cfg.autocommit() {
		return d.writeEach(ctx, msgs, reject)
	}
	if err := d.bound.check(len(msgs)); err != nil {
		return err
	}
	f, err := d.transaction(ctx, msgs, reject)
	if f == nil && err == nil {
		d.slow, d.misled = 0, 0
		d.bound.succeeded()
		d.metrics.repaired.Add(float64(d.s.repaired))
		return nil
	}
	if err == nil {
		err = d.judge(ctx, f, len(msgs))
	}
	d.rollback(ctx)
	return err
}

// transaction stores msgs. It returns either what the database, or what weir
// itself has against it; the caller rolls back.
func (d *postgres) transaction(ctx context.Context, msgs []*router.Message, reject func([]router.Rejected) error) (*failure, error) {
	if f, err := d.begin(ctx, msgs); f != nil || err != nil {
		return f, err
	}
	f := d.putAll(ctx)
	for f != nil && f.class == otherForm {
		d.rollback(ctx)
		d.choose(f.table)
		if f, err := d.begin(ctx, msgs); f != nil || err != nil {
			return f, err
		}
		f = d.putAll(ctx)
	}
	if f != nil && f.unplaced {
		d.rollback(ctx)
		covered, err := d.cover(ctx, msgs, f.table)
		if err != nil {
			return nil, err
		}
		if covered {
			if f, err := d.begin(ctx, msgs); f != nil || err != nil {
				return f, err
			}
			f = d.putAll(ctx)
		}
	}
	if f != nil && (f.class == row || f.class == suspect) {
		d.metrics.refused.Inc()
		d.rollback(ctx)
		print := f.table.print
		if f, err := d.begin(ctx, msgs); f != nil || err != nil {
			return f, err
		}
		if f.table.print != print {
			f.row = 0 // the rows may be other ones now
		}
		if f = d.carefulAll(ctx, f); f == nil {
			f = d.still(ctx)
		}
	}
	if f != nil {
		return f, nil
	}
	if t, r := d.unproven(); r != nil {
		return nil, held(t.table, r, len(t.mine))
	}
	if len(d.bad) > 0 {
		if err := reject(letters(msgs, d.bad)); err != nil {
			return nil, err
		}
	}
	result, err := d.exec(ctx, "COMMIT")
	if err != nil {
		return d.commitFailure(err), nil
	}
	if tag := result.CommandTag.String(); tag != "COMMIT" {
		return &failure{class: ours, err: fmt.Errorf("commit: the server answered %s", tag)}, nil
	}
	for _, t := range d.parts {
		t.proven = t.proven || t.stored > 0
	}
	if d.span != nil {
		d.reached.set(d.span.Run, d.span.To)
		d.prunePositions(ctx)
	}
	return nil, nil
}

// unproven returns the first refusal that may not be the row's fault, and its table.
//
// A row is bad only if its neighbours are good: when no row was stored under the
// table's present definition, the table is to blame (somebody changed a column)
// and the whole stream would end in the dead letters.
func (d *postgres) unproven() (*pgTable, *refused) {
	if d.cfg.rejectSchemaErrors() {
		return nil, nil
	}
	for i := range d.bad {
		if r := &d.bad[i]; !r.sure {
			for _, t := range d.parts {
				if _, mine := slices.BinarySearch(t.mine, int32(r.index)); mine && !t.proven && t.stored == 0 {
					return t, r
				}
			}
		}
	}
	return nil, nil
}

// commitFailure sorts what was answered to COMMIT. An error of the server's is
// definite, unless it says that it does not know or that it ended the session:
// then the connection goes, and Position finds out on a new one.
func (d *postgres) commitFailure(err error) *failure {
	f := pgFailure("commit", err)
	if d.conn.IsClosed() || f.code == "08007" || f.code == "40003" {
		d.drop()
		f.class = temp
	}
	if f.class == row {
		f.class = suspect
	}
	return f
}

// begin opens the transaction and prepares to encode msgs for their tables as they are now.
func (d *postgres) begin(ctx context.Context, msgs []*router.Message) (*failure, error) {
	for range 5 {
		if d.conn == nil {
			return &failure{class: temp, err: errors.New("begin: the connection was lost")}, nil
		}
		if err := d.assign(ctx, msgs); err != nil {
			return nil, err
		}
		results, err := d.first(ctx, d.beginSQL)
		if err != nil {
			f, err := d.beginFailure(err)
			if f == nil || f.code != "42P01" {
				return f, err
			}
			d.rollback(ctx)
			if err := d.makeAgain(ctx); err != nil {
				return nil, err
			}
			continue
		}
		if err := d.positionMoved(results); err != nil {
			return nil, err
		}
		if d.unchanged(results) {
			d.msgs, d.bad, d.s.repaired = msgs, d.bad[:0], 0
			for _, i := range d.surplus {
				d.bad = append(d.bad, refused{int(i), tooManyTables})
			}
			return nil, nil
		}
		d.rollback(ctx)
	}
	return &failure{class: temp, err: errors.New("begin: the definitions of the tables keep changing")}, nil
}

// unchanged compares the fingerprints at the end of a BEGIN's results with what
// is known, and closes the tables that are not as they were.
func (d *postgres) unchanged(results []*pgconn.Result) bool {
	same := true
	prints := results[len(results)-len(d.parts):]
	for i, t := range d.parts {
		t.open = len(prints[i].Rows) == 1 && string(prints[i].Rows[0][0]) == t.print
		same = same && t.open
	}
	return same
}

func (d *postgres) beginSQL() string {
	var b strings.Builder
	if !d.cfg.autocommit() {
		b.WriteString(beginWord)
		for _, t := range d.parts {
			if t.deferred {
				// What the server would find at COMMIT it finds at the end of a statement.
				b.WriteString("SET CONSTRAINTS ALL IMMEDIATE; ")
				break
			}
		}
		for _, t := range d.parts {
			if t.lockable {
				fmt.Fprintf(&b, "LOCK TABLE ONLY %s IN ROW EXCLUSIVE MODE; ", t.sql())
			}
		}
	}
	if d.span != nil {
		b.WriteString(d.positionSQL())
	}
	d.printsSQL(&b)
	return b.String()
}

// printsSQL asks for the fingerprints of the tables.
func (d *postgres) printsSQL(b *strings.Builder) {
	for _, t := range d.parts {
		if d.cfg.Pooler {
			b.WriteString(printSQL(literal(t.sql())) + "; ")
		} else {
			fmt.Fprintf(b, "EXECUTE weir_print(%s); ", literal(t.sql()))
		}
	}
}

// still is nil when the tables are what they were when the transaction began:
// rows that were refused before somebody mended a table, beside others that were taken
// behind it, would be thought to be bad. (Attaching a partition waits for no writer.)
// When that happens every time, it is the rows' own doing: a trigger makes partitions.
func (d *postgres) still(ctx context.Context) *failure {
	var b strings.Builder
	d.printsSQL(&b)
	results, err := d.execAll(ctx, b.String())
	if err != nil {
		return pgFailure("look at the tables again", err)
	}
	if !d.unchanged(results) && d.restless < 3 {
		d.restless++
		return &failure{class: temp, err: errors.New("a table was changed in the middle of a transaction")}
	}
	d.restless = 0
	return nil
}

// beginFailure sorts what first answered: what is finished stays, the server's
// own is an error in answer to no row.
func (d *postgres) beginFailure(err error) (*failure, error) {
	if done, ok := err.(finished); ok {
		return nil, done.error
	}
	f := pgFailure("begin", err)
	switch f.class {
	case slow: // no row was sent that it could be the fault of
		f.class = temp
	case temp, down, standstill, ours:
	default:
		f.class = operator
	}
	return f, nil
}

// makeAgain is for when a table has gone: what is missing is made where that is allowed.
func (d *postgres) makeAgain(ctx context.Context) error {
	d.closeTables()
	if d.conn == nil || d.cfg.autocommit() {
		return nil
	}
	return d.createPositions(ctx)
}

// rollback ends the transaction, if there is one. Where that fails the
// connection is of no use any more.
func (d *postgres) rollback(ctx context.Context) {
	if d.conn == nil || d.conn.IsClosed() {
		d.drop()
		return
	}
	if d.conn.TxStatus() == 'I' {
		return
	}
	if _, err := d.exec(ctx, "ROLLBACK"); err != nil || d.conn.TxStatus() != 'I' {
		d.drop()
	}
}

// carefulAll stores the rows of all tables, in a transaction in which the server
// refused one of them before.
func (d *postgres) carefulAll(ctx context.Context, first *failure) *failure {
	for _, t := range d.parts {
		d.start(t)
		d.all()
		var here *failure
		if first.table == t {
			here = first
		}
		stored, f := d.careful(ctx, here)
		if f != nil {
			return f
		}
		t.stored = stored
	}
	return nil
}
