package sqlstore

import (
	"fmt"
	"os"
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

func TestPostgresSchemaAndNameAreQuoted(t *testing.T) {
	d := openPG(t, Config{Table: "Audit.Log Events"}, `CREATE SCHEMA "Audit"`)
	d.mustWrite(messages(3)...)
	d.want(`SELECT count(*) FROM "Audit"."Log Events"`, "3")
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

func TestPostgresTableThatVanishedIsMadeAgain(t *testing.T) {
	d := openPG(t, Config{})
	d.mustWrite(messages(3)...)
	d.query("DROP TABLE logs")
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
