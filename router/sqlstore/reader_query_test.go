package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"zombiezen.com/go/sqlite"

	"github.com/weirlog/weir/router/routertest"
)

// heard is a result as it came.
type heard struct {
	names []string
	rows  []string // columns joined by |
	most  int      // rows that are wanted; 0: all
}

func (h *heard) Columns(names []string) error {
	h.names = slices.Clone(names)
	return nil
}

func (h *heard) Row(values []Value) error {
	var row []string
	for _, v := range values {
		kind := [...]string{"null", "number", "text", "bool", "json", "bytes"}[v.Kind]
		row = append(row, kind+" "+string(v.Text))
	}
	h.rows = append(h.rows, strings.Join(row, "|"))
	if len(h.rows) == h.most {
		return ErrEnough
	}
	return nil
}

func readerOf(t testing.TB, cfg Config, dir string) *Reader {
	t.Helper()
	r, err := OpenReader(t.Context(), cfg, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// ask returns the rows joined by ;.
func ask(t testing.TB, r *Reader, sql string) (string, error) {
	t.Helper()
	h := &heard{}
	err := r.Query(t.Context(), sql, h)
	return strings.Join(h.rows, ";"), err
}

func gives(t testing.TB, r *Reader) func(sql, want string) {
	return func(sql, want string) {
		t.Helper()
		if got, err := ask(t, r, sql); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", sql, got, err, want)
		}
	}
}

// refuses checks that SQL is not run, with words that hold want.
func refuses(t testing.TB, r *Reader) func(sql, want string) {
	return func(sql, want string) {
		t.Helper()
		got, err := ask(t, r, sql)
		if err == nil {
			t.Errorf("%s: was run: %s", sql, got)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %q, want %q", sql, err, want)
		}
	}
}

// faults checks the place of what is wrong: it begins with want.
func faults(t testing.TB, r *Reader) func(sql, want string) {
	return func(sql, want string) {
		t.Helper()
		_, err := ask(t, r, sql)
		e, ok := errors.AsType[*QueryError](err)
		if !ok || e.Offset < 0 || !strings.HasPrefix(sql[e.Offset:], want) || want == "" && e.Offset != len(sql) {
			t.Errorf("%s: got %+v, want the place of %q", sql, err, want)
		}
	}
}

// endless is a statement that never comes to its end, as often as there are rows.
const endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT i FROM n"

// ends checks that a query ends by its deadline, by its caller, and when no more is wanted.
func ends(t *testing.T, open func() *Reader) {
	silent := endless + " WHERE i < 0"
	overdue := errors.New("it took too long")
	limited, done := context.WithTimeoutCause(t.Context(), 1e8, overdue)
	defer done()
	if err := open().Query(limited, silent, &heard{}); !errors.Is(err, overdue) {
		t.Errorf("by its deadline: %v", err)
	}
	stop := errors.New("the caller goes home")
	ctx, cancel := context.WithCancelCause(t.Context())
	go cancel(stop)
	if err := open().Query(ctx, silent, &heard{}); !errors.Is(err, stop) {
		t.Errorf("by its caller: %v", err)
	}
	h := &heard{most: 3}
	if err := open().Query(t.Context(), endless, h); err != nil || len(h.rows) != 3 {
		t.Errorf("when no more is wanted: %v after %d rows", err, len(h.rows))
	}
}

func TestSQLiteQueryReturnsValuesAsTheyAre(t *testing.T) {
	r := openLite(t, Config{})
	r.mustWrite(messages(2)...)
	reader := readerOf(t, r.cfg, r.dir)
	h := &heard{}
	if err := reader.Query(t.Context(), "SELECT id, message AS m, message AS m, count(*) OVER (), id, count(*) OVER () FROM logs -- two\n;;/* that is all */", h); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(append(h.names, h.rows...), ";"); got != "id;m;m;count(*) OVER ();id;count(*) OVER ();number 1|text message 0|text message 0|number 2|number 1|number 2;number 2|text message 1|text message 1|number 2|number 2|number 2" {
		t.Error(got)
	}
	is := gives(t, reader)
	is("SELECT NULL, 9223372036854775807, 1.0, 1e300, -2.5e-9, 9e999", "null |number 9223372036854775807|number 1.0|number 1e+300|number -2.5e-09|number Infinity")
	is("SELECT x'00ff', '', 'a' || char(0) || 'b', char(233)", "bytes \x00\xff|text |text a\x00b|text é")
	is("  ;; -- first\n VALUES (1)", "number 1")
	if plan, err := ask(t, reader, "EXPLAIN QUERY PLAN SELECT * FROM logs WHERE id = 1"); err != nil || !strings.Contains(plan, "SEARCH logs USING INTEGER PRIMARY KEY") {
		t.Error(plan, err)
	}
	is("PRAGMA journal_mode", "text wal")
	is("SELECT name FROM pragma_table_info('weir_positions') LIMIT 1", "text run")
	is("WITH a AS (SELECT count(*) AS n FROM logs) SELECT n FROM a", "number 2")
}

func TestSQLiteQueryChangesNothing(t *testing.T) {
	r := openLite(t, Config{FullText: "message"})
	r.mustWrite(messages(2)...)
	other := t.TempDir() + "/other.db"
	reader := readerOf(t, r.cfg, r.dir)
	no := refuses(t, reader)
	no("INSERT INTO logs (received_at, message) VALUES ('', '')", "INSERT in table logs is refused")
	no("DELETE FROM logs RETURNING id", "DELETE in table logs is refused")
	no("WITH x AS (SELECT 1) UPDATE logs SET message = '' RETURNING id", "UPDATE in table logs is refused")
	no("INSERT INTO weir_fts_logs(weir_fts_logs) VALUES ('rebuild')", "INSERT in table weir_fts_logs is refused")
	no("CREATE TABLE t (a)", "is refused")
	no("CREATE TEMP TABLE t (a)", "a change of the schema is refused")
	no("CREATE TEMP VIEW v AS SELECT 1", "is refused")
	no("DROP TABLE logs", "is refused")
	no("ALTER TABLE logs ADD COLUMN x", "is refused")
	no("ATTACH '"+other+"' AS other", "ATTACH is refused")
	no("DETACH main", "DETACH is refused")
	no("VACUUM", "only statements that return rows")
	no("VACUUM INTO '"+other+"'", "only statements that return rows")
	no("REINDEX", "only statements that return rows")
	no("ANALYZE", "is refused")
	no("BEGIN IMMEDIATE", "TRANSACTION is refused")
	no("SAVEPOINT s", "SAVEPOINT is refused")
	no("PRAGMA journal_mode = DELETE", "PRAGMA journal_mode with a value is refused")
	no("PRAGMA query_only = OFF", "is refused")
	no("PRAGMA writable_schema = ON", "is refused")
	no("PRAGMA user_version(3)", "is refused")
	no("PRAGMA main.user_version = 3", "is refused")
	no("PRAGMA wal_checkpoint(TRUNCATE)", "is refused")
	no("PRAGMA wal_checkpoint", "is refused")
	no("PRAGMA incremental_vacuum", "is refused")
	no("PRAGMA optimize", "is refused")
	no("SELECT * FROM pragma_wal_checkpoint", "no such table")
	no("SELECT load_extension('x')", "not authorized")
	no("SELECT writefile('"+other+"', 'x')", "no such function")
	no("SELECT fts5_no_such(1)", "no such function")
	no("SELECT zeroblob(400000000)", "too big")
	no("SELECT ?1", "parameter (?1)")
	no(" -- nothing\n;", "there is no statement")
	no("SELECT 1\x00", "NUL")
	r.want("SELECT count(*), max(message) FROM logs", "2|message 1")
	r.want("PRAGMA user_version", "0")
	if exists(other) {
		t.Error("a file was made")
	}
	gives(t, reader)("SELECT count(*) FROM weir_fts_logs WHERE weir_fts_logs MATCH 'message'", "number 2") // FTS5 asks for data_version by itself
}

// Should the guard let something by, the connection refuses it nevertheless.
func TestSQLiteConnectionOfAReaderRefusesToWrite(t *testing.T) {
	r := openLite(t, Config{})
	reader := readerOf(t, r.cfg, r.dir)
	for _, sql := range []string{"DELETE FROM logs", "CREATE TABLE t (a)", "PRAGMA user_version = 3"} {
		stmt, _, err := reader.lite.conn.PrepareTransient(sql)
		if err == nil {
			_, err = stmt.Step()
			stmt.Finalize()
		}
		if sqlite.ErrCode(err).ToPrimary() != sqlite.ResultReadOnly {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

func TestSQLiteQueryTellsThePlace(t *testing.T) {
	r := openLite(t, Config{})
	at := faults(t, readerOf(t, r.cfg, r.dir))
	at("SELECT hostnme FROM logs", "hostnme FROM")
	at("\n; -- héllo\nSELECT 'é', hostnme FROM logs", "hostnme FROM")
	at("SELECT 1; SELECT 2", "SELECT 2")
	at("SELECT ';'; /* ; */ DELETE FROM logs; -- x", "DELETE")
	at("SELEC 1", "SELEC 1")
	at("/* ; */ DELETE FROM logs", "DELETE FROM logs")
}

func TestSQLiteQueryEnds(t *testing.T) {
	r := openLite(t, Config{})
	ends(t, func() *Reader { return readerOf(t, r.cfg, r.dir) })
}

func TestPostgresQueryReturnsValuesAsTheyAre(t *testing.T) {
	r := openPG(t, Config{})
	r.mustWrite(messages(2)...)
	reader := readerOf(t, r.cfg, r.dir)
	is := gives(t, reader)
	is("SELECT message, structured_data->'cart@32473', received_at FROM logs ORDER BY 1; -- /*", `text message 0|json {"items": "3"}|text 2026-01-02 03:04:05.678901+00;text message 1|json {"items": "3"}|text 2026-01-02 03:04:05.678901+00`)
	is("SELECT NULL, true, false, 9223372036854775807, 0.1::float8, 'NaN'::numeric, '-Infinity'::float4, 1.10", "null |bool true|bool false|number 9223372036854775807|number 0.1|number NaN|number -Infinity|number 1.10")
	is(`SELECT '\x00ff'::bytea, '', ARRAY['a','b c'], '{"a" : 1}'::json, '10.0.0.0/8'::inet`, "bytes \x00\xff|text |text {a,\"b c\"}|json {\"a\" : 1}|text 10.0.0.0/8")
	is("SHOW statement_timeout", "text 0")
	is("/* /* nested */ ; */ VALUES (1)", "number 1")
	is("SHOW transaction_read_only", "text on")
}

func TestPostgresQueryChangesNothing(t *testing.T) {
	r := openPG(t, Config{}, "CREATE SEQUENCE numbers", "CREATE FUNCTION sly() RETURNS int LANGUAGE plpgsql AS "+
		"$$ BEGIN PERFORM set_config('transaction_read_only', 'off', false); DELETE FROM logs; RETURN 1; END $$",
		"CREATE FUNCTION bold() RETURNS int LANGUAGE plpgsql AS $$ BEGIN SET TRANSACTION READ WRITE; DELETE FROM logs; RETURN 1; END $$",
		"CREATE FUNCTION plain() RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY DELETE FROM logs RETURNING message; END $$",
		"CREATE PROCEDURE leave(INOUT x int) LANGUAGE plpgsql AS $$ BEGIN COMMIT; DELETE FROM logs; END $$")
	r.mustWrite(messages(2)...)
	no := refuses(t, readerOf(t, r.cfg, r.dir))
	no("INSERT INTO logs (received_at, message) VALUES (now(), '') RETURNING 1", "read-only transaction (SQLSTATE 25006)")
	no("WITH gone AS (DELETE FROM logs RETURNING message) SELECT * FROM gone", "25006")
	no("EXPLAIN ANALYZE DELETE FROM logs", "25006")
	no("SELECT nextval('numbers')", "25006")
	no("SELECT setval('numbers', 7)", "25006")
	no("SELECT * INTO t FROM logs", "only statements that return rows")
	no("SELECT message FROM logs FOR UPDATE", "25006")
	no("SELECT sly()", "read-write mode must be set before any query")
	no("SELECT bold()", "read-write mode must be set before any query")
	no("SELECT plain()", "25006")
	no("CALL leave(1)", "invalid transaction termination")
	for _, sql := range []string{"DELETE FROM logs", "CREATE TEMP TABLE t (a int)", "COPY logs TO PROGRAM 'true'", "COPY logs TO STDOUT", "SET TRANSACTION READ WRITE", "SET default_transaction_read_only = off",
		"COMMIT", "ROLLBACK", "PREPARE TRANSACTION 'x'", "DO $$ BEGIN DELETE FROM logs; END $$", "NOTIFY x", "LOCK TABLE logs", "VACUUM", "LISTEN x", "TRUNCATE logs"} {
		no(sql, "only statements that return rows")
	}
	no("DELETE FROM logs; COMMIT", "a second statement")
	no("SELECT $1::int", "parameter")
	no("", "there is no statement")
	ask(t, readerOf(t, r.cfg, r.dir), "SELECT lo_create(0)") // let by before PostgreSQL 16, and rolled back
	r.want("SELECT count(*) FROM pg_largeobject_metadata", "0")
	r.want("SELECT count(*) FROM logs", "2")
	r.want("SELECT last_value, is_called FROM numbers", "1|f")
}

func TestPostgresQueryTellsThePlace(t *testing.T) {
	r := openPG(t, Config{})
	r.mustWrite(messages(1)...)
	reader := readerOf(t, r.cfg, r.dir)
	at := faults(t, reader)
	at("SELECT 'é', hostnme FROM logs", "hostnme FROM")
	at("SELECT 1; SELECT 2", "SELECT 2")
	at(`SELECT ';', E'\';', $$;$$, $a$;$a$, ";" -- ;
	/* ; /* */ ; */; DELETE FROM logs`, "DELETE")
	at("SELECT 'a' LIKE'\\'; DELETE FROM logs; SELECT ''", "DELETE")
	at("SELECT 1 AS a$b$; DELETE FROM logs; SELECT 2 AS c$b$", "DELETE")
	at("SELEC 1", "SELEC 1")
	at("SELECT 1 +", "")
	_, err := ask(t, reader, "SELECT hostnme FROM logs")
	if e, ok := errors.AsType[*QueryError](err); !ok || e.Code != "SQLSTATE 42703" || !strings.Contains(e.Hint, "logs.hostname") {
		t.Errorf("%+v", err)
	}
	gives(t, reader)("SELECT 1", "number 1") // the connection goes on
}

func TestPostgresQueryEnds(t *testing.T) {
	r := openPG(t, Config{})
	ends(t, func() *Reader { return readerOf(t, r.cfg, r.dir) })
	left := "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'WITH RECURSIVE%' AND state = 'active'"
	if got := r.query(left); got[0] != "0" {
		t.Errorf("%s queries go on at the server", got[0])
	}
}

// What weir takes for the second statement, the server does too.
func FuzzSecondStatement(f *testing.F) {
	for _, s := range []string{"1;2", "';';2", "e'\\';';2", "$$;$$;2", "/*/*;*/;*/;2", "\";\";2", "--;\n;2", "1;;--x", "$a$;$a;$a$;2", "'';2", "a$b$;c$b$;2"} {
		f.Add("SELECT " + s)
	}
	_, dsn := routertest.Postgres(f)
	conn, err := pgconn.Connect(f.Context(), dsn)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { conn.Close(context.Background()) })
	f.Fuzz(func(t *testing.T, sql string) {
		if strings.IndexByte(sql, 0) >= 0 {
			return
		}
		_, err := conn.Prepare(t.Context(), "", sql, nil)
		if server, ok := errors.AsType[*pgconn.PgError](err); ok && server.Code == "42601" && server.Position == 0 {
			if second := secondStatement(sql); second == len(sql) || strings.TrimSpace(sql[:second]) == "" {
				t.Errorf("%q has a second statement somewhere", sql)
			}
		} else if err == nil && secondStatement(sql) != len(sql) {
			t.Error(fmt.Sprintf("%q has no second statement at %d", sql, secondStatement(sql)))
		}
	})
}
