package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirlog/weir/router"
)

func (d *postgres) write(ctx context.Context, msgs []*router.Message, reject func([]router.Rejected) error) error {
	if err := d.connect(ctx); err != nil {
		return err
	}
	err := d.store(ctx, msgs, reject)
	d.idle = err == nil && d.conn != nil
	return err
}

// first runs the first statement of a Write. Where the server ended the
// connection while nothing was to be written, it does so on a new one: nobody
// needs to hear of a server that was restarted meanwhile.
func (d *postgres) first(ctx context.Context, sql func() string) (*pgconn.Result, error) {
	result, err := d.exec(ctx, sql())
	if err == nil || !d.idle || !d.conn.IsClosed() || ctx.Err() != nil {
		return result, err
	}
	d.idle = false
	d.drop()
	if err := d.connect(ctx); err != nil {
		return nil, err
	}
	return d.exec(ctx, sql())
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
	stored := d.len()
	f := d.put(ctx, 0, stored)
	for f != nil && f.class == otherForm {
		d.rollback(ctx)
		d.choose()
		if f, err := d.begin(ctx, msgs); f != nil || err != nil {
			return f, err
		}
		stored = d.len()
		f = d.put(ctx, 0, stored)
	}
	if f != nil && (f.class == row || f.class == suspect) {
		d.metrics.refused.Inc()
		d.rollback(ctx)
		if f, err := d.begin(ctx, msgs); f != nil || err != nil {
			return f, err
		}
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
		f := pgFailure("commit", err)
		if f.class == row {
			f.class = suspect
		}
		return f, nil
	}
	if tag := result.CommandTag.String(); tag != "COMMIT" {
		return &failure{class: ours, err: fmt.Errorf("commit: the server answered %s", tag)}, nil
	}
	d.proven = d.proven || stored > 0
	return nil, nil
}

// begin opens the transaction and encodes msgs for the table as it is now.
func (d *postgres) begin(ctx context.Context, msgs []*router.Message) (*failure, error) {
	for range 5 {
		if d.conn == nil {
			return &failure{class: temp, err: errors.New("begin: the connection was lost")}, nil
		}
		result, err := d.first(ctx, d.beginSQL)
		if err != nil {
			return d.beginFailure(err)
		}
		if len(result.Rows) == 1 && string(result.Rows[0][0]) == d.print {
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
	case temp, slow, down, standstill, ours:
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

// put sends the encoded rows from, including, to to, excluding.
func (d *postgres) put(ctx context.Context, from, to int) *failure {
	if from == to {
		return nil
	}
	var err error
	attempt := "copy"
	if d.form == insertRows {
		attempt = "insert"
		err = d.insert(ctx, from, to)
	} else {
		err = d.copy(ctx, from, to)
	}
	if err == nil {
		return nil
	}
	f := pgFailure(attempt, err)
	server, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return f
	}
	f.row = d.rowIn(server.Where, to-from)
	switch {
	case f.code == "22P03" || f.code == "22P04":
		// A type's binary input did not understand; its text input will say what it means.
		if f.class = row; d.form == copyBinary {
			f.class, d.forced = otherForm, copyText
		}
	case f.class == otherForm && d.form == insertRows:
		f.class = ours // "cached plan must not change result type"
	case f.class == otherForm:
		d.forced = insertRows
	case f.code == "23505" && server.SchemaName == "pg_catalog":
		f.class = temp
	case f.code == isNull && server.TableName == d.table.name && d.indexOf(server.ColumnName) < 0:
		f.class = operator
		f.err = fmt.Errorf("%s: %s, which no column of the configuration fills (SQLSTATE %s)", attempt, server.Message, f.code)
	case f.class == operator && strings.HasPrefix(f.code, "42") && server.Where != "":
		f.class = suspect // not the statement's but a trigger's, for this row
	case f.code == "42501" && d.secured:
		f.class = suspect // a policy of row-level security, perhaps
	}
	if f.class == row || f.class == suspect {
		f.refusal = refusal{code: f.code, column: d.columnIn(server), reason: withoutValues(server)}
		f.refusal.sure = f.code == "23505" // there is a row of that key, so the table takes rows
	}
	return f
}

func (d *postgres) copy(ctx context.Context, from, to int) error {
	source := &copySource{}
	defer source.stop()
	format := "text"
	if source.parts[1] = d.part(from, to); d.form == copyBinary {
		format = "binary"
		source.parts[0], source.parts[2] = copyHeader, copyTrailer
	}
	_, err := d.conn.CopyFrom(ctx, source, "COPY "+d.table.sql()+" ("+d.names()+") FROM STDIN (FORMAT "+format+")")
	return err
}

// pgParameters is how many parameters the protocol has room for in one statement.
const pgParameters = 65535

// insert sends rows by INSERT statements of up to 50 rows.
func (d *postgres) insert(ctx context.Context, from, to int) error {
	most := max(1, min(50, pgParameters/len(d.columns)))
	params := make([][]byte, 0, most*len(d.columns))
	data := d.part(from, to)
	for left := to - from; left > 0; {
		n := most
		if left < most {
			n = 1
		}
		params = params[:0]
		for range n {
			params, data = d.params(data, params)
		}
		name := fmt.Sprintf("weir%d", n)
		if !d.ready[n] {
			if _, err := d.conn.Prepare(ctx, name, d.insertSQL(n), nil); err != nil {
				return err
			}
			if d.ready == nil {
				d.ready = map[int]bool{}
			}
			d.ready[n] = true
		}
		if _, err := d.conn.ExecPrepared(ctx, name, params, nil, nil).Close(); err != nil {
			return err
		}
		left -= n
	}
	return nil
}

func (d *postgres) insertSQL(n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "INSERT INTO %s (%s) VALUES ", d.table.sql(), d.names())
	for p := 1; p <= n*len(d.columns); p++ {
		switch {
		case p == 1:
			b.WriteString("(")
		case p%len(d.columns) == 1 || len(d.columns) == 1:
			b.WriteString("), (")
		default:
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "$%d", p)
	}
	b.WriteString(")")
	return b.String()
}

// names are the columns, quoted, for a statement.
func (d *postgres) names() string {
	var b strings.Builder
	for i := range d.columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quote(d.columns[i].name))
	}
	return b.String()
}

