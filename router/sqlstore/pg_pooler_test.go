package sqlstore

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/routertest"
)

func TestSessionStatementsBehindAPooler(t *testing.T) {
	check := func(statement, want string) {
		t.Helper()
		if got, why := setLocal(statement); got != want || (why == "") != (want != "") {
			t.Errorf("%q becomes %q (%s), want %q", statement, got, why, want)
		}
	}
	check("SET TIME ZONE 'UTC'", "SET LOCAL TIME ZONE 'UTC'")
	check(" set  lock_timeout = '5s' ;", "SET LOCAL lock_timeout = '5s'")
	check("SET SESSION search_path TO a,  b", "SET LOCAL search_path TO a,  b")
	check("SET LOCAL work_mem = '1MB'", "SET LOCAL work_mem = '1MB'")
	check("SET ROLE app", "SET LOCAL ROLE app")
	check("SET SESSION AUTHORIZATION app", "SET LOCAL SESSION AUTHORIZATION app")
	check("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
	check("SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE", "")
	check("SET client_encoding = 'LATIN1'", "")
	check("SET NAMES 'LATIN1'", "")
	check("SET a = 1; DROP TABLE logs", "")
	check("SELECT set_config('a.b', '1', false)", "")
	check("LISTEN x", "")
	check("SET", "")

	bad := func(want string, c Config) {
		t.Helper()
		c.Pooler = true
		var all []string
		for _, p := range c.Check() {
			all = append(all, p.Path+": "+p.What)
		}
		if got := strings.Join(all, "\n"); !strings.Contains(got, want) {
			t.Errorf("check says %q, want %q", got, want)
		}
	}
	pg := plainSecret("postgres://weir@127.0.0.1/logs")
	bad("session_statements.1: behind a pooler", Config{Postgres: pg, SessionStatements: []string{"SET a.b = 1", "LISTEN x"}})
	bad("explicit_commits: ", Config{Postgres: pg, ExplicitCommits: new(bool)})
	bad("does not take search_path", Config{Postgres: plainSecret("postgres://weir@127.0.0.1/logs?search_path=a")})
	bad("pooler has no meaning for sqlite", Config{SQLite: "a"})
}

// Behind pgbouncer, with other clients on the same sessions: what weir sets holds for its transactions and is left to nobody.
func TestPoolerGetsNothingOfASession(t *testing.T) {
	server, dsn := routertest.Postgres(t)
	bouncer := routertest.NewPgBouncer(t, server, 1)
	database := server.Query(t, dsn, "SELECT current_database()")[0]
	server.Exec(t, dsn, `CREATE TABLE notes (s text);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
 INSERT INTO notes VALUES (concat_ws('|', current_setting('TimeZone'), current_setting('statement_timeout'), current_setting('lock_timeout'))); RETURN NULL; END $$;
CREATE TABLE logs (message text, n int CHECK (n < 100), ip inet);
CREATE TRIGGER note AFTER INSERT ON logs FOR EACH STATEMENT EXECUTE FUNCTION note()`)
	cfg := Config{Postgres: config.PlainSecret(bouncer.DSN(database)), Pooler: true, Columns: columns("message", "message", "n", Column{From: "fields.n", Type: "int"}, "ip", "fields.ip"),
		SessionStatements: []string{"SET TIME ZONE 'Asia/Tokyo'", "SET lock_timeout = '7s'"}}
	first, second := open(t, "", cfg), open(t, "", cfg)
	if err := first.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 { // two clients on one session of the server
		first.mustWrite(messages(200)...)
		second.mustWrite(messages(200)...)
		if got := server.Query(t, bouncer.DSN(database), "SELECT concat_ws('|', current_setting('TimeZone'), current_setting('statement_timeout'), (SELECT count(*) FROM pg_prepared_statements))"); got[0] != "Etc/UTC|0|0" && got[0] != "GMT|0|0" && got[0] != "UTC|0|0" {
			t.Error(got)
		}
	}
	if got := server.Query(t, dsn, "SELECT DISTINCT s FROM notes"); len(got) != 1 || got[0] != "Asia/Tokyo|1min|7s" {
		t.Error(got)
	}
	// Bad rows, one at a time, with savepoints.
	msgs := messages(300)
	with(msgs[7], "n", text("x"))
	with(msgs[100], "n", router.IntValue(100))
	with(msgs[200], "ip", text("nowhere"))
	first.mustWrite(msgs...)
	first.wantLetters("message 7 22P02 n", "message 100 23514 ", "message 200 22P02 ip")
	if got := server.Query(t, dsn, "SELECT count(*) FROM logs"); got[0] != "1497" {
		t.Error(got)
	}
	broken := cfg
	broken.SessionStatements = []string{"SET lock_timeout = 'soon'"}
	if err := open(t, "", broken).Connect(t.Context()); !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), `"SET lock_timeout = 'soon'"`) {
		t.Errorf("Connect = %v", err)
	}
	// Several tables, and rows that go by INSERT.
	several := cfg
	several.Table, several.Columns, several.OnConflict = "logs_${app_name}", columns("message", "message"), &OnConflict{Key: []string{"message"}}
	third := open(t, "", several)
	third.mustWrite(messages(50)...)
	third.mustWrite(messages(60)...)
	if got := server.Query(t, dsn, "SELECT count(*) FROM logs_shopd"); got[0] != "60" {
		t.Error(got)
	}
}

