package main

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirlog/weir/router/routertest"
)

// postgres is a server, an empty database of the test's own, and a gate before it.
func postgres(t *testing.T, how gateHow) (*routertest.PostgresServer, string, *gate) {
	t.Helper()
	server, dsn := routertest.Postgres(t)
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return server, dsn, newGate(t, filepath.Join(u.Query().Get("host"), ".s.PGSQL.5432"), how)
}

// through is the connection string of the database behind a gate.
func through(g *gate, dsn string) string {
	u, _ := url.Parse(dsn)
	return g.dsn(strings.TrimPrefix(u.Path, "/"))
}

// ways are how a database can fail to take rows.
var ways = []struct {
	name string
	how  gateHow
}{{"refuses", shut}, {"silent", hole}, {"locked", open}}

// breakDown starts a weir with a database that takes nothing and a file database beside it. mend ends the trouble.
func breakDown(t *testing.T, way gateHow, buffer string) (p *program, rows func() []string, mend func()) {
	t.Helper()
	dir := home(t)
	server, dsn, g := postgres(t, way)
	configure(t, dir, "memory: 4MiB", fmt.Sprintf("  db: { postgres: %q, flush_timeout: 100ms, buffer: %s }\n  archive: { sqlite: logs.db, flush_timeout: 100ms }", through(g, dsn), buffer))
	mend = func() { g.set(open) }
	if way == open {
		// A table that somebody holds: weir meets it at the first row.
		server.Exec(t, dsn, "CREATE TABLE logs (received_at timestamptz, timestamp timestamptz, facility smallint, severity smallint, hostname text, app_name text, proc_id text, msg_id text, structured_data jsonb, fields jsonb, message text, peer text)")
		mend = lockTable(t, dsn, "logs")
	}
	return runWeir(t, dir, ""), func() []string { return server.Query(t, dsn, postgresNumbers) }, mend
}

// A destination that refuses, says nothing or is locked does not hold back another one beyond what its when_full says: with
// block only when its share of the memory is used up, and then nothing is lost. Field case C54.
func TestDestinationDownHoldsAnotherOnlyByItsShare(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			p, rows, mend := breakDown(t, way.how, "{}")
			archive := filepath.Join(p.dir, "state/logs.db")
			p.send("small", 1, 200, 100).finished(t)
			await(t, "the other destination has all", func() bool { return p.metric("weir_destination_messages_total", `"archive"`, `"stored"`) == 200 })
			big := p.send("big", 1, 8000, 1000)
			stuck(t, big)
			await(t, "the other destination has all that was taken", func() bool {
				return p.metric("weir_in_flight", `"archive"`) == 0 && p.metric("weir_in_flight", `"db"`) > 0
			})
			mend()
			n := big.finished(t)
			p.stop(0)
			for _, got := range [][]string{rows(), sqliteRows(t, archive, sqliteNumbers)} {
				once(t, got, "small", 200)
				once(t, got, "big", n)
			}
			if a := p.account("destination", "db"); a["lost"] != 0 || a["stored"] != n+200 {
				t.Errorf("%v", a)
			}
		})
	}
}

// With drop_oldest or drop_newest nothing is ever held back: what does not fit is lost at that destination alone, counted, and told. Field cases C54, C63.
func TestDestinationDownThatDropsHoldsNobody(t *testing.T) {
	t.Parallel()
	for i, policy := range []string{"drop_oldest", "drop_newest"} {
		way := ways[i]
		t.Run(policy+"/"+way.name, func(t *testing.T) {
			t.Parallel()
			p, rows, mend := breakDown(t, way.how, "{ when_full: "+policy+" }")
			const n = 10000
			p.send("big", 1, n, 1000).finished(t)
			await(t, "the other destination has all", func() bool { return p.metric("weir_destination_messages_total", `"archive"`, `"stored"`) == n })
			if p.unready("db") == "" && way.how == shut {
				t.Error("/readyz says that the database is well")
			}
			lost := int(p.metric("weir_destination_messages_total", `"db"`, `"lost"`, `"full"`))
			if lost == 0 || lost > n-500 {
				t.Errorf("%d of %d lost", lost, n)
			}
			if told := p.lines("loses messages", `"db"`, policy); told < 1 || told > 3 {
				t.Errorf("the log says %d times that messages are lost", told)
			}
			if n := strings.Count(p.log.String(), "\n"); n > 20 { // C63: its own messages are few, and go another way
				t.Errorf("%d lines in the log", n)
			}
			mend()
			p.stop(0)
			if a := p.account("route", "main"); a["received"] != n {
				t.Errorf("%v", a)
			}
			got := rows()
			if a := p.account("destination", "db"); a["lost"] != lost || a["stored"] != n-lost || len(got) != n-lost {
				t.Errorf("%v, %d rows", a, len(got))
			}
			once(t, sqliteRows(t, filepath.Join(p.dir, "state/logs.db"), sqliteNumbers), "big", n)
			first, last := false, false
			for _, r := range got {
				first = first || r == "big 0000001"
				last = last || r == fmt.Sprintf("big %07d", n)
			}
			if policy == "drop_oldest" && !last || policy == "drop_newest" && !first {
				t.Errorf("%s: the first is there: %v, the last: %v", policy, first, last)
			}
		})
	}
}

