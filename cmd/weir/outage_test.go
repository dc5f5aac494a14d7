package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/weirlog/weir/router/routertest"
)

// A program is a weir that runs in a directory of its own, as an operator has it: a configuration file, a socket that is
// sent to, /readyz and /metrics, what it logs, and a signal at the end.
type program struct {
	t    *testing.T
	dir  string
	cmd  *exec.Cmd
	log  *routertest.Transcript
	done chan struct{}
}

// patience is for what happens soon where nothing else runs.
const patience = 90 * time.Second

// home makes a directory for a weir; paths of sockets have about 100 bytes at most.
func home(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "weir-o")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// configure writes weir.yaml: the destinations and what the tests have in common. Source edge goes to all of them.
func configure(t *testing.T, dir, top, destinations string) {
	t.Helper()
	names := regexp.MustCompile(`(?m)^  (\w+):`).FindAllStringSubmatch(destinations, -1)
	var to []string
	for _, n := range names {
		to = append(to, n[1])
	}
	text := fmt.Sprintf("state_dir: state\nadmin: { listen: unix://admin.sock }\n%s\nsources: { edge: { listen: [unix://weir.sock], max_connections: 100, max_message: 16KiB } }\ndestinations:\n%s\nroutes: { main: { from: [edge], to: [%s] } }\n",
		top, destinations, strings.Join(to, ", "))
	if err := os.WriteFile(filepath.Join(dir, "weir.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// runWeir starts the program and returns when it runs. exe "": the test binary.
func runWeir(t *testing.T, dir, exe string) *program {
	t.Helper()
	p := launch(t, dir, exe)
	await(t, "weir runs", func() bool {
		select {
		case <-p.done:
			t.Fatal("weir has ended")
		default:
		}
		return strings.Contains(p.log.String(), `"msg":"weir runs"`)
	})
	return p
}

// launch starts the program. What it logged is told when the test fails.
func launch(t *testing.T, dir, exe string) *program {
	t.Helper()
	if exe == "" {
		exe = "weir"
	}
	p := &program{t: t, dir: dir, cmd: exec.Command(exe, "run", "-c", "weir.yaml"), log: &routertest.Transcript{}, done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, p.log, p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.cmd.Wait(); close(p.done) }()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.done
		if t.Failed() {
			words := p.log.String()
			t.Logf("weir %d said:\n%s", p.cmd.Process.Pid, words[max(0, len(words)-6000):])
		}
	})
	return p
}

// exit waits until the program has ended and returns its code. Nothing may have crashed.
func (p *program) exit() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.cmd.Process.Signal(syscall.SIGQUIT) // it tells what it is at
		<-p.done
		p.t.Fatal("weir did not end")
	}
	for _, bad := range []string{"panic:", "BUG:", "DATA RACE", "fatal error:"} {
		if strings.Contains(p.log.String(), bad) {
			p.t.Fatalf("weir said %q", bad)
		}
	}
	return p.cmd.ProcessState.ExitCode()
}

// stop ends the program with SIGTERM and checks its code, and that the ledger balances.
func (p *program) stop(want int) {
	p.t.Helper()
	p.cmd.Process.Signal(syscall.SIGTERM)
	if code := p.exit(); code != want {
		p.t.Fatalf("exit code %d, want %d", code, want)
	}
	p.balanced()
}

// kill ends it without a word.
func (p *program) kill() {
	p.cmd.Process.Kill()
	<-p.done
}

// balanced checks the ledger that the program has printed at its end.
func (p *program) balanced() {
	p.t.Helper()
	if len(ledgerOf(p.t, p.log.String())) == 0 {
		p.t.Fatal("no ledger")
	}
}

// account is a line of the ledger.
func (p *program) account(kind, name string) map[string]int {
	p.t.Helper()
	a := ledgerOf(p.t, p.log.String())[kind+"="+name]
	if a == nil {
		p.t.Fatalf("the ledger has no %s %s", kind, name)
	}
	return a
}

// lines counts the lines of the log that have all of these words.
func (p *program) lines(words ...string) (n int) {
next:
	for line := range strings.Lines(p.log.String()) {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue next
			}
		}
		n++
	}
	return n
}

// get asks the admin socket.
func (p *program) get(path string) string {
	p.t.Helper()
	return askAdmin(p.t, p.dir, path)
}

// unready is why a destination is not ready, by /readyz; "": it is.
func (p *program) unready(destination string) string {
	p.t.Helper()
	var is readiness
	if err := json.Unmarshal([]byte(p.get("/readyz")), &is); err != nil {
		p.t.Fatal(err)
	}
	for _, part := range is.Parts {
		if part.Kind == "destination" && part.Name == destination && !part.Ready {
			return part.Reason
		}
	}
	return ""
}

