package sqlstore

import (
	"context"
	"errors"
	"fmt"
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
	d.msgs, d.span = nil, nil
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
		return nil, err
	}
	return d.execAll(ctx, sql())
}

func (d *postgres) store(ctx context.Context, msgs []*router.Message, reject func([]router.Rejected) error) error {
	if d.cfg.autocommit() {
		return d.writeEach(ctx, msgs, reject)
	}
	f, err := d.transaction(ctx, msgs, reject)
	if f == nil && err == nil {
		d.slow, d.misled = 0, 0
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
		d.choose()
		if f, err := d.begin(ctx, msgs); f != nil || err != nil {
			return f, err
		}
		f = d.putAll(ctx)
	}
	stored := d.len()
	if f != nil && (f.class == row || f.class == suspect) {
		d.metrics.refused.Inc()
		d.rollback(ctx)
		print := d.print
		if f, err := d.begin(ctx, msgs); f != nil || err != nil {
			return f, err
		}
		if d.print != print {
			f.row = 0 // the rows may be other ones now
		}
		d.all()
		stored, f = d.careful(ctx, f)
	}
	if f != nil {
		return f, nil
	}
	if r := unproven(d.bad, d.proven || stored > 0); r != nil {
		return nil, held(d.table, r, len(msgs))
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
	d.proven = d.proven || stored > 0
	if d.span != nil {
		d.reached.set(d.span.Run, d.span.To)
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

// begin opens the transaction and prepares to encode msgs for the table as it is now.
func (d *postgres) begin(ctx context.Context, msgs []*router.Message) (*failure, error) {
	for range 5 {
		if d.conn == nil {
			return &failure{class: temp, err: errors.New("begin: the connection was lost")}, nil
		}
		results, err := d.first(ctx, d.beginSQL)
		if err != nil {
			return d.beginFailure(err)
		}
		if err := d.positionMoved(results); err != nil {
			return nil, err
		}
		if last := results[len(results)-1]; len(last.Rows) == 1 && string(last.Rows[0][0]) == d.print {
			d.encode(msgs)
			return nil, nil
		}
		d.rollback(ctx)
		if d.conn == nil {
			continue
		}
		if err := d.readCatalogue(ctx); err != nil {
			return nil, err
		}
	}
	return &failure{class: temp, err: fmt.Errorf("begin: the definition of table %s keeps changing", d.table)}, nil
}

func (d *postgres) beginSQL() string {
	var b strings.Builder
	b.WriteString("BEGIN; ")
	if d.deferred {
		// What the server would find at COMMIT it finds at the end of a statement.
		b.WriteString("SET CONSTRAINTS ALL IMMEDIATE; ")
	}
	if d.lockable {
		fmt.Fprintf(&b, "LOCK TABLE ONLY %s IN ROW EXCLUSIVE MODE; ", d.table.sql())
	}
	if d.span != nil {
		b.WriteString(d.positionSQL())
	}
	b.WriteString("EXECUTE weir_print")
	return b.String()
}

// beginFailure sorts what first answered: an error of connect is finished, the
// server's own is not.
func (d *postgres) beginFailure(err error) (*failure, error) {
	if d.conn == nil {
		return nil, err
	}
	f := pgFailure("begin", err)
	switch f.class {
	case slow: // no row was sent that it could be the fault of
		f.class = temp
	case temp, down, standstill, ours:
	default:
		f.class = operator
	}
	if f.code == "42P01" { // the table has gone: the next connection makes it again
		f.class = down
	}
	return f, nil
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

// judge makes of a failure what the writer is to see.
func (d *postgres) judge(ctx context.Context, f *failure, n int) error {
	if f.class != slow {
		d.slow = 0
	}
	if f.class != ours {
		d.misled = 0
	}
	switch f.class {
	case down:
		d.drop()
	case ours:
		d.drop()
		if d.misled++; d.misled == 1 {
			return f // a fresh connection may have none of it
		}
	case slow:
		d.rollback(ctx)
		if d.slow++; d.slow < 3 || d.conn == nil {
			return f
		}
		if _, err := d.exec(ctx, "SELECT 1"); err != nil {
			return f
		}
		d.slow = 0
		if n > 1 || d.proven {
			return router.Permanent(f)
		}
	case suspect: // at COMMIT, so nobody knows which row
		if n > 1 || d.proven {
			return router.Permanent(f)
		}
		return router.NeedsOperator(f)
	}
	return f.told()
}
