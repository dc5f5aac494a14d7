package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

const (
	pgCancelTime = 2 * time.Second // that the server is waited for when a query is given up
	pgGraceTime  = time.Second     // after the deadline: then the server ends it by itself, should we be gone
)

// query runs one statement that reads, in a transaction of its own. When it is
// given up before its end, the connection is closed.
//
// A transaction that is READ ONLY can be made READ WRITE until it has its first
// snapshot, so it gets one. The statement goes the way that takes one
// alone, and is not run unless it returns rows: COMMIT, SET, DO and COPY do not.
func (d *pgReader) query(ctx context.Context, sql string, to Rows) error {
	conn := d.conn
	if i := strings.IndexByte(sql, 0); i >= 0 {
		return refuseQuery(i, "a NUL byte in the statement")
	}
	begin := statementAt(sql, true)
	if begin == len(sql) {
		return refuseQuery(-1, "there is no statement")
	}
	running, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		if conn.IsClosed() { // pgx tells the server to stop
			select {
			case <-conn.CleanupDone():
			case <-time.After(pgCancelTime):
			}
		}
	}()
	told := func(err error) error { return pgQueryError(ctx, sql, err) }
	opening := d.begin
	if end, ok := ctx.Deadline(); ok {
		opening += fmt.Sprintf("SET LOCAL statement_timeout = %d; ", max(0, time.Until(end)).Milliseconds()+pgGraceTime.Milliseconds())
	}
	if _, err := conn.Exec(running, opening+"SELECT 1").ReadAll(); err != nil {
		return told(err)
	}
	defer func() {
		if !conn.IsClosed() && conn.TxStatus() != 'I' {
			ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), pgCancelTime)
			defer cancel()
			conn.Exec(ending, "ROLLBACK").ReadAll()
		}
	}()
	about, err := conn.Prepare(running, "", sql, nil)
	switch {
	case err != nil:
		return told(err)
	case len(about.ParamOIDs) > 0:
		return refuseQuery(-1, "the statement has a parameter ($1): write the value in its place")
	case len(about.Fields) == 0:
		return refuseQuery(begin, onlyReads)
	}
	var names []string
	var formats []int16
	for _, f := range about.Fields {
		names = append(names, f.Name)
		format := int16(pgtype.TextFormatCode)
		if f.DataTypeOID == pgtype.ByteaOID { // its text depends on bytea_output
			format = pgtype.BinaryFormatCode
		}
		formats = append(formats, format)
	}
	if err := to.Columns(names); err != nil {
		return enough(err)
	}
	result := conn.ExecPrepared(running, "", nil, nil, formats)
	row := make([]Value, len(names))
	for result.NextRow() {
		for i, text := range result.Values() {
			row[i] = pgValue(about.Fields[i].DataTypeOID, text)
		}
		if err := to.Row(row); err != nil {
			stop() // else the rest would be read to its end
			result.Close()
			return enough(err)
		}
	}
	if _, err := result.Close(); err != nil {
		return told(err)
	}
	return nil
}

// pgValue is a cell of a column of that type; text is nil for NULL.
func pgValue(oid uint32, text []byte) Value {
	if text == nil {
		return Value{}
	}
	switch oid {
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.OIDOID, pgtype.NumericOID, pgtype.Float4OID, pgtype.Float8OID:
		return Value{NumberValue, text}
	case pgtype.BoolOID:
		if string(text) == "t" {
			return Value{BoolValue, []byte("true")}
		}
		return Value{BoolValue, []byte("false")}
	case pgtype.JSONOID, pgtype.JSONBOID:
		return Value{JSONValue, text}
	case pgtype.ByteaOID:
		return Value{BytesValue, text}
	}
	return Value{TextValue, text}
}

// pgQueryError makes of an error of pgx's or the server's what the caller is to see.
func pgQueryError(ctx context.Context, sql string, err error) error {
	server, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !ok:
		return fmt.Errorf("query: %w", oneLine{err})
	}
	e := &QueryError{Words: server.Message, Code: "SQLSTATE " + server.Code, Detail: server.Detail, Hint: server.Hint, Offset: -1}
	if server.Position > 0 {
		e.Offset = characterAt(sql, int(server.Position))
	} else if second := secondStatement(sql); server.Code == "42601" && second < len(sql) { // the server says no place only of that
		return refuseQuery(second, "a second statement begins here: one is run at a time")
	}
	return e
}

// characterAt is the byte at which the n-th character of s begins, counted from 1.
func characterAt(s string, n int) int {
	for i := range s {
		if n--; n == 0 {
			return i
		}
	}
	return len(s)
}

// secondStatement is where the second statement of SQL for PostgreSQL begins; len(sql) when there is none.
func secondStatement(sql string) int {
	for i := statementAt(sql, true); i < len(sql); {
		switch c := sql[i]; {
		case c == ';':
			return i + statementAt(sql[i:], true)
		case c == '\'':
			escapes := i > 0 && sql[i-1]|0x20 == 'e' && !inWord(sql, i-1)
			i = behindQuote(sql, i, escapes)
		case c == '"':
			i = behindQuote(sql, i, false)
		case c == '$' && !inWord(sql, i):
			i = behindDollars(sql, i)
		default:
			i = max(skipComment(sql, i, true), i+1)
		}
	}
	return len(sql)
}

// inWord reports whether a word goes on at i.
func inWord(sql string, i int) bool {
	if i == 0 {
		return false
	}
	c := sql[i-1]
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '$' || c >= 0x80
}

// behindQuote is the end of what is quoted from i on. A doubled quote ends it and begins it again.
func behindQuote(sql string, i int, escapes bool) int {
	quote := sql[i]
	for i++; i < len(sql); i++ {
		switch {
		case escapes && sql[i] == '\\':
			i++
		case sql[i] == quote:
			return i + 1
		}
	}
	return len(sql)
}

// behindDollars is the end of the text in dollars that begins at i, or of the dollar alone.
func behindDollars(sql string, i int) int {
	n := strings.IndexByte(sql[i+1:], '$')
	if n < 0 {
		return i + 1
	}
	tag := sql[i : i+n+2]
	if strings.ContainsAny(tag, " \t\r\n();,'\"") {
		return i + 1
	}
	end := strings.Index(sql[i+len(tag):], tag)
	if end < 0 {
		return len(sql)
	}
	return i + len(tag) + end + len(tag)
}
