package sqlstore

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/routertest"
)

// questions are those that must not sort the table.
var questions = []Look{{N: 50}, {N: 50, Since: second(10)}, {N: 50, Until: second(19_000)}, {N: 50, Severities: 0xff, Hosts: []string{"web*"}, Apps: []string{"x"}, Text: "y", Fold: true}}

// plans are those of all statements of a question; t is the table as it was seen.
func (b *base) plans(q Look) (plans []string) {
	b.t.Helper()
	v, err := b.reader().Look(b.t.Context(), q)
	if err != nil {
		b.t.Fatal(err)
	}
	t := v.tables[0]
	if len(v.Slow()) > 0 || t.order != byTime {
		b.t.Error(v.Slow())
	}
	first := piece{back: true}
	if !q.Since.IsZero() {
		first.low = t.moment(q.Since)
	}
	if !q.Until.IsZero() {
		first.high = t.moment(q.Until)
	}
	for _, p := range []piece{first, first.from(t.moment(second(15_000)), true)} {
		if q.filtered() { // then each look has an end, and what is found in it may be sorted
			p = p.to(t.moment(second(14_000)))
		}
		if d := v.r.lite; d != nil {
			for _, make := range []func() (string, []any){func() (string, []any) { return t.liteRows(&q, p, 3, 50) }, func() (string, []any) { return t.liteBoundary(p, 500) }} {
				sql, args := make()
				plan, err := d.plan(b.t.Context(), sql, args)
				if err != nil {
					b.t.Fatal(err)
				}
				plans = append(plans, plan)
			}
			continue
		}
		for _, sql := range []string{t.pgRows(&q, p, 3, 50), t.pgBoundary(p, 500)} {
			plan := ""
			if err := v.r.pg.exec(b.t.Context(), "explain", "EXPLAIN "+sql, func(_ []pgconn.FieldDescription, row [][]byte) bool {
				plan += string(row[0]) + "\n"
				return true
			}); err != nil {
				b.t.Fatal(err)
			}
			plans = append(plans, plan)
		}
	}
	return plans
}

func TestTheLastRowsAreFoundByTheIndex(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, b *base) {
		b.mustWrite(arriving(20_000)...)
		if b.cfg.SQLite != "" { // PostgreSQL may take one of these where it finds a handful of rows
			b.run("CREATE INDEX logs_by_host ON logs (hostname)")
			b.run("CREATE INDEX logs_by_severity ON logs (severity)")
		}
		b.run("ANALYZE")
		for _, q := range questions {
			for _, plan := range b.plans(q) {
				// Of a group of one moment the order may be made; that is no sort of the table.
				if strings.Contains(plan, "Seq Scan") || strings.Contains(plan, "TEMP B-TREE") || !q.filtered() && strings.Contains(strings.ReplaceAll(plan, "Incremental Sort", ""), "Sort  (") ||
					!strings.Contains(plan, "received_at_idx") {
					t.Errorf("%+v:\n%s", q, plan)
				}
			}
		}
	})
}

func TestNewRowsAreFoundByTheirRowID(t *testing.T) {
	b := &base{rig: openLite(t, Config{}), cfg: Config{SQLite: "logs.db"}}
	b.mustWrite(arriving(10)...)
	v, err := b.reader().Look(t.Context(), questions[3])
	if err != nil {
		t.Fatal(err)
	}
	stored := *v.tables[0]
	stored.order = byRowID
	sql, args := stored.liteRows(&v.q, piece{low: int64(5), above: true, high: int64(9), upTo: true}, 0, 50)
	if plan, err := v.r.lite.plan(t.Context(), sql, args); err != nil || !strings.Contains(plan, "USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)") || strings.Contains(plan, "TEMP") {
		t.Error(plan, err)
	}
}

