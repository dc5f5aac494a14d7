package deadletter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/weirlog/weir/router"
)

// drops are letters that had to go, by reason.
type drops struct{ size, age int }

// errFull is what Keep fails with when letters may not be dropped.
var errFull = errors.New("the dead letters are full")

// Run removes letters that are too old also while nothing is rejected, and looks whether another process has
// taken letters out, until ctx ends.
func (s *Store) Run(ctx context.Context) {
	t := time.NewTicker(time.Minute)
	defer t.Stop()
	for n := 1; ; n++ {
		select {
		case <-t.C:
			s.look(ctx, time.Now(), n%60 == 0)
		case <-ctx.Done():
			return
		}
	}
}

// look counts what is there when another process has changed it, and removes what is too old when
// expire says so. What fails is told by the next Keep, which meets it too.
func (s *Store) look(ctx context.Context, now time.Time, expire bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil { // it could not be opened, or fault has closed it
		if s.open() != nil {
			return
		}
		s.stats.result(now, router.LetterKey{}, nil, change{}, nil)
	}
	s.clock.Trusted(now) // it notices a jump between two calls
	if expire {
		var c change
		if s.change(ctx, func() (err error) {
			c.dropped.age, err = s.expire(now)
			return err
		}) == nil {
			s.stats.add(c)
			s.tell(c.dropped)
		}
	}
	if s.conn == nil {
		return
	}
	if seen, err := number(s.conn, "PRAGMA data_version"); err == nil && seen != s.seen {
		s.seen = seen
		s.count()
	}
}

// count looks how much is there.
func (s *Store) count() error {
	letters, err := number(s.conn, "SELECT count(*) FROM letters")
	if err != nil {
		return err
	}
	used, err := usedBytes(s.conn)
	if err == nil {
		s.stats.is(letters, used)
		err = s.noteOldest()
	}
	return err
}

// noteOldest looks when the oldest letter was kept.
func (s *Store) noteOldest() error {
	oldest, err := number(s.conn, "SELECT coalesce((SELECT time FROM letters ORDER BY number LIMIT 1), 0)")
	if err == nil {
		s.stats.from(oldest)
	}
	return err
}

// tidy brings a database that was just opened to the configured bounds and gives
// the space back.
func (s *Store) tidy() (err error) {
	var d drops
	err = transact(s.conn, func() (err error) {
		if d.age, err = s.expire(time.Now()); err != nil {
			return err
		}
		if d.size, err = s.shrink(); err != nil && !errors.Is(err, errFull) { // that is told when there is something to keep
			return err
		}
		return sqlitex.ExecuteTransient(s.conn, "DELETE FROM replays WHERE letter <> 0 AND letter NOT IN (SELECT number FROM letters)", nil)
	})
	if err != nil {
		return err
	}
	s.tell(d)
	if s.seen, err = number(s.conn, "PRAGMA data_version"); err != nil {
		return err
	}
	if err := s.count(); err != nil {
		return err
	}
	return sqlitex.ExecuteTransient(s.conn, "PRAGMA incremental_vacuum", nil)
}

// expire removes letters that are older than the configuration wants them.
func (s *Store) expire(now time.Time) (int, error) {
	if !s.clock.Trusted(now) || s.config.Age == 0 {
		return 0, nil
	}
	const query = `DELETE FROM letters WHERE time >= ? AND
		number < coalesce((SELECT number FROM letters WHERE time >= ? ORDER BY number LIMIT 1), 9223372036854775807)`
	err := sqlitex.Execute(s.conn, query, &sqlitex.ExecOptions{Args: []any{sane.UnixNano(), now.Add(-s.config.Age).UnixNano()}})
	return s.conn.Changes(), err
}

// shrink removes the oldest letters until the database has its size, or says
// that it may not.
func (s *Store) shrink() (removed int, err error) {
	for {
		used, err := usedBytes(s.conn)
		if err != nil {
			return removed, err
		}
		s.stats.size(used)
		if used <= int64(s.config.Size) {
			return removed, nil
		}
		if s.config.WhenFull == Block {
			return removed, fmt.Errorf("%w (size: %d bytes, when_full: block)", errFull, s.config.Size)
		}
		if err := s.removeOldest(used - int64(s.config.Size)); err != nil {
			return removed, err
		}
		n := s.conn.Changes()
		if n == 0 {
			return removed, nil
		}
		removed += n
	}
}

// removeOldest removes so many of the oldest letters that at least n bytes of
// content go.
func (s *Store) removeOldest(n int64) error {
	stmt, err := s.conn.Prepare("SELECT number, octet_length(record) + coalesce(octet_length(raw), 0) + coalesce(octet_length(blob), 0) + octet_length(reason) FROM letters ORDER BY number")
	if err != nil {
		return err
	}
	last, more := int64(0), true
	for n > 0 {
		if more, err = stmt.Step(); err != nil || !more {
			break
		}
		last = stmt.ColumnInt64(0)
		n -= stmt.ColumnInt64(1)
	}
	if err := errors.Join(err, stmt.Reset()); err != nil {
		return err
	}
	return sqlitex.Execute(s.conn, "DELETE FROM letters WHERE number <= ?", &sqlitex.ExecOptions{Args: []any{last}})
}

// usedBytes is what the letters take of the file; free pages are used again.
func usedBytes(conn *sqlite.Conn) (int64, error) {
	pages, err := number(conn, "PRAGMA page_count")
	if err != nil {
		return 0, err
	}
	free, err := number(conn, "PRAGMA freelist_count")
	if err != nil {
		return 0, err
	}
	size, err := number(conn, "PRAGMA page_size")
	return (pages - free) * size, err
}

// tell counts dropped letters and logs them, at most once a minute.
func (s *Store) tell(d drops) {
	all := s.stats.drop(d)
	if now := time.Now(); d.size > 0 && now.Sub(s.told) >= time.Minute {
		s.told = now
		s.log.Warn("the dead letters are full: the oldest are dropped", "dropped_since_start", all.size, "size", int64(s.config.Size))
	}
}

// sane is a time that has passed wherever weir runs: a letter from before it was kept by a box that did not know the time.
var sane = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
