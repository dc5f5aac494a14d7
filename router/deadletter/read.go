package deadletter

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/weirlog/weir/router"
)

// A Letter is a message that somebody rejected.
type Letter struct {
	Number      int64
	Time        time.Time    // of the rejection
	Destination string       // who rejected: a destination …
	Run         router.RunID // … the message of this run, if it is known,
	Position    uint64       // at this place of it; 0: not known;
	Final       bool         // false: void if its transaction was not committed
	Route       string       // or, on this route,
	Filter      string       // a filter
	Code        string       // SQLSTATE, SQLite's extended result name, or a word of weir's
	Column      string       // "" when not known
	Reason      string       // in words
	Record      []byte       // the message as record JSON
	Raw         []byte       // the message as received; nil: not known

	blob []byte
}

// ErrNone is what Show answers for a number that has no letter (any more).
var ErrNone = errors.New("no such dead letter")

// A Reader reads the letters of a store, also while a router writes to it. It
// serves one goroutine at a time.
type Reader struct {
	conn    *sqlite.Conn
	columns string
}

// OpenReader opens the store in dir for reading. fs.ErrNotExist: there is none,
// so nothing was ever rejected.
func OpenReader(dir string) (*Reader, error) {
	conn, found, err := openExisting(dir, openForReading)
	if err != nil {
		return nil, err
	}
	return &Reader{conn, columnsOf(found)}, nil
}

// openExisting opens the database in dir, and tells its layout. fs.ErrNotExist: there is none, or nobody has filled it.
func openExisting(dir string, open func(path string) (*sqlite.Conn, error)) (conn *sqlite.Conn, found int64, err error) {
	path := filepath.Join(dir, FileName)
	if _, err := os.Stat(path); err != nil {
		return nil, 0, fmt.Errorf("open dead letters: %w", err)
	}
	if conn, err = open(path); err == nil {
		if found, err = layout(conn); err == nil && found == 0 {
			err = fs.ErrNotExist
		}
		if err != nil {
			conn.Close()
		}
	}
	if err != nil {
		return nil, 0, fmt.Errorf("open dead letters %s: %w", path, err)
	}
	return conn, found, nil
}

func openForReading(path string) (*sqlite.Conn, error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err == nil {
		conn.SetBusyTimeout(busyTimeout)
	}
	return conn, err
}

// columnsOf are those of a letter in the order in which scan reads them.
func columnsOf(layout int64) string {
	const first, last = "number, time, destination, run, ", ", route, filter, code, field, reason, record, raw, "
	if layout == 1 {
		return first + "NULL" + last + "NULL, 1"
	}
	return first + "position" + last + "blob, final"
}

// scan makes a letter of a row.
func scan(s *sqlite.Stmt) Letter {
	l := Letter{Number: s.ColumnInt64(0), Time: time.Unix(0, s.ColumnInt64(1)).UTC(), Destination: s.ColumnText(2), Position: uint64(s.ColumnInt64(4)),
		Route: s.ColumnText(5), Filter: s.ColumnText(6), Code: s.ColumnText(7), Column: s.ColumnText(8), Reason: s.ColumnText(9),
		Record: []byte(s.ColumnText(10)), Raw: columnBlob(s, 11), blob: columnBlob(s, 12), Final: s.ColumnBool(13)}
	var err error
	if l.Run, err = router.ParseRun(s.ColumnText(3)); err != nil {
		l.Position, l.Final = 0, true // layout 1
	}
	return l
}

// columnBlob is a copy of a blob; nil for NULL.
func columnBlob(s *sqlite.Stmt, i int) []byte {
	if s.ColumnIsNull(i) {
		return nil
	}
	b := make([]byte, s.ColumnLen(i))
	s.ColumnBytes(i, b)
	return b
}

// List returns the newest n of the letters that are selected, the newest last; all when n is 0. Raw is
// left out.
func (r *Reader) List(which Selection, n int) (letters []Letter, err error) {
	where, args := which.where()
	if n == 0 {
		n = -1 // none, for LIMIT
	}
	query := "SELECT * FROM (SELECT " + r.columns + " FROM letters WHERE " + where + " ORDER BY number DESC LIMIT ?) ORDER BY number"
	err = each(r.conn, query, append(args, n), func(l Letter) error {
		l.Raw, l.blob = nil, nil
		letters = append(letters, l)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return letters, nil
}

// Oldest returns the numbers of the oldest n of the letters that are selected.
func (r *Reader) Oldest(which Selection, n int) (numbers []int64, err error) {
	where, args := which.where()
	numbers = []int64{}
	err = sqlitex.Execute(r.conn, "SELECT number FROM letters WHERE "+where+" ORDER BY number LIMIT ?",
		&sqlitex.ExecOptions{Args: append(args, n), ResultFunc: func(s *sqlite.Stmt) error {
			numbers = append(numbers, s.ColumnInt64(0))
			return nil
		}})
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return numbers, nil
}

// A Rejecter is who rejected: a destination, or a filter on a route.
type Rejecter struct{ Destination, Route, Filter string }

// Rejecter of a letter.
func (l *Letter) Rejecter() Rejecter { return Rejecter{l.Destination, l.Route, l.Filter} }

// Rejecters lists who rejected the letters that are selected.
func (r *Reader) Rejecters(which Selection) (all []Rejecter, err error) {
	where, args := which.where()
	err = sqlitex.Execute(r.conn, "SELECT DISTINCT coalesce(destination, ''), coalesce(route, ''), coalesce(filter, '') FROM letters WHERE "+where+" ORDER BY 1, 2, 3",
		&sqlitex.ExecOptions{Args: args, ResultFunc: func(s *sqlite.Stmt) error {
			all = append(all, Rejecter{s.ColumnText(0), s.ColumnText(1), s.ColumnText(2)})
			return nil
		}})
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return all, nil
}

// Show returns one letter, or ErrNone.
func (r *Reader) Show(n int64) (found Letter, err error) {
	err = each(r.conn, "SELECT "+r.columns+" FROM letters WHERE number = ?", []any{n}, func(l Letter) error {
		found = l
		return nil
	})
	switch {
	case err != nil:
		return Letter{}, fmt.Errorf("read dead letter %d: %w", n, err)
	case found.Number == 0:
		return Letter{}, fmt.Errorf("%w: %d", ErrNone, n)
	}
	if found.blob != nil {
		b := router.NewBatch(roomFor(len(found.blob)), 1)
		defer b.Discard()
		if m, err := b.AddBlob(found.blob, nil); err == nil { // else a form that this weir does not know
			found.Raw = bytes.Clone(m.Raw)
		}
	}
	found.blob = nil
	return found, nil
}

// roomFor is what a message of so many bytes takes of a batch at most, with what filters may set.
func roomFor(n int) int { return n*32 + 1<<20 }

func each(conn *sqlite.Conn, query string, args []any, f func(Letter) error) error {
	return sqlitex.Execute(conn, query, &sqlitex.ExecOptions{Args: args, ResultFunc: func(s *sqlite.Stmt) error { return f(scan(s)) }})
}

// Close closes the database.
func (r *Reader) Close() error { return r.conn.Close() }
