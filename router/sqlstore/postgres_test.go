package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/routertest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	routertest.ClosePostgres()
	os.Exit(code)
}

// pgRig is a Store into a database of its own.
type pgRig struct {
	*rig
	server *routertest.PostgresServer
	dsn    string
}

func openPG(t testing.TB, cfg Config, before ...string) *pgRig {
	t.Helper()
	server, dsn := routertest.Postgres(t)
	for _, sql := range before {
		server.Exec(t, dsn, sql)
	}
	cfg.Postgres = config.PlainSecret(dsn)
	return &pgRig{open(t, "", cfg), server, dsn}
}

func (r *pgRig) query(sql string) []string { r.t.Helper(); return r.server.Query(r.t, r.dsn, sql) }

func (r *pgRig) want(sql string, rows ...string) {
	r.t.Helper()
	if d := cmp.Diff(rows, r.query(sql)); d != "" {
		r.t.Errorf("%s:\n%s", sql, d)
	}
}

// wantLetters compares "text code column" of the dead letters.
func (r *rig) wantLetters(want ...string) {
	r.t.Helper()
	var got []string
	for _, l := range r.letters {
		got = append(got, fmt.Sprintf("%s %s %s", l.Message.Text, l.Code, l.Column))
	}
	if d := cmp.Diff(want, got); d != "" {
		r.t.Error(d)
	}
}

func TestPostgresStoresEveryColumn(t *testing.T) {
	d := openPG(t, Config{})
	bare := &router.Message{Origin: &router.Origin{}, Received: at}
	bare.Timestamp = router.NoTime
	d.mustWrite(with(message("hello\t\\N\n"), "user", router.IntValue(7)), bare)
	const utc = "SET TIME ZONE 'UTC'; "
	d.want(utc+"SELECT * FROM logs",
		`2026-01-02 03:04:05.678901+00|2026-01-02 03:04:04.678901+00|20|5|web1|shopd|8710|ID47|{"cart@32473": {"items": "3"}}|{"user": 7}|hello`+"\t\\N\n|192.0.2.7",
		`2026-01-02 03:04:05.678901+00|NULL|0|0|NULL|NULL|NULL|NULL|NULL|NULL||NULL`)
	d.want("SELECT indexname FROM pg_indexes WHERE tablename = 'logs'", "logs_received_at_idx")
}

func TestPostgresWritesOneTransactionAWrite(t *testing.T) {
	d := openPG(t, Config{})
	msgs := messages(1000)
	for range 20 {
		d.mustWrite(msgs...)
	}
	d.want("SELECT count(*), count(DISTINCT xmin::text) FROM logs", "20000|20")
}

