package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// A table is what everybody writes into in one comparison.
type table struct {
	name string
	pid  string // the column that has the sender's process id
}

var (
	narrowTable  = table{"messages", "pid"} // time, host, program, pid, message; no index
	defaultTable = table{"logs", "proc_id"} // weir's, which weir makes: 12 columns, an index on received_at
)

// empty makes the server's database anew, with its table.
func (l *lab) empty(ctx context.Context, p *postgres, t table) error {
	p.table = t
	if err := p.exec(ctx, "postgres", "DROP DATABASE IF EXISTS logs WITH (FORCE)", "CREATE DATABASE logs"); err != nil {
		return err
	}
	if t == narrowTable {
		return p.exec(ctx, "logs", `CREATE TABLE messages (datetime timestamptz, host varchar(255),
			program varchar(255), pid varchar(64), message text)`, "CHECKPOINT")
	}
	if err := l.makeTable(ctx, "postgres", p.url("logs")); err != nil {
		return err
	}
	return p.exec(ctx, "logs", "CHECKPOINT")
}

// narrowSQL makes the narrow table in SQLite.
const narrowSQL = `CREATE TABLE messages (datetime varchar(64), host varchar(255),
	program varchar(255), pid varchar(64), message text);`

// tableSQL makes the default table and its index in SQLite, as weir made them in a file of its own.
func (l *lab) tableSQL(ctx context.Context) (string, error) {
	if l.sqliteTable != "" {
		return l.sqliteTable, nil
	}
	dir, err := l.fresh("table")
	if err != nil {
		return "", err
	}
	db := sqliteFile(filepath.Join(dir, "logs.db"))
	if err := l.makeTable(ctx, "sqlite", string(db)); err != nil {
		return "", err
	}
	c, err := db.open()
	if err != nil {
		return "", err
	}
	defer c.Close()
	var b strings.Builder
	err = sqlitex.ExecuteTransient(c, `SELECT sql FROM sqlite_schema WHERE tbl_name = 'logs' AND sql IS NOT NULL`, &sqlitex.ExecOptions{
		ResultFunc: func(row *sqlite.Stmt) error {
			fmt.Fprintf(&b, "%s;\n", row.ColumnText(0))
			return nil
		},
	})
	l.sqliteTable = b.String()
	return l.sqliteTable, err
}
