package socket

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router"
)

func TestEveryListenerDeliversAndSaysWhoSent(t *testing.T) {
	dir := t.TempDir()
	f := start(t, flowOptions{}, func(c *Config) {
		c.Listen = []string{"unix://" + dir + "/s", "tcp://127.0.0.1:0", "tcp://[::1]:0",
			"unixgram://" + dir + "/d", "udp://127.0.0.1:0", "udp://[::1]:0"}
	})
	self, _ := os.Hostname()
	want := map[string]record{}
	for i, l := range f.src.cfg.Listen {
		text := fmt.Sprint("message ", i)
		c := f.dial(i)
		if u, ok := c.(*net.UnixConn); ok && i == 3 {
			u.SetWriteBuffer(1 << 16)
		}
		send(t, c, "<13>app: "+text+"\n")
		peer := [6]string{"", "127.0.0.1", "::1", "", "127.0.0.1", "::1"}[i]
		host := peer
		if peer == "" {
			host = self
		}
		raw := "<13>app: " + text
		if i > 2 {
			raw += "\n"
		}
		want[text] = record{Message: text, Hostname: host, Peer: peer, Listener: l, Source: "edge", AppName: "app", Raw: raw}
	}
	got := map[string]record{}
	for _, r := range f.store.await(t, 6) {
		got[r.Message] = r
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestHostIsSentOrThePeerAsConfigured(t *testing.T) {
	check := func(mode, in, want string) {
		t.Helper()
		f := start(t, flowOptions{}, func(c *Config) { c.Listen, c.Hostname = []string{"tcp://127.0.0.1:0"}, mode })
		send(t, f.dial(0), in)
		if got := f.store.await(t, 1)[0].Hostname; got != want {
			t.Errorf("%s, %q: %q", mode, in, got)
		}
	}
	const with, without = "<13>Jan  1 00:00:04 web1 app: x\n", "<13>app: x\n"
	check("sent", with, "web1")
	check("sent", without, "")
	check("peer", with, "127.0.0.1")
	check("peer", without, "127.0.0.1")
	check("sent_or_peer", with, "web1")
	check("sent_or_peer", without, "127.0.0.1")
}

func TestStreamsArriveWholeAndInOrder(t *testing.T) {
	f := start(t, flowOptions{}, func(c *Config) { c.Listen = []string{"tcp://127.0.0.1:0"} })
	random := rand.New(rand.NewPCG(3, 4))
	var data []byte
	var want []string
	for i := range 3000 {
		text := fmt.Sprintf("%d %s", i, strings.Repeat("x", random.IntN(600)))
		want = append(want, text)
		frame := "<13>app: " + text
		if random.IntN(2) == 0 {
			data = fmt.Appendf(data, "%d %s", len(frame), frame)
		} else {
			data = append(append(data, frame...), '\n')
		}
	}
	c := f.dial(0)
	for len(data) > 0 {
		n := min(len(data), 1+random.IntN(5000))
		send(t, c, string(data[:n]))
		data = data[n:]
	}
	if d := cmp.Diff(want, texts(f.store.await(t, len(want)))); d != "" {
		t.Error(d)
	}
}

// TestOneReadMayFillManyBatches: batches are as large as transactions, reads larger.
func TestOneReadMayFillManyBatches(t *testing.T) {
	f := start(t, flowOptions{flush: router.Flush{Messages: 7, Bytes: 1 << 20, After: time.Millisecond, Severity: -1}},
		func(c *Config) { c.Listen = []string{"tcp://127.0.0.1:0"} })
	var data strings.Builder
	var want []string
	for i := range 5000 {
		want = append(want, fmt.Sprint(i))
		fmt.Fprintf(&data, "<13>a: %d\n", i)
	}
	send(t, f.dial(0), data.String())
	if d := cmp.Diff(want, texts(f.store.await(t, len(want)))); d != "" {
		t.Error(d)
	}
	for _, n := range f.store.sizes {
		if n > 7 {
			t.Fatalf("a transaction of %d", n)
		}
	}
}

func TestUnfinishedLineIsDeliveredWhenThePeerCloses(t *testing.T) {
	f := start(t, flowOptions{}, func(c *Config) { c.Listen = []string{"tcp://127.0.0.1:0"} })
	c := f.dial(0)
	send(t, c, "<13>app: one\n<13>app: two")
	c.Close()
	if d := cmp.Diff([]string{"one", "two"}, texts(f.store.await(t, 2))); d != "" {
		t.Error(d)
	}
	c = f.dial(0)
	send(t, c, "20 <13>app: th")
	c.Close()
	until(t, "a cut frame is counted", func() bool { return f.intake().Missed["partial"] == 1 })
}

func TestUnfinishedLineIsMissedWhenWeClose(t *testing.T) {
	f := start(t, flowOptions{}, func(c *Config) { c.Listen = []string{"tcp://127.0.0.1:0"} })
	send(t, f.dial(0), "<13>app: one\n<13>app: two")
	f.store.await(t, 1)
	if d := cmp.Diff([]string{"one"}, texts(f.stop())); d != "" {
		t.Error(d)
	}
	if n := f.intake().Missed["partial"]; n != 1 {
		t.Errorf("%d partial", n)
	}
}

func TestOctetStreamIsClosedAtAnythingElse(t *testing.T) {
	f := start(t, flowOptions{}, func(c *Config) { c.Listen, c.Framing = []string{"tcp://127.0.0.1:0"}, "octet" })
	c := f.dial(0)
	send(t, c, "5 plain<13>app: line\n")
	if d := cmp.Diff([]string{"plain"}, texts(f.store.await(t, 1))); d != "" {
		t.Error(d)
	}
	c.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := c.Read(make([]byte, 1)); err == nil || timedOut(err) {
		t.Errorf("still open: %v", err)
	}
	until(t, "it is counted", func() bool { return f.intake().Missed["framing"] == 1 })
}

func TestLongMessagesAreCutAndCounted(t *testing.T) {
	dir := t.TempDir()
	f := start(t, flowOptions{}, func(c *Config) {
		c.Listen, c.MaxMessage = []string{"tcp://127.0.0.1:0", "unixgram://" + dir + "/d", "udp://127.0.0.1:0"}, 256
	})
	whole := strings.Repeat("x", 256)
	for i, end := range []string{"\n", "", ""} {
		c := f.dial(i)
		send(t, c, whole+end)
		send(t, c, whole+"too long"+end)
		send(t, c, "after"+end)
	}
	for i, r := range f.store.await(t, 9) {
		if r.Message != whole && r.Message != "after" {
			t.Errorf("message %d has %d bytes", i, len(r.Message))
		}
	}
	f.stop()
	if n := f.intake().Truncated; n != 3 {
		t.Errorf("%d truncated", n)
	}
}

func TestConnectionsOverTheLimitAreRefused(t *testing.T) {
	f := start(t, flowOptions{}, func(c *Config) { c.Listen, c.MaxConnections = []string{"tcp://127.0.0.1:0"}, 2 })
	a, b := f.dial(0), f.dial(0)
	send(t, a, "<13>app: a\n")
	send(t, b, "<13>app: b\n")
	f.store.await(t, 2)
	c := f.dial(0)
	c.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := c.Read(make([]byte, 1)); err == nil || timedOut(err) {
		t.Errorf("a third one is open: %v", err)
	}
	until(t, "it is counted", func() bool { return f.intake().Missed["connections"] == 1 })
	a.Close()
	until(t, "there is room again", func() bool { return f.src.open.Load() == 1 })
	send(t, f.dial(0), "<13>app: c\n")
	f.store.await(t, 3)
}

func TestIdleConnectionsAreClosedWhenAsked(t *testing.T) {
	f := start(t, flowOptions{}, func(c *Config) { c.Listen, c.IdleTimeout = []string{"tcp://127.0.0.1:0"}, time.Second })
	c := f.dial(0)
	send(t, c, "<13>app: a\n<13>app: b")
	c.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("%v", err)
	}
	until(t, "the rest is counted", func() bool { return f.intake().Missed["partial"] == 1 })
}

func TestStopReadsWhatTheKernelHolds(t *testing.T) {
	dir := t.TempDir()
	f := start(t, flowOptions{idle: true}, func(c *Config) {
		c.Listen = []string{"unix://" + dir + "/s", "tcp://127.0.0.1:0", "unixgram://" + dir + "/d", "udp://127.0.0.1:0"}
	})
	var want []string
	for i := range 4 {
		c := f.dial(i)
		for j := range 3 {
			text := fmt.Sprint(i, " ", j)
			want = append(want, text)
			send(t, c, "<13>app: "+text+"\n")
		}
		if i < 2 {
			want = append(want, fmt.Sprint(i, " unfinished"))
			send(t, c, fmt.Sprintf("<13>app: %d unfinished", i))
			c.Close()
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f.cancel = cancel
	go func() { f.done <- f.router.Run(ctx) }()
	got := texts(f.stop())
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestJSONLinesBecomeFields(t *testing.T) {
	f := start(t, flowOptions{}, func(c *Config) { c.Listen, c.Format = []string{"tcp://127.0.0.1:0"}, "json" })
	send(t, f.dial(0), `{"hostname":"web1","message":"hello","n":1}`+"\n"+`<34>{"app_name":"shop"}`+"\nno object\n[1]\n")
	got := f.store.await(t, 4)
	for i := range got {
		got[i].Peer, got[i].Listener, got[i].Source, got[i].Raw = "", "", "", ""
	}
	want := []record{{Message: "hello", Hostname: "web1"}, {AppName: "shop", Hostname: "127.0.0.1"}, {Message: "no object", Hostname: "127.0.0.1"}, {Message: "[1]", Hostname: "127.0.0.1"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestStaleSocketIsReplacedAndALiveOneIsNot(t *testing.T) {
	for _, network := range []string{"unix", "unixgram"} {
		t.Run(network, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			var c Config
			c.Defaults()
			c.Listen, c.Mode = []string{network + "://" + path}, "0620"
			first, err := Listen("edge", c, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o620 {
				t.Errorf("%v %v", info.Mode(), err)
			}
			if _, err := Listen("edge", c, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "in use") {
				t.Errorf("a second listener: %v", err)
			}
			// As a killed process leaves it: the socket is gone, the file is there.
			if network == "unix" {
				first.streams[0].listener.Close()
			} else {
				first.packets[0].conn.Close()
			}
			second, err := Listen("edge", c, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			if second.Close(); fileExists(path) {
				t.Error("the file is left behind")
			}
			first.Close()
		})
	}
}

func TestWhatIsNoSocketIsNeverRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	var c Config
	c.Defaults()
	c.Listen = []string{"tcp://127.0.0.1:0", "unix://" + path}
	if s, err := Listen("edge", c, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Errorf("%v %v", s, err)
	}
	if !fileExists(path) {
		t.Error("it is gone")
	}
}

func fileExists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
