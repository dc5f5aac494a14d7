package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/admin"
)

// troubled is a status with something of everything, and with what others may have written in it.
func troubled() *admin.Status {
	started := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	at := func(ago time.Duration) *time.Time {
		t := started.Add(90*time.Minute - ago)
		return &t
	}
	c := func(total uint64, rate float64) admin.Count {
		return admin.Count{Total: total, Rate10s: rate, Rate1m: rate}
	}
	return &admin.Status{
		Degraded: true,
		Problems: []admin.Problem{
			{Kind: "source", Name: "edge", What: "30 datagrams dropped by the kernel in the last minute: they came faster than weir reads", WayOut: "a larger receive_buffer for bursts"},
			{Kind: "destination", Name: "central", What: "is not ready: FATAL: \x1b[2Jpassword authentication failed\r\nfor user \"weir\" and many more words that do not fit on one line", WayOut: "weir tries again by itself", Since: at(12 * time.Minute)},
			{Kind: "dead_letters", Name: "dead_letters", What: "5 of the oldest dropped in the last minute: they are full", WayOut: "weir dlq ls tells what was rejected and why"},
		},
		Program: admin.ProgramStatus{Version: "1.2.3", PID: 4711, Started: started, UptimeSeconds: 5400, Configuration: []string{"/etc/weir/weir.yaml", "/etc/weir/b.yaml"}},
		Memory:  admin.MemoryStatus{Used: 12 << 20, Limit: 48 << 20, UnfinishedLimit: 16 << 20, Resident: 88 << 20, Machine: 256 << 20},
		Sources: []admin.SourceStatus{
			{Name: "edge", State: admin.State{Ready: true, Reason: "is held back: memory is used up", Since: at(4 * time.Second)}, Listen: []string{"tcp://127.0.0.1:5514", "udp://127.0.0.1:5514"},
				Received: c(1234567, 1204.4), Missed: map[string]admin.Count{"kernel": c(30, 0.5), "partial": {Total: 2}}, Connections: 12, ConnectionsLimit: 1000, Held10s: 0.931},
			{Name: "local", State: admin.State{Ready: true}, Listen: []string{"unixgram:///dev/log"}, Received: c(7, 0)},
		},
		Routes: []admin.RouteStatus{{Name: "main", State: admin.State{Ready: true}, From: []string{"edge", "local"}, Filters: []string{"redact"}, To: []string{"archive", "central"},
			Received: c(1234574, 1204.4), Dropped: c(34, 0), Rejected: c(40, 0.2), Delivered: c(1234500, 1204), InFlight: 0}},
		Filters: []admin.FilterStatus{{Name: "redact", State: admin.State{Ready: true, Reason: "last fault: time: \x1b]0;evil\x07 loop"}, Module: "/etc/weir/redact.wasm", SHA256: "5f70bf18a2c1", ABI: "weir", Loaded: at(90 * time.Minute),
			Messages: c(1234574, 1204.4), Rejected: c(40, 0.2), Faults: map[string]admin.Count{"time": c(40, 0.2), "trap": {Total: 2}}, LastFault: at(3 * time.Second), Instances: 2, Memory: 2 << 20, UnitsPerMessage: 1893.4}},
		Destinations: []admin.DestinationStatus{
			{Name: "archive", State: admin.State{Ready: true}, Kind: "sqlite", Stored: c(1234000, 1200), Transactions: c(1234, 1.2), LastCommit: at(400 * time.Millisecond), InFlight: 500, Oldest: 0.4, Rejected: c(0, 0)},
			{Name: "central", State: admin.State{Reason: "FATAL"}, Kind: "postgres", Stored: c(12_345_678, 0), Transactions: c(200, 0), LastCommit: at(12 * time.Minute), InFlight: 866880, Oldest: 720, Rejected: c(3, 0),
				Lost: map[string]admin.Count{"full": {Total: 10}}, Retries: c(55, 0.1), Buffer: &admin.BufferStatus{Messages: 866880, Waiting: 300 << 20, Limit: 1 << 30, FullIn: new(7300.0)}},
			{Name: "stuck", State: admin.State{Ready: true}, Kind: "postgres", Unanswered: 47.2, InFlight: 2000, Oldest: 47, Memory: 15 << 20, MemoryLimit: 16 << 20},
		},
		DeadLetters: admin.DeadLettersStatus{State: admin.State{Ready: true, Reason: "12 letters in the last 5 minutes, newest: time of main/redact"}, Letters: 43, Bytes: 64 << 10, Limit: 64 << 20, Oldest: at(80 * time.Minute),
			Kept: []admin.Kept{{Kind: "filter", Name: "redact", Class: "time", Count: c(40, 0.2)}, {Kind: "destination", Name: "central", Class: "22", Count: c(3, 0)}}, Dropped: map[string]admin.Count{"size": {Total: 5}}},
	}
}

