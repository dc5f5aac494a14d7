package sqlstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
)

// of makes messages of programs in turn.
func of(n int, apps ...string) []*router.Message {
	msgs := messages(n)
	for i, m := range msgs {
		m.AppName = []byte(apps[i%len(apps)])
	}
	return msgs
}

func TestPostgresTemplateTablesShareOneTransaction(t *testing.T) {
	// C32
	d := openPG(t, Config{Table: "audit.logs_${app_name}", Columns: columns("n", Column{From: "message", Type: "text"}, "host", "hostname")}, "CREATE SCHEMA audit")
	run := router.NewRun()
	d.wantPosition(run, 0, false)
	d.mustWriteAt(run, 0, 300, of(300, "shopd", "SSHd", "")...)
	d.mustWriteAt(run, 300, 600, of(300, "shopd", "404")...)
	d.want("SELECT count(*), count(DISTINCT xmin::text) FROM audit.logs_shopd", "250|2")
	d.want("SELECT count(*), count(DISTINCT xmin::text) FROM audit.logs_sshd", "100|1")
	d.want("SELECT count(*) FROM audit.logs_none", "100")
	d.want("SELECT count(*) FROM audit.logs_404", "150")
	d.want("SELECT count(DISTINCT x) FROM (SELECT xmin::text AS x FROM audit.logs_shopd UNION SELECT xmin::text FROM audit.logs_sshd UNION SELECT xmin::text FROM audit.logs_404) t", "2")
	// Rows of a table keep their order.
	d.want("SELECT bool_and(n > before) FROM (SELECT n, lag(n) OVER (ORDER BY ctid) AS before FROM (SELECT ctid, split_part(n, ' ', 2)::int AS n FROM audit.logs_sshd) t) t", "t")
	d.wantPosition(run, 600, true)
	d.wantLetters()
}

func TestPostgresTemplateTablesByDay(t *testing.T) {
	d := openPG(t, Config{Table: "logs_${timestamp:%Y_%m_%d}", Tables: Tables{MaxTables: 1}})
	msgs := messages(6)
	msgs[1].Timestamp -= int64(24 * time.Hour)
	msgs[2].Timestamp = router.NoTime
	msgs[3].Timestamp = 0
	msgs[4].Timestamp += int64(1000 * time.Hour)
	d.mustWrite(msgs...)
	d.want("SELECT count(*) FROM logs_2026_01_01", "1")
	d.want("SELECT count(*) FROM logs_2026_01_02", "5")
}

func TestPostgresRowsOfTooManyTablesAreDeadLetters(t *testing.T) {
	cfg := Config{Table: "logs_${app_name}", Tables: Tables{MaxTables: 3}}
	d := openPG(t, cfg, "CREATE TABLE logs_a (LIKE pg_class)", "DROP TABLE logs_a", "CREATE TABLE other (x int)")
	d.mustWrite(of(10, "a", "b", "c", "d", "e")...)
	d.wantLetters("message 3 tables ", "message 4 tables ", "message 8 tables ", "message 9 tables ")
	d.letters = nil
	// The tables are found again after a restart, and after a lost connection.
	e := d.another(cfg)
	e.mustWrite(of(4, "f", "c", "a", "b")...)
	e.wantLetters("message 0 tables ")
	e.mustWrite(of(2, "g")...) // nothing but surplus
	e.wantLetters("message 0 tables ", "message 0 tables ", "message 1 tables ")
	d.want("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'logs\\_%'", "3")
}

func TestPostgresBadRowsAreFoundInEachOfManyTables(t *testing.T) {
	// C19: what a row's error means does not hang on how many tables a transaction has.
	d := openPG(t, Config{Table: "logs_${app_name}", Columns: columns("message", "message", "n", Column{From: "fields.n", Type: "int CHECK (n < 1000)"})})
	msgs := of(3000, "a", "b", "c")
	for _, m := range msgs {
		with(m, "n", router.IntValue(1))
	}
	msgs[4].Fields[0].Value = router.IntValue(5000)
	msgs[100].Fields[0].Value = text("x")
	msgs[1001].Fields[0].Value = router.IntValue(5000)
	msgs[2999].Fields[0].Value = router.IntValue(5000)
	d.mustWrite(msgs...)
	d.wantLetters("message 4 23514 ", "message 100 22P02 n", "message 1001 23514 ", "message 2999 23514 ")
	d.want("SELECT count(*), count(DISTINCT message) FROM (TABLE logs_a UNION ALL TABLE logs_b UNION ALL TABLE logs_c) t", "2996|2996")
}

