package sqlstore

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router"
)

// from gives messages to apps in turn.
func from(msgs []*router.Message, apps ...string) []*router.Message {
	for i, m := range msgs {
		m.AppName = []byte(apps[i%len(apps)])
	}
	return msgs
}

func TestSQLiteEachMessageSaysItsTable(t *testing.T) {
	d := openLite(t, Config{Table: "logs_${app_name}"})
	d.want("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'logs%'", "0")
	run := router.NewRun()
	d.wantPosition(run, 0, false)
	msgs := from(messages(300), "sshd", "Cron/1", "sshd", "")
	d.mustWriteAt(run, 0, 300, msgs...)
	d.want("SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'logs%' ORDER BY 1", "logs_cron_1", "logs_none", "logs_sshd")
	d.want("SELECT (SELECT count(*) FROM logs_sshd), (SELECT count(*) FROM logs_cron_1), (SELECT count(*) FROM logs_none)", "150|75|75")
	d.want("SELECT pos FROM weir_positions", "300")
	var want []string
	for i := 0; i < 300; i += 2 {
		want = append(want, fmt.Sprintf("message %d", i))
	}
	d.want("SELECT message FROM logs_sshd ORDER BY id", want...)
	d.want("SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'logs_sshd'", "logs_sshd.received_at")
	// A sender that asks for the name of an index gets a table all the same.
	d.mustWrite(from(messages(2), "sshd_received_at_idx", "sshd.received_at")...)
	d.want("SELECT count(*) FROM logs_sshd_received_at_idx", "1")
	d.want("SELECT count(*) FROM logs_sshd_received_at", "1")
}

func TestSQLiteTablesAreBounded(t *testing.T) {
	cfg := Config{Table: "logs_${app_name}", Tables: Tables{MaxTables: 3}}
	d := openLite(t, cfg)
	d.query("CREATE TABLE logs_old (x)")
	d.query("CREATE TABLE other (x)")
	cfg.SQLite = "logs.db"
	d = open(t, d.dir, cfg)
	msgs := from(messages(10), "a", "b", "secret-app", "b", "a")
	d.mustWrite(msgs...)
	d.wantLetters("message 2 tables ", "message 7 tables ")
	for _, l := range d.letters {
		if strings.Contains(l.Reason, "secret") {
			t.Errorf("a value is in the reason: %s", l.Reason)
		}
	}
	d.want("SELECT (SELECT count(*) FROM logs_a), (SELECT count(*) FROM logs_b)", "4|4")
}

func TestSQLiteBadRowOfOneTableCostsOneRow(t *testing.T) {
	cfg := Config{Table: "logs_${app_name}", AddColumns: columns("n", Column{From: "fields.n", Type: "INTEGER CHECK (n < 100)"})}
	d := openLite(t, cfg)
	msgs := from(messages(200), "a", "b")
	for i, m := range msgs {
		with(m, "n", router.IntValue(int64(i%50)))
	}
	msgs[3].Fields[0].Value = text("x")
	msgs[120].Fields[0].Value = router.IntValue(100)
	msgs[51].Fields[0].Value = router.IntValue(100)
	d.mustWrite(msgs...)
	d.wantLetters("message 3 SQLITE_MISMATCH n", "message 51 SQLITE_CONSTRAINT_CHECK ", "message 120 SQLITE_CONSTRAINT_CHECK ")
	d.want("SELECT (SELECT count(*) FROM logs_a), (SELECT count(*) FROM logs_b)", "99|98")

	// A new table says nothing of others: what the first of b's rows meets is judged by b's rows.
	d.query("ALTER TABLE logs_b RENAME TO was_b")
	d.query("CREATE TABLE logs_b AS SELECT * FROM was_b WHERE false")
	d.query("CREATE TRIGGER no BEFORE INSERT ON logs_b BEGIN SELECT RAISE(ABORT, 'no'); END")
	err := d.tryWrite(from(messages(10), "a", "b")...)
	if !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), "table logs_b takes none of 5 rows") {
		t.Errorf("Write = %v", err)
	}
	d.want("SELECT count(*) FROM logs_a", "99")
	d.query("DROP TRIGGER no")
	d.mustWrite(from(messages(10), "a", "b")...)
	if len(d.letters) != 3 {
		t.Errorf("%d dead letters", len(d.letters))
	}
}

func TestSQLiteIdleTablesAreForgotten(t *testing.T) {
	d := openLite(t, Config{Table: "logs_${app_name}", Tables: Tables{MaxTables: 1000}})
	lite := d.db.(*lite)
	var apps []string
	for i := range 150 {
		apps = append(apps, fmt.Sprint("app", i))
	}
	d.mustWrite(from(messages(150), apps...)...)
	open := 0
	for _, t := range lite.tables {
		if t.insert[len(liteRows)-1] != nil {
			open++
		}
	}
	if open != liteOpen || len(lite.tables) != 150 {
		t.Errorf("%d of %d tables keep their statements", open, len(lite.tables))
	}
	d.mustWrite(from(messages(300), apps...)...)
	d.want("SELECT (SELECT count(*) FROM logs_app0), (SELECT count(*) FROM logs_app149)", "3|3")
	for range liteIdle + 1 {
		lite.assign(from(messages(1), "app7"))
		lite.tidy()
	}
	if len(lite.tables) != 1 {
		t.Errorf("%d tables are known", len(lite.tables))
	}
	d.mustWrite(from(messages(150), apps...)...)
	d.want("SELECT (SELECT count(*) FROM logs_app0), (SELECT count(*) FROM logs_app149)", "4|4")
}