// Exactly once behind pgbouncer, whose sessions on the server are ended in the
// middle, which itself is killed and started again, and whose server crashes.
func TestPoolerExactlyOnce(t *testing.T) {
	server, dsn := routertest.Postgres(t)
	bouncer := routertest.NewPgBouncer(t, server, 2)
	database := server.Query(t, dsn, "SELECT current_database()")[0]
	w := newWriter(t, bouncer.DSN(database), Config{Pooler: true, Columns: columns("message", "message")}, 10)
	w.rig.dsn = dsn
	var stored atomic.Uint64
	w.Moved = stored.Store
	attack := routertest.Attack{Server: server, Database: database, Stored: stored.Load}
	over, stop := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for !t.Failed() {
			select {
			case <-stop:
				return
			default:
				w.Until(t.Context(), t, w.At+100)
			}
		}
	}()
	attack.Terminations = 4
	attack.Run(t)
	for range 3 {
		bouncer.Stop()
		bouncer.Start(t)
		attack.Terminations = 1
		attack.Run(t)
	}
	attack.Kills, attack.Terminations = 1, 1
	attack.Run(t)
	close(stop)
	<-over
	w.wantAll("after all")
	for _, err := range w.Errors {
		if router.IsNeedsOperator(err) && !strings.Contains(err.Error(), "42P01") {
			t.Error(err)
		}
	}
	t.Logf("%d messages, %d errors", w.At, len(w.Errors))
}

// The proxy that cuts, before pgbouncer: the position is exact there too.
func TestPoolerCutBetweenCommitAndItsAnswer(t *testing.T) {
	server, dsn := routertest.Postgres(t)
	bouncer := routertest.NewPgBouncer(t, server, 2)
	database := server.Query(t, dsn, "SELECT current_database()")[0]
	proxy := routertest.NewPGProxyTo(t, bouncer.Socket())
	w := newWriter(t, proxy.DSN(database), Config{Pooler: true, Columns: columns("message", "message")}, 3)
	w.rig.dsn = dsn
	for at := 1; ; at++ {
		w.Until(t.Context(), t, w.At+1)
		cut := routertest.PGCut{At: at, After: at%2 == 1}
		proxy.Arm(cut)
		w.Until(t.Context(), t, w.At+5)
		w.wantAll(fmt.Sprintf("cut %+v at %v", cut, proxy.Fired()))
		if proxy.Fired() == nil {
			break
		}
	}
}