func TestPostgresTypes(t *testing.T) {
	server, dsn := routertest.Postgres(t)
	server.Exec(t, dsn, "CREATE EXTENSION citext; CREATE TYPE mood AS ENUM ('good', 'bad'); CREATE DOMAIN port AS int CHECK (VALUE > 0)")
	var types, want []string
	var values []router.Value
	add := func(sqlType string, v router.Value, w string) {
		types, values, want = append(types, sqlType), append(values, v), append(want, w)
	}
	check := func() {
		t.Helper()
		var create, ask []string
		cfg := Config{Postgres: config.PlainSecret(dsn)}
		m := message("m")
		for i, v := range values {
			name := fmt.Sprintf("v%d", i)
			create, ask = append(create, name+" "+types[i]), append(ask, name)
			cfg.Columns = append(cfg.Columns, columns(name, "fields."+name)...)
			with(m, name, v)
		}
		server.Exec(t, dsn, "DROP TABLE IF EXISTS logs; CREATE TABLE logs ("+strings.Join(create, ", ")+")")
		d := open(t, "", cfg)
		d.mustWrite(m)
		got := server.Query(t, dsn, "SET TIME ZONE 'UTC'; SELECT "+strings.Join(ask, ", ")+" FROM logs")
		if diff := cmp.Diff(want, strings.Split(got[0], "|")); diff != "" {
			t.Error(diff)
		}
		d.Close()
	}
	add("boolean", text("yes"), "t")
	add("smallint", router.IntValue(-3), "-3")
	add("integer", text(" 70000 "), "70000")
	add("bigint", router.FloatValue(5), "5")
	add("real", text("1.5"), "1.5")
	add("double precision", router.FloatValue(1e300), "1e+300")
	add("double precision", text("-Infinity"), "-Infinity")
	add("text", router.BoolValue(true), "true")
	add("varchar(3)", text("abc   "), "abc")
	add("char(3)", text("ab"), "ab ")
	add("citext", text("Ab"), "Ab")
	add("mood", text("bad"), "bad")
	add("port", router.IntValue(80), "80")
	add("json", router.Value{Kind: router.Object, Bytes: []byte(`{"a":1}`)}, `{"a":1}`)
	add("jsonb", text("abc"), `"abc"`)
	add("jsonb", router.Value{Kind: router.Array, Bytes: []byte(`[1,"\u0000"]`)}, "[1, \"\uFFFD\"]")
	add("bytea", router.Value{Kind: router.Bytes, Bytes: []byte{0, 0xff}}, `\x00ff`)
	add("uuid", text("{A0EEBC99-9C0B4EF8-bb6d6bb9-bd380a11}"), "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")
	check() // binary COPY

	add("date", text("Jan 8, 1999"), "1999-01-08")
	add("timestamptz", text("1999-01-08 04:05:06 -8:00"), "1999-01-08 12:05:06+00")
	add("inet", text("192.0.2.0/24"), "192.0.2.0/24")
	add("numeric(10,2)", router.FloatValue(1.005), "1.01")
	add("interval", text("1 day"), "1 day")
	add("text[]", text(`{a,"b c"}`), `{a,"b c"}`)
	add("int4range", text("[1,5)"), "[1,5)")
	check() // text COPY
}

func TestPostgresTimesIntoEveryTimeType(t *testing.T) {
	d := openPG(t, Config{Columns: columns("a", "timestamp", "b", "timestamp", "c", "timestamp", "d", "timestamp")},
		"CREATE TABLE logs (a timestamptz, b timestamp, c date, d bigint)")
	old := message("old")
	old.Timestamp = -1
	d.mustWrite(message("m"), old)
	d.want("SET TIME ZONE 'UTC'; SELECT * FROM logs",
		"2026-01-02 03:04:04.678901+00|2026-01-02 03:04:04.678901|2026-01-02|1767323044678901000",
		"1969-12-31 23:59:59.999999+00|1969-12-31 23:59:59.999999|1969-12-31|-1")
}

func TestPostgresRefusedRowCostsOneRow(t *testing.T) {
	for _, form := range []string{"binary", "text", "insert"} {
		t.Run(form, func(t *testing.T) {
			create := []string{"CREATE TABLE logs (message text, n int CHECK (n < 1000), i inet)"}
			cfg := Config{Columns: columns("message", "message", "n", Column{From: "fields.n", Type: "int"})}
			switch form {
			case "text":
				cfg.Columns = append(cfg.Columns, columns("i", "fields.i")...)
			case "insert":
				create = append(create, "ALTER TABLE logs RENAME TO t", "CREATE VIEW logs AS SELECT * FROM t")
			}
			d := openPG(t, cfg, create...)
			msgs := messages(6000)
			for i, m := range msgs {
				with(m, "n", router.IntValue(int64(i%100)))
			}
			msgs[10].Fields[0].Value = text("many")
			msgs[3000].Fields[0].Value = router.IntValue(5000)
			msgs[5999].Fields[0].Value = router.IntValue(1 << 40)
			d.mustWrite(msgs...)
			d.wantLetters("message 10 22P02 n", "message 3000 23514 ", "message 5999 22003 n")
			d.want("SELECT count(*), count(DISTINCT message) FROM logs", "5997|5997")
			for _, l := range d.letters {
				if strings.Contains(l.Reason, "many") || l.Reason == "" {
					t.Errorf("reason %q", l.Reason)
				}
			}
		})
	}
}

