package sqlstore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/weirlog/weir/router"
)

// query runs SQL in the file over a connection of its own: rows as text, columns joined by |.
func query(t testing.TB, path, sql string) []string {
	t.Helper()
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var rows []string
	err = sqlitex.ExecuteTransient(conn, sql, &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
		var row []string
		for i := range s.ColumnCount() {
			if s.ColumnType(i) == sqlite.TypeNull {
				row = append(row, "NULL")
			} else {
				row = append(row, s.ColumnText(i))
			}
		}
		rows = append(rows, strings.Join(row, "|"))
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func (r *rig) query(sql string) []string {
	r.t.Helper()
	return query(r.t, filepath.Join(r.dir, "logs.db"), sql)
}

func (r *rig) want(sql string, rows ...string) {
	r.t.Helper()
	if d := cmp.Diff(rows, r.query(sql)); d != "" {
		r.t.Errorf("%s:\n%s", sql, d)
	}
}

func openLite(t testing.TB, cfg Config) *rig {
	t.Helper()
	cfg.SQLite = "logs.db"
	return open(t, t.TempDir(), cfg)
}

func TestSQLiteStoresEveryColumn(t *testing.T) {
	d := openLite(t, Config{})
	bare := &router.Message{Origin: &router.Origin{}, Received: at}
	bare.Timestamp = router.NoTime
	d.mustWrite(with(message("hello"), "user", router.IntValue(7)), bare)
	d.want("SELECT * FROM logs",
		`1|2026-01-02T03:04:05.678901Z|2026-01-02T03:04:04.678901Z|20|5|web1|shopd|8710|ID47|{"cart@32473":{"items":"3"}}|{"user":7}|hello|192.0.2.7`,
		`2|2026-01-02T03:04:05.678901Z|NULL|0|0|NULL|NULL|NULL|NULL|NULL|NULL||NULL`)
	d.want("SELECT DISTINCT typeof(received_at), typeof(facility), typeof(message) FROM logs", "text|integer|text")
	d.want("PRAGMA auto_vacuum", "2")
	d.want("PRAGMA journal_mode", "wal")
	d.want("SELECT name FROM sqlite_schema WHERE type = 'index'", "logs_received_at_idx")
}

func TestSQLiteTransactionIsAllOrNothing(t *testing.T) {
	d := openLite(t, Config{})
	for _, n := range []int{1, 9, 10, 11, 49, 50, 51, 110, 1000} {
		before := len(d.query("SELECT 1 FROM logs"))
		d.mustWrite(messages(n)...)
		if got := len(d.query("SELECT 1 FROM logs")) - before; got != n {
			t.Errorf("%d rows stored of %d", got, n)
		}
	}
	err := d.Write(t.Context(), append(messages(60), with(message("x"), "n", text("x"))), func([]router.Rejected) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
}

func TestSQLiteRefusedRowCostsOneRow(t *testing.T) {
	cfg := Config{AddColumns: columns("n", Column{From: "fields.n", Type: "INTEGER CHECK (n < 1000)"})}
	for _, at := range [][]int{{0}, {55}, {119}, {3, 4, 60, 61, 110}} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			d := openLite(t, cfg)
			msgs := messages(120)
			for _, m := range msgs {
				with(m, "n", router.IntValue(1))
			}
			var want []string
			for i, n := range at {
				if i%2 == 0 {
					msgs[n].Fields[0].Value = text("many") // weir's own check
					want = append(want, fmt.Sprintf("message %d SQLITE_MISMATCH n", n))
				} else {
					msgs[n].Fields[0].Value = router.IntValue(5000) // SQLite's
					want = append(want, fmt.Sprintf("message %d SQLITE_CONSTRAINT_CHECK ", n))
				}
			}
			d.mustWrite(msgs...)
			var got []string
			for _, l := range d.letters {
				got = append(got, fmt.Sprintf("%s %s %s", l.Message.Text, l.Code, l.Column))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			d.want("SELECT count(*), count(DISTINCT message) FROM logs", fmt.Sprintf("%d|%[1]d", 120-len(at)))
		})
	}
}

func TestSQLiteRejectsThatCannotBeKeptUndoTheTransaction(t *testing.T) {
	d := openLite(t, Config{AddColumns: columns("n", Column{From: "fields.n", Type: "INTEGER"})})
	msgs := messages(60)
	with(msgs[7], "n", text("x"))
	if err := d.Write(t.Context(), msgs, func([]router.Rejected) error { return os.ErrDeadlineExceeded }); err != os.ErrDeadlineExceeded {
		t.Errorf("Write = %v", err)
	}
	d.want("SELECT count(*) FROM logs", "0")
	d.mustWrite(msgs...)
	d.want("SELECT count(*) FROM logs", "59")
}

func TestSQLiteMakesTextStorable(t *testing.T) {
	d := openLite(t, Config{AddColumns: columns("raw", "raw")})
	m := message("a\x00b Bl\xe5b\xe6r")
	with(m, "deep", router.Value{Kind: router.Object, Bytes: []byte(`{"a":"\ud800x\u0000\ud83d\ude00","n":1e999999}`)})
	d.mustWrite(m)
	d.want("SELECT message, fields, hex(raw), typeof(raw) FROM logs",
		"a\uFFFDb Bl\uFFFDb\uFFFDr|"+`{"deep":{"a":"`+"\uFFFDx\uFFFD"+`\ud83d\ude00","n":"1e999999"}}|`+fmt.Sprintf("%X", m.Raw)+"|blob")
	if n := counted(t, d.metrics.repaired); n != 2 {
		t.Errorf("%v values repaired", n)
	}
}

func TestSQLiteBusyPasses(t *testing.T) {
	d := openLite(t, Config{SessionStatements: []string{"PRAGMA busy_timeout = 1"}})
	other, err := sqlite.OpenConn(filepath.Join(d.dir, "logs.db"), sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := sqlitex.ExecuteTransient(other, "BEGIN IMMEDIATE", nil); err != nil {
		t.Fatal(err)
	}
	if err := d.tryWrite(messages(3)...); err == nil || router.IsPermanent(err) || router.IsNeedsOperator(err) || !strings.Contains(err.Error(), "SQLITE_BUSY") {
		t.Errorf("Write = %v", err)
	}
	if err := sqlitex.ExecuteTransient(other, "ROLLBACK", nil); err != nil {
		t.Fatal(err)
	}
	d.mustWrite(messages(3)...)
	d.want("SELECT count(*) FROM logs", "3")
}

func TestSQLiteHoldsWhenTheTableWasChanged(t *testing.T) {
	d := openLite(t, Config{})
	d.mustWrite(messages(10)...)
	d.query("ALTER TABLE logs RENAME COLUMN message TO body")
	err := d.tryWrite(messages(10)...)
	if !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), "message") {
		t.Errorf("Write = %v", err)
	}
	d.query("ALTER TABLE logs RENAME COLUMN body TO message")
	d.mustWrite(messages(10)...)
	d.query("DROP TABLE logs")
	d.query("CREATE TABLE logs (received_at, timestamp, facility, severity, hostname, app_name, proc_id, msg_id, structured_data, fields, message INTEGER, peer)")
	err = d.tryWrite(messages(10)...)
	if !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), "column message") {
		t.Errorf("Write = %v", err)
	}
	if len(d.letters) > 0 {
		t.Errorf("%d dead letters", len(d.letters))
	}
	d.query("DROP TABLE logs")
	d.query("CREATE TABLE logs (received_at, timestamp, facility, severity, hostname, app_name, proc_id, msg_id, structured_data, fields, message TEXT, peer)")
	d.mustWrite(messages(10)...)
	d.want("SELECT count(*) FROM logs", "10")
}

