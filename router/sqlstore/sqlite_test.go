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

// Without a process number there are no empty brackets, and without a name there is no tag.
func TestTagIsWhoSentIt(t *testing.T) {
	d := openLite(t, Config{Columns: columns("who", "tag", "line", Column{Template: "${tag:-?}: ${message}"})})
	nameless, whole := message("a"), message("b")
	nameless.AppName = nil
	unnumbered := message("c")
	unnumbered.ProcID = nil
	d.mustWrite(nameless, whole, unnumbered)
	d.want("SELECT * FROM logs", "NULL|?: a", "shopd[8710]|shopd[8710]: b", "shopd|shopd: c")
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

func TestSQLiteThatIsBusyAtTheStartIsWaitedFor(t *testing.T) {
	dir := t.TempDir()
	other, err := sqlite.OpenConn(filepath.Join(dir, "logs.db"), sqlite.OpenReadWrite|sqlite.OpenCreate) // without WAL
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := sqlitex.ExecuteTransient(other, "BEGIN EXCLUSIVE", nil); err != nil {
		t.Fatal(err)
	}
	d, logged := openOn(t, dir, "NFS", Config{})
	// C29: that locks hang is what happens on such a file system.
	if !strings.Contains(logged, "cannot be opened at the moment") || !strings.Contains(logged, "filesystem=NFS") {
		t.Errorf("log: %s", logged)
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
	d.mustWrite(messages(3)...)
	d.want("SELECT count(*) FROM logs", "3")
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