func TestSQLiteTablesInAnAttachedFile(t *testing.T) {
	dir := t.TempDir()
	audit := filepath.Join(dir, "audit.db")
	d := open(t, dir, Config{SQLite: "logs.db", Table: "audit.by_${hostname}", SessionStatements: []string{"ATTACH '" + audit + "' AS audit"}})
	d.mustWrite(messages(3)...)
	if got := query(t, audit, "SELECT count(*) FROM by_web1"); got[0] != "3" {
		t.Error(got)
	}
}

func TestSQLiteMissingColumnsAreAdded(t *testing.T) {
	cfg := Config{SQLite: "logs.db", Tables: Tables{Alter: true}, AddColumns: columns("n", Column{From: "fields.n", Type: "INTEGER DEFAULT 7"},
		"must", Column{From: "message", Type: "TEXT not null"})}
	dir := t.TempDir()
	plain := open(t, dir, Config{SQLite: "logs.db"})
	plain.mustWrite(messages(2)...)
	d := open(t, dir, cfg)
	d.mustWrite(with(message("x"), "n", router.IntValue(1)))
	d.want("SELECT n FROM logs ORDER BY id", "7", "7", "1")
	d.query("ALTER TABLE logs DROP COLUMN msg_id")
	d.mustWrite(message("y"))
	d.want("SELECT msg_id FROM logs ORDER BY id", "NULL", "NULL", "NULL", "ID47")
	if _, err := Open(t.Context(), Config{SQLite: "logs.db", AddColumns: columns("more", "source")}, "db", dir, slogDiscard); err == nil ||
		!strings.Contains(err.Error(), `table logs has no column more (it has id, received_at`) || !strings.Contains(err.Error(), `ALTER TABLE "logs" ADD COLUMN "more" TEXT; or alter: true`) {
		t.Errorf("Open = %v", err)
	}
	_, err := Open(t.Context(), Config{SQLite: "logs.db", Tables: Tables{Alter: true}, AddColumns: columns("key", Column{From: "source", Type: "TEXT UNIQUE"})}, "db", dir, slogDiscard)
	if err == nil || !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), "alter table logs: Cannot add a UNIQUE column") {
		t.Errorf("Open = %v", err)
	}
}

func TestSQLiteCreateFalseWaitsForTheTable(t *testing.T) {
	no := false
	cfg := Config{Table: "logs_${app_name}", Tables: Tables{Create: &no}, Columns: columns("message", "message")}
	d := openLite(t, cfg)
	d.query("CREATE TABLE logs_a (message TEXT)")
	if err := d.tryWrite(from(messages(4), "a", "b")...); !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), "there is no table logs_b, and create: false") {
		t.Errorf("Write = %v", err)
	}
	d.query("CREATE TABLE logs_b (message TEXT)")
	d.mustWrite(from(messages(4), "a", "b")...)
	d.want("SELECT (SELECT count(*) FROM logs_a), (SELECT count(*) FROM logs_b)", "2|2")
}

func TestSQLiteCreateSuffix(t *testing.T) {
	d := openLite(t, Config{Columns: columns("host", Column{From: "hostname", Type: "TEXT PRIMARY KEY"}, "message", "message"), Indexes: []string{},
		Tables: Tables{CreateSuffix: "WITHOUT ROWID, STRICT"}})
	d.mustWrite(message("x"))
	d.want("SELECT wr, strict FROM pragma_table_list('logs')", "1|1")
}

