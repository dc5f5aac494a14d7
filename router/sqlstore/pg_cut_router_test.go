package sqlstore

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/routertest"
)

// A whole router writes through connections that are cut, and to a server that
// is stopped and started: all rows arrive, once, and the ledger says so.
// Field cases C03, C26: what comes while the server is away arrives later, the first of it too.
func TestRouterLosesAndDoublesNothingByCuts(t *testing.T) {
	server, dsn := routertest.Postgres(t)
	proxy := routertest.NewPGProxy(t, server)
	database := server.Query(t, dsn, "SELECT current_database()")[0]
	d := open(t, "", Config{Postgres: config.PlainSecret(proxy.DSN(database)), Columns: columns("message", "message")})
	var sent, stop atomic.Int64
	src := routertest.Func(func(ctx context.Context, in router.Inlet) error {
		for stop.Load() == 0 {
			var texts []string
			for range 20 {
				texts = append(texts, fmt.Sprint(sent.Add(1)))
			}
			if err := routertest.Send(context.WithoutCancel(ctx), in, // all that is counted is sent
				&router.Origin{Source: "src"}, texts...); err != nil {
				return err
			}
			time.Sleep(time.Millisecond) // a sender that does not fill the memory
		}
		<-ctx.Done()
		return nil
	})
	r, err := router.New(router.Config{Memory: 64 << 20, Lanes: 1, Drain: time.Minute, Log: slogDiscard, DeadLetters: &routertest.Letters{},
		Sources:      []router.SourceConfig{{Name: "src", Source: src, MaxMessage: 1024}},
		Destinations: []router.DestinationConfig{{Name: "db", Destination: unclosed{d.Store}.Destination(), Flush: router.Flush{Messages: 50, Bytes: 1 << 20, After: time.Millisecond, Severity: -1}}},
		Routes:       []router.Route{{Name: "main", From: []string{"src"}, To: []string{"db"}}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- r.Run(ctx) }()
	wait := func(what string, is func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: not within a minute", what)
			}
		}
	}
	stored := func() uint64 { return r.Ledger().Destinations[0].Sum(router.FateStored) }
	for at := 1; at <= 34; at += 3 { // BEGIN, COPY, COMMIT and their answers
		proxy.Arm(routertest.PGCut{At: at, After: at%2 == 0, How: routertest.CutHow(at % 4 / 2)})
		wait(fmt.Sprint("cut ", at), func() bool { return proxy.Fired() != nil })
		before := stored()
		wait("after a cut", func() bool { return stored() > before })
		proxy.Release()
	}
	server.Stop(routertest.StopImmediate)
	more := sent.Load() + 100
	wait("senders go on", func() bool { return sent.Load() > more })
	server.Start(t)
	stop.Store(1)
	cancel()
	if err := <-over; err != nil {
		t.Error(err)
	}
	routertest.Balanced(t, r.Ledger())
	n := sent.Load()
	if got := server.Query(t, dsn, "SELECT count(*), count(DISTINCT message), max(message::int) FROM logs"); got[0] != fmt.Sprintf("%d|%[1]d|%[1]d", n) {
		t.Errorf("%d were sent, the table has %s", n, got[0])
	}
}
