package sqlstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/weirlog/weir/router"
)

// position is what the destination says of a run: "5", or "0 new".
func (r *rig) position(run router.RunID) string {
	r.t.Helper()
	n, known, err := r.positioner().Position(r.t.Context(), run)
	switch {
	case err != nil:
		return err.Error()
	case !known:
		return fmt.Sprint(n, " new")
	}
	return fmt.Sprint(n)
}

func TestSQLitePositionMovesWithTheRows(t *testing.T) {
	d := openLite(t, Config{})
	run, other := router.NewRun(), router.NewRun()
	d.wantPosition(run, 0, false)
	d.want("SELECT run, pos, destination FROM weir_positions", run.String()+"|0|db")
	d.wantPosition(run, 0, true)
	d.wantPosition(other, 0, false)
	for i := range uint64(3) {
		d.mustWriteAt(run, 5*i, 5*i+5, messages(5)...)
		d.wantPosition(run, 5*i+5, true)
	}
	d.mustWriteAt(other, 0, 90, messages(2)...) // 88 were lost on their way
	d.wantPosition(run, 15, true)
	d.want("SELECT count(*) FROM logs", "17")
	again := open(t, d.dir, Config{SQLite: "logs.db"})
	again.wantPosition(run, 15, true)
	again.wantPosition(other, 90, true)
	if n := again.query("SELECT count(*) FROM weir_positions WHERE datetime(moved) > datetime('now', '-1 hour')"); n[0] != "2" {
		t.Errorf("%s rows were moved just now", n)
	}
}

func TestSQLitePositionThatMovedStoresNothing(t *testing.T) {
	cfg := Config{AddColumns: columns("n", Column{From: "fields.n", Type: "INTEGER"})}
	a := openLite(t, cfg)
	cfg.SQLite = "logs.db"
	b := open(t, a.dir, cfg)
	run := router.NewRun()
	a.wantPosition(run, 0, false)
	b.wantPosition(run, 0, true)
	a.mustWriteAt(run, 0, 5, messages(5)...)
	if err := b.writeAt(run, 0, 5, append(messages(4), with(message("bad"), "n", text("x")))...); !errors.Is(err, router.ErrMoved) {
		t.Errorf("WriteAt = %v", err)
	}
	if len(b.letters) > 0 {
		t.Error("the one that lost has rejected rows")
	}
	b.wantPosition(run, 5, true)
	b.mustWriteAt(run, 5, 7, messages(2)...)
	a.query("UPDATE weir_positions SET pos = 3") // the file was put back
	if err := b.writeAt(run, 7, 9, messages(2)...); !errors.Is(err, router.ErrMoved) {
		t.Errorf("WriteAt = %v", err)
	}
	b.wantPosition(run, 3, true)
	b.want("SELECT count(*) FROM logs", "7")
}

func TestSQLitePositionStaysWhenTheTransactionFails(t *testing.T) {
	d := openLite(t, Config{AddColumns: columns("n", Column{From: "fields.n", Type: "INTEGER"})})
	run := router.NewRun()
	d.wantPosition(run, 0, false)
	bad := append(messages(4), with(message("bad"), "n", text("x")))
	err := positioned{d.Store}.WriteAt(t.Context(), router.Span{Run: run, To: 5}, bad, func([]router.Rejected) error { return os.ErrDeadlineExceeded })
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	d.wantPosition(run, 0, true)
	d.want("SELECT pos FROM weir_positions", "0")
	d.mustWriteAt(run, 0, 5, bad...)
	d.want("SELECT (SELECT pos FROM weir_positions), count(*) FROM logs", "5|4")
}

func TestSQLitePositionTellsWhatBecameOfAFailedCommit(t *testing.T) {
	d := openLite(t, Config{AddColumns: columns("n", Column{From: "fields.n", Type: "INTEGER"})})
	run := router.NewRun()
	d.wantPosition(run, 0, false)
	// reject is called right before COMMIT: it takes effect, and weir sees an error.
	committed := func([]router.Rejected) error {
		return sqlitex.ExecuteTransient(d.db.(*lite).conn, "COMMIT", nil)
	}
	err := positioned{d.Store}.WriteAt(t.Context(), router.Span{Run: run, To: 5}, append(messages(4), with(message("bad"), "n", text("x"))), committed)
	if err == nil {
		t.Fatal("no error of COMMIT")
	}
	d.wantPosition(run, 5, true)
	d.want("SELECT count(*) FROM logs", "4")

	// And where it is the disk that failed, with what is written but perhaps not synced.
	reader, err := sqlite.OpenConn(filepath.Join(d.dir, "logs.db"), sqlite.OpenReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for _, sql := range []string{"BEGIN", "SELECT count(*) FROM logs"} {
		if err := sqlitex.ExecuteTransient(reader, sql, nil); err != nil {
			t.Fatal(err)
		}
	}
	d.mustWriteAt(run, 5, 6, messages(1)...)
	d.db.(*lite).drop()
	d.db.(*lite).positions.doubt = true
	if got := d.position(run); !strings.Contains(got, "a reader is in a transaction") {
		t.Errorf("position %s while what it says may be nowhere", got)
	}
	if err := sqlitex.ExecuteTransient(reader, "COMMIT", nil); err != nil {
		t.Fatal(err)
	}
	d.wantPosition(run, 6, true)
	if n, _ := os.ReadFile(filepath.Join(d.dir, "logs.db")); !strings.Contains(string(n), run.String()) {
		t.Error("the position is not in the file itself")
	}
}

func TestSQLitePositionsOfAFileThatWasTakenAway(t *testing.T) {
	d := openLite(t, Config{})
	run := router.NewRun()
	d.wantPosition(run, 0, false)
	d.mustWriteAt(run, 0, 3, messages(3)...)
	rename := func(from, to string) {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if err := os.Rename(filepath.Join(d.dir, from+suffix), filepath.Join(d.dir, to+suffix)); err != nil && suffix == "" {
				t.Fatal(err)
			}
		}
	}
	rename("logs.db", "old.db")
	if err := d.writeAt(run, 3, 5, messages(2)...); !errors.Is(err, router.ErrMoved) {
		t.Errorf("WriteAt = %v", err)
	}
	d.wantPosition(run, 0, false)
	d.mustWriteAt(run, 0, 5, messages(2)...)
	rename("old.db", "logs.db")
	d.wantPosition(run, 3, true)
	d.query("DROP TABLE weir_positions")
	if err := d.writeAt(run, 3, 5, messages(2)...); !router.IsNeedsOperator(err) {
		t.Errorf("WriteAt = %v", err)
	}
	d.wantPosition(run, 0, false)
}