func TestPostgresServerNamesColumnOfTextForm(t *testing.T) {
	d := openPG(t, Config{Columns: columns("message", "message", "ip", "fields.ip")}, "CREATE TABLE logs (message text, ip inet)")
	msgs := messages(100)
	with(msgs[42], "ip", text("nowhere"))
	d.mustWrite(msgs...)
	d.wantLetters("message 42 22P02 ip")
	if r := d.letters[0].Reason; r != `invalid input syntax for type inet: "…"` {
		t.Errorf("reason %q", r)
	}
}

func TestPostgresManyRefusedRows(t *testing.T) {
	d := openPG(t, Config{Columns: columns("message", Column{From: "message", Type: "text UNIQUE"})})
	msgs := messages(3000)
	var want []string
	for i := 1000; i < 1600; i += 2 {
		msgs[i].Text = msgs[7].Text
		want = append(want, "message 7 23505 ")
	}
	d.mustWrite(msgs...)
	d.wantLetters(want...)
	d.want("SELECT count(*) FROM logs", "2700")
}

func TestPostgresForeignKeysAndDeferredConstraints(t *testing.T) {
	for _, deferred := range []string{"", " DEFERRABLE INITIALLY DEFERRED"} {
		d := openPG(t, Config{Columns: columns("message", "message", "host", "hostname")},
			"CREATE TABLE hosts (name text PRIMARY KEY); INSERT INTO hosts VALUES ('web1')",
			"CREATE TABLE logs (message text, host text REFERENCES hosts"+deferred+")")
		msgs := messages(500)
		msgs[77].Hostname, msgs[499].Hostname = []byte("nobody"), []byte("nobody")
		d.mustWrite(msgs...)
		d.wantLetters("message 77 23503 ", "message 499 23503 ")
		d.want("SELECT count(*), count(DISTINCT message) FROM logs", "498|498")
	}
}

func TestPostgresChangedColumnHoldsUntilMended(t *testing.T) {
	d := openPG(t, Config{})
	d.mustWrite(messages(100)...)
	for _, change := range []string{"ALTER COLUMN message TYPE integer USING 1", "ALTER COLUMN received_at TYPE bigint USING 1, ALTER COLUMN message TYPE integer USING 1",
		"ALTER COLUMN message TYPE inet USING NULL", "ALTER COLUMN message TYPE varchar(3)  USING ''", "ADD CHECK (message = '1') NOT VALID",
		"ADD COLUMN extra int NOT NULL", "RENAME COLUMN message TO m", "ALTER COLUMN message TYPE bytea USING NULL, ADD CHECK (length(message) = 0)"} {
		d.query("DROP TABLE IF EXISTS saved; CREATE TABLE saved (LIKE logs INCLUDING ALL)")
		d.query("DELETE FROM logs; ALTER TABLE logs " + change)
		err := d.tryWrite(messages(100)...)
		if !router.IsNeedsOperator(err) {
			t.Errorf("%s: Write = %v", change, err)
		}
		d.query("DROP TABLE logs; ALTER TABLE saved RENAME TO logs")
		d.mustWrite(messages(100)...)
		d.want("SELECT count(*) FROM logs", "100")
	}
	d.wantLetters()
}

func TestPostgresMakesTextStorable(t *testing.T) {
	d := openPG(t, Config{AddColumns: columns("raw", "raw")})
	m := message("a\x00b Bl\xe5b\xe6r")
	m.Raw = []byte("\x00\xe5")
	with(m, "deep", router.Value{Kind: router.Object, Bytes: []byte(`{"a":"\ud800x\u0000\ud83d\ude00","n":1e999999}`)})
	with(m, "nest", router.Value{Kind: router.Array, Bytes: []byte(strings.Repeat("[", 5000) + strings.Repeat("]", 5000))})
	d.mustWrite(m)
	d.want("SELECT message, fields->'deep', raw FROM logs", "a\uFFFDb Bl\uFFFDb\uFFFDr|"+`{"a": "`+"\uFFFDx\uFFFD\U0001f600"+`", "n": "1e999999"}|\x00e5`)
	if n := counted(t, d.metrics.repaired); n != 2 {
		t.Errorf("%v values repaired", n)
	}
}

