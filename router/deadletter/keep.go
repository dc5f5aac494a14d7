package deadletter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
	"unsafe"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/weirlog/weir/router"
)

// Keep implements router.DeadLetters: all rows are durable on return, or none.
// When the store is full and may not drop what it has, the error is marked
// NeedsOperator.
func (s *Store) Keep(ctx context.Context, key router.LetterKey, rows []router.Rejected) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	var c change
	err := s.change(ctx, func() (err error) {
		c, err = s.replace(now, key, rows)
		return err
	})
	s.stats.result(now, key, rows, c, err)
	if err == nil {
		s.tell(c.dropped)
	}
	return err
}

// Unsettled implements router.DeadLetters. Runs in which this process has kept letters are left out: who does
// so knows how far they are.
func (s *Store) Unsettled(ctx context.Context, destination string) (runs []router.RunID, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.change(ctx, func() error {
		runs = nil
		const query = "SELECT DISTINCT run FROM letters WHERE destination = ? AND final = 0 ORDER BY run"
		return sqlitex.Execute(s.conn, query, &sqlitex.ExecOptions{Args: []any{destination}, ResultFunc: func(stmt *sqlite.Stmt) error {
			run, err := router.ParseRun(stmt.ColumnText(0))
			if err == nil && !s.ours[destinationRun{destination, run}] {
				runs = append(runs, run)
			}
			return nil // somebody has edited the file: not one of our letters
		}})
	})
	s.stats.result(time.Now(), router.LetterKey{}, nil, change{}, err)
	return runs, err
}

// Settle implements router.DeadLetters.
func (s *Store) Settle(ctx context.Context, destination string, run router.RunID, at uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	var c change
	err := s.change(ctx, func() (err error) {
		if c.voided, err = s.void(destination, run, at); err != nil {
			return err
		}
		return sqlitex.Execute(s.conn, "UPDATE letters SET final = 1 WHERE destination = ? AND run = ? AND final = 0",
			&sqlitex.ExecOptions{Args: []any{destination, run.String()}})
	})
	s.stats.result(now, router.LetterKey{}, nil, c, err)
	return err
}

// change does f in a transaction of its own.
func (s *Store) change(ctx context.Context, f func() error) error {
	defer s.stats.ask()()
	if err := s.current(); err != nil {
		return fmt.Errorf("reopen dead letters: %w", err)
	}
	old := s.conn.SetInterrupt(ctx.Done())
	err := transact(s.conn, func() error {
		if err := f(); err != nil {
			return err
		}
		return s.noteOldest()
	})
	s.conn.SetInterrupt(old) // before fault, which may close it
	if err != nil {
		return s.fault(ctx, err)
	}
	return nil
}

// transact does f in a transaction that others wait for.
func transact(conn *sqlite.Conn, f func() error) (err error) {
	end, err := sqlitex.ImmediateTransaction(conn)
	if err != nil {
		return err
	}
	err = f()
	end(&err)
	return err
}

// A change is what a transaction did to the letters.
type change struct {
	kept    int
	voided  int   // removed because their transaction did not happen
	dropped drops // perhaps of what was kept just now
}

// destinationRun is a run at a destination.
type destinationRun struct {
	destination string
	run         router.RunID
}

// replace does the work of one Keep inside its transaction.
func (s *Store) replace(now time.Time, key router.LetterKey, rows []router.Rejected) (c change, err error) {
	if key.Destination != "" {
		if c.voided, err = s.void(key.Destination, key.Span.Run, key.Span.From); err != nil {
			return c, err
		}
		s.ours[destinationRun{key.Destination, key.Span.Run}] = true
	}
	if c.dropped.age, err = s.expire(now); err != nil {
		return c, err
	}
	c.kept = len(rows)
	rows, c.dropped.size = s.fitting(rows)
	for i := range rows {
		if err := s.insert(key, now.UnixNano(), &rows[i]); err != nil {
			return c, err
		}
	}
	n, err := s.shrink()
	c.dropped.size += n
	return c, err
}

// void removes a run's letters behind position at.
func (s *Store) void(destination string, run router.RunID, at uint64) (removed int, err error) {
	err = sqlitex.Execute(s.conn, "DELETE FROM letters WHERE destination = ? AND run = ? AND position > ?",
		&sqlitex.ExecOptions{Args: []any{destination, run.String(), position(at)}})
	return s.conn.Changes(), err
}

// position is a number of a message as SQLite has it.
func position(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

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
	l := Letter{Destination: key.Destination, Route: key.Route, Filter: key.Filter, Code: row.Code, Column: row.Column, Reason: row.Reason}
	if key.Destination != "" {
		l.Run, l.Position = key.Span.Run, row.Number
		if l.Position == 0 {
			l.Position = key.Span.To
		}
	}
	s.record = router.AppendRecord(s.record[:0], row.Message)
	s.blob = router.AppendBlob(s.blob[:0], row.Message)
	return insert(s.conn, now, &l, s.record, s.blob)
}

// insert adds a letter. One of a destination may turn out to be void unless it is final.
func insert(conn *sqlite.Conn, now int64, l *Letter, record, blob []byte) error {
	stmt, err := conn.Prepare(`INSERT INTO letters (time, run, destination, position, route, filter, code, field, reason, record, blob, final)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
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
	stmt.BindText(2, "")
	if l.Position > 0 {
		stmt.BindText(2, l.Run.String())
		stmt.BindInt64(4, position(l.Position))
	}
	text(3, l.Destination)
	text(5, l.Route)
	text(6, l.Filter)
	stmt.BindText(7, l.Code)
	text(8, l.Column)
	stmt.BindText(9, l.Reason)
	stmt.BindText(10, unsafe.String(unsafe.SliceData(record), len(record))) // the binding copies
	stmt.BindBytes(11, blob)
	stmt.BindBool(12, l.Final || l.Destination == "")
	_, err = stmt.Step()
	return errors.Join(err, stmt.Reset())
}
