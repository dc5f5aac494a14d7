package sqlstore

import (
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirlog/weir/router"
)

// answers counts how often a connection had something to read.
type answers struct {
	net.Conn
	n atomic.Int32
}

func (a *answers) Read(p []byte) (int, error) {
	n, err := a.Conn.Read(p)
	if n > 0 {
		a.n.Add(1)
	}
	return n, err
}

// C09, C10: over a slow line it counts how often weir waits for an answer. Each
// is waited for, and there are as many of them for many rows as for few.
func TestPostgresTransactionTakesFewRoundTrips(t *testing.T) {
	check := func(cfg Config, most int32, msgs []*router.Message) {
		t.Helper()
		d := openPG(t, cfg)
		run := router.NewRun()
		d.wantPosition(run, 0, false)
		d.mustWriteAt(run, 0, uint64(len(msgs)), msgs...)
		pg := d.db.(*postgres)
		raw, err := pg.conn.Hijack()
		if err != nil {
			t.Fatal(err)
		}
		counted := &answers{Conn: raw.Conn}
		raw.Conn, raw.Frontend = counted, raw.Config.BuildFrontend(counted, counted)
		if pg.conn, err = pgconn.Construct(raw); err != nil {
			t.Fatal(err)
		}
		d.wantPosition(run, uint64(len(msgs)), true)
		d.mustWriteAt(run, uint64(len(msgs)), uint64(2*len(msgs)), msgs...)
		if n := counted.n.Load(); n < 3 || n > most {
			t.Errorf("%d answers, want at most %d", n, most)
		}
		if pg.conn.IsClosed() || counted != pg.conn.Conn() {
			t.Error("another connection")
		}
	}
	check(Config{}, 6, messages(5)) // BEGIN, the position and the table; COPY; its rows; COMMIT
	check(Config{}, 6, messages(5000))
	check(Config{Table: "logs_${app_name}"}, 14, of(5000, "a", "b", "c", "d"))
	check(Config{Tables: Tables{OnConflict: &OnConflict{Ignore: true}}}, 5, messages(5000))
}
