package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// receive listens on a unix stream socket and returns its path and what the
// next n connections send, each until it closes.
func receive(t testing.TB, n int) (path string, sent func() []string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var wait sync.WaitGroup
	got := make([]string, n)
	wait.Go(func() {
		for i := range n {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wait.Go(func() {
				b, _ := io.ReadAll(c)
				got[i] = string(b)
				c.Close()
			})
		}
	})
	return path, func() []string { wait.Wait(); return got }
}

// loggen runs the command as from a shell.
func loggen(args ...string) (code int, stdout, stderr string) {
	var out, errout bytes.Buffer
	code = execute(append([]string{"loggen"}, args...), strings.NewReader("from stdin\n"), &out, &errout)
	return code, out.String(), errout.String()
}

func TestLoggenNumbersEveryMessageOnce(t *testing.T) {
	for _, format := range []string{"rfc5424", "rfc3164", "json"} {
		path, sent := receive(t, 3)
		code, out, errout := loggen("--unix", path, "--rate", "0", "--number", "2000", "--connections", "3", "--format", format, "--size", "200")
		if code != 0 || errout != "" {
			t.Fatalf("exit code %d: %s", code, errout)
		}
		summary := regexp.MustCompile(`^average rate = \d+\.\d\d msg/sec, count=2000, time=\d+\.\d{3}, msg size=200, bandwidth=\d+\.\d\d kB/sec\n$`)
		if !summary.MatchString(out) {
			t.Errorf("result is %q", out)
		}
		seen := map[string]bool{}
		numbers := regexp.MustCompile(`seq: (\d{10}), conn: (\d{4}), `)
		for _, stream := range sent() {
			for i, line := range strings.SplitAfter(strings.TrimSuffix(stream, "\n"), "\n") {
				m := numbers.FindStringSubmatch(line)
				if m == nil || m[1] != fmt.Sprintf("%010d", i) {
					t.Fatalf("message %d of a connection is %q", i, line)
				}
				seen[m[1]+" "+m[2]] = true
				if len(strings.TrimSuffix(line, "\n")) != 199 {
					t.Fatalf("%q has %d bytes, want 199 and a line feed", line, len(line))
				}
				if format == "json" && !json.Valid([]byte(line)) {
					t.Fatalf("not JSON: %q", line)
				}
			}
		}
		if len(seen) != 2000 {
			t.Errorf("%s: %d different messages, want 2000", format, len(seen))
		}
	}
}

func TestLoggenCountsOctets(t *testing.T) {
	path, sent := receive(t, 1)
	if code, _, errout := loggen("--unix", "unix://"+path, "--rate", "0", "--number", "2", "--framing", "octet", "--size", "100"); code != 0 {
		t.Fatal(errout)
	}
	stream := sent()[0]
	for range 2 {
		if !strings.HasPrefix(stream, "100 <14>1 ") || len(stream) < 104 {
			t.Fatalf("frame is %q", stream)
		}
		stream = stream[104:]
	}
	if stream != "" {
		t.Errorf("%q behind the second frame", stream)
	}
}

func TestLoggenReplaysLinesAsTheyAre(t *testing.T) {
	path, sent := receive(t, 1)
	if code, _, errout := loggen("--unix", path, "--file", "-", "--rate", "0"); code != 0 {
		t.Fatal(errout)
	}
	if diff := cmp.Diff([]string{"from stdin\n"}, sent()); diff != "" {
		t.Error(diff)
	}

	r := replayed{lines: splitLines([]byte("a\nb\n\nc")), framer: framingLF, step: 2, loop: true}
	block, ends := r.fill(3) // of the first of two connections
	if string(block) != "a\nc\na\n" || !cmp.Equal(ends, []int{2, 4, 6}) {
		t.Errorf("%q with ends %v", block, ends)
	}
}

func TestLoggenSendsDatagrams(t *testing.T) {
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if code, _, errout := loggen("--udp", c.LocalAddr().String(), "--number", "2", "--rate", "0", "--size", "120"); code != 0 {
		t.Fatal(errout)
	}
	for i := range 2 {
		b := make([]byte, 1000)
		n, _, err := c.ReadFrom(b)
		if err != nil || n != 120 || !strings.Contains(string(b), fmt.Sprintf("seq: %010d, ", i)) {
			t.Errorf("datagram %d is %q (%v)", i, b[:n], err)
		}
	}
}