func TestSQLiteOnConflict(t *testing.T) {
	row := func(app, text string) *router.Message {
		m := message(text)
		m.AppName, m.Hostname = []byte(app), []byte("host of "+text)
		return m
	}
	check := func(on *OnConflict, letters int, want ...string) {
		t.Helper()
		d := openLite(t, Config{Indexes: []string{}, Tables: Tables{OnConflict: on},
			Columns: columns("app", Column{From: "app_name", Type: "TEXT UNIQUE"}, "message", "message", "host", "hostname")})
		var msgs []*router.Message
		for i := range 60 {
			msgs = append(msgs, row(fmt.Sprint(i%20+10), fmt.Sprint(i)))
		}
		d.mustWrite(msgs...)
		d.mustWrite(row("10", "again"))
		d.want("SELECT message, host FROM logs WHERE app IN ('10', '11') ORDER BY app", want...)
		d.want("SELECT count(*) FROM logs", "20")
		if len(d.letters) != letters {
			t.Errorf("%d dead letters, want %d", len(d.letters), letters)
		}
	}
	check(nil, 41, "0|host of 0", "1|host of 1")
	check(&OnConflict{Ignore: true}, 0, "0|host of 0", "1|host of 1")
	check(&OnConflict{Key: []string{"app"}}, 0, "again|host of again", "41|host of 41")
	check(&OnConflict{Key: []string{"app"}, Update: []string{"message"}}, 0, "again|host of 0", "41|host of 1")

	// weir's own table gets the constraint that the clause needs.
	d := openLite(t, Config{Tables: Tables{OnConflict: &OnConflict{Key: []string{"hostname", "app_name"}, Update: []string{"message"}}}})
	d.mustWrite(messages(70)...)
	d.want("SELECT message FROM logs", "message 69")
	d.query("DROP TABLE logs")
	d.query("CREATE TABLE logs AS SELECT 1 AS id, 1 received_at, 1 timestamp, 1 facility, 1 severity, 1 hostname, 1 app_name, 1 proc_id, 1 msg_id, 1 structured_data, 1 fields, 1 message, 1 peer")
	if err := d.tryWrite(messages(1)...); !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), "ON CONFLICT clause does not match") ||
		!strings.Contains(err.Error(), `CREATE UNIQUE INDEX "main"."logs_key_idx" ON "logs" ("hostname", "app_name")`) {
		t.Errorf("Write = %v", err)
	}
}

func TestSQLiteSchemaErrorsMayReject(t *testing.T) {
	d := openLite(t, Config{Tables: Tables{OnSchemaError: "reject"}})
	d.query("CREATE TRIGGER no BEFORE INSERT ON logs BEGIN SELECT RAISE(ABORT, 'no'); END")
	d.mustWrite(messages(3)...)
	d.wantLetters("message 0 SQLITE_CONSTRAINT_TRIGGER ", "message 1 SQLITE_CONSTRAINT_TRIGGER ", "message 2 SQLITE_CONSTRAINT_TRIGGER ")
}

func TestSQLiteTablesAllocateNothingPerRow(t *testing.T) {
	d := openLite(t, Config{Table: "logs_${app_name}"})
	run := router.NewRun()
	d.wantPosition(run, 0, false)
	few, many := from(messages(100), "a", "b", "c"), from(messages(1100), "a", "b", "c")
	at := uint64(0)
	cost := func(msgs []*router.Message) float64 {
		return testing.AllocsPerRun(5, func() {
			d.mustWriteAt(run, at, at+uint64(len(msgs)), msgs...)
			at += uint64(len(msgs))
		})
	}
	cost(many)
	if a, b := cost(few), cost(many); b-a > 20 {
		t.Errorf("%v allocations for 100 rows, %v for 1100", a, b)
	}
}

func TestSQLiteOtherDefinitionsUnproveNothing(t *testing.T) {
	d := openLite(t, Config{Table: "logs_${app_name}", AddColumns: columns("n", Column{From: "fields.n", Type: "INTEGER CHECK (n < 100)"})})
	d.mustWrite(from(messages(1), "a")...)
	d.mustWrite(from(messages(1), "b")...) // makes a table of its own
	bad := from([]*router.Message{with(message("bad"), "n", router.IntValue(100))}, "a")
	d.mustWrite(bad...)
	d.wantLetters("bad SQLITE_CONSTRAINT_CHECK ")
	if diff := cmp.Diff([]string{"logs_a", "logs_b"}, d.query("SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'logs%' ORDER BY 1")); diff != "" {
		t.Error(diff)
	}
	if !slices.IsSortedFunc(d.db.(*lite).tables, func(a, b *liteTable) int { return strings.Compare(a.name, b.name) }) {
		t.Error("the tables are out of order")
	}
}

func TestSQLiteColumnsFromEverywhere(t *testing.T) {
	empty := ""
	d := openLite(t, Config{Indexes: []string{}, Columns: columns(
		"literal", Column{From: "fields.a.b", Type: "TEXT"}, "path", Column{From: "fields.user.name", Type: "TEXT"},
		"number", Column{From: "fields.user.age", Type: "INTEGER"}, "param", "sd.cart@32473.items", "element", "sd.cart@32473",
		"line", Column{Template: "${hostname}: ${fields.user.name:-nobody}"}, "site", Column{Value: &Constant{Text: "plant-7"}},
		"blank", Column{From: "fields.blank", NullIf: &empty, Default: &Constant{Text: "0", Typed: true}, Type: "INTEGER"}, "all", "fields")})
	m := with(message("x"), "a.b", text("dotted"))
	with(m, "user", router.Value{Kind: router.Object, Bytes: []byte(`{"name":"eve","age":41}`)})
	with(m, "blank", text(""))
	d.mustWrite(m, message("y"))
	d.want("SELECT * FROM logs",
		`dotted|eve|41|3|{"items":"3"}|web1: eve|plant-7|0|{"a.b":"dotted","user":{"name":"eve","age":41},"blank":""}`,
		`NULL|NULL|NULL|3|{"items":"3"}|web1: nobody|plant-7|0|NULL`)
}