func TestTheStatusIsDrawnForAPerson(t *testing.T) {
	got := drawStatus(troubled(), "127.0.0.1:9600", false)
	file := filepath.Join("testdata", "status.golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Error(diff)
	}
	for line := range strings.Lines(got) {
		if n := len([]rune(line)); n > 121 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// Whatever a database, a guest or a file's name says, nothing but weir's own colours reaches the terminal.
func TestNothingOfOthersReachesTheTerminalUnescaped(t *testing.T) {
	const evil = "\x1b[2J\x07\u202e\u009b31m\r\n"
	s := troubled()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var everywhere any
	if err := json.Unmarshal(text, &everywhere); err != nil {
		t.Fatal(err)
	}
	var spoil func(v any) any
	spoil = func(v any) any {
		switch v := v.(type) {
		case string:
			if _, err := time.Parse(time.RFC3339, v); err != nil {
				return v + evil
			}
		case []any:
			for i := range v {
				v[i] = spoil(v[i])
			}
		case map[string]any:
			for k := range v {
				v[k] = spoil(v[k])
			}
			for _, counts := range []string{"lost", "missed", "faults", "dropped"} {
				if m, ok := v[counts].(map[string]any); ok && m["total"] == nil {
					m[evil] = map[string]any{"total": 3}
				}
			}
		}
		return v
	}
	if text, err = json.Marshal(spoil(everywhere)); err != nil {
		t.Fatal(err)
	}
	s = &admin.Status{}
	if err := json.Unmarshal(text, s); err != nil {
		t.Fatal(err)
	}
	drawn := drawStatus(s, "unix://"+evil, true)
	for _, h := range []hue{bold, faint, red, yellow, green} {
		drawn = strings.ReplaceAll(drawn, "\x1b["+string(h)+"m", "")
	}
	drawn = strings.ReplaceAll(drawn, "\x1b[0m", "")
	for i, r := range drawn {
		if r != '\n' && (r < ' ' || r == 0x7f || r == 0x9b || r == 0x202e) {
			t.Fatalf("%q reaches the terminal: %q", r, drawn[max(0, i-40):i+1])
		}
	}
	if strings.Count(drawn, "[2J") < 20 {
		t.Error("the test spoils nothing")
	}
}

func TestNumbersAreReadAtAGlance(t *testing.T) {
	check := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	check(digits(0), "0")
	check(digits(999), "999")
	check(digits(1234567), "1,234,567")
	check(digits(9_999_999), "9,999,999")
	check(digits(12_345_678), "12.3M")
	check(digits(1<<63), "9,223,372T")
	check(perSecond(0), "0")
	check(perSecond(0.001), "<0.01")
	check(perSecond(0.25), "0.25")
	check(perSecond(3.21), "3.2")
	check(perSecond(9.996), "10")
	check(perSecond(123456), "123,456")
	check(bytesOf(0), "0 B")
	check(bytesOf(1536), "1.5 KiB")
	check(bytesOf(64<<20), "64 MiB")
	check(bytesOf(1023<<20+900<<10), "1 GiB")
	check(bytesOf(1<<64-1), "16 EiB")
	check(span(-time.Second), "0 s")
	check(span(400*time.Millisecond), "0.4 s")
	check(span(47*time.Second), "47 s")
	check(span(12*time.Minute), "12 min")
	check(span(3*time.Hour), "3 h")
	check(span(80*time.Hour), "3 days")
}

// served is an admin address at which status answers that.
func served(t *testing.T, answer http.HandlerFunc) *admin.Config {
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return &admin.Config{Listen: s.Listener.Addr().String()}
}

func answering(s *admin.Status) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { json.NewEncoder(w).Encode(s) }
}

func TestStatusExitsWith1WhenSomethingIsWrong(t *testing.T) {
	check := func(at *admin.Config, want int, words string) {
		t.Helper()
		var out, errout bytes.Buffer
		code := execute([]string{"status", "--admin", at.Listen}, nil, &out, &errout)
		if code != want || !strings.Contains(out.String()+errout.String(), words) {
			t.Errorf("exit %d, want %d with %q:\n%s%s", code, want, words, out.String(), errout.String())
		}
	}
	check(served(t, answering(&admin.Status{})), exitFine, "all is well")
	check(served(t, answering(troubled())), exitFailed, "DEGRADED: 3 problems")
	check(served(t, func(w http.ResponseWriter, _ *http.Request) { http.NotFound(w, nil) }), exitFailed, "it is an older version")
	check(served(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) }), exitFailed, "read the answer of 127.0.0.1:")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	check(&admin.Config{Listen: l.Addr().String()}, exitFailed, "no weir answers at "+l.Addr().String()+": connection refused: is it running")
	check(&admin.Config{Listen: "nowhere"}, exitUsage, "is not host:port")
}