// With disk buffers nobody is held back while all destinations are away, however long: the messages wait on the disk, which is told,
// and arrive once each. Field cases C54, C55.
func TestDiskBuffersTakeAllWhileEverybodyIsAway(t *testing.T) {
	t.Parallel()
	dir := home(t)
	server, dsn, g := postgres(t, shut)
	configure(t, dir, "memory: 4MiB", fmt.Sprintf("  db: { postgres: %q, buffer: { disk: 64MiB, keep_free: 0B } }\n  second: { postgres: %q, table: second, buffer: { disk: 64MiB, keep_free: 0B } }", through(g, dsn), through(g, dsn)))
	p := runWeir(t, dir, "")
	const n = 10000 // more than the memory takes
	p.send("big", 1, n, 1000).finished(t)
	for _, name := range []string{"db", "second"} {
		await(t, "the buffer has all", func() bool { return p.metric("weir_buffer_messages", fmt.Sprintf("%q", name)) == n })
		if p.unready(name) == "" {
			t.Errorf("/readyz says that %s is well", name)
		}
		if told := p.lines("destination waits", fmt.Sprintf("%q", name), "disk_buffer"); told != 1 {
			t.Errorf("the log says %d times that %s waits", told, name)
		}
	}
	g.set(open)
	await(t, "all is stored", func() bool { return p.metric("weir_destination_messages_total", `"stored"`) == 2*n })
	p.stop(0)
	once(t, server.Query(t, dsn, postgresNumbers), "big", n)
	once(t, server.Query(t, dsn, strings.Replace(postgresNumbers, "logs", "second", 1)), "big", n)
}

// What comes while the database is down arrives when it is up again, once, the first message too: also when it was
// down at weir's start. Field cases C03, C26.
func TestRowsOfAnOutageArriveOnce(t *testing.T) {
	t.Parallel()
	for _, buffer := range []string{"{}", "{ disk: 16MiB, keep_free: 0B }"} {
		t.Run(buffer, func(t *testing.T) {
			t.Parallel()
			dir := home(t)
			server, dsn, g := postgres(t, shut)
			configure(t, dir, "", fmt.Sprintf("  db: { postgres: %q, flush_lines: 1, buffer: %s }", through(g, dsn), buffer))
			p := runWeir(t, dir, "")
			p.send("first", 1, 5, 10).finished(t)
			await(t, "the outage is told", func() bool { return p.unready("db") != "" })
			g.set(open)
			await(t, "the five are stored", func() bool { return p.metric("weir_destination_messages_total", `"stored"`) == 5 })
			g.set(shut)
			p.send("second", 1, 5, 10).finished(t)
			await(t, "the second outage is told", func() bool { return p.lines("destination waits") == 2 })
			g.set(open)
			p.stop(0)
			rows := server.Query(t, dsn, postgresNumbers)
			once(t, rows, "first", 5)
			once(t, rows, "second", 5)
			if len(rows) != 10 {
				t.Errorf("%d rows", len(rows))
			}
			if told := p.lines("destination works again"); told != 2 {
				t.Errorf("the log says %d times that it works again", told)
			}
		})
	}
}