func TestSQLiteFullDiskIsToldAndPasses(t *testing.T) {
	d := openLite(t, Config{SessionStatements: []string{"PRAGMA max_page_count = 60"}})
	d.mustWrite(messages(100)...)
	err := d.tryWrite(messages(5000)...)
	if !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), "SQLITE_FULL") {
		t.Errorf("Write = %v", err)
	}
	d.want("SELECT count(*) FROM logs", "100")
	d.query("DELETE FROM logs")
	d.mustWrite(messages(100)...)
	d.want("SELECT count(*) FROM logs", "100")
}

func TestSQLiteFileThatWasTakenAwayIsMadeAgain(t *testing.T) {
	d := openLite(t, Config{})
	d.mustWrite(messages(3)...)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Rename(filepath.Join(d.dir, "logs.db"+suffix), filepath.Join(d.dir, "old.db"+suffix)); err != nil {
			t.Fatal(err)
		}
	}
	d.mustWrite(messages(4)...)
	d.want("SELECT count(*) FROM logs", "4")
	if got := query(t, filepath.Join(d.dir, "old.db"), "SELECT count(*) FROM logs"); got[0] != "3" {
		t.Error(got)
	}
}

func TestSQLiteTableThatVanishedIsMadeAgain(t *testing.T) {
	d := openLite(t, Config{})
	d.mustWrite(messages(3)...)
	d.query("DROP TABLE logs")
	if err := d.tryWrite(messages(3)...); err == nil {
		t.Error("written into nothing")
	}
	d.mustWrite(messages(3)...)
	d.want("SELECT count(*) FROM logs", "3")
}