func TestPostgresCrashLosesNothing(t *testing.T) {
	d := openPG(t, Config{SessionStatements: []string{"SET application_name = 'weir test'"}})
	d.mustWrite(messages(1)...)
	for _, mode := range []routertest.StopMode{routertest.StopFast, routertest.StopImmediate} {
		d.query("TRUNCATE logs")
		d.mustWrite(messages(1000)...)
		d.server.Stop(mode)
		for range 2 {
			if err := d.tryWrite(messages(1000)...); err == nil || router.IsPermanent(err) || router.IsNeedsOperator(err) {
				t.Errorf("Write = %v", err)
			}
		}
		d.server.Start(t)
		d.mustWrite(messages(1000)...)
		d.server.Stop(mode) // nobody hears of a restart between two transactions
		d.server.Start(t)
		d.mustWrite(messages(1000)...)
		d.want("SELECT count(*), count(DISTINCT xmin::text) FROM logs", "3000|3")
	}
}

func TestPostgresTerminatedSessionIsReplaced(t *testing.T) {
	d := openPG(t, Config{SessionStatements: []string{"SET TIME ZONE 'Asia/Tokyo'", "SET lock_timeout = '5s'"}}, "CREATE TABLE zones (zone text)",
		`CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO zones VALUES (current_setting('TimeZone')); RETURN NULL; END $$`)
	for range 3 {
		for err := errors.New("first"); err != nil; {
			err = d.tryWrite(messages(10)...)
			if err != nil && (router.IsNeedsOperator(err) || router.IsPermanent(err)) {
				t.Fatal(err)
			}
		}
		d.query("DROP TRIGGER IF EXISTS note ON logs; CREATE TRIGGER note AFTER INSERT ON logs FOR EACH STATEMENT EXECUTE FUNCTION note()")
		d.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	}
	d.want("SELECT zone FROM zones", "Asia/Tokyo", "Asia/Tokyo")
	d.want("SELECT count(*) FROM logs", "30")
	if n := counted(t, d.metrics.connects); n != 3 {
		t.Errorf("%v connections", n)
	}
}

func TestPostgresSessionStatementIsNamedWhenItFails(t *testing.T) {
	d := openPG(t, Config{SessionStatements: []string{"SET TIME ZONE 'UTC'", "SET lock_timeout = 'soon'"}})
	err := d.Connect(t.Context())
	if !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), `"SET lock_timeout = 'soon'"`) || !strings.Contains(err.Error(), "invalid value for parameter") {
		t.Errorf("Connect = %v", err)
	}
}

func TestPostgresAbsentServerPasses(t *testing.T) {
	d := open(t, "", Config{Postgres: config.PlainSecret("postgres://weir:sesame@127.0.0.1:1/logs")})
	err := d.tryWrite(messages(1)...)
	if err == nil || router.IsNeedsOperator(err) || router.IsPermanent(err) || strings.Contains(err.Error(), "sesame") {
		t.Errorf("Write = %v", err)
	}
}

func TestPostgresUnknownDatabaseNeedsAnOperator(t *testing.T) {
	server, _ := routertest.Postgres(t)
	d := open(t, "", Config{Postgres: config.PlainSecret(server.DSN("nowhere"))})
	if err := d.tryWrite(messages(1)...); !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), "3D000") {
		t.Errorf("Write = %v", err)
	}
}

func TestPostgresSchemaAndNameAreQuoted(t *testing.T) {
	d := openPG(t, Config{Table: "Audit.Log Events"}, `CREATE SCHEMA "Audit"`)
	d.mustWrite(messages(3)...)
	d.want(`SELECT count(*) FROM "Audit"."Log Events"`, "3")
}

func TestPostgresRowSecurityUsesInsert(t *testing.T) {
	d := openPG(t, Config{SessionStatements: []string{"SET ROLE app"}, Columns: columns("message", "message", "n", "fields.n")},
		"DO $$ BEGIN IF to_regrole('app') IS NULL THEN CREATE ROLE app; END IF; END $$",
		"CREATE TABLE logs (message text, n int); GRANT ALL ON logs TO app; ALTER TABLE logs ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON logs WITH CHECK (n <> 3)")
	msgs := messages(120)
	for i, m := range msgs {
		with(m, "n", router.IntValue(int64(i)))
	}
	d.mustWrite(msgs...)
	d.wantLetters("message 3 42501 ")
	d.want("SELECT count(*) FROM logs", "119")
}

