// Package deadletter keeps what nobody would take: messages that a filter or a
// destination rejected, with the reason, in an SQLite database of bounded size.
package deadletter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"
	"unsafe"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/weirlog/weir/router"
)

// FileName is the database's name in state_dir.
const FileName = "dead_letters.db"

// A Store keeps dead letters durably. It implements router.DeadLetters and is
// safe for concurrent use; other processes may read the database meanwhile.
type Store struct {
	path   string
	config Config
	log    *slog.Logger

	mu     sync.Mutex
	conn   *sqlite.Conn // nil: to be opened
	file   os.FileInfo  // of the database that conn has open
	record []byte       // scratch
	opened time.Time    // by us, with its monotonic reading
	clock  clock
	told   time.Time // when dropped letters were logged last

	stats stats
}

// Open opens the store in dir, which is made when it is not there. Nobody but
// weir's user may read the database: it holds messages as they came.
func Open(dir string, c Config, log *slog.Logger) (*Store, error) {
	s := &Store{path: filepath.Join(dir, FileName), config: c, log: log, opened: time.Now()}
	s.clock.wall = s.opened
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open dead letters: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("open dead letters %s: %w", s.path, err)
	}
	return s, nil
}

// version is the layout of the database, kept in its user_version.
const version = 1

const schema = `
CREATE TABLE letters (
	number      INTEGER PRIMARY KEY AUTOINCREMENT,
	time        INTEGER NOT NULL, -- Unix ns
	run         TEXT NOT NULL,    -- process run
	destination TEXT,
	txn         INTEGER,          -- of the destination in that run
	route       TEXT,
	filter      TEXT,
	code        TEXT NOT NULL,
	field       TEXT,             -- column of the destination
	reason      TEXT NOT NULL,
	record      TEXT NOT NULL,    -- record JSON
	raw         BLOB              -- the message as received
);
CREATE INDEX letters_txn ON letters (destination, txn) WHERE destination IS NOT NULL;
PRAGMA user_version = 1;`

func (s *Store) open() (err error) {
	f, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	f.Chmod(0o600)
	s.file, err = f.Stat()
	f.Close()
	if err != nil {
		return err
	}
	conn, err := sqlite.OpenConn(s.path, sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			conn.Close()
		}
	}()
	conn.SetBusyTimeout(5 * time.Second)
	// auto_vacuum counts only while the file is empty, so it comes first.
	for _, pragma := range []string{"auto_vacuum = INCREMENTAL", "journal_mode = WAL", "synchronous = FULL",
		"journal_size_limit = 1048576", "secure_delete = ON", "cache_size = -1024"} {
		if err := sqlitex.ExecuteTransient(conn, "PRAGMA "+pragma, nil); err != nil {
			return err
		}
	}
	found, err := number(conn, "PRAGMA user_version")
	switch {
	case err != nil:
		return err
	case found > version:
		return fmt.Errorf("written by a newer weir (layout %d, this one knows %d)", found, version)
	case found == 0:
		if err := sqlitex.ExecuteScript(conn, schema, nil); err != nil {
			return err
		}
	}
	s.conn = conn
	if err = s.tidy(); err != nil {
		s.conn = nil
	}
	return err
}

// Keep implements router.DeadLetters: all rows are durable on return, or none.
// When the store is full and may not drop what it has, the error is marked
// NeedsOperator.
func (s *Store) Keep(ctx context.Context, key router.LetterKey, rows []router.Rejected) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	dropped, err := s.keep(ctx, key, rows)
	s.stats.result(key, len(rows), err)
	if err == nil {
		s.tell(dropped)
	}
	return err
}

func (s *Store) keep(ctx context.Context, key router.LetterKey, rows []router.Rejected) (dropped drops, err error) {
	if err := s.current(); err != nil {
		return dropped, fmt.Errorf("reopen dead letters: %w", err)
	}
	old := s.conn.SetInterrupt(ctx.Done())
	defer s.conn.SetInterrupt(old)
	end, err := sqlitex.ImmediateTransaction(s.conn)
	if err != nil {
		return dropped, s.fault(ctx, err)
	}
	dropped, err = s.replace(key, rows)
	end(&err)
	if err != nil {
		return dropped, s.fault(ctx, err)
	}
	return dropped, nil
}