// A table that takes no row holds the transaction, whatever the others take.
func TestPostgresOneWrongTableOfManyHolds(t *testing.T) {
	d := openPG(t, Config{Table: "logs_${app_name}", Columns: columns("message", "message")}, "CREATE TABLE logs_b (message text CHECK (message = ''))")
	if err := d.tryWrite(of(100, "a", "b")...); !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), "logs_b takes none of 50 rows") {
		t.Errorf("Write = %v", err)
	}
	d.query("DROP TABLE logs_b")
	d.mustWrite(of(100, "a", "b")...)
	d.wantLetters()
	d.want("SELECT (SELECT count(*) FROM logs_a), (SELECT count(*) FROM logs_b)", "50|50")
}

func TestPostgresSchemaErrorsAreRejectedWhereThatIsAsked(t *testing.T) {
	d := openPG(t, Config{Columns: columns("message", "message"), Tables: Tables{OnSchemaError: "reject"}}, "CREATE TABLE logs (message text CONSTRAINT c CHECK (message <> 'message 1'))")
	d.mustWrite(messages(2)[1])
	d.wantLetters("message 1 23514 ")
	d.query("ALTER TABLE logs DROP CONSTRAINT c, ALTER message TYPE int USING 1")
	d.mustWrite(messages(2)...)
	d.wantLetters("message 1 23514 ", "message 0 22P02 message", "message 1 22P02 message")
}

func TestPostgresCreateFalseMakesNothing(t *testing.T) {
	no := false
	d := openPG(t, Config{Columns: columns("message", "message"), Tables: Tables{Create: &no}})
	check := func(want string) {
		t.Helper()
		if err := d.tryWrite(messages(1)...); !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("Write = %v", err)
		}
		d.want("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", d.query("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")...)
	}
	check(`there is no table weir_positions, and create is false: CREATE TABLE IF NOT EXISTS "weir_positions" (run uuid PRIMARY KEY`)
	d.query("CREATE TABLE weir_positions (" + positionColumns + ")")
	check(`there is no table logs, and create is false: CREATE TABLE IF NOT EXISTS "logs" ("message" text)`)
	d.query("CREATE TABLE logs (message text)")
	d.mustWrite(messages(1)...)
}

func TestPostgresCreateSuffix(t *testing.T) {
	d := openPG(t, Config{Tables: Tables{CreateSuffix: "PARTITION BY RANGE (received_at)"}})
	if err := d.tryWrite(messages(3)...); !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), "23514") {
		t.Errorf("Write = %v", err)
	}
	d.query("CREATE TABLE logs_2026 PARTITION OF logs FOR VALUES FROM ('2026-01-01') TO ('2027-01-01')")
	d.mustWrite(messages(3)...)
	d.want("SELECT count(*) FROM logs_2026", "3")
	e := openPG(t, Config{Table: "logs_${app_name}", Tables: Tables{CreateSuffix: "WITH (fillfactor = 70)"}})
	e.mustWrite(messages(3)...)
	e.want("SELECT relname FROM pg_class WHERE reloptions = '{fillfactor=70}'", "logs_shopd")
}

func TestPostgresMissingColumnsAreAdded(t *testing.T) {
	cfg := Config{Columns: columns("message", "message", "at", Column{From: "received_at"}, "n", Column{From: "fields.n", Type: "bigint DEFAULT 7"}), Tables: Tables{Alter: true}}
	d := openPG(t, cfg, "CREATE TABLE logs (message text); INSERT INTO logs VALUES ('old')")
	d.mustWrite(with(message("new"), "n", router.IntValue(1)))
	d.want("SELECT message, at IS NULL, n FROM logs ORDER BY n", "new|f|1", "old|t|7")
	// While it runs, too.
	d.query("ALTER TABLE logs DROP COLUMN n")
	d.mustWrite(with(message("newer"), "n", router.IntValue(2)))
	d.want("SELECT message, n FROM logs ORDER BY message", "new|7", "newer|2", "old|7")

	cfg.Alter = false
	e := openPG(t, cfg, "CREATE TABLE logs (message text)")
	if err := e.tryWrite(message("x")); !router.IsNeedsOperator(err) ||
		!strings.Contains(err.Error(), `ALTER TABLE "logs" ADD COLUMN IF NOT EXISTS "at" timestamptz, ADD COLUMN IF NOT EXISTS "n" bigint DEFAULT 7`) {
		t.Errorf("Write = %v", err)
	}
	e.query(`ALTER TABLE "logs" ADD COLUMN IF NOT EXISTS "at" timestamptz, ADD COLUMN IF NOT EXISTS "n" bigint DEFAULT 7`)
	e.mustWrite(message("x"))
}