func TestLoggenFailsWhenTheReceiverCloses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			c.Close()
		}
	}()
	code, out, errout := loggen("--unix", path, "--rate", "0", "--interval", "0")
	if code != 1 || !strings.Contains(errout, "the receiver closed the connection") || !strings.HasPrefix(out, "average rate = ") {
		t.Errorf("exit code %d, result %q, error %q", code, out, errout)
	}
}

func TestLoggenRefusesWhatCannotBeMeant(t *testing.T) {
	check := func(args, want string) {
		t.Helper()
		code, _, errout := loggen(strings.Fields(args)...)
		if code != exitUsage || !strings.Contains(errout, want) {
			t.Errorf("%s: exit code %d, %q, want %q", args, code, errout, want)
		}
	}
	check("", "no receiver: give --unix PATH")
	check("--unix a --tcp b", "--tcp and --unix: one receiver at a time")
	check("--unix a --size 20", "--size 20: a message of format rfc5424 needs at least ")
	check("--udp a --framing lf", "over udp each datagram is one message")
	check("--unix a --framing crlf", "--framing crlf: want lf or octet")
	check("--unix a --format gelf", "--format gelf: want rfc5424, rfc3164 or json")
	check("--unix a --connections 0", "--connections 0: at least 1")
	check("--unix a --rate -1", "--rate -1: want messages a second")
	check("--unix a --loop", "--loop: only together with --file")
	check("--unix a --file b --size 9", "its lines are sent as they are")
}

func TestPaceMeetsTheRateExactly(t *testing.T) {
	for _, rate := range []float64{0.5, 1, 3, 1000, 123456.7} {
		p := pace{rate: rate, start: time.Unix(1000, 0)}
		for ms := range 10_000 {
			p.sent += p.due(p.start.Add(time.Duration(ms) * time.Millisecond))
		}
		p.sent += p.due(p.start.Add(10*time.Second - 1))
		if want := int64(rate*10 + 0.5); p.sent != want {
			t.Errorf("rate %v: %d messages in 10 s, want %d", rate, p.sent, want)
		}
	}
}

func TestPaceDoesNotBurstAfterItWasHeld(t *testing.T) {
	p := pace{rate: 1000, start: time.Unix(1000, 0)}
	now := p.start.Add(30 * time.Second)
	if n := p.due(now); n != 101 {
		t.Errorf("%d messages at once, want 101", n)
	}
	p.sent += 101
	if n := p.due(now.Add(time.Second / 100)); n != 10 {
		t.Errorf("%d messages 10 ms later, want 10", n)
	}
}

func TestLoggenEndsWithAWholeMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		var count, size atomic.Int64
		s := sender{
			conn: ours, stream: true, quota: 1000, end: time.Now().Add(time.Second), count: &count, bytes: &size,
			feed: &replayed{lines: [][]byte{[]byte("0123456789")}, step: 1, framer: framingLF, loop: true},
		}
		var got []byte
		go func() {
			b := make([]byte, 25) // two messages and the start of a third
			io.ReadFull(theirs, b)
			time.Sleep(1100 * time.Millisecond) // past the end of the interval
			rest, _ := io.ReadAll(theirs)
			got = append(b, rest...)
		}()
		if err := s.run(context.Background()); err != nil {
			t.Fatal(err)
		}
		ours.Close()
		synctest.Wait()
		if len(got) != 33 || count.Load() != 3 {
			t.Errorf("%d messages counted, %q received", count.Load(), got)
		}
	})
}

// How fast is one connection over a unix socket, with a receiver that only reads?
func BenchmarkLoggenUnix(b *testing.B) {
	path := filepath.Join(b.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				buf := make([]byte, 256<<10)
				for {
					if _, err := c.Read(buf); err != nil {
						c.Close()
						return
					}
				}
			}()
		}
	}()
	const messages = 1_000_000
	b.SetBytes(messages * 256)
	for b.Loop() {
		if code, _, errout := loggen("--unix", path, "--rate", "0", "--number", fmt.Sprint(messages)); code != 0 {
			b.Fatal(errout)
		}
	}
	b.ReportMetric(float64(messages*b.N)/b.Elapsed().Seconds(), "msg/s")
}
