package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
)

// another opens a second store into the same database.
func (r *pgRig) another(cfg Config) *pgRig {
	r.t.Helper()
	cfg.Postgres = config.PlainSecret(r.dsn)
	return &pgRig{open(r.t, "", cfg), r.server, r.dsn}
}

// positionsFor makes the table of positions for a role that may create nothing.
func positionsFor(role string) string {
	return "CREATE TABLE weir_positions (" + positionColumns + "); GRANT SELECT, INSERT, UPDATE ON weir_positions TO " + role
}

func TestPostgresPositionMovesWithTheRows(t *testing.T) {
	d := openPG(t, Config{})
	run, other := router.NewRun(), router.NewRun()
	d.wantPosition(run, 0, false)
	d.wantPosition(run, 0, true)
	d.mustWriteAt(run, 0, 10, messages(10)...)
	d.wantPosition(other, 0, false)
	d.mustWriteAt(other, 0, 5, messages(5)...)
	d.mustWriteAt(run, 10, 25, messages(12)...) // three were lost on the way
	d.wantPosition(run, 25, true)
	d.want("SELECT count(*), count(DISTINCT xmin::text) FROM logs", "27|3")
	e := d.another(Config{})
	e.wantPosition(run, 25, true)
	e.wantPosition(other, 5, true)
	d.want("SELECT pos, destination, host IS NOT NULL FROM weir_positions ORDER BY pos", "5|db|t", "25|db|t")
	d.query("SELECT 1/count(*) FROM pg_class WHERE relname = 'weir_positions' AND reloptions = '{fillfactor=50}'")
}

func TestPostgresPositionStandsBesideTheTable(t *testing.T) {
	d := openPG(t, Config{Table: "audit.logs"}, "CREATE SCHEMA audit")
	d.wantPosition(router.NewRun(), 0, false)
	d.want("SELECT count(*) FROM audit.weir_positions", "1")
}

// Two copies of one weir write the same messages of the same run.
func TestPostgresPositionLetsOneOfTwoWritersWin(t *testing.T) {
	d := openPG(t, Config{})
	e := d.another(Config{})
	run := router.NewRun()
	d.wantPosition(run, 0, false)
	e.wantPosition(run, 0, true)
	done := make(chan error, 2)
	for _, s := range []*pgRig{d, e} {
		go func() { done <- s.writeAt(run, 0, 500, messages(500)...) }()
	}
	first, second := <-done, <-done
	if first != nil {
		first, second = second, first
	}
	if first != nil || !errors.Is(second, router.ErrMoved) {
		t.Fatalf("WriteAt = %v and %v", first, second)
	}
	d.want("SELECT count(*) FROM logs", "500")
	d.wantPosition(run, 500, true)
	e.wantPosition(run, 500, true)
	e.mustWriteAt(run, 500, 501, messages(1)...)
	d.wantPosition(run, 500, true) // from memory
	if err := d.writeAt(run, 500, 501, messages(1)...); !errors.Is(err, router.ErrMoved) {
		t.Errorf("WriteAt = %v", err)
	}
	d.wantPosition(run, 501, true)
	d.want("SELECT count(*) FROM logs", "501")
}

func TestPostgresPositionStaysWhereATransactionWasRolledBack(t *testing.T) {
	d := openPG(t, Config{AddColumns: columns("n", Column{From: "fields.n", Type: "int CHECK (n > 0)"})})
	run := router.NewRun()
	d.wantPosition(run, 0, false)
	d.mustWriteAt(run, 0, 20, messages(20)...)
	msgs := messages(20)
	with(msgs[7], "n", router.IntValue(-1))
	full := errors.New("full")
	if err := d.positioner().WriteAt(t.Context(), router.Span{Run: run, From: 20, To: 40}, msgs, func([]router.Rejected) error { return full }); !errors.Is(err, full) {
		t.Errorf("WriteAt = %v", err)
	}
	d.wantPosition(run, 20, true)
	d.mustWriteAt(run, 20, 30, msgs[:10]...) // halved
	d.wantLetters("message 7 23514 ")
	d.mustWriteAt(run, 30, 40, msgs[10:]...)
	d.wantPosition(run, 40, true)
	d.want("SELECT count(*), pos FROM logs, weir_positions GROUP BY pos", "39|40")
}

// The database was put back to yesterday's state while we were connected.
func TestPostgresPositionThatWentBackIsSeen(t *testing.T) {
	d := openPG(t, Config{})
	run := router.NewRun()
	d.wantPosition(run, 0, false)
	d.mustWriteAt(run, 0, 20, messages(20)...)
	d.query("UPDATE weir_positions SET pos = 5")
	if err := d.writeAt(run, 20, 21, messages(1)...); !errors.Is(err, router.ErrMoved) {
		t.Errorf("WriteAt = %v", err)
	}
	d.wantPosition(run, 5, true)
	d.query("DROP TABLE weir_positions")
	if err := d.writeAt(run, 5, 6, messages(1)...); err == nil || router.IsPermanent(err) {
		t.Errorf("WriteAt = %v", err)
	}
	d.wantPosition(run, 0, false)
	d.want("SELECT count(*) FROM logs", "20")
}

