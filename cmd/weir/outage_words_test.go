package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/router/routertest"
)

// Attempts come at growing distances, and the log tells of the edges only: one line when a destination begins to wait, one
// when a statement has worked. Field cases C06, C08.
func TestOutageIsToldOnceAndTriedSparingly(t *testing.T) {
	t.Parallel()
	dir := home(t)
	_, dsn, g := postgres(t, shut) // half open: it connects, and then nothing works
	configure(t, dir, "", fmt.Sprintf("  db: { postgres: %q, flush_timeout: 20ms }", through(g, dsn)))
	p := runWeir(t, dir, "")
	began := time.Now()
	p.send("in", 1, 10, 10).finished(t)
	await(t, "the sixth attempt", func() bool { return g.count() >= 6 })
	if took := time.Since(began); took < 2*time.Second { // 0.1, 0.2, 0.4, 0.8 and 1.6 s, less a fifth
		t.Errorf("six attempts within %v", took)
	}
	if waits, works := p.lines("destination waits"), p.lines("works again"); waits != 1 || works != 0 {
		t.Errorf("the log says %d times that it waits, %d times that it works", waits, works)
	}
	g.set(open)
	await(t, "it is stored", func() bool { return p.metric("weir_destination_messages_total", `"stored"`) == 10 })
	p.stop(0)
	if waits, works := p.lines("destination waits"), p.lines("works again"); waits != 1 || works != 1 {
		t.Errorf("the log says %d times that it waits, %d times that it works", waits, works)
	}
}

// A row that the table cannot take, because of a column that weir does not fill, is not tried in a loop: it waits for an operator,
// told once, and is stored after the mend. C06.
func TestTableThatWantsMoreIsTriedSlowly(t *testing.T) {
	t.Parallel()
	dir := home(t)
	server, dsn, g := postgres(t, open)
	server.Exec(t, dsn, strings.Replace(numberedTable, "seq bigserial", "extra int NOT NULL", 1))
	configure(t, dir, "", fmt.Sprintf("  db: { postgres: %q, flush_timeout: 20ms }", through(g, dsn)))
	p := runWeir(t, dir, "")
	p.send("in", 1, 10, 10).finished(t)
	await(t, "it is told", func() bool { return strings.Contains(p.unready("db"), "extra") })
	server.Exec(t, dsn, "ALTER TABLE logs ALTER extra SET DEFAULT 1")
	await(t, "it is stored", func() bool { return p.metric("weir_destination_messages_total", `"stored"`) == 10 })
	p.stop(0)
	if waits, works := p.lines("destination waits for an operator"), p.lines("works again"); waits != 1 || works != 1 {
		t.Errorf("the log says %d times that it waits, %d times that it works", waits, works)
	}
	if n := g.count(); n > 5 {
		t.Errorf("%d connections", n)
	}
}

