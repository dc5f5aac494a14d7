package deadletter

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// A Letter is a message that somebody rejected.
type Letter struct {
	Number      int64
	Time        time.Time // of the rejection
	Destination string    // who rejected: a destination …
	Transaction int64     // … in its transaction of that number,
	Route       string    // or, on this route,
	Filter      string    // a filter
	Code        string    // SQLSTATE, SQLite's extended result name, or a word of weir's
	Column      string    // "" when not known
	Reason      string    // in words
	Record      []byte    // the message as record JSON
	Raw         []byte    // the message as received; nil: not known
}

// ErrNone is what Show answers for a number that has no letter (any more).
var ErrNone = errors.New("no such dead letter")

// A Reader reads the letters of a store, also while a router writes to it. It
// serves one goroutine at a time.
type Reader struct{ conn *sqlite.Conn }

// OpenReader opens the store in dir for reading. fs.ErrNotExist: there is none,
// so nothing was ever rejected.
func OpenReader(dir string) (*Reader, error) {
	path := filepath.Join(dir, FileName)
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("open dead letters: %w", err)
	}
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		return nil, fmt.Errorf("open dead letters %s: %w", path, err)
	}
	conn.SetBusyTimeout(5 * time.Second)
	found, err := number(conn, "PRAGMA user_version")
	switch {
	case err != nil:
	case found == 0: // made, and not filled yet
		err = fs.ErrNotExist
	case found > version:
		err = fmt.Errorf("written by a newer weir (layout %d, this one knows %d)", found, version)
	default:
		return &Reader{conn}, nil
	}
	conn.Close()
	return nil, fmt.Errorf("open dead letters %s: %w", path, err)
}

const columns = "number, time, destination, txn, route, filter, code, field, reason, record, raw"

// List returns the newest n letters, the newest last; all when n is 0. Raw is
// left out.
func (r *Reader) List(n int) ([]Letter, error) {
	var letters []Letter
	err := r.each("SELECT * FROM (SELECT "+columns+" FROM letters ORDER BY number DESC LIMIT ?) ORDER BY number", limit(n), func(l Letter) error {
		l.Raw = nil
		letters = append(letters, l)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return letters, nil
}

// limit is n for LIMIT, where -1 means none.
func limit(n int) int64 {
	if n == 0 {
		return -1
	}
	return int64(n)
}

// Show returns one letter, or ErrNone.
func (r *Reader) Show(n int64) (Letter, error) {
	found := Letter{}
	err := r.each("SELECT "+columns+" FROM letters WHERE number = ?", n, func(l Letter) error {
		found = l
		return nil
	})
	switch {
	case err != nil:
		return Letter{}, fmt.Errorf("read dead letter %d: %w", n, err)
	case found.Number == 0:
		return Letter{}, fmt.Errorf("%w: %d", ErrNone, n)
	}
	return found, nil
}

func (r *Reader) each(query string, arg int64, f func(Letter) error) error {
	return sqlitex.Execute(r.conn, query, &sqlitex.ExecOptions{Args: []any{arg}, ResultFunc: func(s *sqlite.Stmt) error {
		l := Letter{Number: s.ColumnInt64(0), Time: time.Unix(0, s.ColumnInt64(1)).UTC(), Destination: s.ColumnText(2), Transaction: s.ColumnInt64(3),
			Route: s.ColumnText(4), Filter: s.ColumnText(5), Code: s.ColumnText(6), Column: s.ColumnText(7), Reason: s.ColumnText(8),
			Record: []byte(s.ColumnText(9))}
		if !s.ColumnIsNull(10) {
			l.Raw = make([]byte, s.ColumnLen(10))
			s.ColumnBytes(10, l.Raw)
		}
		return f(l)
	}})
}

// Close closes the database.
func (r *Reader) Close() error { return r.conn.Close() }
