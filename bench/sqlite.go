package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// A sqliteFile is a database that is looked at from outside only while it is
// written: a reader would take locks, and both would wait.
type sqliteFile string

func (path sqliteFile) open() (*sqlite.Conn, error) {
	// Without OpenWAL: the journal mode is the router's business.
	return sqlite.OpenConn(string(path), sqlite.OpenReadWrite, sqlite.OpenCreate)
}

// create makes the file with a table.
func (path sqliteFile) create(sql string) error {
	c, err := path.open()
	if err != nil {
		return err
	}
	defer c.Close()
	return sqlitex.ExecuteScript(c, sql, nil)
}

// touched is when the database was last written to: a commit removes the
// journal, which changes the directory, or writes to the write-ahead log.
func (path sqliteFile) touched() time.Time {
	var last time.Time
	for _, name := range []string{filepath.Dir(string(path)), string(path), string(path) + "-wal"} {
		if info, err := os.Stat(name); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last
}

// settle waits until the file has not been written to for a while and returns
// when that was last.
func (path sqliteFile) settle(ctx context.Context, quiet time.Duration) (time.Time, error) {
	for {
		last := path.touched()
		wait := quiet - time.Since(last)
		if wait <= 0 {
			return last, nil
		}
		select {
		case <-ctx.Done():
			return last, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// rows returns how many rows there are and how many differ.
func (path sqliteFile) rows(t table) (rows, distinct int, err error) {
	c, err := path.open()
	if err != nil {
		return 0, 0, err
	}
	defer c.Close()
	err = sqlitex.ExecuteTransient(c, `SELECT count(*), count(DISTINCT substr(message, instr(message, 'seq: '), 27)) FROM `+t.name, &sqlitex.ExecOptions{
		ResultFunc: func(row *sqlite.Stmt) error {
			rows, distinct = row.ColumnInt(0), row.ColumnInt(1)
			return nil
		},
	})
	return rows, distinct, err
}