func TestWithoutTheIndexRowsAreShownAndItIsTold(t *testing.T) {
	onBoth(t, Config{Indexes: []string{}}, func(t *testing.T, b *base) {
		msgs := arriving(3000)
		b.mustWrite(msgs...)
		v, err := b.reader().Look(t.Context(), Look{})
		if err != nil {
			t.Fatal(err)
		}
		slow := strings.Join(v.Slow(), "\n")
		_, way, ok := strings.Cut(slow, "; ")
		if !ok || !strings.Contains(slow, "table logs has no index on received_at") {
			t.Fatal(slow)
		}
		b.finds(Look{N: 2}, "m2998", "m2999")
		b.finds(Look{N: 2, Until: second(10)}, "m8", "m9")
		b.finds(Look{N: -1, Since: second(2997), Text: "8"}, "m2998")
		b.finds(Look{N: 1, Severities: 1, Since: second(1)})
		b.run(way)
		if v, err = b.reader().Look(t.Context(), Look{}); err != nil || len(v.Slow()) > 0 {
			t.Error(v.Slow(), err)
		}
	})
}

func TestViewsAndOtherKindsOfTables(t *testing.T) {
	onBoth(t, Config{Table: "shown"}, func(t *testing.T, b *base) {
		msgs := arriving(40)
		b.mustWrite(msgs...)
		b.run("CREATE VIEW seen_by_all AS SELECT received_at AS received_at, hostname, message FROM shown WHERE message <> 'm39'")
		if b.cfg.SQLite != "" {
			b.run("CREATE TABLE other (received_at TEXT, n INTEGER, message TEXT, PRIMARY KEY (received_at, n)) WITHOUT ROWID")
			b.run("INSERT INTO other SELECT received_at, id, message FROM shown")
		} else {
			b.run(`CREATE TABLE other (received_at timestamptz NOT NULL, message text) PARTITION BY RANGE (received_at);
				CREATE TABLE other_1 PARTITION OF other FOR VALUES FROM ('2026-01-01') TO ('2026-01-02 03:04:25Z'); CREATE TABLE other_2 PARTITION OF other DEFAULT;
				CREATE INDEX ON other (received_at); INSERT INTO other SELECT received_at, message FROM shown`)
		}
		for name, last := range map[string]string{"seen_by_all": "m38", "other": "m39"} {
			b.cfg.Table = ""
			r := b.reader()
			r.naming = naming{fixed: name}
			if got := found(t, r, Look{N: 1, Since: second(3)}); !slices.Equal(got, []string{last}) {
				t.Errorf("%s: %v", name, got)
			}
			if got := found(t, r, Look{N: -1, Text: "m1"}); len(got) != 11 {
				t.Errorf("%s: %v", name, got)
			}
		}
	})
}

func TestTheTableOfAFileIsFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs.db")
	os.WriteFile(path, nil, 0o600)
	look := func(want string) {
		t.Helper()
		r, err := OpenReader(t.Context(), Config{SQLite: path}, "")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		err = r.AnyTable(t.Context())
		got := r.naming.fixed
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	look("logs")
	query(t, path, "CREATE TABLE notes (a)")
	query(t, path, "CREATE TABLE syslog (received_at, message)")
	look("syslog")
	query(t, path, "CREATE TABLE audit (received_at, message)")
	look("has several tables of messages: audit, syslog: say which with --table")
	query(t, path, "CREATE TABLE logs (a)")
	look("logs")
}

