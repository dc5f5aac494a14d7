package sqlstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/router"
)

// found are the messages that hold a word, as the index says.
func (r *rig) found(word string) string {
	r.t.Helper()
	return strings.Join(r.query("SELECT l.message FROM weir_fts_logs f JOIN logs l ON l.id = f.rowid WHERE weir_fts_logs MATCH '"+word+"' ORDER BY l.id"), ", ")
}

// wantIndexed fails unless the index agrees with the rows that it has, and has so many.
func (r *rig) wantIndexed(rows int) {
	r.t.Helper()
	r.want("SELECT count(*) FROM weir_fts_logs_docsize", fmt.Sprint(rows))
	if rows == len(r.query("SELECT 1 FROM logs")) {
		r.query("INSERT INTO weir_fts_logs(weir_fts_logs, rank) VALUES ('integrity-check', 1)") // fails when not
	}
}

func TestSQLiteFullTextFindsWords(t *testing.T) {
	d := openLite(t, Config{FullText: "message"})
	d.mustWrite(message("connection refused by peer"), message("Connection closed"), message("all fine"))
	if got := d.found("connection"); got != "connection refused by peer, Connection closed" {
		t.Error(got)
	}
	if got := d.found(`"refused by"`); got != "connection refused by peer" {
		t.Error(got)
	}
	// Whoever removes and changes rows: the index follows.
	d.query("DELETE FROM logs WHERE id = 2")
	d.query("UPDATE logs SET message = 'no link' WHERE id = 1")
	d.query("UPDATE logs SET id = 70 WHERE id = 3")
	d.query("UPDATE logs SET hostname = 'other'")
	if got := d.found("connection OR link OR fine"); got != "no link, all fine" {
		t.Error(got)
	}
	d.wantIndexed(2)
	d.mustWrite(messages(120)...)
	d.wantIndexed(122)
	d.query("DELETE FROM logs")
	d.wantIndexed(0)
	d.mustWrite(message("again"))
	if got := d.found("again"); got != "again" {
		t.Error(got)
	}
}

func TestSQLiteFullTextIsUndoneWithItsTransaction(t *testing.T) {
	d := openLite(t, Config{FullText: "message", AddColumns: columns("n", Column{From: "fields.n", Type: "INTEGER CHECK (n < 9)"})})
	msgs := append(messages(60), with(message("bad"), "n", router.IntValue(10)))
	failed := errors.New("no dead letters")
	if err := d.Write(t.Context(), msgs, func([]router.Rejected) error { return failed }); err != failed {
		t.Fatal(err)
	}
	d.wantIndexed(0)
	d.mustWrite(msgs...)
	d.wantIndexed(60)
}

func TestSQLiteFullTextOfATableThatHasRows(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := openLite(t, Config{})
		for range 5 {
			d.mustWrite(messages(1000)...)
		}
		d.Close()
		d = open(t, d.dir, Config{SQLite: "logs.db", FullText: "message"})
		d.mustWrite(message("fresh"))
		if got := d.found("fresh"); got != "fresh" {
			t.Errorf("a new row is not found while the index is built: %q", got)
		}
		more, note := d.Tend(t.Context())
		if !more || !strings.Contains(note, "full-text index is being built") {
			t.Errorf("Tend = %v, %q", more, note)
		}
		if n := len(d.query("SELECT 1 FROM weir_fts_logs_docsize")); n < 2 || n > 1000 {
			t.Errorf("%d rows after a step", n)
		}
		// Rows that are not in the index may go and change.
		d.query("DELETE FROM logs WHERE id <= 500")
		d.query("UPDATE logs SET message = 'changed' WHERE id <= 700")
		// A restart goes on where it was.
		d.Close()
		d = open(t, d.dir, Config{SQLite: "logs.db", FullText: "message"})
		if note := d.tendFor(time.Minute); note != "" {
			t.Error(note)
		}
		d.wantIndexed(4501)
		d.want("SELECT count(*) FROM weir_fts_logs WHERE weir_fts_logs MATCH 'changed'", "200")
	})
}

