package sqlstore

import (
	"context"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	manyRefused = 100 // refused rows in a transaction from which on rows go one by one
	goodAgain   = 100 // stored ones in a row after which they do not any more
	firstSpan   = 64  // rows, at least, that are tried together after a refused one
)

// careful stores the encoded rows of a table, in a transaction in which the server refused
// one: first, if that was a row of this table, with its number where the server knows it. Parts
// go in under savepoints; refused rows are added to d.bad. It returns how many
// rows went in.
//
// The server names the row in the context of a COPY's error; then it costs one
// part more, and rows are sent twice at most. Foreign keys and INSERT give no
// number: there parts are halved.
func (d *postgres) careful(ctx context.Context, first *failure) (stored int, f *failure) {
	if _, err := d.exec(ctx, "SAVEPOINT weir"); err != nil {
		return 0, pgFailure("savepoint", err)
	}
	total, refusals, strict := d.len(), 0, 0
	known := map[int]refusal{} // rows that are refused when they come up
	gap, last := 0, -1         // between refused rows of which the server knows the number
	refuse := func(i int, r refusal) {
		d.bad = append(d.bad, refused{d.index[i], r})
		if refusals++; refusals >= manyRefused {
			strict = goodAgain
		}
	}
	at, span := 0, total
	switch {
	case first == nil:
	case first.row > 0:
		known[first.row-1] = first.refusal
		span = first.row - 1
	default:
		span = max(1, total/2)
	}
	for at < total {
		if r, ok := known[at]; ok {
			delete(known, at)
			refuse(at, r)
			gap, last = at-last, at
			at++
			// They may come at the same distance again.
			span = max(firstSpan, 2*gap)
			continue
		}
		if strict > 0 {
			span = 1
		}
		n := min(max(1, span), total-at)
		for i := 1; i < n; i++ { // stop before a row that is known to be bad
			if _, ok := known[at+i]; ok {
				n = i
				break
			}
		}
		f := d.put(ctx, at, at+n)
		if f == nil {
			if _, err := d.exec(ctx, "RELEASE SAVEPOINT weir; SAVEPOINT weir"); err != nil {
				return stored, pgFailure("savepoint", err)
			}
			at, stored = at+n, stored+n
			span = max(firstSpan, 2*span)
			strict = max(0, strict-n)
			continue
		}
		if f.class != row && f.class != suspect {
			return stored, f
		}
		if _, err := d.exec(ctx, "ROLLBACK TO SAVEPOINT weir"); err != nil {
			return stored, pgFailure("savepoint", err)
		}
		switch {
		case n == 1:
			refuse(at, f.refusal)
			at++
		case f.row > 0 && f.row <= n:
			known[at+f.row-1] = f.refusal
			span = f.row - 1
		default:
			span = n / 2
		}
	}
	return stored, nil
}

// rowIn is the row that the context of a COPY's error names, 1 to n, or 0.
// "COPY logs, line 3, column n" in all languages that the server speaks: the
// first number behind the table's name.
func (d *postgres) rowIn(where string, n int) int {
	rest, ok := behind(where, d.t.name)
	if !ok {
		return 0
	}
	from := strings.IndexFunc(rest, isDigit)
	if from < 0 {
		return 0
	}
	digits := rest[from:]
	if end := strings.IndexFunc(digits, func(r rune) bool { return !isDigit(r) }); end >= 0 {
		digits = digits[:end]
	}
	if row, err := strconv.Atoi(digits); err == nil && row <= n {
		return row
	}
	return 0
}

// behind is what follows the table's name in the line of where that speaks of COPY.
func behind(where, table string) (string, bool) {
	for line := range strings.Lines(where) {
		copied := strings.Index(line, "COPY")
		named := strings.Index(line, table)
		if copied >= 0 && named >= 0 && (copied < named && named == copied+len("COPY ") || named < copied) {
			return line[named+len(table):], true
		}
	}
	return "", false
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

// columnIn is the column that an error names, "" where it names none of ours.
func (d *postgres) columnIn(e *pgconn.PgError) string {
	if d.indexOf(e.ColumnName) >= 0 {
		return e.ColumnName
	}
	rest, ok := behind(e.Where, d.t.name)
	if !ok {
		return ""
	}
	rest, _, _ = strings.Cut(rest, `: "`) // the value
	rest = strings.TrimSpace(rest)
	found := ""
	for i := range d.columns {
		name := d.columns[i].name
		if !strings.HasSuffix(rest, name) || len(name) < len(found) {
			continue
		}
		if r, _ := utf8.DecodeLastRuneInString(strings.TrimSuffix(rest, name)); r == ' ' {
			found = name
		}
	}
	return found
}

// withoutValues is the server's message without what it quotes of the row: in
// class 22 the quoted words are values.
func withoutValues(e *pgconn.PgError) string {
	if !strings.HasPrefix(e.Code, "22") {
		return e.Message
	}
	var b strings.Builder
	rest := e.Message
	for {
		before, after, ok := strings.Cut(rest, `"`)
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		b.WriteString(`"…"`)
		// A value may hold quotes itself: the last one ends it.
		i := strings.LastIndexByte(after, '"')
		if i < 0 {
			return b.String()
		}
		rest = after[i+1:]
	}
}