func TestPostgresManySessionsAlterATableAtOnce(t *testing.T) {
	d := openPG(t, Config{Columns: columns("message", "message")}, "CREATE TABLE logs (message text)")
	done := make(chan error)
	for range 6 {
		e := d.another(Config{Columns: columns("message", "message", "a", "hostname", "b", "app_name"), Tables: Tables{Alter: true}})
		go func() { done <- e.tryWrite(messages(3)...) }()
	}
	for range 6 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	d.want("SELECT count(*) FROM logs WHERE a = 'web1'", "18")
}

func TestPostgresOnConflictIgnore(t *testing.T) {
	d := openPG(t, Config{Columns: columns("message", Column{From: "message", Type: "text UNIQUE"}, "n", "fields.n"), Tables: Tables{OnConflict: &OnConflict{Ignore: true}}})
	d.mustWrite(with(message("a"), "n", text("1")), with(message("b"), "n", text("2")), with(message("a"), "n", text("3")))
	d.mustWrite(with(message("b"), "n", text("4")), with(message("c"), "n", text("5")))
	d.want("SELECT * FROM logs", "a|1", "b|2", "c|5")
	d.wantLetters()
}

func TestPostgresOnConflictUpdate(t *testing.T) {
	cfg := Config{Columns: columns("host", "hostname", "app", "app_name", "message", "message", "n", Column{From: "fields.n", Type: "int CHECK (n > 0)"}),
		Tables: Tables{OnConflict: &OnConflict{Key: []string{"host", "app"}}}}
	m := func(host, app, msg string, n int) *router.Message {
		m := with(message(msg), "n", router.IntValue(int64(n)))
		m.Hostname, m.AppName = []byte(host), []byte(app)
		if app == "" {
			m.AppName = nil
		}
		return m
	}
	d := openPG(t, cfg)
	d.mustWrite(m("h1", "a", "first", 1), m("h2", "a", "other", 2), m("h1", "a", "last", 3), m("h3", "", "null", 4), m("h3", "", "null", 5))
	d.want("SELECT * FROM logs", "h2|a|other|2", "h1|a|last|3", "h3|NULL|null|4", "h3|NULL|null|5")
	// The last of equal keys wins also around a bad row.
	d.mustWrite(m("h1", "a", "x", 6), m("h2", "a", "bad", -1), m("h1", "a", "y", 7), m("h4", "b", "new", 8))
	d.wantLetters("bad 23514 ")
	d.want("SELECT * FROM logs ORDER BY n", "h2|a|other|2", "h3|NULL|null|4", "h3|NULL|null|5", "h1|a|y|7", "h4|b|new|8")

	cfg.OnConflict = &OnConflict{Key: []string{"host"}, Update: []string{"n"}}
	e := openPG(t, cfg, "CREATE TABLE logs (host text, app text, message text, n int)")
	if err := e.tryWrite(m("h1", "a", "first", 1)); !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), `CREATE UNIQUE INDEX IF NOT EXISTS "logs_key_idx" ON "logs" ("host")`) {
		t.Errorf("Write = %v", err)
	}
	e.query(`CREATE UNIQUE INDEX IF NOT EXISTS "logs_key_idx" ON "logs" ("host")`)
	e.mustWrite(m("h1", "a", "first", 1), m("h1", "b", "second", 2))
	e.mustWrite(m("h1", "c", "third", 3))
	e.want("SELECT * FROM logs", "h1|b|second|3")
}

// What DISTINCT takes for different, an index may take for equal.
func TestPostgresOnConflictUpdateGoesByTheColumnsType(t *testing.T) {
	cfg := Config{Columns: columns("k", "fields.k", "message", "message"), Tables: Tables{OnConflict: &OnConflict{Key: []string{"k"}}}}
	for _, typ := range []string{"numeric", "char(5)", "citext", "inet", "text COLLATE any_case"} {
		d := openPG(t, cfg, "CREATE EXTENSION IF NOT EXISTS citext; CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false); CREATE TABLE logs (k "+typ+" UNIQUE, message text)")
		a, b := "1", "1.0"
		switch typ {
		case "char(5)":
			a, b = "a", "a  "
		case "citext", "text COLLATE any_case":
			a, b = "a", "A"
		case "inet":
			a, b = "::1", "0:0::1"
		}
		d.mustWrite(with(message("x"), "k", text(a)), with(message("y"), "k", text(b)))
		d.wantLetters()
		d.want("SELECT message FROM logs", "y")
	}
}