// A password is shown nowhere, whatever is wrong with the connection, and one that is wrong is told once. Field cases C08, C30.
func TestPasswordIsShownNowhere(t *testing.T) {
	t.Parallel()
	const password = "Tr0ub4dor-Zebra"
	server := routertest.OwnPostgres(t, routertest.PostgresOwn{TCP: true, HBA: "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n"})
	server.Exec(t, server.DSN("postgres"), "CREATE DATABASE test; ")
	server.Exec(t, server.DSN("postgres"), "CREATE ROLE gateway LOGIN SUPERUSER PASSWORD 'another'")
	url := fmt.Sprintf("postgres://gateway:%s@127.0.0.1:%d/test?sslmode=disable", password, server.Port())
	pairs := fmt.Sprintf("host=127.0.0.1 port=1 user=gateway password=%s dbname=test sslmode=disable", password)
	dir := home(t)
	configure(t, dir, "drain_timeout: 1s", fmt.Sprintf("  url: { postgres: %q, flush_timeout: 20ms, buffer: { disk: 8MiB, keep_free: 0B } }\n  pairs: { postgres: %q, flush_timeout: 20ms, buffer: { disk: 8MiB, keep_free: 0B } }\n  own: { postgres: %q, password: %s, flush_timeout: 20ms, buffer: { disk: 8MiB, keep_free: 0B } }",
		url, pairs, fmt.Sprintf("host=nowhere.invalid user=gateway dbname=test sslmode=disable"), password))
	p := runWeir(t, dir, "")
	p.send("in", 1, 10, 10).finished(t)
	var said []string
	for _, name := range []string{"url", "pairs", "own"} {
		await(t, name+" waits", func() bool { return p.unready(name) != "" })
	}
	if why := p.unready("url"); !strings.Contains(why, "password authentication failed") {
		t.Errorf("/readyz says %q", why)
	}
	said = append(said, p.get("/readyz"), p.get("/metrics"))
	for _, args := range [][]string{{"config", "show"}, {"check"}, {"check", "--connect"}, {"spool", "ls"}} {
		out, _ := weirCommand(dir, append(args, "-c", "weir.yaml")...)
		said = append(said, out)
	}
	server.Exec(t, server.DSN("postgres"), fmt.Sprintf("ALTER ROLE gateway PASSWORD '%s'", password))
	await(t, "the right password works", func() bool {
		return p.metric("weir_destination_messages_total", `"url"`, `"stored"`) == 10
	})
	p.stop(0)
	for _, name := range []string{"url", "pairs", "own"} {
		if n := p.lines("destination waits", fmt.Sprintf(`"destination":%q`, name)); n != 1 {
			t.Errorf("the log says %d times that %s waits", n, name)
		}
	}
	for i, text := range append(said, p.log.String()) {
		if strings.Contains(text, password) {
			t.Errorf("text %d shows the password:\n%s", i, text)
		}
	}
}

// flush_lines and flush_timeout mean the same for every kind of destination, with a disk buffer and without: three messages of a
// hundred are stored when the time is over, and transactions have exactly a hundred when there are as many. Field case C31.
func TestFlushMeansTheSameEverywhere(t *testing.T) {
	t.Parallel()
	dir := home(t)
	_, dsn, g := postgres(t, open)
	names := []string{"pg", "pgbuf", "lite", "litebuf", "copy", "copybuf"}
	destinations := func(timeout string) string {
		common := "flush_lines: 100, flush_timeout: " + timeout
		const buffer = ", buffer: { disk: 8MiB, keep_free: 0B }"
		return fmt.Sprintf("  pg: { postgres: %q, table: one, %s }\n  pgbuf: { postgres: %q, table: two, %s }\n", through(g, dsn), common, through(g, dsn), common+buffer) +
			fmt.Sprintf("  lite: { sqlite: a.db, %s }\n  litebuf: { sqlite: b.db, %s }\n", common, common+buffer) +
			fmt.Sprintf("  copy: { file: a.jsonl, %s }\n  copybuf: { file: b.jsonl, %s }", common, common+buffer)
	}
	configure(t, dir, "", destinations("300ms"))
	p := runWeir(t, dir, "")
	p.send("in", 1, 3, 10).finished(t)
	for _, name := range names {
		await(t, name+" has three", func() bool {
			return p.metric("weir_destination_messages_total", fmt.Sprintf("%q", name), `"stored"`) == 3
		})
	}
	p.stop(0)

	configure(t, dir, "", destinations("1h"))
	p = runWeir(t, dir, "")
	p.send("in", 4, 253, 10).finished(t)
	for _, name := range names {
		label := fmt.Sprintf("%q", name)
		await(t, name+" has two hundred", func() bool { return p.metric("weir_destination_messages_total", label, `"stored"`) == 200 })
		if n := p.metric("weir_transaction_messages_count", label); n != 2 {
			t.Errorf("%s: 200 messages in %v transactions", name, n)
		}
	}
	p.stop(0)
	for _, name := range names {
		if a := p.account("destination", name); a["stored"] != 250 {
			t.Errorf("%s: %v", name, a)
		}
	}
}
