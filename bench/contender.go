package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A running is a router at work.
type running struct {
	*process
	socket string
}

// A weirConfig is what the measurements vary of weir's configuration.
type weirConfig struct {
	memory      string // default 64MiB
	filter      bool   // a C filter in its path that reads two fields and sets one
	destination string // YAML of the destination, each line indented by four spaces
	pin         []string
}

// columns are the ones that every router fills here.
const columns = `    columns:
      datetime: timestamp
      host: hostname
      program: app_name
      pid: proc_id
      message: message
    indexes: []
`

// weirInto is the destination of a weirConfig.
func weirInto(kind, address, more string) string {
	return fmt.Sprintf("    %s: %q\n    table: messages\n%s%s", kind, address, columns, more)
}

func (l *lab) startWeir(ctx context.Context, dir string, cfg weirConfig) (*running, error) {
	var b strings.Builder
	if cfg.memory == "" {
		cfg.memory = "64MiB"
	}
	socket := filepath.Join(dir, "in.sock")
	fmt.Fprintf(&b, "memory: %s\nstate_dir: %s\nadmin: {listen: %q}\n", cfg.memory, filepath.Join(dir, "state"), "unix://"+filepath.Join(dir, "admin.sock"))
	fmt.Fprintf(&b, "sources:\n  in:\n    listen: [%q]\n", "unix://"+socket)
	chain := ""
	if cfg.filter {
		fmt.Fprintf(&b, "filters:\n  touch: {module: %q}\n", l.guest)
		chain = "touch"
	}
	fmt.Fprintf(&b, "destinations:\n  out:\n%s", cfg.destination)
	fmt.Fprintf(&b, "routes:\n  main: {from: [in], filters: [%s], to: [out]}\n", chain)
	file := filepath.Join(dir, "weir.yaml")
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		return nil, err
	}
	command := append(cfg.pin[:len(cfg.pin):len(cfg.pin)], l.weir, "run", "-c", file, "--log-format", "text")
	return started(ctx, dir, socket, command)
}

// A syslogNG is what the measurements vary of syslog-ng's configuration.
type syslogNG struct {
	destination string // options of sql(): which database
	pin         []string
}

// startSyslogNG gives it what lets it shine: flow control (without it messages
// are lost), explicit commits, and a window that exceeds a transaction, without
// which it never fills one.
func (l *lab) startSyslogNG(ctx context.Context, dir string, cfg syslogNG) (*running, error) {
	socket := filepath.Join(dir, "in.sock")
	text := fmt.Sprintf(`@version: 3.38
options { keep-hostname(yes); use-dns(no); stats-freq(0); time-reopen(1); log-msg-size(65536); };
source s_in { unix-stream("%s" max-connections(20) log-iw-size(400000) flags(expect-hostname)); };
destination d_out { sql(
    %s
    table("messages")
    columns("datetime", "host", "program", "pid", "message")
    values("$ISODATE", "$HOST", "$PROGRAM", "$PID", "$MESSAGE")
    indexes() null("") flags(dont-create-tables, explicit-commits)
    batch-lines(1000) batch-timeout(200) log-fifo-size(200000)
); };
log { source(s_in); destination(d_out); flags(flow-control); };
`, socket, cfg.destination)
	file := filepath.Join(dir, "syslog-ng.conf")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return nil, err
	}
	command := append(cfg.pin[:len(cfg.pin):len(cfg.pin)], "syslog-ng", "-F", "--no-caps", "-e", "-f", file,
		"-R", filepath.Join(dir, "persist"), "-c", filepath.Join(dir, "ctl"), "-p", filepath.Join(dir, "pid"))
	return started(ctx, dir, socket, command)
}

func started(ctx context.Context, dir, socket string, command []string) (*running, error) {
	p, err := start(dir, command[0], command[1:]...)
	if err != nil {
		return nil, err
	}
	if err := p.untilListening(ctx, socket); err != nil {
		p.stop(syscall.SIGKILL)
		return nil, err
	}
	return &running{p, socket}, nil
}

// A result is what a destination held at the end and what it cost.
type result struct {
	rows, distinct int
	torn           int       // shorter than the others: a sender that was held ended within a message; PostgreSQL only
	transactions   []int     // sizes, in ascending order; PostgreSQL only
	end            time.Time // of the last commit

	sent    int
	seconds float64 // from the first byte sent to the last commit
	cpu     float64 // seconds of the router
	peak    float64 // MiB
	foreign float64 // cores that others used meanwhile
}

func (r result) rate() float64 { return float64(r.rows) / r.seconds }

func (r result) String() string {
	lost := ""
	if r.distinct != r.sent || r.rows != r.sent {
		lost = fmt.Sprintf("  LOST %d, DOUBLE %d", r.sent-r.distinct, r.rows-r.distinct)
	}
	return fmt.Sprintf("%9d rows %7.2f s %9.0f rows/s %6.2f CPU s/1M %6.1f MiB  foreign %.2f%s",
		r.rows, r.seconds, r.rate(), r.cpu/float64(max(1, r.rows))*1e6, r.peak, r.foreign, lost)
}

// measure sends n messages over one connection, as fast as the router takes
// them, and returns when they have arrived.
func (l *lab) measure(ctx context.Context, dir string, r *running, n int, arrived func() (result, error)) (result, error) {
	others, cpu, begin := foreign(), r.cpu(), time.Now()
	sender, err := l.loggen(dir, r.socket, "--rate", "0", "--number", fmt.Sprint(n))
	if err != nil {
		return result{}, err
	}
	sent, err := sender.sent(ctx)
	if err != nil {
		return result{}, err
	}
	stored, err := arrived()
	stored.sent, stored.foreign = sent, others()
	stored.seconds = stored.end.Sub(begin).Seconds()
	stored.cpu, stored.peak = r.cpu()-cpu, r.peak()
	return stored, err
}
