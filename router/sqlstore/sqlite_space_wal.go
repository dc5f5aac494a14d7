package sqlstore

import (
	"errors"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// SQLite itself checkpoints after a commit, as far as readers let it, but begins
// the WAL anew only in a moment when nobody reads from it. Under readers that follow
// each other without a pause there is no such moment unless somebody waits for it.

// wal is the state of the write-ahead log.
type wal struct {
	bytes int64     // of the file
	high  bool      // it should be looked at soon
	held  time.Time // a reader has been in the way since; zero: none is
	told  bool      // in the log
	next  time.Time // when it is tried again
}

const (
	walPatience = 100              // ms that readers are waited for; rows wait as long
	walPause    = 10 * time.Second // after they were waited for in vain
	walTold     = 4 * liteWALBytes // from this size on, or after a minute, a reader is told of in the log
)

// tendWAL empties a WAL that has grown beyond its bound.
func (d *lite) tendWAL(now time.Time) *failure {
	w := &d.tending.wal
	w.high = w.bytes > liteWALBytes/2
	if w.bytes <= liteWALBytes {
		if w.told {
			d.log.Info("the WAL can be emptied again", "after", now.Sub(w.held).Round(time.Second))
		}
		w.held, w.told = time.Time{}, false
		return nil
	}
	if now.Before(w.next) {
		w.high = false
		return nil
	}
	restore := d.hurry(walPatience)
	f := d.truncateWAL()
	restore()
	switch {
	case f == nil:
		w.bytes, w.high = 0, false
		d.tending.gauge.wal.Set(0)
		return d.tendWAL(now)
	case f.class != temp:
		return f
	}
	w.next = now.Add(walPause)
	w.high = false
	if w.held.IsZero() {
		w.held = now
	}
	if !w.told && (w.bytes > walTold || now.Sub(w.held) > time.Minute) {
		w.told = true
		d.log.Warn("a reader keeps its transaction open: the WAL cannot be emptied and grows", "file", d.tending.home+"-wal", "bytes", w.bytes, "since", w.held)
	}
	return nil
}

// truncateWAL moves the WAL into the file and makes it empty. While a reader is in
// the way it fails as temp.
func (d *lite) truncateWAL() *failure {
	busy := false
	err := sqlitex.Execute(d.conn, "PRAGMA "+quote(d.schemaName())+".wal_checkpoint(TRUNCATE)", &sqlitex.ExecOptions{
		ResultFunc: func(s *sqlite.Stmt) error { busy = s.ColumnInt(0) != 0; return nil }})
	switch {
	case err != nil:
		return notRows(liteFailure("empty the WAL", err))
	case busy:
		return &failure{class: temp, code: sqlite.ResultBusy.String(), err: errors.New("empty the WAL: a reader is in a transaction")}
	}
	return nil
}
