package sqlstore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirlog/weir/router"
)

// C01, C02, C13, C15, C16, C18, C22: what nobody takes costs itself and nothing
// else, and is counted.
func TestPostgresBadRowsAmongTenThousand(t *testing.T) {
	for _, form := range []string{"binary", "text", "insert"} {
		t.Run(form, func(t *testing.T) { badRowsAmongTenThousand(t, form) })
	}
}

func badRowsAmongTenThousand(t *testing.T, form string) {
	cfg := Config{AddColumns: columns(
		"n", Column{From: "fields.n", Type: "smallint CHECK (n <> 13)"},
		"short", Column{From: "fields.short", Type: "varchar(8)"},
		"must", Column{From: "fields.must", Type: "text NOT NULL"},
		"once", Column{From: "fields.once", Type: "text UNIQUE"},
	)}
	var before []string
	switch form {
	case "text":
		cfg.AddColumns = append(cfg.AddColumns, columns("ip", Column{From: "fields.ip", Type: "inet"})...)
	case "insert":
		c := cfg
		c.Table = "kept"
		server := openPG(t, c)
		if err := server.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		sql := server.query("SELECT string_agg(format('%I %s%s', attname, format_type(atttypid, atttypmod), CASE WHEN attnotnull THEN ' NOT NULL' ELSE '' END), ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'kept'::regclass AND attnum > 0")
		before = []string{"CREATE TABLE kept (" + sql[0] + ", CHECK (n <> 13), UNIQUE (once))", "CREATE VIEW logs AS TABLE kept"}
	}
	d := openPG(t, cfg, before...)
	msgs, want, repaired := spoiled([...]string{"22P02 n", "22001 short", "22003 n", "23502 must", "23514 ", "23505 "})
	run := router.NewRun()
	d.wantPosition(run, 0, false)
	for at := 0; at < len(msgs); at += 2500 {
		d.mustWriteAt(run, uint64(at), uint64(at+2500), msgs[at:at+2500]...)
	}
	d.wantSpoiled(want, repaired)
	d.want("SELECT count(*), count(DISTINCT once) FROM logs", fmt.Sprintf("%d|%[1]d", 10_000-len(want)))
	d.wantPosition(run, 10_000, true)
}

// Somebody changes the table while rows come: none is lost, it is told, and
// goes on by itself when it is mended. C05, C06.
func TestPostgresTableThatIsChangedUnderLoad(t *testing.T) {
	no := false
	check := func(name, reason, change, mend string) {
		t.Helper()
		d := openPG(t, Config{SessionStatements: []string{"SET ROLE app"}, Columns: columns("at", "received_at", "message", "message"), Tables: Tables{Create: &no}},
			"DO $$ BEGIN IF to_regrole('app') IS NULL THEN CREATE ROLE app; END IF; END $$",
			"CREATE TABLE logs (at timestamptz, message text) PARTITION BY RANGE (at); CREATE TABLE logs_2026 PARTITION OF logs FOR VALUES FROM ('2026-01-01') TO ('2027-01-01')",
			positionsFor("app"), "GRANT INSERT ON logs TO app")
		run := router.NewRun()
		results, stop := make(chan error), make(chan struct{})
		stopped := make(chan uint64)
		go func() { // what a writer does
			var at uint64
			defer func() { stopped <- at }()
			for {
				pos, _, err := d.positioner().Position(t.Context(), run)
				if err == nil {
					if err = d.writeAt(run, pos, pos+100, numbered(pos+1, pos+100)...); err == nil {
						at = pos + 100
					}
				}
				select {
				case results <- err:
				case <-stop:
					return
				}
			}
		}()
		wait := func(want string, n int) {
			t.Helper()
			for range 200 {
				switch err := <-results; {
				case err == nil && want == "", err != nil && want != "" && strings.Contains(err.Error(), want):
					if n--; n == 0 {
						return
					}
				case router.IsPermanent(err):
					t.Errorf("%s: %v", name, err)
				}
			}
			t.Errorf("%s: never %q", name, want)
		}
		wait("", 3)
		d.query(change)
		wait(reason, 3)
		d.query(mend)
		wait("", 3)
		close(stop)
		at := <-stopped
		if len(d.letters) > 0 {
			t.Errorf("%s: %d dead letters, %v", name, len(d.letters), d.letters[0])
		}
		d.want("SELECT count(*), count(DISTINCT message), max(message::int) FROM logs", fmt.Sprintf("%d|%[1]d|%[1]d", at))
	}
	check("a NOT NULL column without default", "wants a value for c", "ALTER TABLE logs ADD c int; UPDATE logs SET c = 1; ALTER TABLE logs ALTER c SET NOT NULL", "ALTER TABLE logs ALTER c SET DEFAULT 7")
	check("a changed type", "table logs takes none of 100 rows: column message", "ALTER TABLE logs RENAME message TO m; ALTER TABLE logs ADD message inet", "ALTER TABLE logs DROP message; ALTER TABLE logs RENAME m TO message")
	check("a revoked privilege", "permission denied for table logs", "REVOKE INSERT ON logs FROM app", "GRANT INSERT ON logs TO app")
	check("a partition that has gone", "no partition of relation", "ALTER TABLE logs DETACH PARTITION logs_2026", "ALTER TABLE logs ATTACH PARTITION logs_2026 FOR VALUES FROM ('2026-01-01') TO ('2027-01-01')")
	check("a dropped column", "has no column message", "ALTER TABLE logs RENAME message TO m", "ALTER TABLE logs RENAME m TO message")
	check("a dropped table", "there is no table logs", "ALTER TABLE logs RENAME TO elsewhere", "ALTER TABLE elsewhere RENAME TO logs")
	// DROP TRIGGER alone locks partitions before their table, and may be what a deadlock ends.
	check("a trigger", "closed", "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'closed'; END $$; CREATE TRIGGER t BEFORE INSERT ON logs FOR EACH ROW EXECUTE FUNCTION no()", "LOCK TABLE logs; DROP TRIGGER t ON logs")
	check("a domain", "not_now", "CREATE DOMAIN words AS text; ALTER TABLE logs ALTER message TYPE words; ALTER DOMAIN words ADD CONSTRAINT not_now CHECK (VALUE = '') NOT VALID", "ALTER DOMAIN words DROP CONSTRAINT not_now")
}

// Partitions that rows make by themselves, as chunks of hypertables are made, do
// not look like a change by somebody.
func TestPostgresRowsThatMakePartitionsGoIn(t *testing.T) {
	d := openPG(t, Config{Columns: columns("message", "message", "n", Column{From: "fields.n", Type: "int"})},
		`CREATE TABLE logs (message text, n int CHECK (n > 0));
CREATE FUNCTION chunk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('CREATE TABLE IF NOT EXISTS chunk_%s () INHERITS (logs)', NEW.n / 10); RETURN NEW; END $$;
CREATE TRIGGER chunk BEFORE INSERT ON logs FOR EACH ROW WHEN (NEW.n > 0) EXECUTE FUNCTION chunk()`)
	msgs := messages(30)
	for i, m := range msgs {
		with(m, "n", router.IntValue(int64(i)))
	}
	for range 5 {
		if err := d.tryWrite(msgs...); err == nil {
			break
		} else if router.IsPermanent(err) || router.IsNeedsOperator(err) {
			t.Fatal(err)
		}
	}
	d.wantLetters("message 0 23514 ")
	d.want("SELECT count(*) FROM ONLY logs", "29")
}
