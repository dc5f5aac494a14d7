package socket

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlog/weir/router"
)

// TestFullRouterHoldsStreamsAndDropsUnixDatagrams: sshd must not hang behind
// /dev/log, and what a stream sent is not lost.
func TestFullRouterHoldsStreamsAndDropsUnixDatagrams(t *testing.T) {
	dir := t.TempDir()
	f := start(t, flowOptions{held: true, memory: 4 << 20}, func(c *Config) {
		c.Listen = []string{"unix://" + dir + "/s", "unixgram://" + dir + "/d"}
		c.IdleTimeout = time.Second // whose clock must not run while the sender is held
	})
	line := []byte("<13>app: " + strings.Repeat("x", 1000) + "\n")
	s, d := f.dial(0), f.dial(1)
	var enough atomic.Bool
	wrote := make(chan int)
	go func() { // waits most of the time, because the router is full
		n := 0
		for ; !enough.Load(); n++ {
			if _, err := s.Write(line); err != nil {
				t.Error(err)
				break
			}
		}
		wrote <- n
	}()
	longest := time.Duration(0)
	until(t, "dropped datagrams are counted", func() bool {
		began := time.Now()
		send(t, d, "<13>app: datagram")
		longest = max(longest, time.Since(began))
		return f.intake().Missed["held"] > 50
	})
	if longest > 5*time.Second { // 1.1 s on an idle machine
		t.Errorf("a sender hung for %v", longest)
	}
	enough.Store(true)
	f.release()
	sent := <-wrote
	until(t, "datagrams are taken again", func() bool {
		send(t, d, "<13>app: again")
		all := texts(f.store.all())
		return len(all) > 0 && all[len(all)-1] == "again"
	})
	lines := 0
	until(t, "all of the stream arrives", func() bool {
		lines = 0
		for _, text := range texts(f.store.all()) {
			if strings.HasPrefix(text, "xxx") {
				lines++
			}
		}
		return lines >= sent
	})
	f.stop()
	if lines != sent || f.intake().Missed["partial"] != 0 {
		t.Errorf("%d of %d lines, missed %v", lines, sent, f.intake().Missed)
	}
	if !strings.Contains(f.log.String(), "datagrams are dropped") {
		t.Error("nobody is told")
	}
}

// TestOldestUnfinishedMessageMakesRoom: a few stuck senders must not keep others
// from being read.
func TestOldestUnfinishedMessageMakesRoom(t *testing.T) {
	f := start(t, flowOptions{memory: 4 << 20}, func(c *Config) { c.Listen = []string{"tcp://127.0.0.1:0"} })
	// The quota is 1 MiB, a connection's part of 60 000 bytes takes 64 KiB.
	half := "<13>app: " + strings.Repeat("x", 60_000)
	first := f.dial(0)
	send(t, first, half)
	until(t, "it is read", func() bool { return f.tailBytes() == 64<<10 })
	var others []interface{ Close() error }
	for range 16 {
		c := f.dial(0)
		send(t, c, half)
		others = append(others, c)
	}
	first.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := first.Read(make([]byte, 1)); err == nil || timedOut(err) {
		t.Errorf("the oldest is still open: %v", err)
	}
	until(t, "it is counted", func() bool { return f.intake().Missed["partial"] == 1 })
	for _, c := range others {
		c.Close() // and so delivers
	}
	f.store.await(t, 16)
	until(t, "all is given back", func() bool { return f.tailBytes() == 0 })
}

// TestManySlowConnectionsFillATransaction: their small reads must not hold so
// much memory that transactions are cut short.
func TestManySlowConnectionsFillATransaction(t *testing.T) {
	const n = 1000
	f := start(t, flowOptions{flush: router.Flush{Messages: n, Bytes: 4 << 20, After: time.Hour, Severity: -1}},
		func(c *Config) { c.Listen = []string{"unix://" + t.TempDir() + "/s"} })
	for i := range n {
		send(t, f.dial(0), fmt.Sprintf("<13>app: connection %d with a line of usual length, %s\n", i, strings.Repeat("x", 200)))
	}
	f.store.await(t, n)
	if len(f.store.sizes) != 1 {
		t.Errorf("transactions of %v", f.store.sizes)
	}
}

// TestStreamAllocatesNothingPerMessage goes the whole way from the socket to
// the destination.
func TestStreamAllocatesNothingPerMessage(t *testing.T) {
	f := start(t, flowOptions{held: true}, func(c *Config) { c.Listen = []string{"unix://" + t.TempDir() + "/s"} })
	f.store.quiet.Store(true)
	f.release()
	c := f.dial(0)
	const lines = 250
	block := strings.Repeat(`<165>1 2026-01-01T00:00:04.003Z web1.example.com shopd 8710 ID47 [cart@32473 items="3"] checkout done`+"\n", lines)
	sent := 0
	burst := func(n int) {
		for range n {
			send(t, c, block)
			sent += lines
		}
		until(t, "all is stored", func() bool { return int(f.store.counted.Load()) == sent })
	}
	burst(50)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	burst(400)
	runtime.ReadMemStats(&after)
	if per := float64(after.Mallocs-before.Mallocs) / (400 * lines); per > 0.1 {
		t.Errorf("%.2f allocations a message", per)
	}
}
