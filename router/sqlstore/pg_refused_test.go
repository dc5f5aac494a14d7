package sqlstore

import (
	"errors"
	"strings"
	"testing"

	"github.com/weirlog/weir/router"
)

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

func TestPostgresRowSecurityUsesInsert(t *testing.T) {
	d := openPG(t, Config{SessionStatements: []string{"SET ROLE app"}, Columns: columns("message", "message", "n", "fields.n")},
		"DO $$ BEGIN IF to_regrole('app') IS NULL THEN CREATE ROLE app; END IF; END $$",
		positionsFor("app"), "CREATE TABLE logs (message text, n int); GRANT ALL ON logs TO app; ALTER TABLE logs ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON logs WITH CHECK (n <> 3)")
	msgs := messages(120)
	for i, m := range msgs {
		with(m, "n", router.IntValue(int64(i)))
	}
	d.mustWrite(msgs...)
	d.wantLetters("message 3 42501 ")
	d.want("SELECT count(*) FROM logs", "119")
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

func TestPostgresPartitionedTable(t *testing.T) {
	d := openPG(t, Config{Columns: columns("ts", "timestamp", "message", "message")},
		"CREATE TABLE logs (ts timestamptz, message text) PARTITION BY RANGE (ts)", "CREATE TABLE p PARTITION OF logs FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')")
	msgs := messages(200)
	msgs[150].Timestamp = 0
	d.mustWrite(msgs...)
	d.wantLetters("message 150 23514 ")
	d.want("SELECT count(*) FROM logs", "199")
}
