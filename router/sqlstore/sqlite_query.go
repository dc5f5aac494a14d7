package sqlstore

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"zombiezen.com/go/sqlite"

	"github.com/weirlog/weir/router"
)

// liteLongest is the longest value that a query may make, in bytes.
const liteLongest = 256 << 20

// query runs one statement that reads, in the transaction that SQLite itself makes for it.
func (d *liteReader) query(ctx context.Context, sql string, to Rows) error {
	err := runLite(ctx, d.conn, sql, to)
	if err == nil && d.frozen && !d.current() {
		return fmt.Errorf("%s has changed while it was read, so what was shown may be wrong: run the query again", d.path)
	}
	return err
}

func runLite(ctx context.Context, conn *sqlite.Conn, sql string, to Rows) error {
	if i := strings.IndexByte(sql, 0); i >= 0 {
		return refuseQuery(i, "a NUL byte in the statement")
	}
	defer conn.SetInterrupt(conn.SetInterrupt(ctx.Done()))
	defer conn.Limit(sqlite.LimitLength, conn.Limit(sqlite.LimitLength, liteLongest))
	defer conn.Limit(sqlite.LimitAttached, conn.Limit(sqlite.LimitAttached, 0))
	guard := &liteGuard{}
	if err := conn.SetAuthorizer(guard); err != nil {
		return err
	}
	defer conn.SetAuthorizer(nil)

	begin := statementAt(sql, false)
	if begin == len(sql) {
		return refuseQuery(-1, "there is no statement")
	}
	stmt, trailing, err := conn.PrepareTransient(sql[begin:])
	if err != nil {
		return guard.told(ctx, begin, err)
	}
	defer stmt.Finalize()
	rest := len(sql) - trailing
	if second := rest + statementAt(sql[rest:], false); second < len(sql) {
		return refuseQuery(second, "a second statement begins here: one is run at a time")
	}
	if stmt.ColumnCount() == 0 {
		return refuseQuery(begin, onlyReads)
	}
	if stmt.BindParamCount() > 0 {
		return refuseQuery(-1, "the statement has a parameter (%s): write the value in its place", stmt.BindParamName(1))
	}
	names := liteNames(conn, stmt, sql[begin:rest])
	if err := to.Columns(names); err != nil {
		return enough(err)
	}
	row := make([]Value, len(names))
	var scratch []byte
	for {
		more, err := stmt.Step()
		if err != nil {
			return guard.told(ctx, begin, err)
		}
		if !more {
			return nil
		}
		scratch = scratch[:0]
		for i := range row {
			row[i], scratch = liteValue(stmt, i, scratch)
		}
		if err := to.Row(row); err != nil {
			return enough(err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// liteNames are those of the columns. The binding knows the last one only of those that have one
// name, so SQLite is asked how it would call them in a subquery: m, m:1, m:2.
func liteNames(conn *sqlite.Conn, stmt *sqlite.Stmt, sql string) []string {
	names := make([]string, stmt.ColumnCount())
	for i := range names {
		names[i] = stmt.ColumnName(i)
	}
	if !slices.Contains(names, "") {
		return names
	}
	outer, _, err := conn.PrepareTransient("SELECT * FROM (" + strings.TrimRight(sql, "; \t\r\n") + "\n)")
	if err != nil { // it is no SELECT, or a column has no name
		return names
	}
	defer outer.Finalize()
	for i := range min(len(names), outer.ColumnCount()) {
		name := outer.ColumnName(i)
		if base := strings.TrimRight(name, "0123456789"); strings.HasSuffix(base, ":") && slices.Contains(names, base[:len(base)-1]) {
			name = base[:len(base)-1]
		}
		if names[i] == "" {
			names[i] = name
		}
	}
	return names
}

func enough(err error) error {
	if err == ErrEnough {
		return nil
	}
	return err
}

// liteValue reads a cell. Numbers are written behind scratch.
func liteValue(stmt *sqlite.Stmt, i int, scratch []byte) (Value, []byte) {
	at := len(scratch)
	switch stmt.ColumnType(i) {
	case sqlite.TypeInteger:
		scratch = strconv.AppendInt(scratch, stmt.ColumnInt64(i), 10)
	case sqlite.TypeFloat:
		scratch = appendReal(scratch, stmt.ColumnFloat(i))
	case sqlite.TypeText:
		return Value{TextValue, []byte(stmt.ColumnText(i))}, scratch
	case sqlite.TypeBlob:
		b := make([]byte, stmt.ColumnLen(i))
		stmt.ColumnBytes(i, b)
		return Value{BytesValue, b}, scratch
	default:
		return Value{}, scratch
	}
	return Value{NumberValue, scratch[at:len(scratch):len(scratch)]}, scratch
}

// appendReal writes a number so that it can be read back and is not taken for a whole one.
func appendReal(b []byte, f float64) []byte {
	switch {
	case math.IsInf(f, 1):
		return append(b, "Infinity"...)
	case math.IsInf(f, -1):
		return append(b, "-Infinity"...)
	}
	return router.AppendText(b, router.FloatValue(f))
}

// liteGuard lets by what reads. SQLite asks it about everything that a statement
// does, while it is prepared.
type liteGuard struct {
	refused string // the first thing that was not let by, in words
}

// litePragmas are those that tell something. With an argument, most others change
// something, and some do so without one.
var litePragmas = strings.Fields(`table_list table_info table_xinfo index_list index_info index_xinfo foreign_key_list foreign_key_check
 integrity_check quick_check database_list collation_list function_list module_list pragma_list compile_options data_version`)

// liteSettings are those that tell something unless they have an argument.
var liteSettings = strings.Fields(`application_id auto_vacuum cache_size encoding freelist_count journal_mode journal_size_limit
 max_page_count mmap_size page_count page_size query_only schema_version synchronous user_version wal_autocheckpoint`)

// Authorize implements sqlite.Authorizer.
func (g *liteGuard) Authorize(a sqlite.Action) sqlite.AuthResult {
	what := ""
	switch op := a.Type(); op {
	case sqlite.OpSelect, sqlite.OpRead, sqlite.OpRecursive, sqlite.OpFunction: // load_extension is switched off
		return sqlite.AuthResultOK
	case sqlite.OpPragma:
		name := strings.ToLower(a.Pragma())
		if slices.Contains(litePragmas, name) || a.PragmaArg() == "" && slices.Contains(liteSettings, name) {
			return sqlite.AuthResultOK
		}
		what = "PRAGMA " + a.Pragma()
		if a.PragmaArg() != "" {
			what += " with a value"
		}
	case sqlite.OpInsert, sqlite.OpUpdate, sqlite.OpDelete:
		what = words(op) + " in table " + a.Table()
		if strings.HasPrefix(a.Table(), "sqlite_") {
			what = "a change of the schema"
		}
	default:
		what = words(op)
	}
	if g.refused == "" {
		g.refused = what
	}
	return sqlite.AuthResultDeny
}

// words are those of the statement that does it: SQLITE_CREATE_TABLE is CREATE TABLE.
func words(op sqlite.OpType) string {
	return strings.ReplaceAll(strings.TrimPrefix(op.String(), "SQLITE_"), "_", " ")
}

// told makes of an error of SQLite's what the caller is to see; the statement begins at that byte.
func (g *liteGuard) told(ctx context.Context, begin int, err error) error {
	code := sqlite.ErrCode(err)
	switch {
	case ctx.Err() != nil && code.ToPrimary() == sqlite.ResultInterrupt:
		return context.Cause(ctx)
	case g.refused != "":
		return refuseQuery(begin, "%s is refused: %s", g.refused, onlyReads)
	}
	e := &QueryError{Words: liteWords(err), Code: code.String(), Offset: -1}
	if e.Code == sqlite.ResultError.String() {
		e.Code = "" // it is that of every mistake
	}
	if at, ok := sqlite.ErrorOffset(err); ok {
		e.Offset = begin + at
	}
	return e
}
