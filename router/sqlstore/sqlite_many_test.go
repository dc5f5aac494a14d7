package sqlstore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirlog/weir/router"
)

// Field cases C01, C13, C18, C22: what nobody takes costs itself and nothing
// else, and is counted.
func TestSQLiteBadRowsAmongTenThousand(t *testing.T) {
	d := openLite(t, Config{AddColumns: columns(
		"n", Column{From: "fields.n", Type: "SMALLINT CHECK (n <> 13)"},
		"short", Column{From: "fields.short", Type: "VARCHAR(8)"},
		"must", Column{From: "fields.must", Type: "TEXT NOT NULL"},
		"once", Column{From: "fields.once", Type: "TEXT UNIQUE"},
	)})
	msgs, want, repaired := spoiled([...]string{"SQLITE_MISMATCH n", "SQLITE_MISMATCH short", "SQLITE_MISMATCH n",
		"SQLITE_CONSTRAINT_NOTNULL must", "SQLITE_CONSTRAINT_CHECK ", "SQLITE_CONSTRAINT_UNIQUE once"})
	run := router.NewRun()
	d.wantPosition(run, 0, false)
	for at := 0; at < len(msgs); at += 1000 {
		d.mustWriteAt(run, uint64(at), uint64(at+1000), msgs[at:at+1000]...)
	}
	d.wantSpoiled(want, repaired)
	d.want("SELECT count(*), count(DISTINCT once) FROM logs", fmt.Sprintf("%d|%[1]d", 10_000-len(want)))
	d.wantPosition(run, 10000, true)
}

// Somebody changes the table while rows come: none is lost, it is told, and
// goes on by itself when it is mended.
func TestSQLiteTableThatIsChangedUnderLoad(t *testing.T) {
	no := false
	check := func(name, reason string, change, mend []string) {
		t.Helper()
		dir := t.TempDir()
		cfg := Config{SQLite: "logs.db", Indexes: []string{}, Columns: columns("message", "message", "severity", "severity")}
		open(t, dir, cfg).Close() // makes the table
		cfg.Create = &no
		d := open(t, dir, cfg)
		run, at := router.NewRun(), uint64(0)
		d.wantPosition(run, 0, false)
		write := func() error {
			err := d.writeAt(run, at, at+100, messages(100)...)
			if err == nil {
				at += 100
			}
			return err
		}
		for range 3 {
			if err := write(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		for _, sql := range change {
			d.query(sql)
		}
		for range 3 {
			if err := write(); !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), reason) {
				t.Errorf("%s: %v", name, err)
			}
			if got := d.position(run); got != "300" && !strings.Contains(got, reason) {
				t.Errorf("%s: position %s", name, got)
			}
		}
		for _, sql := range mend {
			d.query(sql)
		}
		d.wantPosition(run, 300, true)
		for range 3 {
			if err := write(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		d.want("SELECT count(*) FROM logs", "600")
		if len(d.letters) > 0 {
			t.Errorf("%s: %d dead letters", name, len(d.letters))
		}
	}
	check("a NOT NULL column without default", "wants a value for c",
		[]string{"ALTER TABLE logs RENAME TO old", "CREATE TABLE logs (message TEXT, severity INTEGER, c INTEGER NOT NULL)", "INSERT INTO logs SELECT message, severity, 0 FROM old"},
		[]string{"ALTER TABLE logs DROP COLUMN c"})
	check("a dropped column", "has no column severity", []string{"ALTER TABLE logs DROP COLUMN severity"}, []string{"ALTER TABLE logs ADD COLUMN severity INTEGER"})
	check("a renamed table", "there is no table logs", []string{"ALTER TABLE logs RENAME TO elsewhere"}, []string{"ALTER TABLE elsewhere RENAME TO logs"})
	check("a changed type", "column message: the value is not", []string{"ALTER TABLE logs RENAME TO old", "CREATE TABLE logs (message INTEGER, severity INTEGER)"},
		[]string{"DROP TABLE logs", "ALTER TABLE old RENAME TO logs"})
	check("a constraint", "CHECK constraint failed", []string{"ALTER TABLE logs RENAME TO old", "CREATE TABLE logs (message TEXT CHECK (message = ''), severity INTEGER)"},
		[]string{"DROP TABLE logs", "ALTER TABLE old RENAME TO logs"})
	check("a trigger", "closed", []string{"CREATE TRIGGER t BEFORE INSERT ON logs BEGIN SELECT RAISE(ABORT, 'closed'); END"}, []string{"DROP TRIGGER t"})
}