func TestAServerThatHangsIsToldInTime(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // it never accepts; the kernel does
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var s admin.Status
	err = ask(t.Context(), &admin.Config{Listen: l.Addr().String()}, "GET", "/status", 50*time.Millisecond, &s, 200)
	if err == nil || !strings.Contains(err.Error(), "no answer in 50ms") {
		t.Error(err)
	}
	at := served(t, func(w http.ResponseWriter, r *http.Request) { // stops in the middle
		w.Write([]byte(`{"degraded":`))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	err = ask(t.Context(), at, "GET", "/status", 50*time.Millisecond, &s, 200)
	if err == nil || !strings.Contains(err.Error(), "no answer in 50ms") {
		t.Error(err)
	}
}

// Frames are what watch writes, one by one.
type frames struct {
	mu  sync.Mutex
	all []string
	end func(n int, all []string)
}

func (f *frames) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, string(b))
	f.end(len(f.all), f.all)
	return len(b), nil
}

func TestWatchOutlivesARestart(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	away, back := "", false
	down := false
	var mu sync.Mutex
	at := served(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if down {
			panic(http.ErrAbortHandler)
		}
		answering(&admin.Status{})(w, r)
	})
	out := &frames{end: func(n int, all []string) {
		mu.Lock()
		defer mu.Unlock()
		last := all[n-1]
		switch {
		case strings.Contains(last, "no answer since"):
			away, down = last, false
		case away != "":
			back = true
			stop()
		default:
			down = true
		}
	}}
	w := &statusShow{at: at, out: out, terminal: true}
	if err := w.watch(ctx, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(away, "trying again every 1ms") || !back {
		t.Errorf("away: %q, back: %v", away, back)
	}
	first, last := out.all[0], out.all[len(out.all)-1]
	if first != screenBegin || last != screenEnd {
		t.Errorf("begins with %q, ends with %q", first, last)
	}
	for _, f := range out.all[1 : len(out.all)-1] {
		if !strings.HasPrefix(f, screenHome) || !strings.HasSuffix(f, screenRest) || strings.Contains(f, "\x1b[2J") {
			t.Errorf("a drawing that flickers: %q", f)
		}
	}
}

func TestWatchTellsThatItCannotWrite(t *testing.T) {
	w := &statusShow{at: served(t, answering(&admin.Status{})), out: failing{}}
	if err := w.watch(t.Context(), time.Millisecond); err == nil || !strings.Contains(err.Error(), "no space") {
		t.Error(err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestAStopAndNotesAreDrawn(t *testing.T) {
	s := &admin.Status{Stopping: &admin.Stop{Left: 8.2}, Notes: []admin.Problem{{Kind: "source", Name: "edge", What: "500 of 531 messages reached no route", WayOut: "else: true"}},
		Sources: []admin.SourceStatus{{Name: "edge", State: admin.State{Ready: true}}}}
	got := drawStatus(s, "127.0.0.1:9600", false)
	for _, want := range []string{"STOPPING: 8.2 s left of drain_timeout", "note: source edge: 500 of 531 messages reached no route\n      else: true", "nothing: weir stops"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if strings.Contains(got, "all is well") {
		t.Error(got)
	}
}

func TestUnitsOfFewMessagesAreNotNone(t *testing.T) {
	for want, f := range map[string]admin.FilterStatus{"-": {}, "<1": {Messages: admin.Count{Total: 3}}, "1,893": {Messages: admin.Count{Total: 3}, UnitsPerMessage: 1893.4}} {
		if got := unitsEach(&f); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// What is in a disk buffer is not lost with the process; what is in memory is.
func TestASecondSignalTellsWhatIsLost(t *testing.T) {
	var out strings.Builder
	tellLost(&out, []router.Waiting{{Kind: "route", Name: "main", Messages: 3}, {Kind: "destination", Name: "db", Messages: 10, OnDisk: 7}})
	want := "route main: 3 messages that were in flight are lost: weir had them in memory only\n" +
		"destination db: 3 messages that were in flight are lost: weir had them in memory only\n" +
		"destination db: 7 messages in flight are in its disk buffer: the next start sends them\n"
	if out.String() != want {
		t.Error(out.String())
	}
}
