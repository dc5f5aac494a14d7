package main

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/spool"
)

// resident is what a process has or had in memory, in MiB: VmRSS, VmHWM.
func (p *program) resident(key string) float64 {
	p.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	m := regexp.MustCompile(key + `:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		p.t.Fatalf("no %s", key)
	}
	kib, _ := strconv.ParseFloat(string(m[1]), 64)
	return kib / 1024
}

// sum is what weir check says that it needs in all, in MiB.
func sum(t *testing.T, dir string) float64 {
	t.Helper()
	out, err := weirCommand(dir, "check", "-c", "weir.yaml")
	m := regexp.MustCompile(`([\d.]+) MiB  in all`).FindStringSubmatch(out)
	if err != nil || m == nil {
		t.Fatalf("weir check: %v\n%s", err, out)
	}
	mib, _ := strconv.ParseFloat(m[1], 64)
	return mib
}

// What weir takes stays below the sum that weir check prints, with the program as it is built for users: the race detector multiplies memory.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	exe := filepath.Join(home(t), "weir")
	build := exec.Command("go", "build", "-o", exe, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	// 64 senders and a destination that takes nothing for a while: they are held back, memory stays, and it falls
	// when the burst is over. Field cases C56, C62.
	t.Run("senders", func(t *testing.T) {
		dir := home(t)
		server, dsn, g := postgres(t, open)
		server.Exec(t, dsn, numberedTable)
		release := lockTable(t, dsn, "logs")
		configure(t, dir, "memory: 16MiB", fmt.Sprintf("  db: { postgres: %q, flush_timeout: 50ms }", through(g, dsn)))
		p := runWeir(t, dir, exe)
		var feeders []*feeder
		for i := range 64 {
			feeders = append(feeders, p.send(fmt.Sprint("host", i), 1, 20000, 1000))
		}
		stuck(t, feeders...)
		limit, peak := sum(t, dir), p.resident("VmHWM")
		if held := p.metric("weir_memory_bytes", `"memory"`); peak > limit || held < 4<<20 {
			t.Errorf("%.0f MiB resident of %.0f, %.0f MiB of them messages", peak, limit, held/(1<<20))
		}
		for _, f := range feeders {
			f.halt.Store(true)
		}
		release()
		all := 0
		for _, f := range feeders {
			all += f.finished(t)
		}
		await(t, "all is stored", func() bool { return p.metric("weir_destination_messages_total", `"stored"`) == float64(all) })
		if held := p.metric("weir_memory_bytes"); held != 0 {
			t.Errorf("%.0f bytes are held for nothing", held)
		}
		p.stop(0)
		rows := server.Query(t, dsn, postgresNumbers)
		for _, f := range feeders {
			once(t, rows, f.host, int(f.sent.Load()))
		}
	})

	// A start with a large disk buffer streams it through bounded memory. Field case C58.
	t.Run("start", func(t *testing.T) {
		dir := home(t)
		const n = 200_000 // of about 1 KiB
		fillBuffer(t, filepath.Join(bufferDir(filepath.Join(dir, "state")), "nowhere", "1.0"), n)
		configure(t, dir, "memory: 16MiB", "  nowhere: { discard: {}, flush_lines: 1000, buffer: { disk: 1GiB, keep_free: 0B } }")
		p := runWeir(t, dir, exe)
		await(t, "all is delivered", func() bool { return p.metric("weir_destination_messages_total", `"stored"`) == n })
		if limit, peak := sum(t, dir), p.resident("VmHWM"); peak > limit {
			t.Errorf("%.0f MiB resident of %.0f", peak, limit)
		}
		p.stop(0)
		if a := p.account("destination", "nowhere"); a["resumed"] != n {
			t.Errorf("%v", a)
		}
	})
}

// fillBuffer makes a disk buffer with n messages of about 1 KiB.
func fillBuffer(t *testing.T, dir string, n int) {
	t.Helper()
	s, err := spool.Open(dir, spool.Config{Size: 1 << 30}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	msgs := make([]*router.Message, 1000)
	for i := range msgs {
		msgs[i] = &router.Message{Origin: &router.Origin{Source: "edge"}, Raw: []byte(strings.Repeat("x", 1000)), Received: time.Now().UnixNano()}
	}
	for range n / len(msgs) {
		if _, err := s.Append(msgs, router.Mark{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
