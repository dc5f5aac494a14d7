package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// A Value is one cell of a result. Its Text belongs to the database and is valid
// until the function returns that was given it.
type Value struct {
	Kind ValueKind
	// Text is the value as the database writes it: a number in digits (or NaN,
	// Infinity, -Infinity), true or false, a time, an array. Of BytesValue it is the bytes.
	Text []byte
}

// A ValueKind says what a Value is, as far as it matters to those who show it.
type ValueKind uint8

const (
	NullValue ValueKind = iota
	NumberValue
	TextValue
	BoolValue
	JSONValue
	BytesValue
)

// Rows takes a result, as it comes. An error of it ends the query and is what the query returns.
type Rows interface {
	// Columns is called once, before the rows. Names may be there twice.
	Columns(names []string) error
	// Row gets one row, as many values as there are columns.
	Row(values []Value) error
}

// ErrEnough is returned by Rows who want no further row: the query ends without an error.
var ErrEnough = errors.New("no more rows are wanted")

// A QueryError is what the database, or weir on its behalf, has against a statement.
type QueryError struct {
	Words  string // of the database
	Code   string // SQLSTATE, or the name of SQLite's result; "": none
	Detail string
	Hint   string
	Offset int // byte of the statement where it is; -1: not known
}

func (e *QueryError) Error() string {
	if e.Code == "" {
		return e.Words
	}
	return fmt.Sprintf("%s (%s)", e.Words, e.Code)
}

// Query runs one statement that reads, in a transaction of its own, and gives what it returns to rows as it comes.
// Errors of the statement are a *QueryError; when ctx ends, by its deadline or else, the cause of that is returned. When
// rows or ctx end it early the connection may be closed: see Reopen.
//
// Nothing is changed by it: a SQLite file is open for reading only, and what does not read is refused; the transaction on a
// PostgreSQL server is READ ONLY. What a server's functions do outside of its tables, such as pg_notify and
// pg_terminate_backend, is a matter of the user's privileges.
func (r *Reader) Query(ctx context.Context, sql string, rows Rows) error {
	if r.pg != nil {
		return r.pg.query(ctx, sql, rows)
	}
	return r.lite.query(ctx, sql, rows)
}

func refuseQuery(offset int, format string, args ...any) error {
	return &QueryError{Words: fmt.Sprintf(format, args...), Offset: offset}
}

const onlyReads = "only statements that return rows are run, and nothing is changed"

// statementAt is where the first statement of SQL begins, behind white space,
// semicolons and comments; len(sql) when there is none. Comments of PostgreSQL nest.
func statementAt(sql string, nested bool) int {
	for i := 0; i < len(sql); {
		if c := sql[i]; c == ';' || c == ' ' || c >= '\t' && c <= '\r' {
			i++
			continue
		}
		end := skipComment(sql, i, nested)
		if end == i {
			return i
		}
		i = end
	}
	return len(sql)
}

// skipComment is the end of the comment that begins at i; i when there begins none.
func skipComment(sql string, i int, nested bool) int {
	switch {
	case strings.HasPrefix(sql[i:], "--"):
		if end := strings.IndexByte(sql[i:], '\n'); end >= 0 {
			return i + end + 1
		}
		return len(sql)
	case strings.HasPrefix(sql[i:], "/*"):
		depth := 1
		for i += 2; i < len(sql) && depth > 0; {
			switch {
			case strings.HasPrefix(sql[i:], "*/"):
				depth--
				i += 2
			case nested && strings.HasPrefix(sql[i:], "/*"):
				depth++
				i += 2
			default:
				i++
			}
		}
	}
	return i
}
