package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const numberedTable = "CREATE TABLE logs (received_at timestamptz, timestamp timestamptz, facility smallint, severity smallint, hostname text, app_name text, proc_id text, msg_id text, structured_data jsonb, fields jsonb, message text, peer text, seq bigserial)"

// A stop while the database is away leaves in the disk buffer what waits, says how much, and fails nothing; weir check tells of a
// buffer that nobody empties any more; the next start delivers it, once.
func TestStopKeepsTheDiskBuffer(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			const buffer = "{ disk: 8MiB, keep_free: 0B }"
			dir := home(t)
			server, dsn, g := postgres(t, way.how)
			server.Exec(t, dsn, numberedTable)
			mend := func() { g.set(open) }
			if way.how == open {
				mend = lockTable(t, dsn, "logs")
			}
			db := fmt.Sprintf("{ postgres: %q, flush_timeout: 50ms, buffer: %s }", through(g, dsn), buffer)
			configure(t, dir, "drain_timeout: 6s", "  db: "+db)
			p := runWeir(t, dir, "")
			const n = 1500
			p.send("big", 1, n, 1000).finished(t)
			await(t, "the buffer has all", func() bool { return p.metric("weir_buffer_messages") == n })
			began := time.Now()
			p.stop(0)
			if took := time.Since(began); took > 25*time.Second {
				t.Errorf("the stop took %v", took)
			}
			if a := p.account("destination", "db"); a["kept"] != n || a["lost"] != 0 {
				t.Errorf("%v", a)
			}

			configure(t, dir, "", "  renamed: { sqlite: logs.db }")
			out, err := weirCommand(dir, "check", "-c", "weir.yaml")
			if err != nil || !strings.Contains(out, "state/buffer/db belongs to no destination") {
				t.Errorf("weir check: %v\n%s", err, out)
			}

			mend()
			configure(t, dir, "", "  db: "+db)
			p = runWeir(t, dir, "")
			p.send("new", 1, 10, 10).finished(t)
			await(t, "all is stored", func() bool { return p.metric("weir_destination_messages_total", `"stored"`) == n+10 })
			p.stop(0)
			if a := p.account("destination", "db"); a["resumed"] != n {
				t.Errorf("%v", a)
			}
			rows := server.Query(t, dsn, postgresNumbers+" ORDER BY seq")
			once(t, rows, "big", n)
			once(t, rows, "new", 10)
			inOrder(t, rows, "big")
		})
	}
}

