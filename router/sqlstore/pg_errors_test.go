package sqlstore

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/routertest"
)

// An errorRow is a line of the table in docs/errors.md.
type errorRow struct {
	codes      []string
	row, atEnd string
}

func readErrorTable(t *testing.T) []errorRow {
	t.Helper()
	text, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(string(text), "\n## PostgreSQL\n")
	page, _, _ = strings.Cut(page, "\n## ")
	var rows []errorRow
	for _, m := range regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|[^|]*\\| ([^|]*) \\| ([^|]*) \\|$").FindAllStringSubmatch(page, -1) {
		var codes []string
		for _, c := range regexp.MustCompile("`([0-9A-Z]+)`").FindAllStringSubmatch(m[1], -1) {
			codes = append(codes, c[1])
		}
		rows = append(rows, errorRow{codes, m[2], m[3]})
	}
	return rows
}

// Every code of the manual's table is provoked in the server, at a row and at
// COMMIT, and what the writer sees is what the manual says.
func TestErrorsAreWhatTheManualSays(t *testing.T) {
	table := readErrorTable(t)
	d := openPG(t, Config{Columns: columns("message", "message")}, `CREATE TABLE logs (message text); CREATE TABLE trouble (code text, at text);
CREATE FUNCTION meet() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE c text; BEGIN
 SELECT code INTO c FROM trouble WHERE at = TG_ARGV[0];
 IF c IS NOT NULL AND NEW.message = 'message 5' THEN RAISE EXCEPTION 'met' USING ERRCODE = c; END IF; RETURN NEW; END $$;
CREATE TABLE ledger (message text); CREATE CONSTRAINT TRIGGER late AFTER INSERT ON ledger DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION meet('end');
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO ledger VALUES (NEW.message); RETURN NEW; END $$;
CREATE TRIGGER a BEFORE INSERT ON logs FOR EACH ROW EXECUTE FUNCTION meet('row'); CREATE TRIGGER b BEFORE INSERT ON logs FOR EACH ROW EXECUTE FUNCTION note()`)
	run := router.NewRun()
	at := uint64(0)
	to := d.Destination().(router.Positioner)
	// try writes ten messages, of which the sixth meets the code, and says in the manual's words what the writer sees.
	try := func() string {
		for {
			var err error
			if at, _, err = to.Position(t.Context(), run); err == nil {
				break
			}
		}
		d.letters = nil
		err := to.WriteAt(t.Context(), router.Span{Run: run, From: at, To: at + 10}, messages(10), d.keep)
		switch {
		case err == nil && len(d.letters) == 1:
			return "dead letter"
		case err == nil:
			return fmt.Sprintf("stored, %d letters", len(d.letters))
		case router.IsPermanent(err):
			return "halved"
		case router.IsNeedsOperator(err):
			return "person"
		}
		if strings.Contains(err.Error(), "57014") || d.db.(*postgres).slow > 0 {
			return "again, smaller"
		}
		if d.db.(*postgres).conn == nil && strings.HasPrefix(err.Error(), "commit: ") && d.db.(*postgres).misled == 0 {
			return "position"
		}
		return "again"
	}
	seen := 0
	ctx := context.Background()
	conn, err := pgconn.Connect(ctx, d.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	set := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(ctx, sql).ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range table {
		for _, prefix := range row.codes {
			code := (prefix + "001")[:5]
			if len(prefix) == 5 {
				code = prefix
			}
			for where, want := range map[string]string{"row": row.row, "end": row.atEnd} {
				if prefix == "42" && where == "row" {
					want = "dead letter" // from within a trigger
				}
				set("DELETE FROM trouble")
				if err := d.tryWrite(messages(1)...); err != nil { // good neighbours, and no failure before
					t.Fatalf("%s: %v", code, err)
				}
				set(fmt.Sprintf("INSERT INTO trouble VALUES ('%s', '%s')", code, where))
				if got := try(); got != want {
					t.Errorf("%s at the %s: %s, the manual says %s", code, where, got, want)
				}
				seen++
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d codes in the manual's table", seen)
	}
	// Every class of the code is in the table.
	listed := map[string]bool{}
	for _, row := range table {
		for _, c := range row.codes {
			listed[c] = true
		}
	}
	for code := range sqlState {
		if !listed[code] {
			t.Errorf("%s is not in docs/errors.md", code)
		}
	}
	// 42 as the statement's own error.
	d.query("DELETE FROM trouble; ALTER TABLE logs RENAME COLUMN message TO gone")
	if err := d.tryWrite(messages(1)...); !router.IsNeedsOperator(err) {
		t.Errorf("Write = %v", err)
	}
}

// Neither the reason of a dead letter nor an error nor the log, however
// detailed, tells what is in a row. (The server does, in DETAIL and CONTEXT.)
func TestErrorsTellNothingOfARow(t *testing.T) {
	const secret = "hunter2"
	server, dsn := routertest.Postgres(t)
	server.Exec(t, dsn, `CREATE TABLE hosts (name text PRIMARY KEY);
CREATE TABLE logs (message text, ip inet, n smallint, short varchar(3), j jsonb, host text REFERENCES hosts, u text UNIQUE, c text CHECK (c <> 'hunter2'), d date, x text COLLATE "C" CHECK (length(x) < 3))`)
	var log bytes.Buffer
	names := []string{"ip", "n", "short", "j", "host", "u", "c", "d", "x"}
	cfg := Config{Postgres: config.PlainSecret(dsn), Columns: columns("message", "message")}
	for _, name := range names {
		cfg.Columns = append(cfg.Columns, columns(name, "fields."+name)...)
	}
	s, err := Open(t.Context(), cfg, "db", "", slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug - 10})))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var letters []router.Rejected
	keep := func(rows []router.Rejected) error { letters = append(letters, rows...); return nil }
	write := func(name string, value router.Value) {
		t.Helper()
		letters = nil
		bad := with(message("m"), name, value)
		err := s.Write(context.Background(), []*router.Message{message("good"), bad, message("good")}, keep)
		if router.IsPermanent(err) { // halved
			err = s.Write(context.Background(), []*router.Message{bad}, keep)
		}
		told := log.String()
		if err != nil {
			told += err.Error()
		} else if len(letters) == 0 {
			t.Errorf("%s: the row went in", name)
		}
		for _, l := range letters {
			told += l.Code + l.Column + l.Reason
		}
		if strings.Contains(told, secret) {
			t.Errorf("%s: %s", name, told)
		}
	}
	for _, name := range names {
		if name == "u" || name == "j" {
			continue
		}
		write(name, text(secret))
	}
	write("j", router.Value{Kind: router.Object, Bytes: []byte(`{"` + secret + `"`)})
	if err := s.Write(t.Context(), []*router.Message{with(message("first"), "u", text(secret))}, keep); err != nil {
		t.Fatal(err)
	}
	write("u", text(secret))
	server.Exec(t, dsn, "ALTER TABLE logs ADD CHECK (message <> 'good') NOT VALID, ALTER COLUMN u TYPE integer USING NULL")
	err = s.Write(t.Context(), []*router.Message{with(message("good"), "u", text(secret))}, keep)
	if err == nil || strings.Contains(err.Error(), secret) || strings.Contains(log.String(), secret) {
		t.Errorf("Write = %v", err)
	}
}

