package sqlstore

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func listing(t testing.TB, r *Reader) []string {
	t.Helper()
	h := &heard{}
	if err := r.Tables(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(h.names, " "); got != "table rows column type" {
		t.Error(got)
	}
	return h.rows
}

func TestSQLiteTablesAreListedWithTheirColumns(t *testing.T) {
	r := openLite(t, Config{FullText: "message", Columns: columns("message", "message", "level", "severity"), Indexes: []string{}})
	r.mustWrite(messages(7)...)
	r.query(`CREATE VIEW "a|view" AS SELECT level AS l FROM logs`)
	want := []string{"text a|view|null |text l|text INTEGER", "text logs|number 7|text message|text TEXT", "text logs|number 7|text level|text INTEGER",
		"text weir_fts_logs|null |text message|text ", "text weir_positions|null |text run|text TEXT", "text weir_positions|null |text pos|text INTEGER"}
	if d := cmp.Diff(want, listing(t, readerOf(t, r.cfg, r.dir))[:len(want)]); d != "" {
		t.Error(d)
	}
}

func TestPostgresTablesAreListedWithTheirColumns(t *testing.T) {
	r := openPG(t, Config{Table: "logs", Columns: columns("at", "received_at", "message", "message"), Indexes: []string{}, Partition: &Partition{By: "day", Column: "at", Ahead: 1}},
		"CREATE SCHEMA other", "CREATE TABLE other.t (a varchar(7), b int[])")
	r.mustWrite(messages(7)...)
	r.server.Exec(t, r.dsn, "ANALYZE")
	want := []string{"text other.t|number 0|text a|text character varying(7)", "text other.t|number 0|text b|text integer[]",
		"text logs|number 7|text at|text timestamp with time zone", "text logs|number 7|text message|text text"}
	got := listing(t, readerOf(t, r.cfg, r.dir))
	for _, w := range want {
		if !strings.Contains(strings.Join(got, "\n"), w) {
			t.Errorf("got\n%s\nwant %s", strings.Join(got, "\n"), w)
		}
	}
	if all := strings.Join(got, "\n"); strings.Contains(all, "logs_") || strings.Contains(all, "pg_") {
		t.Error(all)
	}
}
