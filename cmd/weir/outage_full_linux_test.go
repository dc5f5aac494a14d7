package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// smallDisk mounts a file system of so many MiB at dir.
func smallDisk(t *testing.T, dir string, mib int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=0700", mib)); err != nil {
		t.Skipf("no small file system can be mounted here: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
}

// takeUp fills the file system of dir with somebody else's data to the last byte, and returns what removes it.
func takeUp(t *testing.T, dir string) (empty func()) {
	t.Helper()
	path := filepath.Join(dir, "others")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for data := make([]byte, 64<<10); len(data) > 0; {
		if _, err := f.Write(data); err != nil {
			data = data[:len(data)/2]
		}
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// When the disk of the disk buffer is full, by its own doing, when_full says what happens; what was taken arrives
// once when the destination is back, and the buffer then takes messages again by itself. keep_free 0: the disk is used to its last byte.
func TestDiskBufferOnAFullDisk(t *testing.T) {
	t.Parallel()
	const n = 9000
	for _, keep := range []string{"2MiB", "0B"} {
		for _, policy := range []string{"block", "drop_oldest", "drop_newest"} {
			t.Run(policy+"/keep_free="+keep, func(t *testing.T) {
				t.Parallel()
				dir := home(t)
				smallDisk(t, filepath.Join(dir, "state/buffer"), 6)
				server, dsn, g := postgres(t, shut)
				configure(t, dir, "memory: 4MiB", fmt.Sprintf("  db: { postgres: %q, buffer: { disk: 16MiB, keep_free: %s, when_full: %s } }", through(g, dsn), keep, policy))
				p := runWeir(t, dir, "")
				big := p.send("big", 1, n, 1000)
				if policy == "block" {
					stuck(t, big)
					await(t, "the full disk is told", func() bool { return strings.Contains(p.unready("db"), "disk buffer") })
					if told := p.lines("disk buffer takes nothing"); told != 1 {
						t.Errorf("the log says %d times that the buffer takes nothing", told)
					}
				} else {
					big.finished(t)
					if p.lines("loses messages", policy) == 0 {
						t.Error("the log does not say that messages are lost")
					}
				}
				g.set(open)
				big.finished(t)
				await(t, "all that is left is stored", func() bool { return p.metric("weir_in_flight", "destination") == 0 })
				if why := p.unready("db"); why != "" {
					t.Errorf("/readyz says %s", why)
				}
				p.send("after", 1, 2000, 1000).finished(t)
				p.stop(0)
				rows, a := server.Query(t, dsn, postgresNumbers), p.account("destination", "db")
				once(t, rows, "after", 2000)
				switch {
				case policy == "block":
					once(t, rows, "big", n)
				case a["lost"] == 0 || a["lost"] == n:
					t.Errorf("%v", a)
				}
				if len(rows) != n+2000-a["lost"] || a["stored"] != len(rows) || a["kept"] != 0 {
					t.Errorf("%d rows, %v", len(rows), a)
				}
			})
		}
	}
}

// When others fill the disk of the disk buffer, the senders wait, which is told, although the destination works; it goes on by itself.
func TestOthersFillTheDiskOfTheDiskBuffer(t *testing.T) {
	t.Parallel()
	dir := home(t)
	buffers := filepath.Join(dir, "state/buffer")
	smallDisk(t, buffers, 6)
	configure(t, dir, "memory: 4MiB", "  archive: { sqlite: logs.db, flush_timeout: 100ms, buffer: { disk: 64MiB, keep_free: 0B } }")
	p := runWeir(t, dir, "")
	p.send("before", 1, 500, 1000).finished(t)
	empty := takeUp(t, buffers)
	during := p.send("during", 1, 6000, 1000)
	stuck(t, during)
	await(t, "the full disk is told", func() bool { return strings.Contains(p.unready("archive"), "no space left on device") })
	empty()
	during.finished(t)
	await(t, "all is stored", func() bool { return p.metric("weir_in_flight", "destination") == 0 })
	if p.lines("disk buffer works again") == 0 || p.unready("archive") != "" {
		t.Errorf("it is not told that the buffer works again: %s", p.unready("archive"))
	}
	p.stop(0)
	rows := sqliteRows(t, filepath.Join(dir, "state/logs.db"), sqliteNumbers)
	once(t, rows, "before", 500)
	once(t, rows, "during", 6000)
	inOrder(t, rows, "during")
}

// When state_dir is full no dead letter can be kept: a row that nobody would take makes its destination wait, with its reason,
// and is a dead letter when there is room. weir also starts on such a disk.
func TestStateDirIsFull(t *testing.T) {
	t.Parallel()
	dir := home(t)
	state := filepath.Join(dir, "state")
	smallDisk(t, state, 8)
	logs := filepath.Join(dir, "logs.db")
	configure(t, dir, "", fmt.Sprintf("  archive: { sqlite: %q, flush_timeout: 50ms, columns: { hostname: hostname, message: message, n: { from: proc_id, type: INTEGER } } }", logs))
	p := runWeir(t, dir, "")
	bad := func(p *program) {
		conn, err := net.Dial("unix", filepath.Join(dir, "weir.sock"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "<14>1 2026-01-02T03:04:05Z bad app many - - 0000001\n")
	}
	p.send("good", 1, 10, 10).finished(t)
	await(t, "the first are stored", func() bool { return p.metric("weir_destination_messages_total", `"stored"`) == 10 })
	empty := takeUp(t, state)
	bad(p)
	p.send("more", 1, 10, 10).finished(t)
	await(t, "the full disk is told", func() bool { return strings.Contains(p.unready("archive"), "dead letters") })
	if told := p.lines("destination waits for an operator", "dead letters"); told != 1 {
		t.Errorf("the log says %d times that the destination waits", told)
	}
	empty()
	await(t, "the letter is kept", func() bool { return p.metric("weir_destination_messages_total", `"rejected"`) == 1 })
	p.stop(0)
	if a := p.account("destination", "archive"); a["stored"] != 20 || a["rejected"] != 1 {
		t.Errorf("%v", a)
	}

	empty = takeUp(t, state)
	p = runWeir(t, dir, "")
	p.send("again", 1, 10, 10).finished(t)
	bad(p)
	await(t, "the full disk is told", func() bool { return strings.Contains(p.unready("archive"), "dead letters") })
	empty()
	await(t, "the letter is kept", func() bool { return p.metric("weir_destination_messages_total", `"rejected"`) == 1 })
	p.stop(0)
	rows := sqliteRows(t, logs, strings.Replace(sqliteNumbers, "ORDER BY id", "", 1))
	for _, host := range []string{"good", "more", "again"} {
		once(t, rows, host, 10)
	}
	if len(rows) != 30 {
		t.Errorf("%d rows", len(rows))
	}
	if letters := sqliteRows(t, filepath.Join(state, "dead_letters.db"), "SELECT code FROM letters"); strings.Join(letters, " ") != "SQLITE_MISMATCH SQLITE_MISMATCH" {
		t.Errorf("dead letters: %q", letters)
	}
}

// When the disk of a SQLite database is full the destination waits and says so; what is accepted meanwhile is stored when there is room, once.
func TestSQLiteOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, buffer := range []string{"{}", "{ disk: 16MiB, keep_free: 0B }"} {
		t.Run(buffer, func(t *testing.T) {
			t.Parallel()
			dir := home(t)
			data := filepath.Join(dir, "data")
			smallDisk(t, data, 32)
			logs := filepath.Join(data, "logs.db")
			configure(t, dir, "", fmt.Sprintf("  archive: { sqlite: %q, flush_timeout: 50ms, flush_lines: 100, buffer: %s }", logs, buffer))
			p := runWeir(t, dir, "")
			p.send("before", 1, 100, 100).finished(t)
			await(t, "the first are stored", func() bool { return p.metric("weir_destination_messages_total", `"stored"`) == 100 })
			stream := p.send("stream", 1, 3000, 1000) // the disk fills while it is written to
			empty := takeUp(t, data)
			stream.finished(t)
			p.send("during", 1, 100, 1000).finished(t)
			await(t, "the full disk is told", func() bool { return strings.Contains(p.unready("archive"), "disk full") })
			if told := p.lines("destination waits", "disk full"); told != 1 {
				t.Errorf("the log says %d times that the disk is full", told)
			}
			empty()
			await(t, "all is stored", func() bool { return p.metric("weir_destination_messages_total", `"stored"`) == 3200 })
			p.stop(0)
			rows := sqliteRows(t, logs, sqliteNumbers)
			once(t, rows, "before", 100)
			once(t, rows, "stream", 3000)
			once(t, rows, "during", 100)
			inOrder(t, rows, "stream")
		})
	}
}