// A session whose connection is gone stands right before its COMMIT, or after
// it: whoever asks for the position waits for the end.
func TestPostgresPositionWaitsForTheTransactionUnderWay(t *testing.T) {
	d := openPG(t, Config{})
	run := router.NewRun()
	d.wantPosition(run, 0, false)
	old := d.another(Config{})
	old.wantPosition(run, 0, true)
	pg := old.db.(*postgres)
	pg.span = &router.Span{Run: run, From: 0, To: 9}
	if _, err := pg.execAll(t.Context(), pg.beginSQL()); err != nil {
		t.Fatal(err)
	}
	asked := make(chan string)
	e := d.another(Config{})
	go func() {
		at, known, err := e.positioner().Position(context.Background(), run)
		asked <- fmt.Sprint(at, known, err)
	}()
	waiting := "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
	for d.query(waiting)[0] != "1" {
		select {
		case got := <-asked:
			t.Fatal("did not wait: ", got)
		case <-time.After(5 * time.Millisecond):
		}
	}
	if _, err := pg.exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if got := <-asked; got != "9 true <nil>" {
		t.Error(got)
	}
}

// The server's end of a lost connection goes on existing, with its transaction
// open, until somebody ends it.
func TestPostgresSessionOfALostConnectionIsEnded(t *testing.T) {
	d := openPG(t, Config{})
	run := router.NewRun()
	d.wantPosition(run, 0, false)
	d.mustWriteAt(run, 0, 3, messages(3)...)
	pg := d.db.(*postgres)
	pg.span = &router.Span{Run: run, From: 3, To: 9}
	if _, err := pg.execAll(t.Context(), pg.beginSQL()); err != nil {
		t.Fatal(err)
	}
	lost := pg.conn // open, but nobody will use it
	defer lost.Close(context.Background())
	pg.conn, pg.span = nil, nil
	pg.reached = reached{}
	d.wantPosition(run, 3, true)
	d.mustWriteAt(run, 3, 6, messages(3)...)
	d.want("SELECT count(*) FROM logs", "6")
	d.want("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()", "1")
}

func TestPostgresPositionNeedsItsPrivileges(t *testing.T) {
	d := openPG(t, Config{SessionStatements: []string{"SET ROLE app"}, Columns: columns("message", "message")},
		"DO $$ BEGIN IF to_regrole('app') IS NULL THEN CREATE ROLE app; END IF; END $$",
		"CREATE TABLE logs (message text); GRANT INSERT ON logs TO app; REVOKE CREATE ON SCHEMA public FROM PUBLIC")
	check := func(want string) {
		t.Helper()
		_, _, err := d.positioner().Position(t.Context(), router.NewRun())
		if !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("Position = %v", err)
		}
	}
	check(`as a user who may: CREATE TABLE IF NOT EXISTS "weir_positions" (run uuid PRIMARY KEY`)
	d.query(`CREATE TABLE IF NOT EXISTS "weir_positions" (` + positionColumns + ")")
	check(`GRANT SELECT, INSERT, UPDATE, DELETE ON "weir_positions" TO`)
	d.query("GRANT SELECT, INSERT, UPDATE ON weir_positions TO app")
	run := router.NewRun()
	d.wantPosition(run, 0, false)
	d.mustWriteAt(run, 0, 1, messages(1)...)
}

func TestPostgresPositionsOfLongAgoAreRemoved(t *testing.T) {
	d := openPG(t, Config{})
	old, unset, young := router.NewRun(), router.NewRun(), router.NewRun()
	for _, run := range []router.RunID{old, unset, young} {
		d.wantPosition(run, 0, false)
	}
	d.query(fmt.Sprintf("UPDATE weir_positions SET moved = now() - interval '91 days' WHERE run = '%s'; UPDATE weir_positions SET moved = '1970-01-02' WHERE run = '%s'", old, unset))
	e := d.another(Config{})
	e.wantPosition(unset, 0, true)
	e.wantPosition(young, 0, true)
	e.mustWriteAt(young, 0, 1, messages(1)...)
	d.want("SELECT count(*) FROM weir_positions", "2")
}

// What a gateway delivered before it was switched off for months is not delivered again.
func TestPostgresPositionThatIsAskedForIsNotOfLongAgo(t *testing.T) {
	d := openPG(t, Config{})
	run, next := router.NewRun(), router.NewRun()
	d.wantPosition(run, 0, false)
	d.mustWriteAt(run, 0, 20, messages(20)...)
	d.query("UPDATE weir_positions SET moved = now() - interval '91 days'")
	e := d.another(Config{})
	e.wantPosition(run, 20, true)
	e.wantPosition(next, 0, false)
	e.mustWriteAt(next, 0, 1, messages(1)...)
	d.another(Config{}).wantPosition(run, 20, true)
}

func TestPostgresCrashesDoubleNothing(t *testing.T) {
	d := openPG(t, Config{Columns: columns("message", "message")})
	run := router.NewRun()
	var at uint64
	write := func() {
		for done := at + 100; at < done; {
			pos, _, err := d.positioner().Position(t.Context(), run)
			if err == nil && pos < done {
				err = d.writeAt(run, pos, done, numbered(pos+1, done)...)
			}
			if err == nil {
				at = done
			} else if router.IsPermanent(err) || router.IsNeedsOperator(err) {
				t.Fatal(err)
			}
		}
	}
	write()
	for range 30 {
		d.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
		write()
	}
	d.want("SELECT count(*), count(DISTINCT message), max(message::int) FROM logs", "3100|3100|3100")
}

func numbered(from, to uint64) []*router.Message {
	var out []*router.Message
	for ; from <= to; from++ {
		out = append(out, message(fmt.Sprint(from)))
	}
	return out
}