func TestPostgresInsertTakesEveryType(t *testing.T) {
	types := []string{"boolean", "smallint", "integer", "bigint", "real", "double precision", "text", "varchar(3)", "char(3)", "mood", "port", "json", "jsonb", "bytea", "uuid",
		"date", "timestamptz", "timestamp", "inet", "numeric(10,2)", "interval", "text[]", "int4range", "bit(3)", "bit varying(4)"}
	values := []router.Value{text("yes"), router.IntValue(-3), text(" 70000 "), router.FloatValue(5), text("1.5"), router.FloatValue(1e300), router.BoolValue(true), text("abc   "), text("ab"), text("bad"),
		router.IntValue(80), {Kind: router.Object, Bytes: []byte(`{"a":1}`)}, text("abc"), {Kind: router.Bytes, Bytes: []byte{0, 0xff}}, text("{A0EEBC99-9C0B4EF8-bb6d6bb9-bd380a11}"),
		text("Jan 8, 1999"), text("1999-01-08 04:05:06 -8:00"), text("1999-01-08"), text("192.0.2.0/24"), router.FloatValue(1.005), text("1 day"), text(`{a,"b c"}`), text("[1,5)"), text("101"), text("1011")}
	want := `t|-3|70000|5|1.5|1e+300|true|abc|ab |bad|80|{"a":1}|"abc"|\x00ff|a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11|1999-01-08|1999-01-08 12:05:06+00|1999-01-08 00:00:00|192.0.2.0/24|1.01|1 day|{a,"b c"}|[1,5)|101|1011`
	cfg := Config{Tables: Tables{OnConflict: &OnConflict{Ignore: true}}}
	var create []string
	m, null := message("m"), message("null")
	for i, typ := range types {
		name := fmt.Sprintf("v%d", i)
		create = append(create, name+" "+typ)
		cfg.Columns = append(cfg.Columns, columns(name, "fields."+name)...)
		with(m, name, values[i])
	}
	d := openPG(t, cfg, "CREATE TYPE mood AS ENUM ('good', 'bad'); CREATE DOMAIN port AS int CHECK (VALUE > 0)", "CREATE TABLE logs ("+strings.Join(create, ", ")+")")
	d.mustWrite(m, null, m)
	row := d.query("SET TIME ZONE 'UTC'; SELECT * FROM logs")
	if len(row) != 3 || row[0] != want || row[2] != want || strings.Trim(row[1], "NUL|") != "" {
		t.Errorf("%q\nwant %q", row, want)
	}
	for i, typ := range types {
		if name := fmt.Sprintf("v%d", i); typ == "bit(3)" || typ == "varchar(3)" || typ == "char(3)" {
			d.mustWrite(with(message(typ), name, text("1111")), m)
		}
	}
	d.wantLetters("varchar(3) 22001 v7", "char(3) 22001 v8", "bit(3) 22026 ")
}

// C14: there are 65535 parameters in the protocol.
func TestPostgresManyColumnsGoInByInsert(t *testing.T) {
	cfg := Config{Tables: Tables{OnConflict: &OnConflict{Ignore: true}}}
	for i := range 200 {
		cfg.Columns = append(cfg.Columns, columns(fmt.Sprintf("c%d", i), "message")...)
	}
	d := openPG(t, cfg)
	d.mustWrite(messages(1000)...)
	d.want("SELECT count(*), count(DISTINCT c199) FROM logs", "1000|1000")
}

func TestPostgresTableNamesOfMessagesAllocateNothing(t *testing.T) {
	s, err := Open(t.Context(), Config{Postgres: config.PlainSecret("postgres://weir@/logs?host=/nowhere"), Table: "logs_${app_name}_${timestamp:%Y_%m_%d}"}, "db", "", slogDiscard)
	if err != nil {
		t.Fatal(err)
	}
	d := s.db.(*postgres)
	d.families.naming, d.families.most = &d.naming, 100
	d.families.reset()
	msgs := of(500, "a", "b", "c", "d")
	for _, name := range []string{"logs_a_2026_01_02", "logs_b_2026_01_02", "logs_c_2026_01_02", "logs_d_2026_01_02"} {
		d.newTable(name).open = true
	}
	assign := func() {
		if err := d.assign(t.Context(), msgs); err != nil {
			t.Fatal(err)
		}
	}
	assign()
	if n := testing.AllocsPerRun(10, assign); n > 0 {
		t.Errorf("%v allocations for %d messages", n, len(msgs))
	}
	if len(d.parts) != 4 || len(d.parts[3].mine) != 125 {
		t.Errorf("%d tables", len(d.parts))
	}
	// What is idle is forgotten, within bounds.
	for day := range 2000 {
		m := message("m")
		m.Received += int64(day) * int64(24*time.Hour)
		m.Timestamp = m.Received
		name := string(d.naming.append(nil, m))
		d.forgetIdle()
		d.newTable(name).open = true
		d.turn++
		d.known[name].turn = d.turn
	}
	if len(d.known) > 210 {
		t.Errorf("%d tables are remembered", len(d.known))
	}
}
