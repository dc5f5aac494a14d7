package sqlstore

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/routertest"
)

// writer is a Delivery into a destination, and the means to compare.
type writer struct {
	routertest.Delivery
	rig  *pgRig
	look *pgconn.PgConn // to the server itself
}

func newWriter(t *testing.T, dsn string, cfg Config, batch int) *writer {
	t.Helper()
	server, direct := routertest.Postgres(t)
	cfg.Postgres = config.PlainSecret(direct)
	if dsn != "" {
		cfg.Postgres = config.PlainSecret(dsn)
	}
	r := &pgRig{open(t, "", cfg), server, direct}
	return &writer{rig: r, Delivery: routertest.Delivery{To: r.Store.Destination().(router.Positioner), Run: router.NewRun(), Batch: batch, Retry: time.Millisecond}}
}

// wantAll wants every message of the run exactly once.
func (w *writer) wantAll(what string) {
	t := w.rig.t
	t.Helper()
	if w.look == nil {
		var err error
		if w.look, err = pgconn.Connect(context.Background(), w.rig.dsn); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.look.Close(context.Background()) })
	}
	results, err := w.look.Exec(context.Background(), "SELECT concat_ws('|', count(*), count(DISTINCT message), max(message::int)) FROM logs").ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	got := string(results[0].Rows[0][0])
	if want := fmt.Sprintf("%d|%d|%d", w.At, w.At, w.At); got != want {
		t.Fatalf("%s: the table has %s messages, different ones, and the last; want %s", what, got, want)
	}
}

// A connection is cut at every message of the protocol in turn: nothing is lost
// and nothing is there twice, whether the server's old session hears of it or
// goes on with what it was doing.
func TestCutAtEveryMessageLosesAndDoublesNothing(t *testing.T) {
	server, dsn := routertest.Postgres(t)
	proxy := routertest.NewPGProxy(t, server)
	database := server.Query(t, dsn, "SELECT current_database()")[0]
	w := newWriter(t, proxy.DSN(database), Config{Columns: columns("message", "message")}, 3)
	w.rig.dsn = dsn
	w.Until(t.Context(), t, 3)
	// cut cuts at message at, counted from BEGIN or, fresh, from the start of a connection. It reports whether there are so many.
	cut := func(fresh bool, cut routertest.PGCut) bool {
		t.Helper()
		w.Until(t.Context(), t, w.At+1) // there is a connection that works
		if fresh {
			w.rig.db.(*postgres).drop()
		}
		proxy.Arm(cut)
		w.Until(t.Context(), t, w.At+5) // two transactions
		w.wantAll(fmt.Sprintf("cut %+v at %v", cut, proxy.Fired()))
		proxy.Release()
		return proxy.Fired() != nil
	}
	all := os.Getenv(longTests) != ""
	for _, how := range []routertest.CutHow{routertest.CutBoth, routertest.CutClient} {
		for _, after := range []bool{false, true} {
			at := 1
			for cut(false, routertest.PGCut{At: at, After: after, How: how}) {
				at++
			}
			if at < 20 {
				t.Errorf("a transaction has %d messages only", at)
			}
			for at = 1; all && cut(true, routertest.PGCut{At: at, After: after, How: how}); at++ {
			}
		}
	}
	at := 1
	for !all && cut(true, routertest.PGCut{At: at, After: at%4 > 1, How: routertest.CutHow(at % 2)}) {
		at++
	}
}

// longTests is the environment variable that asks for tests in full which take minutes.
const longTests = "WEIR_LONG_TESTS"

// What is lost in silence, with both ends open, is found out by statement_timeout.
func TestStalledConnectionIsGivenUp(t *testing.T) {
	server, dsn := routertest.Postgres(t)
	proxy := routertest.NewPGProxy(t, server)
	database := server.Query(t, dsn, "SELECT current_database()")[0]
	second := time.Second
	w := newWriter(t, proxy.DSN(database), Config{Columns: columns("message", "message"), StatementTimeout: &second,
		SessionStatements: []string{"SET idle_in_transaction_session_timeout = 0"}}, 3) // the server does not help
	w.rig.dsn = dsn
	for _, at := range []int{1, 16} { // BEGIN, the answer to COMMIT
		w.Until(t.Context(), t, w.At+1)
		met := len(w.Errors)
		proxy.Arm(routertest.PGCut{At: at, How: routertest.CutStall})
		w.Until(t.Context(), t, w.At+5)
		w.wantAll(fmt.Sprintf("stalled at %v", proxy.Fired()))
		if proxy.Fired() == nil || len(w.Errors) == met && at > 1 {
			t.Errorf("message %d: %v, %v", at, proxy.Fired(), w.Errors[met:])
		}
		for _, err := range w.Errors[met:] {
			if router.IsNeedsOperator(err) {
				t.Error(err)
			}
		}
	}
}

// The server crashes and sessions are ended under load. The counts of the long form are those that
// the manual's table of guarantees names.
func TestServerKilledAndSessionsEndedUnderLoad(t *testing.T) {
	w := newWriter(t, "", Config{Columns: columns("message", "message")}, 10)
	var stored atomic.Uint64
	w.Moved = stored.Store
	attack := routertest.Attack{Server: w.rig.server, Database: w.rig.query("SELECT current_database()")[0], Stored: stored.Load, Kills: 2, Terminations: 6}
	if os.Getenv(longTests) != "" {
		attack.Kills, attack.Terminations = 50, 200
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	over := make(chan struct{})
	go func() {
		defer close(over)
		for ctx.Err() == nil && !t.Failed() {
			w.Until(context.WithoutCancel(ctx), t, w.At+100)
		}
	}()
	attack.Run(t)
	stop()
	<-over
	w.wantAll("after all")
	t.Logf("%d messages, %d errors", w.At, len(w.Errors))
}
