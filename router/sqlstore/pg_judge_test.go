package sqlstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weirlog/weir/router"
)

// mostOf makes a server that ends a statement of more rows than that.
const mostOf = `CREATE FUNCTION most() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
 IF (SELECT count(*) FROM n) > %d THEN RAISE 'canceling statement due to statement timeout' USING ERRCODE = '57014'; END IF; RETURN NULL; END $$;
CREATE TRIGGER most AFTER INSERT ON logs REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION most()`

// halved is what a writer does: it tries again what passes, and halves what is permanent.
func (r *pgRig) halved(run router.RunID, from uint64, msgs []*router.Message) (tries int) {
	r.t.Helper()
	for range 20 {
		tries++
		err := r.writeAt(run, from, from+uint64(len(msgs)), msgs...)
		switch {
		case err == nil:
			return tries
		case router.IsPermanent(err) && len(msgs) > 1:
			half := len(msgs) / 2
			tries += r.halved(run, from, msgs[:half])
			return tries + r.halved(run, from+uint64(half), msgs[half:])
		case router.IsPermanent(err) || router.IsNeedsOperator(err):
			r.t.Fatal(err)
		}
	}
	r.t.Fatal("never")
	return tries
}

func TestPostgresTransactionsThatTakeTooLongStaySmall(t *testing.T) {
	d := openPG(t, Config{Columns: columns("message", "message")}, "CREATE TABLE logs (message text); "+fmt.Sprintf(mostOf, 300))
	run, at := router.NewRun(), uint64(0)
	d.wantPosition(run, 0, false)
	write := func(want int) {
		t.Helper()
		if got := d.halved(run, at, numbered(at+1, at+1000)); got != want {
			t.Errorf("%d tries, want %d", got, want)
		}
		at += 1000
	}
	write(3 + 3 + 2 + 1 + 2) // 1000 and 500 are tried three times, the other 500 not at all
	write(1 + 2*(1+2))       // known to be too large
	// After ten that went well, 500 are tried again: three times for nothing.
	write(1 + (1 + 2) + 3 + 2)
	d.query("DROP TRIGGER most ON logs")
	for range 12 {
		d.halved(run, at, numbered(at+1, at+1000))
		at += 1000
	}
	write(1)
	d.wantPosition(run, at, true)
	d.want("SELECT count(*), count(DISTINCT message), max(message::int) FROM logs", fmt.Sprintf("%d|%[1]d|%[1]d", at))
	d.wantLetters()
}

func TestPostgresLoneRowThatTakesTooLongIsSuspect(t *testing.T) {
	d := openPG(t, Config{Columns: columns("message", "message")}, "CREATE TABLE logs (message text); "+fmt.Sprintf(mostOf, 0))
	check := func(third func(error) bool) {
		t.Helper()
		for i := range 3 {
			if err := d.tryWrite(messages(1)...); err == nil || i < 2 && (router.IsPermanent(err) || router.IsNeedsOperator(err)) || i == 2 && !third(err) {
				t.Errorf("Write %d = %v", i, err)
			}
		}
	}
	check(router.IsNeedsOperator) // the table may be wrong
	d.query("ALTER TABLE logs DISABLE TRIGGER most")
	d.mustWrite(messages(1)...)
	d.query("CREATE OR REPLACE FUNCTION most() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF (SELECT max(message) FROM n) = 'message 0' THEN RAISE 'slow' USING ERRCODE = '57014'; END IF; RETURN NULL; END $$; ALTER TABLE logs ENABLE TRIGGER most")
	d.mustWrite(message("good"))
	check(router.IsPermanent)
}

// Some time limits of the server end the session with the transaction.
func TestPostgresTransactionIsHalvedWhenItsSessionIsEnded(t *testing.T) {
	d := openPG(t, Config{})
	d.mustWrite(messages(1)...)
	pg := d.db.(*postgres)
	for i := range 3 {
		pg.drop()
		err := pg.judge(t.Context(), &failure{class: slow, code: "25P03", err: errors.New("copy: terminating connection")}, 10)
		if router.IsPermanent(err) != (i == 2) {
			t.Errorf("judge = %v", err)
		}
	}
	if err := d.tryWrite(messages(10)...); !router.IsPermanent(err) || !strings.Contains(err.Error(), "more than 5 rows") {
		t.Errorf("Write = %v", err)
	}
	d.mustWrite(messages(5)...)
}

// C21: a server without room for one more session is waited for.
func TestPostgresServerWithoutSlotsIsWaitedFor(t *testing.T) {
	d := openPG(t, Config{})
	database := d.query("SELECT current_database()")[0]
	limit := func(n int) {
		d.server.Exec(t, d.server.DSN("postgres"), fmt.Sprintf("ALTER ROLE slots CONNECTION LIMIT %d", n))
	}
	d.server.Exec(t, d.server.DSN("postgres"), "DO $$ BEGIN IF to_regrole('slots') IS NULL THEN CREATE ROLE slots LOGIN; END IF; END $$; GRANT ALL ON DATABASE "+database+" TO slots")
	d.query("GRANT ALL ON SCHEMA public TO slots")
	limit(0)
	e := open(t, "", Config{Postgres: plainSecret(strings.Replace(d.dsn, "weir@", "slots@", 1))})
	for range 3 {
		if err := e.tryWrite(messages(3)...); err == nil || router.IsPermanent(err) || router.IsNeedsOperator(err) || !strings.Contains(err.Error(), "53300") {
			t.Errorf("Write = %v", err)
		}
	}
	limit(-1)
	e.mustWrite(messages(3)...)
	d.want("SELECT count(*) FROM logs", "3")
}

func TestPostgresTemplateTablesWithoutExplicitCommits(t *testing.T) {
	no := false
	d := openPG(t, Config{Table: "logs_${app_name}", ExplicitCommits: &no, Tables: Tables{MaxTables: 2}, Columns: columns("message", "message", "n", Column{From: "fields.n", Type: "int CHECK (n < 100)"})})
	msgs := of(30, "a", "b", "c")
	with(msgs[3], "n", text("x"))
	with(msgs[10], "n", router.IntValue(500))
	d.mustWrite(msgs...)
	var want []string
	for i := range 30 {
		switch {
		case i == 3:
			want = append(want, "message 3 22P02 n")
		case i == 10:
			want = append(want, "message 10 23514 ")
		case i%3 == 2:
			want = append(want, fmt.Sprintf("message %d tables ", i))
		}
	}
	d.wantLetters(want...)
	d.want("SELECT count(*), count(DISTINCT xmin::text), count(DISTINCT message) FROM (SELECT xmin, message FROM logs_a UNION ALL SELECT xmin, message FROM logs_b) t", "18|18|18")
}
