package deadletter

import (
	"fmt"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// version is the layout of the database, kept in its user_version. In layout 1
// a letter had the number of a transaction in place of its message's, and no blob.
const version = 2

const schema = `
CREATE TABLE letters (
	number      INTEGER PRIMARY KEY AUTOINCREMENT,
	time        INTEGER NOT NULL, -- Unix ns
	run         TEXT NOT NULL,    -- UUID; layout 1: of the process
	destination TEXT,
	position    INTEGER,          -- of the message in that run; layout 1: of the transaction
	route       TEXT,
	filter      TEXT,
	code        TEXT NOT NULL,
	field       TEXT,             -- column of the destination
	reason      TEXT NOT NULL,
	record      TEXT NOT NULL,    -- record JSON
	raw         BLOB,             -- layout 1: the message as received
	blob        BLOB,             -- router.AppendBlob, with the message as received
	final       INTEGER NOT NULL DEFAULT 1 -- 0: void if its transaction was not committed
);` + plan

// plan holds what a replay is about to write, until it is known what became of it.
const plan = `
CREATE INDEX letters_run ON letters (destination, run, position, final) WHERE destination IS NOT NULL;
CREATE TABLE replays (
	run         TEXT NOT NULL,    -- of the replay at that destination
	position    INTEGER NOT NULL,
	letter      INTEGER NOT NULL, -- number of the letter that it was made of
	destination TEXT,             -- where it goes; null: a filter refused it
	route       TEXT,             -- that filter's
	filter      TEXT,
	blob        BLOB NOT NULL,    -- the message as it is offered
	state       INTEGER NOT NULL, -- pending, stored or refused
	code        TEXT,             -- of what is refused, or would be by the transaction under way
	field       TEXT,
	reason      TEXT,
	PRIMARY KEY (run, position)
) WITHOUT ROWID;
PRAGMA user_version = 2;`

// upgrade makes layout 2 of layout 1. Its letters are final: nobody can ask a
// destination about a transaction without a position.
const upgrade = `
ALTER TABLE letters RENAME COLUMN txn TO position;
ALTER TABLE letters ADD COLUMN blob BLOB;
ALTER TABLE letters ADD COLUMN final INTEGER NOT NULL DEFAULT 1;
DROP INDEX letters_txn;` + plan

// openForWriting opens a database that exists, as every writer of it has to.
func openForWriting(path string) (*sqlite.Conn, error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return nil, err
	}
	conn.SetBusyTimeout(busyTimeout)
	// auto_vacuum counts only while the file is empty, so it comes first.
	for _, pragma := range []string{"auto_vacuum = INCREMENTAL", "journal_mode = WAL", "synchronous = FULL",
		"journal_size_limit = 1048576", "secure_delete = ON", "cache_size = -1024"} {
		if err := sqlitex.ExecuteTransient(conn, "PRAGMA "+pragma, nil); err != nil {
			conn.Close()
			return nil, err
		}
	}
	return conn, nil
}

// busyTimeout is how long one process waits for another's transaction.
const busyTimeout = 5 * time.Second

// layout reads the version of a database; 0: made, and not filled yet.
func layout(conn *sqlite.Conn) (int64, error) {
	found, err := number(conn, "PRAGMA user_version")
	if err == nil && found > version {
		err = fmt.Errorf("written by a newer weir (layout %d, this one knows %d)", found, version)
	}
	return found, err
}

// migrate brings a database to the layout that this weir knows. Its letters stay.
func migrate(conn *sqlite.Conn) error {
	if found, err := layout(conn); err != nil || found == version {
		return err
	}
	return transact(conn, func() error {
		found, err := layout(conn) // another process may have been quicker
		switch {
		case err != nil || found == version:
			return err
		case found == 1:
			return sqlitex.ExecuteScript(conn, upgrade, nil)
		}
		return sqlitex.ExecuteScript(conn, schema, nil)
	})
}

// number runs a query that answers one integer.
func number(conn *sqlite.Conn, query string) (n int64, err error) {
	err = sqlitex.ExecuteTransient(conn, query, &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		n = stmt.ColumnInt64(0)
		return nil
	}})
	return n, err
}