func TestSQLiteTypesAreTakenAtTheirWord(t *testing.T) {
	check := func(declared string, v router.Value, want string) {
		t.Helper()
		d := openLite(t, Config{Columns: columns("v", Column{From: "fields.v", Type: declared})})
		d.mustWrite(with(message("m"), "v", v))
		if got := strings.Join(d.query("SELECT v, typeof(v) FROM logs"), ""); got != want {
			t.Errorf("%s: %q, want %q", declared, got, want)
		}
	}
	check("INTEGER", text(" 12 "), "12|integer")
	check("INTEGER", text("12x"), "")
	check("INTEGER", router.FloatValue(2.5), "")
	check("SMALLINT", router.IntValue(40000), "")
	check("SMALLINT UNSIGNED", router.IntValue(40000), "40000|integer")
	check("TINYINT UNSIGNED", router.IntValue(-1), "")
	check("BIGINT", text("9223372036854775808"), "")
	check("REAL", text("1e3"), "1000.0|real")
	check("REAL", text("NaN"), "")
	check("DECIMAL(10,2)", text("1.5"), "1.5|real")
	check("DECIMAL(10,2)", text("one"), "")
	check("BOOLEAN", text("On"), "1|integer")
	check("BOOLEAN", router.IntValue(2), "")
	check("VARCHAR(3)", text("äöü"), "äöü|text")
	check("VARCHAR(3)", text("abcd"), "")
	check("TEXT", router.IntValue(7), "7|text")
	check("JSON", text(`a"b`), `"a\"b"|text`)
	check("JSON", router.Value{Kind: router.Array, Bytes: []byte("[1]")}, "[1]|text")
	check("BLOB", router.Value{Kind: router.Bytes, Bytes: []byte("\xff")}, "\xff|blob")
	check("DATETIME", text("2026-01-01"), "2026-01-01|text")
	check("WHATEVER", router.BoolValue(true), "1|integer")
}

func TestSQLiteConflictClausesLoseNothing(t *testing.T) {
	for _, clause := range []string{"ABORT", "FAIL", "ROLLBACK", "IGNORE"} {
		t.Run(clause, func(t *testing.T) {
			d := openLite(t, Config{Columns: columns("message", Column{From: "message", Type: "TEXT UNIQUE ON CONFLICT " + clause})})
			msgs := messages(120)
			msgs[60].Text = msgs[7].Text
			msgs[61].Text = msgs[8].Text
			d.mustWrite(msgs...)
			d.want("SELECT count(*), count(DISTINCT message) FROM logs", "118|118")
			if n := len(d.letters); n != 2 && clause != "IGNORE" {
				t.Errorf("%d dead letters", n)
			}
		})
	}
}

