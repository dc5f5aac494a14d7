package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// putAll encodes and sends all rows of the transaction.
func (d *postgres) putAll(ctx context.Context) *failure {
	if d.form == insertRows {
		d.all()
		return d.put(ctx, 0, d.len())
	}
	err := d.copy(ctx, nil, d.more)
	return d.sent(err, d.len())
}

// put sends the encoded rows from, including, to to, excluding.
func (d *postgres) put(ctx context.Context, from, to int) *failure {
	if from == to {
		return nil
	}
	if d.form == insertRows {
		return d.sent(d.insert(ctx, from, to), to-from)
	}
	return d.sent(d.copy(ctx, d.part(from, to), nil), to-from)
}

// sent says what the answer to so many rows means.
func (d *postgres) sent(err error, n int) *failure {
	if err == nil {
		return nil
	}
	attempt := "copy"
	if d.form == insertRows {
		attempt = "insert"
	}
	f := pgFailure(attempt, err)
	server, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return f
	}
	f.row = d.rowIn(server.Where, n)
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

// copy sends rows, and those that more encodes, by one COPY.
func (d *postgres) copy(ctx context.Context, rows []byte, more func() []byte) error {
	source := &copySource{more: more}
	defer source.stop()
	format := "text"
	if source.parts[1] = rows; d.form == copyBinary {
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
