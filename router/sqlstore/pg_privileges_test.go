package sqlstore

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/routertest"
)

// The privileges that the manual gives a gateway's role are enough, and each is
// needed; what is missing is told, costs no row, and mends by a GRANT.
func TestPrivilegesOfTheManualAreEnough(t *testing.T) {
	page, err := os.ReadFile("../../docs/destinations/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n### The role\n")
	sql := regexp.MustCompile("(?s)```sql\n(.*?)```").FindStringSubmatch(section)
	if sql == nil {
		t.Fatal("the manual has no SQL for the role")
	}
	server, dsn := routertest.Postgres(t)
	database := server.Query(t, dsn, "SELECT current_database()")[0]
	do := func(sql string) { t.Helper(); server.Exec(t, dsn, sql) }
	do(strings.ReplaceAll(sql[1], "DATABASE logs", "DATABASE "+database))
	t.Cleanup(func() { do("DROP OWNED BY gateway7; DROP ROLE gateway7") })

	to := func(c Config) *pgRig {
		c.Table, c.Postgres = "audit.logs", config.PlainSecret(strings.Replace(dsn, "//weir@", "//gateway7@", 1))
		return &pgRig{open(t, "", c), server, dsn}
	}
	run, at := router.NewRun(), uint64(0)
	write := func(d *pgRig) error {
		p := d.Destination().(router.Positioner)
		if _, _, err := p.Position(t.Context(), run); err != nil {
			return err
		}
		err := p.WriteAt(t.Context(), router.Span{Run: run, From: at, To: at + 3}, messages(3), d.keep)
		if err == nil {
			at += 3
		}
		return err
	}
	d := to(Config{})
	if err := write(d); err != nil {
		t.Fatal(err)
	}
	d.want("SELECT count(*) FROM audit.logs", "3")
	bad := with(message("bad"), "n", text("x")) // row by row, with savepoints
	bad.Facility = 0
	d.query("ALTER TABLE audit.logs ADD CHECK (facility > 0)")
	d.mustWrite(message("good"), bad, message("good"))
	d.wantLetters("bad 23514 ")

	for _, c := range []struct{ revoke, words, grant string }{
		{"CONNECT ON DATABASE " + database, "permission denied for database", ""},
		{"USAGE ON SCHEMA audit", "permission denied for schema audit", ""},
		{"INSERT ON audit.logs", "permission denied for table logs", ""},
		{"SELECT ON audit.weir_positions", "permission denied for table weir_positions", "GRANT SELECT, INSERT, UPDATE, DELETE ON"},
		{"INSERT ON audit.weir_positions", "permission denied for table weir_positions", "GRANT SELECT, INSERT, UPDATE, DELETE ON"},
		{"UPDATE ON audit.weir_positions", "permission denied for table weir_positions", "GRANT SELECT, INSERT, UPDATE, DELETE ON"},
	} {
		for _, fresh := range []bool{false, true} { // while connected, and from the start
			if strings.HasPrefix(c.revoke, "CONNECT") && !fresh {
				continue
			}
			d := to(Config{})
			if !fresh {
				if err := write(d); err != nil {
					t.Fatal(err)
				}
			} else {
				run, at = router.NewRun(), 0
			}
			do("REVOKE " + c.revoke + " FROM gateway7")
			for range 2 {
				if err := write(d); !fresh && c.grant != "" && strings.HasPrefix(c.revoke, "INSERT") && err == nil {
					break // the run is noted already
				} else if !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), c.words) {
					t.Errorf("without %s, fresh %v: Write = %v", c.revoke, fresh, err)
				}
			}
			do("GRANT " + c.revoke + " TO gateway7")
			for tries := 0; ; tries++ {
				if err := write(d); err == nil {
					break
				} else if tries == 3 {
					t.Fatalf("after the GRANT of %s: %v", c.revoke, err)
				}
			}
			d.wantLetters()
		}
	}

	// What the manual lists as more.
	do("CREATE UNIQUE INDEX ON audit.logs (msg_id, hostname) WHERE false")
	if err := write(to(Config{Tables: Tables{OnConflict: &OnConflict{Ignore: true}}})); err != nil {
		t.Error(err)
	}
	do("TRUNCATE audit.logs; CREATE UNIQUE INDEX ON audit.logs (message)")
	update := Config{Tables: Tables{OnConflict: &OnConflict{Key: []string{"message"}, Update: []string{"severity"}}}}
	if err := write(to(update)); !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), "permission denied for table logs") {
		t.Errorf("Write = %v", err)
	}
	do("GRANT SELECT (message, severity), UPDATE (severity) ON audit.logs TO gateway7")
	for range 2 {
		if err := write(to(update)); err != nil {
			t.Error(err)
		}
	}
	d.want("SELECT count(*) FROM audit.logs", "3")
	do("DROP TABLE audit.logs")
	if err := write(to(Config{})); !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), "permission denied for schema audit") {
		t.Errorf("Write = %v", err)
	}
	do("GRANT CREATE ON SCHEMA audit TO gateway7")
	if err := write(to(Config{})); err != nil {
		t.Error(err)
	}
	if err := write(to(Config{AddColumns: columns("site", Column{Value: &Constant{Text: "x"}}), Tables: Tables{Alter: true}})); err != nil { // it made the table
		t.Error(err)
	}
	do("DROP TABLE audit.logs")
	p := &Partition{}
	p.Defaults()
	p.By = "day"
	divided := to(Config{Partition: p})
	rows := messages(1)
	rows[0].Received = divided.db.(*postgres).partitions.time().UnixNano()
	divided.mustWrite(rows...)
	divided.want("SELECT count(*) FROM audit.logs", "1")
	do("ALTER TABLE audit.logs OWNER TO weir; DROP TABLE audit.logs_p" + p.start(divided.db.(*postgres).partitions.time()).Format(p.layout()))
	if err := divided.tryWrite(rows...); !router.IsNeedsOperator(err) {
		t.Errorf("Write = %v", err)
	}
}
