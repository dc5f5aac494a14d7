package sqlstore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router"
)

// Field cases C01, C13, C18, C22: what nobody takes costs itself and nothing
// else, and is counted.
func TestSQLiteBadRowsAmongTenThousand(t *testing.T) {
	d := openLite(t, Config{AddColumns: columns(
		"n", Column{From: "fields.n", Type: "SMALLINT CHECK (n <> 13)"},
		"short", Column{From: "fields.short", Type: "VARCHAR(8)"},
		"must", Column{From: "fields.must", Type: "TEXT NOT NULL"},
		"only", Column{From: "fields.only", Type: "TEXT UNIQUE"},
	)})
	msgs := messages(10_000)
	for i, m := range msgs {
		with(m, "n", router.IntValue(int64(i%13)))
		with(m, "short", text("short"))
		with(m, "must", text("x"))
		with(m, "only", text(fmt.Sprint(i)))
	}
	kinds := []struct {
		code, column string // "": repaired
		spoil        func(m *router.Message)
	}{
		{"SQLITE_MISMATCH", "n", func(m *router.Message) { m.Fields[0].Value = text("many") }},
		{"SQLITE_MISMATCH", "short", func(m *router.Message) { m.Fields[1].Value = text("much too long") }},
		{"SQLITE_MISMATCH", "n", func(m *router.Message) { m.Fields[0].Value = router.IntValue(99999) }},
		{"SQLITE_CONSTRAINT_NOTNULL", "must", func(m *router.Message) { m.Fields[2].Value = router.Value{Kind: router.Null} }},
		{"SQLITE_CONSTRAINT_CHECK", "", func(m *router.Message) { m.Fields[0].Value = router.IntValue(13) }},
		{"SQLITE_CONSTRAINT_UNIQUE", "only", func(m *router.Message) { m.Fields[3].Value = text("0") }},
		{"", "", func(m *router.Message) { m.Text = []byte("a\x00b") }},
		{"", "", func(m *router.Message) { m.Text = []byte("Bl\xe5b\xe6r") }},
		{"", "", func(m *router.Message) {
			with(m, "deep", router.Value{Kind: router.Object, Bytes: []byte(`{"x":"\u0000"}`)})
		}},
	}
	var want []string
	repaired := 0
	for i := range 37 {
		at, kind := 3+i*271, kinds[i%len(kinds)]
		kind.spoil(msgs[at])
		if kind.code == "" {
			repaired++
			continue
		}
		want = append(want, fmt.Sprintf("message %d %s %s", at, kind.code, kind.column))
	}
	run := router.NewRun()
	d.wantPosition(run, "0 new")
	for at := 0; at < len(msgs); at += 1000 {
		if err := d.writeAt(run, uint64(at), uint64(at+1000), msgs[at:at+1000]...); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, l := range d.letters {
		got = append(got, fmt.Sprintf("%s %s %s", l.Message.Text, l.Code, l.Column))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	d.want("SELECT count(*), count(DISTINCT only) FROM logs", fmt.Sprintf("%d|%[1]d", 10_000-len(want)))
	d.wantPosition(run, "10000")
	if n := counted(t, d.metrics.repaired); int(n) != repaired {
		t.Errorf("%v values repaired, want %d", n, repaired)
	}
	if n := counted(t, d.metrics.refused); n == 0 {
		t.Error("no refusals counted")
	}
	for _, l := range d.letters {
		if strings.Contains(l.Reason, "much too") || strings.Contains(l.Reason, "many") || strings.Contains(l.Reason, "99999") {
			t.Errorf("a value is in the reason: %s", l.Reason)
		}
	}
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
		d.wantPosition(run, "0 new")
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
		d.wantPosition(run, "300")
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