// weirCommand runs a command to its end.
func weirCommand(dir string, args ...string) (string, error) {
	c := exec.Command("weir", args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	return string(out), err
}

// A stop commits what waits in memory for a fuller transaction, with and without a disk buffer.
func TestStopCommitsWhatWaits(t *testing.T) {
	t.Parallel()
	dir := home(t)
	server, dsn, g := postgres(t, open)
	const waits = "flush_timeout: 1h, flush_lines: 100000"
	configure(t, dir, "", fmt.Sprintf("  a: { postgres: %q, %s }\n  b: { postgres: %q, table: b, %s, buffer: { disk: 8MiB, keep_free: 0B } }\n  c: { sqlite: c.db, %s }\n  d: { sqlite: d.db, %s, buffer: { disk: 8MiB, keep_free: 0B } }",
		through(g, dsn), waits, through(g, dsn), waits, waits, waits))
	p := runWeir(t, dir, "")
	p.send("in", 1, 500, 100).finished(t)
	p.stop(0)
	once(t, server.Query(t, dsn, postgresNumbers), "in", 500)
	once(t, server.Query(t, dsn, strings.Replace(postgresNumbers, "logs", "b", 1)), "in", 500)
	once(t, sqliteRows(t, filepath.Join(dir, "state/c.db"), sqliteNumbers), "in", 500)
	once(t, sqliteRows(t, filepath.Join(dir, "state/d.db"), sqliteNumbers), "in", 500)
	for _, name := range []string{"a", "b", "c", "d"} {
		if a := p.account("destination", name); a["stored"] != 500 {
			t.Errorf("%s: %v", name, a)
		}
	}
}

// What waits when the number of connections changes is written first: every row once, and those of each sender in their order.
func TestConnectionsChangeWithABacklog(t *testing.T) {
	t.Parallel()
	dir := home(t)
	server, dsn, g := postgres(t, shut)
	server.Exec(t, dsn, numberedTable)
	hosts := []string{"alpha", "beta", "gamma", "delta", "epsilon", "zeta"}
	const each = 150
	for i, connections := range []int{1, 3, 2} {
		configure(t, dir, "drain_timeout: 15s", fmt.Sprintf("  db: { postgres: %q, flush_timeout: 20ms, flush_lines: 40, connections: %d, buffer: { disk: 64MiB, keep_free: 0B } }", through(g, dsn), connections))
		p := runWeir(t, dir, "")
		var feeders []*feeder
		for _, h := range hosts {
			feeders = append(feeders, p.send(h, i*each+1, (i+1)*each, 100))
		}
		for _, f := range feeders {
			f.finished(t)
		}
		all := (i + 1) * each * len(hosts)
		await(t, "the buffers have all", func() bool { return p.metric("weir_in_flight", "destination") == float64(all) })
		if connections == 2 {
			g.set(open)
			await(t, "all is stored", func() bool { return p.metric("weir_in_flight", "destination") == 0 })
		}
		p.stop(0)
		if a := p.account("destination", "db"); connections != 2 && a["kept"] != all {
			t.Errorf("%d connections: %v", connections, a)
		}
	}
	rows := server.Query(t, dsn, postgresNumbers+" ORDER BY seq")
	for _, h := range hosts {
		once(t, rows, h, 3*each)
		inOrder(t, rows, h)
	}
	if len(rows) != 3*each*len(hosts) {
		t.Errorf("%d rows", len(rows))
	}
}

// A restart in the middle of a disk buffer sends nothing twice, after a stop and after a kill; a restart behind its end sends nothing. Field case C61.
func TestRestartInTheMiddleOfTheDiskBuffer(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"stop", "kill"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			dir := home(t)
			server, dsn, g := postgres(t, shut)
			configure(t, dir, "drain_timeout: 15s", fmt.Sprintf("  db: { postgres: %q, flush_lines: 10, buffer: { disk: 16MiB, keep_free: 0B } }", through(g, dsn)))
			p := runWeir(t, dir, "")
			const n = 3000
			p.send("big", 1, n, 100).finished(t)
			await(t, "the buffer has all", func() bool { return p.metric("weir_buffer_messages") == n })
			g.set(open)
			await(t, "some are stored", func() bool { return p.metric("weir_destination_messages_total", `"stored"`) > 200 })
			g.set(shut)
			half := len(server.Query(t, dsn, postgresNumbers))
			if half == n {
				t.Log("it was too quick to be caught in the middle")
			}
			if how == "stop" {
				p.stop(0)
			} else {
				p.kill()
			}
			g.set(open)
			p = runWeir(t, dir, "")
			await(t, "the rest is stored", func() bool {
				return p.metric("weir_in_flight", "destination") == 0 && p.lines("destination waits") == 0
			})
			p.stop(0)
			rows := server.Query(t, dsn, postgresNumbers)
			once(t, rows, "big", n)
			p = runWeir(t, dir, "")
			p.stop(0)
			if a := p.account("destination", "db"); a["resumed"] != 0 || len(rows) != n || len(server.Query(t, dsn, postgresNumbers)) != n {
				t.Errorf("%d rows, then %v", len(rows), a)
			}
		})
	}
}

// A file is no database that knows positions; what was delivered into it before a stop does not come again either. C61.
func TestRestartSendsNothingTwiceIntoAFile(t *testing.T) {
	t.Parallel()
	dir := home(t)
	configure(t, dir, "", "  copy: { file: copy.jsonl, flush_lines: 50, flush_timeout: 20ms, buffer: { disk: 8MiB, keep_free: 0B } }")
	for round := range 3 {
		p := runWeir(t, dir, "")
		p.send("in", round*1000+1, round*1000+1000, 100).finished(t)
		p.stop(0)
		text, err := os.ReadFile(filepath.Join(dir, "state/copy.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "\n"); n != (round+1)*1000 {
			t.Errorf("round %d: %d lines", round, n)
		}
	}
}

// Two weirs do not share a state directory: the second refuses to start and says whose it is.
func TestSecondWeirRefusesTheSameStateDirectory(t *testing.T) {
	t.Parallel()
	dir, other := home(t), home(t)
	const destinations = "  archive: { sqlite: logs.db, buffer: { disk: 8MiB, keep_free: 0B } }"
	configure(t, dir, "", destinations)
	configure(t, other, "", destinations)
	text, err := os.ReadFile(filepath.Join(other, "weir.yaml"))
	if err == nil {
		err = os.WriteFile(filepath.Join(other, "weir.yaml"), []byte(strings.Replace(string(text), "state_dir: state", "state_dir: "+filepath.Join(dir, "state"), 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	p := runWeir(t, dir, "")
	second := launch(t, other, "")
	if code := second.exit(); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	if second.lines("state_dir: "+filepath.Join(dir, "state")+": another weir uses it: weir (pid "+strconv.Itoa(p.cmd.Process.Pid)+")") != 1 {
		t.Errorf("it said: %s", second.log)
	}
	p.send("in", 1, 100, 100).finished(t) // the first is not disturbed
	p.stop(0)
	once(t, sqliteRows(t, filepath.Join(dir, "state/logs.db"), sqliteNumbers), "in", 100)
}