func TestSQLiteFullTextThatIsWrongIsMadeAnew(t *testing.T) {
	check := func(name string, harm ...string) {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				d := openLite(t, Config{FullText: "message"})
				d.mustWrite(messages(1000)...)
				d.Close()
				for _, s := range harm {
					d.query(s)
				}
				d = open(t, d.dir, Config{SQLite: "logs.db", FullText: "message"})
				for range 3 { // the first may meet it
					if d.tryWrite(message("fresh")) == nil {
						break
					}
				}
				d.tendFor(time.Minute)
				d.wantIndexed(len(d.query("SELECT 1 FROM logs")))
				if got := d.found("fresh"); got != "fresh" {
					t.Error(got)
				}
			})
		})
	}
	check("rows went without it", "DROP TRIGGER weir_fts_logs_delete", "DELETE FROM logs WHERE id < 10")
	check("newest rows went without it", "DROP TRIGGER weir_fts_logs_delete", "DELETE FROM logs WHERE id > 900")
	check("no trigger", "DROP TRIGGER weir_fts_logs_update")
	check("another column", "DROP TABLE weir_fts_logs", `CREATE VIRTUAL TABLE weir_fts_logs USING fts5("hostname", content="logs", content_rowid="rowid")`)
	check("gone", "DROP TABLE weir_fts_logs")
	check("damaged", "DELETE FROM weir_fts_logs_data WHERE id >= 10")
	check("another program added rows", "INSERT INTO logs (received_at, message) SELECT received_at, 'theirs' FROM logs")
}

func TestSQLiteFullTextGrowsWithoutTransactions(t *testing.T) {
	no := false
	d := openLite(t, Config{FullText: "message", ExplicitCommits: &no})
	d.mustWrite(messages(20)...)
	d.wantIndexed(20)
}

func TestSQLiteFullTextOfKeysThatGoBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := openLite(t, Config{FullText: "message", Columns: columns("id", Column{From: "fields.id", Type: "INTEGER PRIMARY KEY"}, "message", "message")})
		d.mustWrite(with(message("hundred"), "id", router.IntValue(100)))
		d.mustWrite(with(message("five"), "id", router.IntValue(5)), with(message("two hundred"), "id", router.IntValue(200)))
		d.query("DELETE FROM logs WHERE id = 5") // it is not in the index
		d.wantIndexed(2)
		d.query("DELETE FROM logs WHERE id = 100")
		if got := d.found("hundred"); got != "two hundred" {
			t.Error(got)
		}
	})
}

func TestSQLiteFullTextForEveryTable(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := openLite(t, Config{Table: "logs_${app_name}"})
		write := func(app, text string) {
			m := message(text)
			m.AppName = []byte(app)
			d.mustWrite(m)
		}
		write("a", "early")
		d.Close()
		d = open(t, d.dir, Config{SQLite: "logs.db", Table: "logs_${app_name}", FullText: "message"})
		write("b", "late")
		write("weir_fts_logs_b", "no harm") // a sender cannot reach the index itself
		d.tendFor(time.Minute)
		d.want("SELECT (SELECT count(*) FROM weir_fts_logs_a WHERE weir_fts_logs_a MATCH 'early'), (SELECT count(*) FROM weir_fts_logs_b WHERE weir_fts_logs_b MATCH 'late'), (SELECT count(*) FROM weir_fts_logs_weir_fts_logs_b)", "1|1|1")
	})
}

func TestSQLiteFullTextNeedsATable(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "logs.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	query(t, path, "CREATE TABLE logs (message TEXT PRIMARY KEY) WITHOUT ROWID")
	_, err := Open(t.Context(), Config{SQLite: path, Columns: columns("message", "message"), FullText: "message"}, "db", dir, slogDiscard)
	if !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), "WITHOUT ROWID") {
		t.Errorf("Open = %v", err)
	}
}

func TestSQLiteRetentionKeepsTheIndex(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := openLite(t, Config{FullText: "message", Retention: Retention{Size: 1 << 20}})
		for range 5 {
			d.mustWrite(benchMessages(1000)...)
		}
		d.tendFor(time.Minute)
		n := len(d.query("SELECT 1 FROM logs"))
		if n == 0 || n > 4000 {
			t.Errorf("%d rows are left", n)
		}
		d.wantIndexed(n)
	})
}

func BenchmarkSQLiteFullText(b *testing.B) {
	d := openLite(b, Config{FullText: "message"})
	msgs := benchMessages(1000)
	words := strings.Fields(strings.Repeat("sshd accepted publickey for user from port refused by peer timeout kernel link up down eth0 ", 2))
	for i, m := range msgs {
		m.Text = []byte(strings.Join(words, " ") + fmt.Sprint(" id=", i))
	}
	for b.Loop() {
		later(msgs)
		if err := d.tryWrite(msgs...); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "rows/s")
}
