package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// putAll encodes and sends all rows of the transaction, table by table.
func (d *postgres) putAll(ctx context.Context) *failure {
	for _, t := range d.parts {
		d.start(t)
		var f *failure
		if t.form == insertRows {
			d.all()
			f = d.put(ctx, 0, d.len())
		} else {
			f = d.sent(d.copy(ctx, nil, d.more), d.len())
		}
		if f != nil {
			return f
		}
		t.stored = d.len()
	}
	return nil
}

// put sends the encoded rows from, including, to to, excluding.
func (d *postgres) put(ctx context.Context, from, to int) *failure {
	if from == to {
		return nil
	}
	if d.t.form == insertRows {
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
	if d.t.form == insertRows {
		attempt = "insert"
	}
	if d.naming.fixed == "" {
		attempt += " into " + d.t.String()
	}
	f := pgFailure(attempt, err)
	f.table = d.t
	server, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return f
	}
	f.row = d.rowIn(server.Where, n)
	switch {
	case f.code == "22P03" || f.code == "22P04":
		// A type's binary input did not understand; its text input will say what it means.
		if f.class = row; d.t.form == copyBinary {
			f.class, d.t.forced = otherForm, copyText
		}
	case f.class == otherForm && d.t.form == insertRows:
		f.class = operator
	case f.class == otherForm:
		d.t.forced = insertRows
	case f.code == "42P10":
		f.err = fmt.Errorf("%w: on_conflict needs a unique index: %s", f.err, d.keySQL(d.t.table))
	case f.code == "23505" && server.SchemaName == "pg_catalog":
		f.class = temp
	case f.code == isNull && server.TableName == d.t.name && d.indexOf(server.ColumnName) < 0:
		f.class = operator
		f.err = fmt.Errorf("%s: %s, which no column of the configuration fills (SQLSTATE %s)", attempt, server.Message, f.code)
	case f.class == operator && strings.HasPrefix(f.code, "42") && server.Where != "":
		f.class = suspect // not the statement's but a trigger's, for this row
	case f.code == "42501" && d.t.secured:
		f.class = suspect // a policy of row-level security, perhaps
	}
	if f.class == row || f.class == suspect {
		f.refusal = refusal{code: f.code, column: d.columnIn(server), reason: withoutValues(server)}
		f.unplaced = f.code == "23514" && server.ConstraintName == "" && d.cfg.Partition != nil && d.t.kind == 'p'
		// There is a row of that key, so the table takes rows; the row's time is none of partition's.
		f.refusal.sure = f.code == "23505" || f.unplaced
	}
	return f
}

// copy sends rows, and those that more encodes, by one COPY.
func (d *postgres) copy(ctx context.Context, rows []byte, more func() []byte) error {
	source := &copySource{more: more}
	defer source.stop()
	format := "text"
	if source.parts[1] = rows; d.t.form == copyBinary {
		format = "binary"
		source.parts[0], source.parts[2] = copyHeader, copyTrailer
	}
	_, err := d.conn.CopyFrom(ctx, source, "COPY "+d.t.sql()+" ("+d.names+") FROM STDIN (FORMAT "+format+")")
	return err
}