type readiness struct {
	Parts []struct {
		Kind, Name, Reason string
		Ready              bool
	}
}

// metric is the sum of a metric's values whose labels contain all of these.
func (p *program) metric(name string, labels ...string) float64 {
	p.t.Helper()
	sum, _ := metricOf(p.t, p.get("/metrics"), name, labels...)
	return sum
}

// await waits until something is so.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	within(t, patience, so, func() string { return "it never came to this: " + what })
}

// A feeder writes numbered messages into the socket, as fast as they are taken. It never sends one again.
type feeder struct {
	host string
	sent atomic.Int64 // messages that were written whole
	halt atomic.Bool
	done chan struct{}
	err  error // valid when done is closed
}

// send starts a sender of messages first to last, each of about size bytes.
func (p *program) send(host string, first, last, size int) *feeder {
	p.t.Helper()
	conn, err := net.Dial("unix", filepath.Join(p.dir, "weir.sock"))
	if err != nil {
		p.t.Fatal(err)
	}
	s := &feeder{host: host, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		defer conn.Close()
		pad := strings.Repeat("x", size)
		var lines []byte
		for n := first; n <= last && !s.halt.Load(); {
			lines = lines[:0]
			k := n
			for ; k <= last && len(lines) < 8<<10; k++ {
				lines = fmt.Appendf(lines, "<14>1 2026-01-02T03:04:05Z %s app - - - %07d %s\n", host, k, pad)
			}
			if _, err := conn.Write(lines); err != nil {
				s.err = err
				return
			}
			s.sent.Add(int64(k - n))
			n = k
		}
	}()
	p.t.Cleanup(func() {
		conn.Close()
		<-s.done
	})
	return s
}

// finished waits until the sender is through and returns how many messages it wrote.
func (s *feeder) finished(t *testing.T) int {
	t.Helper()
	select {
	case <-s.done:
	case <-time.After(patience):
		t.Fatalf("the sender %s is held back after %d messages", s.host, s.sent.Load())
	}
	if s.err != nil {
		t.Fatal(s.err)
	}
	return int(s.sent.Load())
}

// stuck waits until senders are held back, all of them.
func stuck(t *testing.T, feeders ...*feeder) {
	t.Helper()
	last, since := int64(-1), time.Now()
	await(t, "the senders are held back", func() bool {
		all := int64(0)
		for _, s := range feeders {
			all += s.sent.Load()
			select {
			case <-s.done:
				t.Fatalf("the sender %s is through, all its %d messages were taken", s.host, s.sent.Load())
			default:
			}
		}
		if all != last {
			last, since = all, time.Now()
		}
		return time.Since(since) > time.Second
	})
}

// sqliteRows are a query's rows, of one column.
func sqliteRows(t *testing.T, path, query string) (rows []string) {
	t.Helper()
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetBusyTimeout(patience)
	err = sqlitex.ExecuteTransient(conn, query, &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		rows = append(rows, stmt.ColumnText(0))
		return nil
	}})
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return rows
}

// Queries for rows as once and inOrder want them, in SQLite in the order in which they were stored.
const (
	sqliteNumbers   = "SELECT hostname || ' ' || substr(message, 1, 7) FROM logs ORDER BY id"
	postgresNumbers = "SELECT hostname || ' ' || substr(message, 1, 7) FROM logs"
)

// once checks that messages 1 to n of a host are there, each once, and nothing else of it.
func once(t *testing.T, rows []string, host string, n int) {
	t.Helper()
	seen := map[int]int{}
	for _, r := range rows {
		if h, number, _ := strings.Cut(r, " "); h == host {
			k, _ := strconv.Atoi(number)
			seen[k]++
		}
	}
	missing, twice := 0, 0
	for k := 1; k <= n; k++ {
		switch {
		case seen[k] == 0:
			missing++
		case seen[k] > 1:
			twice++
		}
	}
	if missing > 0 || twice > 0 || len(seen) != n-missing {
		t.Errorf("of %d messages of %s %d are missing and %d there more than once; %d different rows", n, host, missing, twice, len(seen))
	}
}

// inOrder checks that the messages of a host are there in the order in which they were sent.
func inOrder(t *testing.T, rows []string, host string) {
	t.Helper()
	last := 0
	for _, r := range rows {
		if h, number, _ := strings.Cut(r, " "); h == host {
			k, _ := strconv.Atoi(number)
			if k <= last {
				t.Fatalf("message %d of %s comes behind %d", k, host, last)
			}
			last = k
		}
	}
}