// writeEach stores each row in a transaction of its own, as the database does
// by itself. A failed Write goes on where it stopped when it is tried again.
func (d *postgres) writeEach(ctx context.Context, msgs []*router.Message, reject func([]router.Rejected) error) error {
	d.auto.begin(msgs)
	start, known := d.auto.next, len(d.auto.bad)
	result, err := d.first(ctx, func() string { return "EXECUTE weir_print" })
	if err != nil {
		f, err := d.beginFailure(err)
		if f != nil {
			err = d.judge(ctx, f, 1)
		}
		return err
	}
	if string(result.Rows[0][0]) != d.print {
		if err := d.readCatalogue(ctx); err != nil {
			return err
		}
	}
	d.encode(msgs[start:])
	for i := range d.bad {
		d.bad[i].index += start
	}
	bad := append(d.auto.bad[:known:known], d.bad...)
	for i := range d.len() {
		f := d.put(ctx, i, i+1)
		switch {
		case f == nil:
			d.proven = true
		case f.class == row || f.class == suspect:
			d.metrics.refused.Inc()
			bad = append(bad, refused{start + d.index[i], f.refusal})
		default:
			// Rows that weir itself refuses behind this one are found again.
			next := start + d.index[i]
			d.auto.stop(msgs, next, before(bad, next))
			return d.judge(ctx, f, 1)
		}
	}
	if r := unproven(bad[known:], d.proven); r != nil {
		d.auto.stop(msgs, start, bad[:known])
		return held(d.table, r, len(msgs)-start)
	}
	d.metrics.repaired.Add(float64(d.s.repaired))
	return d.auto.finish(msgs, bad, reject)
}

// before are those of bad whose message comes before index.
func before(bad []refused, index int) []refused {
	var out []refused
	for _, r := range bad {
		if r.index < index {
			out = append(out, r)
		}
	}
	return out
}
