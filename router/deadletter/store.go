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
	"syscall"
	"time"

	"zombiezen.com/go/sqlite"

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
	conn   *sqlite.Conn            // nil: to be opened
	file   os.FileInfo             // of the database that conn has open
	record []byte                  // scratch
	blob   []byte                  // scratch
	ours   map[destinationRun]bool // in which this process has kept letters
	clock  router.Clock
	seen   int64     // PRAGMA data_version: changes of other processes
	told   time.Time // when dropped letters were logged last

	stats stats
}

// Open opens the store in dir, which is made when it is not there. Nobody but
// weir's user may read the database: it holds messages as they came.
func Open(dir string, c Config, log *slog.Logger) (*Store, error) {
	s := &Store{path: filepath.Join(dir, FileName), config: c, log: log, ours: map[destinationRun]bool{}}
	s.stats.began = time.Now()
	s.clock.Trusted(s.stats.began)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open dead letters: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.open()
	if noRoom(err) {
		// weir starts on a full disk, too. Who needs the letters waits until there is room.
		s.log.Warn("the dead letters cannot be opened: the disk is full", "path", s.path, "error", err)
		s.stats.result(s.stats.began, router.LetterKey{}, nil, change{}, fmt.Errorf("open dead letters: %w", err))
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open dead letters %s: %w", s.path, err)
	}
	return s, nil
}

// noRoom reports whether an error of opening is that of a full disk; SQLite calls it an I/O error when it has no room for
// what it shares with readers (SQLITE_IOERR_SHMSIZE).
func noRoom(err error) bool {
	switch code := sqlite.ErrCode(err); {
	case err == nil:
		return false
	case errors.Is(err, syscall.ENOSPC):
		return true
	default:
		return code.ToPrimary() == sqlite.ResultFull || code == sqlite.ResultIOErrSHMSize || code == sqlite.ResultIOErrWrite
	}
}

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
	conn, err := openForWriting(s.path)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			s.conn = nil
			conn.Close()
		}
	}()
	if err := migrate(conn); err != nil {
		return err
	}
	s.conn = conn
	return s.tidy()
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