func TestPostgresWithoutExplicitCommits(t *testing.T) {
	no := false
	d := openPG(t, Config{ExplicitCommits: &no, AddColumns: columns("n", Column{From: "fields.n", Type: "int CHECK (n < 100)"})})
	msgs := messages(30)
	with(msgs[3], "n", text("x"))
	with(msgs[9], "n", router.IntValue(500))
	d.mustWrite(msgs...)
	d.wantLetters("message 3 22P02 n", "message 9 23514 ")
	d.want("SELECT count(*), count(DISTINCT xmin::text) FROM logs", "28|28")
}

func TestPostgresRejectsThatCannotBeKeptUndoTheTransaction(t *testing.T) {
	d := openPG(t, Config{AddColumns: columns("n", Column{From: "fields.n", Type: "int"})})
	msgs := messages(60)
	with(msgs[7], "n", text("x"))
	full := errors.New("full")
	if err := d.Write(t.Context(), msgs, func([]router.Rejected) error { return full }); !errors.Is(err, full) {
		t.Errorf("Write = %v", err)
	}
	d.want("SELECT count(*) FROM logs", "0")
	d.mustWrite(msgs...)
	d.want("SELECT count(*) FROM logs", "59")
}

func TestPostgresInsertPrivilegeIsEnough(t *testing.T) {
	d := openPG(t, Config{SessionStatements: []string{"SET ROLE app"}, Columns: columns("message", "message")},
		"DO $$ BEGIN IF to_regrole('app') IS NULL THEN CREATE ROLE app; END IF; END $$", "CREATE TABLE logs (message text); GRANT INSERT ON logs TO app")
	d.mustWrite(messages(3)...)
	d.want("SELECT count(*) FROM logs", "3")
	d.query("REVOKE INSERT ON logs FROM app")
	if err := d.tryWrite(messages(3)...); !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("Write = %v", err)
	}
}

func TestPostgresPartitionedTable(t *testing.T) {
	d := openPG(t, Config{Columns: columns("ts", "timestamp", "message", "message")},
		"CREATE TABLE logs (ts timestamptz, message text) PARTITION BY RANGE (ts)", "CREATE TABLE p PARTITION OF logs FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')")
	msgs := messages(200)
	msgs[150].Timestamp = 0
	d.mustWrite(msgs...)
	d.wantLetters("message 150 23514 ")
	d.want("SELECT count(*) FROM logs", "199")
}

func TestPostgresTableThatVanishedIsMadeAgain(t *testing.T) {
	d := openPG(t, Config{})
	d.mustWrite(messages(3)...)
	d.query("DROP TABLE logs")
	if err := d.tryWrite(messages(3)...); err == nil {
		t.Error("written into nothing")
	}
	d.mustWrite(messages(3)...)
	d.want("SELECT count(*) FROM logs", "3")
}

func TestPostgresManySessionsMakeTheTableAtOnce(t *testing.T) {
	server, dsn := routertest.Postgres(t)
	done := make(chan error, 8)
	for range 8 {
		d := open(t, "", Config{Postgres: config.PlainSecret(dsn)})
		go func() { done <- d.tryWrite(messages(3)...) }()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if got := server.Query(t, dsn, "SELECT count(*) FROM logs"); got[0] != "24" {
		t.Error(got)
	}
}

func TestPostgresWriteEndsWithItsContext(t *testing.T) {
	d := openPG(t, Config{})
	d.mustWrite(messages(1)...)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := d.Write(ctx, messages(1), d.keep); !errors.Is(err, context.Canceled) {
		t.Errorf("Write = %v", err)
	}
	d.mustWrite(messages(1)...)
}

func BenchmarkPostgres(b *testing.B) {
	for _, n := range []int{1000, 5000} {
		for _, indexes := range [][]string{{}, nil} {
			b.Run(fmt.Sprintf("rows=%d/indexes=%v", n, indexes == nil), func(b *testing.B) {
				d := openPG(b, Config{Indexes: indexes})
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
