package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/deadletter"
	"github.com/weirlog/weir/router/routertest"
)

// A crashDatabase is where the rows are, with its table made.
type crashDatabase interface {
	settings() string // lines of the destination, YAML
	messages(t *testing.T) []string
	block(t *testing.T) (release func()) // nothing can be stored until then
}

const crashTable = "CREATE TABLE logs (message TEXT NOT NULL CHECK (message NOT LIKE '% bad %'))"

// liteCrash is a SQLite file outside of the state directory.
type liteCrash struct{ path string }

func newLiteCrash(t *testing.T) *liteCrash {
	dir := t.TempDir()
	os.Chmod(dir, 0o700)
	l := &liteCrash{filepath.Join(dir, "logs.db")}
	l.do(t, "PRAGMA journal_mode = WAL", nil)
	l.do(t, crashTable, nil)
	return l
}

func (l *liteCrash) settings() string { return "sqlite: " + l.path }

// do runs a statement on a connection of its own.
func (l *liteCrash) do(t *testing.T, sql string, row func(*sqlite.Stmt) error) {
	t.Helper()
	conn, err := sqlite.OpenConn(l.path, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := sqlitex.ExecuteTransient(conn, sql, &sqlitex.ExecOptions{ResultFunc: row}); err != nil {
		t.Fatal(err)
	}
}

func (l *liteCrash) messages(t *testing.T) (all []string) {
	t.Helper()
	l.do(t, "SELECT message FROM logs", func(s *sqlite.Stmt) error { all = append(all, s.ColumnText(0)); return nil })
	l.do(t, "PRAGMA integrity_check", func(s *sqlite.Stmt) error {
		if s.ColumnText(0) != "ok" {
			t.Errorf("the database is damaged: %s", s.ColumnText(0))
		}
		return nil
	})
	return all
}

// pgCrash is a database of a PostgreSQL server.
type pgCrash struct {
	server      *routertest.PostgresServer
	dsn         string
	connections int
	forgets     bool // what was committed last, in a crash
}

func newPGCrash(t *testing.T, connections int) *pgCrash {
	server := routertest.OwnPostgres(t, routertest.PostgresOwn{Settings: map[string]string{"wal_writer_delay": "10s"}}) // of commits that are not synchronous
	server.Exec(t, server.DSN("postgres"), "CREATE DATABASE crash")
	p := &pgCrash{server: server, dsn: server.DSN("crash"), connections: connections}
	server.Exec(t, p.dsn, crashTable)
	return p
}

func (p *pgCrash) settings() string {
	more := ""
	if p.forgets {
		more = "\n    session_statements: [SET synchronous_commit = off]"
	}
	return fmt.Sprintf("postgres: %q\n    connections: %d%s", p.dsn, p.connections, more)
}

func (p *pgCrash) messages(t *testing.T) []string {
	t.Helper()
	return p.server.Query(t, p.dsn, "SELECT message FROM logs")
}

// A found is how often each message was found, by sender and number.
type found struct{ rows, letters map[string]map[uint64]int }

// look reads the table, and the dead letters of one or more state directories. A letter that several of them have, because
// one is a copy of the other, counts once.
func look(t *testing.T, db crashDatabase, stateDirs ...string) found {
	t.Helper()
	f := found{map[string]map[uint64]int{}, map[string]map[uint64]int{}}
	count := func(to map[string]map[uint64]int, message string, stored bool) {
		var name, word string
		var n uint64
		if k, err := fmt.Sscan(message, &name, &n, &word); k != 3 {
			t.Errorf("found %q: %v", message, err)
			return
		}
		if want := wordOf(n); word != want || stored && want == bad {
			t.Errorf("found %q", message)
		}
		if to[name] == nil {
			to[name] = map[uint64]int{}
		}
		to[name][n]++
	}
	for _, m := range db.messages(t) {
		count(f.rows, m, true)
	}
	type key struct {
		run      router.RunID
		position uint64
	}
	seen := map[key]bool{}
	for _, dir := range stateDirs {
		letters, err := deadletter.OpenReader(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		all, err := letters.List(deadletter.Selection{}, 0)
		if err = errors.Join(err, letters.Close()); err != nil {
			t.Fatal(err)
		}
		here := map[key]bool{}
		for _, l := range all {
			k := key{l.Run, l.Position}
			if l.Destination != "db" || l.Position == 0 || here[k] {
				t.Errorf("letter %d: destination %s, position %d, there already: %v", l.Number, l.Destination, l.Position, here[k])
			}
			here[k] = true
			if seen[k] {
				continue
			}
			seen[k] = true
			var record struct{ Message string }
			if err := json.Unmarshal(l.Record, &record); err != nil {
				t.Error(err)
			}
			count(f.letters, record.Message, false)
		}
	}
	return f
}

// A tally is what became of one sender's messages.
type tally struct {
	made, acked, rows, letters int
	lost                       int // acknowledged, or of a sender that resumes, and nowhere
	doubled                    int
	unacked                    int // stored, though the acknowledgement was lost on its way
}

func (a *tally) add(b tally) {
	a.made += b.made
	a.acked += b.acked
	a.rows += b.rows
	a.letters += b.letters
	a.lost += b.lost
	a.doubled += b.doubled
	a.unacked += b.unacked
}

// judge compares what a sender knows with what was found of it.
func (f found) judge(t *testing.T, s *crashSender, filters bool) (sum tally) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.wrong {
		t.Errorf("%s: %s", s.name, w)
	}
	rows, letters := f.rows[s.name], f.letters[s.name]
	var lost, doubled []uint64
	sum.made = int(s.made.Load())
	for n := uint64(1); n <= s.made.Load(); n++ {
		k := rows[n] + letters[n]
		sum.rows += rows[n]
		sum.letters += letters[n]
		if s.acked[n] {
			sum.acked++
		} else if !s.plain {
			sum.unacked += k
		}
		dropped := filters && wordOf(n) == dull
		switch {
		case k > 1 || dropped && k > 0:
			doubled = append(doubled, n)
		case k == 0 && !dropped && (s.acked[n] || s.resumes):
			lost = append(lost, n)
		}
	}
	sum.lost, sum.doubled = len(lost), len(doubled)
	for n := range rows {
		if n > s.made.Load() {
			t.Errorf("%s: message %d was found and never sent", s.name, n)
		}
	}
	if len(lost) > 0 {
		t.Logf("%s: %d lost: %v", s.name, len(lost), lost[:min(len(lost), 20)])
	}
	if len(doubled) > 0 {
		slices.Sort(doubled)
		t.Logf("%s: %d doubled: %v", s.name, len(doubled), doubled[:min(len(doubled), 20)])
	}
	return sum
}