// replace does the work of one Keep inside its transaction.
func (s *Store) replace(key router.LetterKey, rows []router.Rejected) (dropped drops, err error) {
	if key.Destination != "" {
		err := sqlitex.Execute(s.conn, "DELETE FROM letters WHERE destination = ? AND txn > ? AND run = ?",
			&sqlitex.ExecOptions{Args: []any{key.Destination, int64(key.Span.From), key.Span.Run.String()}})
		if err != nil {
			return dropped, err
		}
	}
	now := time.Now()
	if dropped.age, err = s.expire(now); err != nil {
		return dropped, err
	}
	rows, dropped.size = s.fitting(rows)
	for i := range rows {
		if err := s.insert(key, now.UnixNano(), &rows[i]); err != nil {
			return dropped, err
		}
	}
	n, err := s.shrink()
	dropped.size += n
	return dropped, err
}

// fitting leaves out what is not worth writing because it would be dropped at
// once: of more than the store can hold, the first.
func (s *Store) fitting(rows []router.Rejected) (fit []router.Rejected, left int) {
	room := int64(s.config.Size)
	for i := len(rows) - 1; i >= 0; i-- {
		m := rows[i].Message
		room -= int64(m.Size() + len(m.Raw) + len(rows[i].Reason))
		if room < 0 && s.config.WhenFull != Block {
			return rows[i+1:], i + 1
		}
	}
	return rows, 0
}

func (s *Store) insert(key router.LetterKey, now int64, row *router.Rejected) error {
	stmt, err := s.conn.Prepare(`INSERT INTO letters (time, run, destination, txn, route, filter, code, field, reason, record, raw)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	defer stmt.ClearBindings()
	text := func(i int, v string) {
		if v != "" {
			stmt.BindText(i, v)
		}
	}
	stmt.BindInt64(1, now)
	stmt.BindText(2, key.Span.Run.String())
	if key.Destination != "" {
		stmt.BindText(3, key.Destination)
		stmt.BindInt64(4, int64(key.Span.To))
	}
	text(5, key.Route)
	text(6, key.Filter)
	stmt.BindText(7, row.Code)
	text(8, row.Column)
	stmt.BindText(9, row.Reason)
	s.record = router.AppendRecord(s.record[:0], row.Message)
	stmt.BindText(10, unsafe.String(unsafe.SliceData(s.record), len(s.record))) // the binding copies
	if row.Message.Raw != nil {
		stmt.BindBytes(11, row.Message.Raw)
	}
	_, err = stmt.Step()
	return errors.Join(err, stmt.Reset())
}

// current makes sure that the open database is still the one that has the name:
// one that somebody removed would take letters with it.
func (s *Store) current() error {
	if s.conn != nil {
		if info, err := os.Stat(s.path); err == nil && os.SameFile(info, s.file) {
			return nil
		}
		s.log.Warn("the dead letters' database was removed or replaced; opening it anew", "path", s.path)
		s.close()
	}
	return s.open()
}

// fault says what a failed transaction means. What the database could not do by
// itself is done with a new connection the next time.
func (s *Store) fault(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, errFull) {
		return router.NeedsOperator(err)
	}
	err = fmt.Errorf("write dead letters: %w", err)
	switch code := sqlite.ErrCode(err); code.ToPrimary() {
	case sqlite.ResultBusy, sqlite.ResultLocked:
		return err
	case sqlite.ResultFull, sqlite.ResultReadOnly, sqlite.ResultCorrupt, sqlite.ResultNotADB, sqlite.ResultPerm:
		err = router.NeedsOperator(err)
	}
	s.close()
	return err
}

func (s *Store) close() error {
	if s.conn == nil {
		return nil
	}
	err := s.conn.Close()
	s.conn = nil
	return err
}

// Close closes the database.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.close()
}

// number runs a query that answers one integer.
func number(conn *sqlite.Conn, query string) (n int64, err error) {
	err = sqlitex.ExecuteTransient(conn, query, &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		n = stmt.ColumnInt64(0)
		return nil
	}})
	return n, err
}

// Unsettled implements router.DeadLetters.
func (s *Store) Unsettled(context.Context, string) ([]router.RunID, error) { return nil, nil }

// Settle implements router.DeadLetters.
func (s *Store) Settle(context.Context, string, router.RunID, uint64) error { return nil }