func TestSQLitePositionWaitsForOthers(t *testing.T) {
	d := openLite(t, Config{SessionStatements: []string{"PRAGMA busy_timeout = 1"}})
	run := router.NewRun()
	other, err := sqlite.OpenConn(filepath.Join(d.dir, "logs.db"), sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, sql := range []string{"BEGIN IMMEDIATE", "INSERT INTO weir_positions VALUES ('" + run.String() + "', 7, NULL, NULL, '')"} {
		if err := sqlitex.ExecuteTransient(other, sql, nil); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err = positioned{d.Store}.Position(t.Context(), run)
	if err == nil || router.IsNeedsOperator(err) || !strings.Contains(err.Error(), "SQLITE_BUSY") {
		t.Errorf("Position = %v", err)
	}
	if err := sqlitex.ExecuteTransient(other, "COMMIT", nil); err != nil {
		t.Fatal(err)
	}
	d.wantPosition(run, 7, true)
}

func TestSQLitePositionsOfEndedRunsArePruned(t *testing.T) {
	d := openLite(t, Config{})
	fill := func(newest time.Duration) {
		d.query("DELETE FROM weir_positions")
		d.query(fmt.Sprintf(`WITH days(value) AS (SELECT 0 UNION ALL SELECT value + 1 FROM days WHERE value < 299)
			INSERT INTO weir_positions SELECT 'run ' || value, 1, 'db', 'edge',
			strftime('%%Y-%%m-%%dT%%H:%%M:%%SZ', 'now', '%d seconds', '-' || value || ' days') FROM days`, int(newest.Seconds())))
		d.db.(*lite).drop()
		if err := d.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	fill(-time.Minute)
	d.want("SELECT count(*) FROM weir_positions", "100")
	d.want("SELECT max(moved) > datetime('now', '-1 day') FROM weir_positions", "1")
	fill(-100 * 24 * time.Hour) // the clock jumped ahead, or weir was off for long
	d.want("SELECT count(*) FROM weir_positions", "300")
	fill(time.Hour) // the clock was put back
	d.want("SELECT count(*) FROM weir_positions", "300")
}

func TestSQLitePositionsAreInTheFileOfTheRows(t *testing.T) {
	dir := t.TempDir()
	audit := filepath.Join(dir, "audit.db")
	d := open(t, dir, Config{SQLite: "logs.db", Table: "audit.logs", SessionStatements: []string{"ATTACH '" + audit + "' AS audit", "PRAGMA audit.journal_mode = WAL"}})
	run := router.NewRun()
	d.wantPosition(run, 0, false)
	d.mustWriteAt(run, 0, 3, messages(3)...)
	if got := query(t, audit, "SELECT pos, (SELECT count(*) FROM logs) FROM weir_positions"); got[0] != "3|3" {
		t.Error(got)
	}
	d.want("SELECT count(*) FROM sqlite_schema", "0")
}

func TestAutocommitKeepsNoPositions(t *testing.T) {
	no := false
	d := openLite(t, Config{ExplicitCommits: &no})
	if _, ok := d.Destination().(router.Positioner); ok {
		t.Error("a Positioner without transactions")
	}
	d.want("SELECT name FROM sqlite_schema WHERE name LIKE 'weir%'")
	if _, ok := openLite(t, Config{}).Destination().(router.Positioner); !ok {
		t.Error("no Positioner")
	}
}

func TestSQLiteManyOpenANewFileAtOnce(t *testing.T) {
	dir := t.TempDir()
	run := router.NewRun()
	done := make(chan error, 8)
	for range 8 {
		go func() {
			s, err := Open(t.Context(), Config{SQLite: "logs.db"}, "db", dir, slogDiscard)
			if err != nil {
				done <- err
				return
			}
			defer s.Close()
			p := positioned{s}
			_, _, err = p.Position(t.Context(), run)
			if err == nil {
				err = p.WriteAt(t.Context(), router.Span{Run: run, To: 3}, messages(3), nil)
			}
			done <- err
		}()
	}
	won := 0
	for range 8 {
		switch err := <-done; {
		case err == nil:
			won++
		case !errors.Is(err, router.ErrMoved):
			t.Error(err)
		}
	}
	if got := query(t, filepath.Join(dir, "logs.db"), "SELECT count(*), (SELECT pos FROM weir_positions) FROM logs"); won != 1 || got[0] != "3|3" {
		t.Errorf("%d of 8 have stored, %s", won, got)
	}
}