func TestSQLiteWithoutExplicitCommits(t *testing.T) {
	no := false
	d := openLite(t, Config{ExplicitCommits: &no, AddColumns: columns("n", Column{From: "fields.n", Type: "INTEGER"}),
		SessionStatements: []string{"PRAGMA journal_mode = DELETE"}})
	msgs := messages(30)
	with(msgs[3], "n", text("x"))
	d.mustWrite(msgs...)
	d.want("SELECT count(*) FROM logs", "29")
	d.want("PRAGMA journal_mode", "delete")
	if len(d.letters) != 1 {
		t.Errorf("%d dead letters", len(d.letters))
	}
}

func TestSQLiteSessionStatementIsNamedWhenItFails(t *testing.T) {
	_, err := Open(t.Context(), Config{SQLite: "logs.db", SessionStatements: []string{"PRAGMA foreign_keys = ON", "SELEC 1"}}, "db", t.TempDir(), slogDiscard)
	if err == nil || !strings.Contains(err.Error(), `"SELEC 1"`) || !strings.Contains(err.Error(), "syntax error") {
		t.Errorf("Open = %v", err)
	}
}

func TestSQLiteUnwritableDirectoryIsAnError(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Config{SQLite: "file/logs.db"}, "db", dir, slogDiscard); err == nil {
		t.Error("opened below a file")
	}
}

func TestSQLiteColumnsMustFit(t *testing.T) {
	check := func(create, want string) {
		t.Helper()
		dir := t.TempDir()
		path := filepath.Join(dir, "logs.db")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		query(t, path, create)
		_, err := Open(t.Context(), Config{SQLite: path, Columns: columns("host", "hostname")}, "db", dir, slogDiscard)
		if err == nil && want != "" || err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", create, err)
		}
	}
	check("CREATE TABLE logs (host TEXT)", "")
	check("CREATE TABLE logs (HOST TEXT, n INTEGER NOT NULL DEFAULT 3)", "")
	check("CREATE TABLE logs (message TEXT)", "has no column host (it has message)")
	check("CREATE TABLE logs (host TEXT, n INTEGER NOT NULL)", "wants a value for n")
	check("CREATE TABLE logs (n, host TEXT AS (n + 1))", "generated")
}

func TestSQLiteAllocatesNothingPerRow(t *testing.T) {
	d := openLite(t, Config{})
	few, many := messages(100), messages(1100)
	reject := func([]router.Rejected) error { return nil }
	run := func(msgs []*router.Message) float64 {
		return testing.AllocsPerRun(5, func() {
			if err := d.Write(t.Context(), msgs, reject); err != nil {
				t.Fatal(err)
			}
		})
	}
	run(many)
	if a, b := run(few), run(many); b-a > 20 {
		t.Errorf("%v allocations for 100 rows, %v for 1100", a, b)
	}
}

func BenchmarkSQLite(b *testing.B) {
	for _, n := range []int{100, 1000, 5000} {
		for _, indexes := range [][]string{{}, nil} {
			b.Run(fmt.Sprintf("rows=%d/indexes=%v", n, indexes == nil), func(b *testing.B) {
				cfg := Config{SQLite: "logs.db", Indexes: indexes}
				d := open(b, b.TempDir(), cfg)
				msgs := benchMessages(n)
				for b.Loop() {
					later(msgs)
					if err := d.tryWrite(msgs...); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N)*float64(n)/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
}

// benchMessages are about 300 bytes each.
func benchMessages(n int) []*router.Message {
	msgs := messages(n)
	for i, m := range msgs {
		m.Text = []byte(strings.Repeat("x", 200) + fmt.Sprint(i))
		m.Structured = nil
		m.Received += int64(i) * 1000
		m.Timestamp += int64(i) * 1000
	}
	return msgs
}

// later lets time pass from one transaction to the next, as it does: an index on
// times that come again and again would be another question.
func later(msgs []*router.Message) {
	for _, m := range msgs {
		m.Received += int64(len(msgs)) * 1000
		m.Timestamp += int64(len(msgs)) * 1000
	}
}