// Field case C21: no room for our session is waited for, and the server is not asked more often than we are called.
func TestTooManyConnectionsPass(t *testing.T) {
	server, dsn := routertest.Postgres(t)
	server.Exec(t, dsn, "CREATE ROLE crowd_plain LOGIN CONNECTION LIMIT 1; GRANT ALL ON SCHEMA public TO crowd_plain")
	t.Cleanup(func() { server.Exec(t, dsn, "DROP OWNED BY crowd_plain; DROP ROLE crowd_plain") })
	plain := strings.Replace(dsn, "//weir@", "//crowd_plain@", 1)
	r := &pgRig{rig: &rig{t: t}, server: server, dsn: plain}
	end := r.session("SELECT 1")
	d := open(t, "", Config{Postgres: config.PlainSecret(plain)})
	for range 3 {
		if err := d.tryWrite(messages(1)...); err == nil || router.IsNeedsOperator(err) || router.IsPermanent(err) || !strings.Contains(err.Error(), "53300") {
			t.Errorf("Write = %v", err)
		}
	}
	if n := counted(t, d.metrics.connects); n != 0 {
		t.Errorf("%v connections", n)
	}
	end()
	for err := error(nil); ; {
		if err = d.tryWrite(messages(1)...); err == nil {
			break
		}
		if !strings.Contains(err.Error(), "53300") { // the server may not have noticed yet
			t.Fatal(err)
		}
	}
	if got := server.Query(t, dsn, "SELECT count(*) FROM logs"); got[0] != "1" {
		t.Error(got)
	}
}
