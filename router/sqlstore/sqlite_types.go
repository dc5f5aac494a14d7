package sqlstore

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"zombiezen.com/go/sqlite"

	"github.com/weirlog/weir/router"
)

// SQLite stores 'abc' in an INTEGER column without a word. A column that says
// what it holds is taken at its word here: what does not fit is
// SQLITE_MISMATCH.

// liteType is what a declared type asks of values.
type liteType struct {
	kind liteKind
	low  int64 // liteInteger
	high int64
	long int // liteText: characters at most; 0: any
}

type liteKind uint8

const (
	liteAny liteKind = iota
	liteInteger
	liteReal
	liteNumber
	liteBool
	liteText
	liteTime // text too, but only of times
	liteJSON
	liteBlob
)

// parseLiteType reads a declared type by the rules of SQLite's affinities
// (datatype3.html, 3.1), and beyond them the names that say more.
func parseLiteType(declared string) liteType {
	t := strings.ToUpper(declared)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(t, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has("INT"):
		bits := 64
		switch {
		case has("TINYINT"):
			bits = 8
		case has("SMALLINT", "INT2"):
			bits = 16
		case has("MEDIUMINT"):
			bits = 24
		case has("INT4"):
			bits = 32
		}
		low, high := int64(-1)<<(bits-1), int64(1)<<(bits-1)-1
		if has("UNSIGNED") {
			low = 0
			if bits < 64 {
				high = 1<<bits - 1
			}
		}
		return liteType{kind: liteInteger, low: low, high: high}
	case has("CHAR", "CLOB", "TEXT"):
		return liteType{kind: liteText, long: lengthIn(t)}
	case has("BLOB"):
		return liteType{kind: liteBlob}
	case has("REAL", "FLOA", "DOUB"):
		return liteType{kind: liteReal}
	case has("BOOL"):
		return liteType{kind: liteBool}
	case has("DATE", "TIME"):
		return liteType{kind: liteTime}
	case has("JSON"):
		return liteType{kind: liteJSON}
	case has("DEC", "NUM"):
		return liteType{kind: liteNumber}
	}
	return liteType{}
}

// lengthIn is the n of a type (n), or 0.
func lengthIn(t string) int {
	_, rest, _ := strings.Cut(t, "(")
	digits, _, _ := strings.Cut(rest, ")")
	n, err := strconv.Atoi(strings.TrimSpace(digits))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// bind gives v to parameter i of stmt, or says why the type does not take it.
func (t *liteType) bind(stmt *sqlite.Stmt, i int, v cell, s *scratch) (why string) {
	if v.kind == cellNull {
		stmt.BindNull(i)
		return ""
	}
	switch t.kind {
	case liteInteger:
		n, why := toInt(v)
		if why == "" && (n < t.low || n > t.high) {
			why = outOfRange
		}
		if why == "" {
			stmt.BindInt64(i, n)
		}
		return why
	case liteReal:
		f, why := toFloat(v)
		if why == "" {
			stmt.BindFloat(i, f)
		}
		return why
	case liteNumber:
		if n, why := toInt(v); why == "" {
			stmt.BindInt64(i, n)
			return ""
		}
		f, why := toFloat(v)
		if why == "" {
			stmt.BindFloat(i, f)
		}
		return why
	case liteBool:
		b, why := toBool(v)
		if why == "" {
			stmt.BindBool(i, b)
		}
		return why
	case liteText:
		text := storableText(v.text(s), s)
		if v.kind == cellJSON {
			text = storableJSON(v.data, s)
		}
		if t.long > 0 && len(text) > t.long && utf8.RuneCount(text) > t.long {
			return fmt.Sprintf("is longer than %d characters", t.long)
		}
		stmt.BindText(i, borrow(text))
	case liteTime:
		if v.kind == cellJSON || v.kind == cellBool {
			return "is not a time"
		}
		stmt.BindText(i, borrow(storableText(v.text(s), s)))
	case liteJSON:
		text, why := toJSON(v, s)
		if why != "" {
			return why
		}
		stmt.BindText(i, borrow(text))
	case liteBlob:
		stmt.BindBytes(i, v.text(s))
	default:
		t.bindAny(stmt, i, v, s)
	}
	return ""
}

// bindAny keeps the type that v has by itself.
func (t *liteType) bindAny(stmt *sqlite.Stmt, i int, v cell, s *scratch) {
	switch v.kind {
	case cellBool, cellInt:
		stmt.BindInt64(i, v.int())
	case cellFloat:
		stmt.BindFloat(i, v.float())
	case cellJSON:
		stmt.BindText(i, borrow(storableJSON(v.data, s)))
	default:
		stmt.BindText(i, borrow(storableText(v.text(s), s)))
	}
}

// liteDeclared is the type of a column that weir creates.
func (c *column) liteDeclared() string {
	if c.declared != "" {
		return c.declared
	}
	switch c.natural() {
	case cellTime:
		if c.ref.Key == router.KeyReceivedAt {
			return "TEXT NOT NULL"
		}
	case cellInt, cellBool:
		return "INTEGER"
	case cellFloat:
		return "REAL"
	}
	if c.raw() {
		return "BLOB"
	}
	return "TEXT"
}

// liteAdded is the type of a column that weir adds to a table which may have rows:
// they have no value.
func (c *column) liteAdded() string {
	const must = " NOT NULL"
	declared := c.liteDeclared()
	if n := len(declared) - len(must); n > 0 && strings.EqualFold(declared[n:], must) {
		return declared[:n]
	}
	return declared
}
