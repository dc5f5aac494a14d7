package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/weirlog/weir/router"
)

// litePositions keeps how far runs are stored, in the database file that holds
// the rows: files that are attached are not atomic together in WAL mode.
type litePositions struct {
	sql        string // the table's name, quoted
	find, move *sqlite.Stmt
	run        router.RunID
	name       string // of run
	at         uint64 // of run, when cached
	cached     bool   // the file says so
	doubt      bool   // a COMMIT has failed: what the file says may not be on the disk
	moved      [len(positionTime)]byte
}

const (
	positionTime  = "2006-01-02T15:04:05Z"
	positionsKept = 90 * 24 * time.Hour
	positionsLeft = 100 // the newest ones stay, whatever the clock says
)

func (d *lite) position(ctx context.Context, run router.RunID) (at uint64, known bool, err error) {
	if err := d.ready(ctx); err != nil {
		return 0, false, err
	}
	p := &d.positions
	if p.cached && p.run == run {
		return p.at, true, nil
	}
	p.cached = false
	if p.doubt {
		// An fsync that failed is not tried again for the same pages: what can be
		// read may be nowhere but in memory. A checkpoint writes and syncs it once more.
		if err := d.settleCommit(); err != nil {
			return 0, false, err
		}
		p.doubt = false
	}
	// Another weir with the same run may be in the middle of a transaction.
	if f := d.step("begin", d.begin); f != nil {
		return 0, false, d.abort(notRows(f))
	}
	at, known, f := d.findPosition(run)
	if f == nil && !known {
		f = d.notePosition(run)
	}
	if f == nil {
		f = d.step("commit", d.commit)
	}
	if f != nil {
		f = notRows(f)
		err := d.abort(f)
		d.drop() // whatever it was, a table that has gone is made again
		return 0, false, err
	}
	p.run, p.name, p.at, p.cached = run, run.String(), at, true
	return at, known, nil
}

// settleCommit brings onto the disk what the WAL holds.
func (d *lite) settleCommit() error {
	const attempt = "checkpoint after a failed commit"
	behind := false
	err := sqlitex.ExecuteTransient(d.conn, "PRAGMA "+quote(d.schemaName())+".wal_checkpoint(PASSIVE)", &sqlitex.ExecOptions{
		ResultFunc: func(s *sqlite.Stmt) error { behind = s.ColumnInt(1) != s.ColumnInt(2); return nil }})
	switch {
	case err != nil:
		return d.abort(notRows(liteFailure(attempt, err)))
	case behind:
		return errors.New(attempt + ": a reader is in a transaction that began before it")
	}
	return nil
}

func (d *lite) findPosition(run router.RunID) (at uint64, known bool, f *failure) {
	s := d.positions.find
	s.BindText(1, run.String())
	known, err := s.Step()
	if err == nil && known {
		at = uint64(s.ColumnInt64(0))
	}
	if e := s.Reset(); err == nil {
		err = e
	}
	if err != nil {
		return 0, false, liteFailure("read the position", err)
	}
	return at, known, nil
}

func (d *lite) notePosition(run router.RunID) *failure {
	host, _ := os.Hostname()
	err := sqlitex.ExecuteTransient(d.conn, "INSERT INTO "+d.positions.sql+" (run, pos, destination, host, moved) VALUES (?, 0, ?, ?, ?)",
		&sqlitex.ExecOptions{Args: []any{run.String(), d.name, host, time.Now().UTC().Format(positionTime)}})
	if err != nil {
		return liteFailure("note the run", err)
	}
	return nil
}

// movePosition is the compare-and-set of the transaction that is open. moved is
// false when the position is not span.From.
func (d *lite) movePosition(span *router.Span) (moved bool, f *failure) {
	p := &d.positions
	if p.run != span.Run {
		p.run, p.name, p.cached = span.Run, span.Run.String(), false
	}
	s := p.move
	s.BindInt64(1, int64(span.To))
	s.BindText(2, borrow(time.Now().UTC().AppendFormat(p.moved[:0], positionTime)))
	s.BindText(3, p.name)
	s.BindInt64(4, int64(span.From))
	if f := d.step("move the position", s); f != nil {
		return false, notRows(f)
	}
	return d.conn.Changes() == 1, nil
}

// preparePositions makes the table when it is missing, forgets runs that are
// long over, and prepares what every transaction needs.
func (d *lite) preparePositions() error {
	p := &d.positions
	p.cached = false
	p.sql = quote(d.schemaName()) + "." + positionTable
	err := sqlitex.ExecuteTransient(d.conn, "CREATE TABLE IF NOT EXISTS "+p.sql+
		" (run TEXT PRIMARY KEY, pos INTEGER NOT NULL, destination TEXT, host TEXT, moved TEXT NOT NULL) WITHOUT ROWID", nil)
	if err != nil {
		return beforeRows(liteFailure("create table "+positionTable, err))
	}
	d.prunePositions()
	if p.find, err = d.conn.Prepare("SELECT pos FROM " + p.sql + " WHERE run = ?"); err == nil {
		p.move, err = d.conn.Prepare("UPDATE " + p.sql + " SET pos = ?, moved = ? WHERE run = ? AND pos = ?")
	}
	if err != nil {
		return beforeRows(liteFailure("use table "+positionTable, err))
	}
	return nil
}

// prunePositions removes rows of runs that have not moved for positionsKept. It
// does nothing while the clock is behind the newest of them, or so far ahead that it
// may be the clock that moved. A failure leaves them for the next time.
func (d *lite) prunePositions() {
	now := time.Now()
	if !d.tending.clock.Trusted(now) {
		return
	}
	now = now.UTC()
	old := " WHERE moved < ?1 AND run NOT IN (SELECT run FROM " + d.positions.sql + fmt.Sprintf(" ORDER BY moved DESC LIMIT %d", positionsLeft) +
		") AND (SELECT max(moved) FROM " + d.positions.sql + ") BETWEEN ?1 AND ?2"
	opts := &sqlitex.ExecOptions{Args: []any{now.Add(-positionsKept).Format(positionTime), now.Format(positionTime)}}
	found := false
	find := *opts
	find.ResultFunc = func(*sqlite.Stmt) error { found = true; return nil }
	err := sqlitex.ExecuteTransient(d.conn, "SELECT 1 FROM "+d.positions.sql+old+" LIMIT 1", &find)
	if err == nil && found {
		err = sqlitex.ExecuteTransient(d.conn, "DELETE FROM "+d.positions.sql+old, opts)
	}
	if err != nil {
		d.log.Debug("old rows of "+positionTable+" stay", "error", err)
	}
}
