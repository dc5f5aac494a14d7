package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A crashRig is a weir that lives in a process of its own, with what it leaves on disk between its lives.
type crashRig struct {
	t        *testing.T
	rng      *rand.Rand
	dir      string // of the sockets, the configuration and the state
	database crashDatabase
	buffer   string // of the destination, YAML; "": none
	filters  bool
	lines    int           // flush_lines, at most
	pace     time.Duration // of senders
	flush    string        // of the destination, YAML; "": at random
	more     string        // of the configuration, YAML

	child  *exec.Cmd
	log    *crashLog
	logged chan struct{} // closed when the child's log has ended
	told   uint64        // messages of all lives that the database was told to have lost
}

func newCrashRig(t *testing.T, rng *rand.Rand, db crashDatabase) *crashRig {
	r := &crashRig{t: t, rng: rng, dir: home(t), database: db, buffer: "{disk: 64MiB, sync: batch}", lines: 300, pace: 3 * time.Millisecond}
	t.Cleanup(func() {
		if r.child != nil {
			r.child.Process.Kill()
			r.child.Wait()
		}
	})
	return r
}

func (r *crashRig) stateDir() string { return filepath.Join(r.dir, "state") }
func (r *crashRig) acking() string   { return filepath.Join(r.dir, "a.sock") }
func (r *crashRig) plain() string    { return filepath.Join(r.dir, "p.sock") }

// configure writes the configuration of the next life.
func (r *crashRig) configure() {
	var y strings.Builder
	fmt.Fprintf(&y, "state_dir: state\nsources:\n  plain: { listen: [unix://p.sock], format: rfc5424, framing: lf }\n")
	if r.filters {
		y.WriteString("filters:\n  quiet: { module: stock:severity, config: { min: info } }\n  mask: { module: stock:redact }\n")
	}
	fmt.Fprintf(&y, "destinations:\n  db:\n    %s\n    table: logs\n    columns: { message: message }\n", r.database.settings())
	flush := fmt.Sprintf("flush_lines: %d\n    flush_timeout: %dms", max(min(10, r.lines), r.rng.IntN(r.lines+1)), 1+r.rng.IntN(200))
	if r.flush != "" {
		flush = r.flush
	}
	y.WriteString("    " + flush + "\n")
	if r.buffer != "" {
		fmt.Fprintf(&y, "    buffer: %s\n", r.buffer)
	}
	y.WriteString("routes:\n  main: { from: [plain], to: [db]")
	if r.filters {
		y.WriteString(", filters: [quiet, mask]")
	}
	y.WriteString(" }\n" + r.more)
	if err := os.WriteFile(filepath.Join(r.dir, "weir.yaml"), []byte(y.String()), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// start begins a life.
func (r *crashRig) start() {
	r.t.Helper()
	r.configure()
	path, err := exec.LookPath(crashCommand)
	if err != nil {
		r.t.Fatal(err)
	}
	c := exec.Command(path, "run", "-c", "weir.yaml")
	c.Dir = r.dir
	c.Env = append(os.Environ(), crashSocket+"="+r.acking())
	out, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.child, r.log, r.logged = c, &crashLog{ready: make(chan struct{})}, make(chan struct{})
	go func(l *crashLog, logged chan struct{}) {
		defer close(logged)
		l.read(out)
	}(r.log, r.logged)
}

// awaitReady returns when the child runs.
func (r *crashRig) awaitReady() {
	r.t.Helper()
	select {
	case <-r.log.ready:
	case <-r.logged:
		r.t.Fatalf("weir ended by itself:\n%s", r.log.text())
	case <-time.After(2 * time.Minute):
		r.t.Fatalf("weir does not start:\n%s", r.log.text())
	}
}

// kill ends the life, like a power cut but for what the kernel has.
func (r *crashRig) kill() {
	r.t.Helper()
	r.child.Process.Kill()
	r.gone()
	if !strings.Contains(r.child.ProcessState.String(), "killed") {
		r.t.Errorf("weir ended before it was killed: %v\n%s", r.child.ProcessState, r.log.text())
	}
	r.child = nil
}

// stop ends the life in an orderly way and checks what weir says of it.
func (r *crashRig) stop() map[string]int {
	r.t.Helper()
	r.child.Process.Signal(syscall.SIGTERM)
	r.gone()
	if code := r.child.ProcessState.ExitCode(); code != exitFine {
		r.t.Errorf("exit code %d\n%s", code, r.log.text())
	}
	r.child = nil
	return r.log.ledger(r.t)
}

// gone waits for the end of the child and looks at its log.
func (r *crashRig) gone() {
	r.t.Helper()
	<-r.logged
	r.child.Wait()
	text := r.log.text()
	for _, m := range wentBack.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.ParseUint(m[1], 10, 64)
		r.told += n
	}
	for line := range strings.Lines(text) {
		if wentBack.MatchString(line) {
			continue
		}
		for _, word := range []string{"level=ERROR", "panic:", "BUG", "fatal error", "damaged", "acking:"} {
			if strings.Contains(line, word) {
				r.t.Errorf("weir says: %s", line)
			}
		}
	}
	if r.t.Failed() {
		r.t.Logf("log of the life:\n%s", text)
	}
}

var wentBack = regexp.MustCompile(`has lost what it had committed.* messages=(\d+)`)

// finish lets the senders send what is open, and stops weir when all of it is acknowledged
// and stored.
func (r *crashRig) finish(senders []*crashSender) map[string]int {
	r.t.Helper()
	r.awaitReady()
	r.quiet(senders, true)
	ledger := r.stop()
	for _, s := range senders {
		s.end()
	}
	for end := time.Now().Add(5 * time.Minute); ledger["kept"] > 0; { // a stop leaves to the disk buffer what would take long
		if time.Now().After(end) {
			r.t.Errorf("%d messages are left in the disk buffer of a database that works", ledger["kept"])
			break
		}
		r.flush = "flush_lines: 1000"
		r.start()
		r.awaitReady()
		ledger = r.stop()
	}
	return ledger
}

// A crashLog is what a child has written to standard error.
type crashLog struct {
	ready chan struct{} // closed when it runs
	mu    sync.Mutex
	lines bytes.Buffer
}

func (l *crashLog) read(from io.Reader) {
	for lines := bufio.NewReader(from); ; {
		line, err := lines.ReadString('\n')
		l.mu.Lock()
		l.lines.WriteString(line)
		l.mu.Unlock()
		if strings.Contains(line, `msg="weir runs"`) {
			close(l.ready)
		}
		if err != nil {
			return
		}
	}
}

func (l *crashLog) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.String()
}

// ledger checks what weir prints at its end, and returns the line of the destination.
func (l *crashLog) ledger(t *testing.T) (db map[string]int) {
	t.Helper()
	all := ledgerOf(t, l.text())
	a, d := all["route=main"], all["destination=db"]
	if a == nil || d == nil {
		t.Fatalf("lines of the ledger are missing:\n%s", l.text())
	}
	if d["delivered"] != a["delivered"] {
		t.Errorf("the route has delivered %v, the destination got %v", a, d)
	}
	if a["lost"]+d["lost"] != 0 {
		t.Errorf("weir says that something was lost: %v, route %v", d, a)
	}
	return d
}
