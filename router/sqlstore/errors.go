package sqlstore

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"zombiezen.com/go/sqlite"

	"github.com/weirlog/weir/router"
)

// A class says what an error code means for the transaction that met it.
type class uint8

const (
	// temp passes: the same transaction is tried again, with back-off.
	temp class = iota
	// row is the fault of one row, which nobody will ever take.
	row
	// suspect may be the row's fault, when its neighbours are good.
	suspect
	// operator is what only a person can mend. It never costs a row.
	operator
	// down passes like temp, but is told like operator, and the connection is opened anew.
	down
	// ours is a misunderstanding between weir and the server: reconnect, read the catalogue again.
	ours
	// slow passes, but when it comes three times the transaction is halved.
	slow
	// standstill is operator for a damaged database.
	standstill
	// otherForm asks for INSERT instead of COPY.
	otherForm
	// bug is a mistake in weir.
	bug
)

func (c class) String() string {
	return [...]string{"temp", "row", "suspect", "operator", "down", "ours", "slow", "standstill", "otherForm", "bug"}[c]
}

// A failure is an error of the database.
type failure struct {
	class class
	code  string // SQLSTATE, or SQLite's extended result name; "" where there is none
	err   error

	// Of PostgreSQL's row and suspect errors:
	table   *pgTable // into which it was to go; nil: none
	row     int      // number of the row in what was sent, from 1; 0: not known
	refusal refusal
	// There is no partition for a row, of a table that weir divides.
	unplaced bool
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// told is the failure as the writer is to see it.
func (f *failure) told() error {
	switch f.class {
	case operator, down, ours, standstill, otherForm:
		return router.NeedsOperator(f)
	case bug:
		panic("BUG: " + f.Error())
	}
	return f
}

// refusal is a row that the database, or weir on its behalf, does not take.
type refusal struct {
	code, column, reason string
	sure                 bool // the row's fault whatever became of its neighbours
}

func (r *refusal) Error() string {
	if r.column == "" {
		return fmt.Sprintf("%s (%s)", r.reason, r.code)
	}
	return fmt.Sprintf("column %s: %s (%s)", r.column, r.reason, r.code)
}

// refused is a refusal and the index of its message in the transaction.
type refused struct {
	index int
	refusal
}

// letters makes of them what the dead letters take, in the order of the messages.
func letters(msgs []*router.Message, bad []refused) []router.Rejected {
	slices.SortFunc(bad, func(a, b refused) int { return a.index - b.index })
	out := make([]router.Rejected, len(bad))
	for i, r := range bad {
		out[i] = router.Rejected{Message: msgs[r.index], Code: r.code, Column: r.column, Reason: r.reason}
	}
	return out
}

// held is the error for a transaction that waits because of an unproven refusal.
func held(table table, r *refused, of int) error {
	if of == 1 {
		return router.NeedsOperator(fmt.Errorf("table %s takes no row since it was opened or changed: %w", table, &r.refusal))
	}
	return router.NeedsOperator(fmt.Errorf("table %s takes none of %d rows: %w", table, of, &r.refusal))
}

// generated is what is wrong with a column that the database fills by itself.
func generated(t table, column string) error {
	return fmt.Errorf("column %s of table %s is generated and cannot be filled", column, t)
}

// unfit is the error for a table into which rows cannot go as it is: it wants
// values that nobody has, and what else is bad. nil: they can.
func unfit(t table, missed []string, bad []error) error {
	if len(missed) > 0 {
		bad = append(bad, fmt.Errorf("table %s wants a value for %s, which no column of the configuration fills: list it, or give it a DEFAULT",
			t, strings.Join(missed, ", ")))
	}
	if len(bad) == 0 {
		return nil
	}
	return router.NeedsOperator(errors.Join(bad...))
}

// sqlState says what a SQLSTATE in answer to rows means. The longest matching prefix decides.
// docs/errors.md says what that means to rows.
var sqlState = map[string]class{
	"08": temp,
	// In doubt, really: the transaction may have been committed. It is tried again.
	"08007": temp, "40003": temp,

	"08P01": ours, "22P03": ours, "22P04": ours, "42P05": ours, "26000": ours, "25P02": ours, "3B": ours,

	"22": row, "23": row, "44": row, "P0": row, "27": row,
	"21": suspect, "54": suspect, "38": suspect, "39": suspect, "2F": suspect, "XX000": suspect, "40002": suspect,

	"0A000": otherForm,
	"25006": down,
	"25P03": slow, "25P04": slow, "57014": slow, "53200": slow,

	"40": temp, "55006": temp, "55P03": temp, "55P04": temp, "53000": temp, "53300": temp,
	"57P01": temp, "57P02": temp, "57P03": temp, "57P05": temp, "58": temp, "72": temp,
	"53100": down,

	"28": operator, "3D": operator, "3F": operator, "0P": operator, "42": operator, "55000": operator, "55P02": operator,
	"53400": operator, "57P04": operator, "57000": operator, "F0": operator,
	"XX001": standstill, "XX002": standstill,
}

// classifySQLState looks a code up. What is not in the table is suspect.
func classifySQLState(code string) class {
	for n := len(code); n >= 2; n-- {
		if c, ok := sqlState[code[:n]]; ok {
			return c
		}
	}
	return suspect
}

// sqliteCode says what a primary result code of SQLite in answer to rows means.
// The table is printed in docs/destinations/sqlite.md.
var sqliteCode = map[sqlite.ResultCode]class{
	sqlite.ResultBusy: temp, sqlite.ResultLocked: temp, sqlite.ResultProtocol: temp, sqlite.ResultSchema: temp, sqlite.ResultInterrupt: temp,
	sqlite.ResultFull: down, sqlite.ResultNoMem: down, sqlite.ResultIOErr: down, sqlite.ResultCantOpen: down,
	sqlite.ResultConstraint: row, sqlite.ResultMismatch: row, sqlite.ResultTooBig: row,
	sqlite.ResultError: operator, sqlite.ResultReadOnly: operator, sqlite.ResultPerm: operator, sqlite.ResultAuth: operator, sqlite.ResultNoLFS: operator,
	sqlite.ResultCorrupt: standstill, sqlite.ResultNotADB: standstill,
	sqlite.ResultMisuse: bug, sqlite.ResultRange: bug,
}

// liteFailure makes a failure of an error of SQLite's.
func liteFailure(attempt string, err error) *failure {
	code := sqlite.ErrCode(err)
	c, ok := sqliteCode[code.ToPrimary()]
	if !ok {
		c = operator
	}
	name := code.String()
	if !strings.HasPrefix(name, "SQLITE_") { // an extended code that is younger than the binding
		name = code.ToPrimary().String()
	}
	return &failure{class: c, code: name, err: fmt.Errorf("%s: %s (%s)", attempt, liteWords(err), name)}
}

// liteWords are SQLite's own words, without those of the binding.
func liteWords(err error) string {
	code := sqlite.ErrCode(err)
	for next := err; next != nil; next = errors.Unwrap(next) {
		err = next
	}
	return strings.TrimPrefix(err.Error(), code.Message()+": ")
}

// columnIn is the column that an error of SQLite's names, or "":
// "NOT NULL constraint failed: logs.severity".
func columnIn(words string) string {
	_, names, ok := strings.Cut(words, "constraint failed: ")
	if !ok {
		if _, names, ok = strings.Cut(words, " column "); !ok {
			return ""
		}
	}
	name, _, _ := strings.Cut(names, ", ")
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return ""
	}
	return name[i+1:]
}