func TestTimesOfOtherPrograms(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs.db")
	os.WriteFile(path, nil, 0o600)
	query(t, path, "CREATE TABLE logs (received_at, message)")
	for i, v := range []string{"NULL", "1767323045", "1767323045123", "1767323045123456789", "1767323045.5", "'2026-01-02 03:04:05'", "'2026-01-02T03:04:05'", "'2026-01-02T05:04:05+02:00'", "'2026-01-02'", "'yesterday'", "x'00ff'", "9e999"} {
		query(t, path, fmt.Sprintf("INSERT INTO logs VALUES (%s, 'm%d')", v, i))
	}
	for _, index := range []bool{false, true} {
		if index {
			query(t, path, "CREATE INDEX i ON logs (received_at)")
		}
		r, err := OpenReader(t.Context(), Config{SQLite: path}, "")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		v, err := r.Look(t.Context(), Look{N: -1})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		if err := v.Last(t.Context(), func(row *Row) error {
			at, ok := row.Time()
			got[string(row.Get(router.KeyMessage).Text)] = ""
			if ok {
				got[string(row.Get(router.KeyMessage).Text)] = at.UTC().Format(time.RFC3339Nano)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"m0": "", "m1": "2026-01-02T03:04:05Z", "m2": "2026-01-02T03:04:05.123Z", "m3": "2026-01-02T03:04:05.123456789Z", "m4": "2026-01-02T03:04:05.5Z",
			"m5": "2026-01-02T03:04:05Z", "m6": "2026-01-02T03:04:05Z", "m7": "2026-01-02T03:04:05Z", "m8": "2026-01-02T00:00:00Z", "m9": "", "m10": "", "m11": ""}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("index %v:\n%s", index, d)
		}
	}
}

func TestReadingLeavesNoFilesAndHoldsNoWAL(t *testing.T) {
	b := &base{rig: openLite(t, Config{}), cfg: Config{SQLite: "logs.db"}}
	b.mustWrite(arriving(3 * pageRows)...)
	v, err := b.reader().Look(t.Context(), Look{N: -1})
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	if err := v.Last(t.Context(), func(*Row) error {
		if rows++; rows%500 == 1 { // whoever reads the output takes their time
			busy := 1
			if err := sqlitex.ExecuteTransient(b.db.(*lite).conn, "PRAGMA wal_checkpoint(TRUNCATE)", &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error { busy = s.ColumnInt(0); return nil }}); err != nil || busy != 0 {
				t.Fatal("the WAL is held", err)
			}
			b.mustWrite(message("meanwhile"))
		}
		return nil
	}); err != nil || rows < 3*pageRows {
		t.Error(rows, err)
	}
	b.Close()
	files := func() (names []string) {
		entries, _ := os.ReadDir(b.dir)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	before := files()
	r := b.reader()
	if got := found(t, r, Look{N: 1}); len(got) != 1 {
		t.Error(got)
	}
	if d := cmp.Diff(before, files()); d != "" {
		t.Error(d)
	}
	// A weir that starts meanwhile is noticed.
	again := open(t, b.dir, b.cfg)
	again.mustWrite(func() *router.Message { m := message("later"); m.Received += int64(24 * time.Hour); return m }())
	if got := found(t, r, Look{N: 1}); !slices.Equal(got, []string{"later"}) {
		t.Error(got)
	}
	if err := sqlitex.ExecuteTransient(r.lite.conn, "CREATE TABLE x (a)", nil); err == nil {
		t.Error("the reader writes")
	}
}

func TestReaderOfPostgresWritesNothing(t *testing.T) {
	server, dsn := routertest.Postgres(t)
	for _, pooler := range []bool{false, true} {
		b := &base{rig: open(t, t.TempDir(), Config{Postgres: plainSecret(dsn), Pooler: pooler}), cfg: Config{Postgres: plainSecret(dsn), Pooler: pooler}}
		b.mustWrite(message("a"))
		r := b.reader()
		err := r.pg.exec(t.Context(), "try", "DELETE FROM logs", func([]pgconn.FieldDescription, [][]byte) bool { return true })
		if err == nil || !strings.Contains(err.Error(), "25006") {
			t.Error(err)
		}
		if got := found(t, r, Look{N: 1}); len(got) != 1 {
			t.Error(got)
		}
		if got := server.Query(t, dsn, "SELECT DISTINCT state FROM pg_stat_activity WHERE application_name = 'weir reader' AND datname = current_database()"); !slices.Equal(got, []string{"idle"}) {
			t.Error(got)
		}
		r.Close()
	}
}

// A standby takes no rows and is read from, unless somebody says what kind of server is meant, in any of the ways.
func TestReaderTakesAStandbyUnlessToldOtherwise(t *testing.T) {
	_, dsn := routertest.Postgres(t)
	standby := addSetting(dsn, "options", "-c default_transaction_read_only=on")
	taken := func(cfg Config) bool {
		r, err := OpenReader(t.Context(), cfg, "")
		if err == nil {
			r.Close()
		}
		return err == nil
	}
	if !taken(Config{Postgres: plainSecret(standby)}) {
		t.Error("a standby is refused")
	}
	if taken(Config{Postgres: plainSecret(addSetting(standby, "target_session_attrs", "read-write"))}) {
		t.Error("the connection string has no say")
	}
	if taken(Config{Postgres: plainSecret(standby), Libpq: Libpq{TargetSession: "read-write"}}) {
		t.Error("the setting has no say")
	}
	t.Setenv("PGTARGETSESSIONATTRS", "read-write")
	if taken(Config{Postgres: plainSecret(standby)}) {
		t.Error("the environment has no say")
	}
}
