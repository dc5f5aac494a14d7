package deadletter

import (
	"fmt"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// An Editor changes the letters of a store, also while a router writes to it. It serves one goroutine at a time.
type Editor struct {
	conn   *sqlite.Conn
	layout int64
	dir    string
}

// OpenEditor opens the store in dir. fs.ErrNotExist: there is none, so nothing was ever rejected.
func OpenEditor(dir string) (*Editor, error) {
	conn, found, err := openExisting(dir, openForWriting)
	if err != nil {
		return nil, err
	}
	return &Editor{conn, found, dir}, nil
}

// purgeStep is how many letters go in one transaction: a store that is full because its disk is has little room for a log.
const purgeStep = 500

// Purge removes the letters that are selected and returns how many, on error too.
func (e *Editor) Purge(which Selection) (removed int, err error) {
	where, args := which.where()
	newest, err := number(e.conn, "SELECT coalesce(max(number), 0) FROM letters") // what comes meanwhile was not meant
	for step := purgeStep; err == nil && step == purgeStep; removed += step {
		err = transact(e.conn, func() error {
			err := sqlitex.Execute(e.conn, "DELETE FROM letters WHERE number IN (SELECT number FROM letters WHERE number <= ? AND "+where+" ORDER BY number LIMIT ?)",
				&sqlitex.ExecOptions{Args: append(append([]any{newest}, args...), purgeStep)})
			step = e.conn.Changes()
			return err
		})
		if err != nil {
			step = 0
		}
	}
	if err != nil {
		return removed, fmt.Errorf("purge dead letters: %w", err)
	}
	if removed > 0 {
		sqlitex.ExecuteTransient(e.conn, "PRAGMA incremental_vacuum", nil) // a busy router does it at its next start
	}
	return removed, nil
}

// Close closes the database.
func (e *Editor) Close() error { return e.conn.Close() }
