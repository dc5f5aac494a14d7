package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A running is a router at work.
type running struct {
	*process
	socket string
	hosts  []string // that send to it, over a connection each; none: weir loggen
}

// A weirConfig is what the measurements vary of weir's configuration.
type weirConfig struct {
	memory      string // default 64MiB
	filter      bool   // a C filter in its path that reads two fields and sets one
	destination string // YAML of the destination, each line indented by four spaces
	pin         []string
}

// columns are those of the narrow table.
const columns = `    columns:
      datetime: timestamp
      host: hostname
      program: app_name
      pid: proc_id
      message: message
    indexes: []
`

// weirInto is the destination of a weirConfig that writes into the narrow table.
func weirInto(kind, address, more string) string {
	return fmt.Sprintf("    %s: %q\n    table: messages\n%s%s", kind, address, columns, more)
}

// weirByDefault is one with weir's defaults: its table logs, with 12 columns and an index on received_at.
func weirByDefault(kind, address, more string) string {
	return fmt.Sprintf("    %s: %q\n%s", kind, address, more)
}

// weirFile writes a configuration into dir and returns its path and that of the socket.
func (l *lab) weirFile(dir string, cfg weirConfig) (file, socket string, err error) {
	var b strings.Builder
	if cfg.memory == "" {
		cfg.memory = "64MiB"
	}
	socket = filepath.Join(dir, "in.sock")
	fmt.Fprintf(&b, "memory: %s\nstate_dir: %s\nadmin: {listen: %q}\n", cfg.memory, filepath.Join(dir, "state"), "unix://"+filepath.Join(dir, "admin.sock"))
	fmt.Fprintf(&b, "sources:\n  in:\n    listen: [%q]\n", "unix://"+socket)
	chain := ""
	if cfg.filter {
		fmt.Fprintf(&b, "filters:\n  touch: {module: %q}\n", l.guest)
		chain = "touch"
	}
	fmt.Fprintf(&b, "destinations:\n  out:\n%s", cfg.destination)
	fmt.Fprintf(&b, "routes:\n  main: {from: [in], filters: [%s], to: [out]}\n", chain)
	file = filepath.Join(dir, "weir.yaml")
	return file, socket, os.WriteFile(file, []byte(b.String()), 0o644)
}

func (l *lab) startWeir(ctx context.Context, dir string, cfg weirConfig) (*running, error) {
	file, socket, err := l.weirFile(dir, cfg)
	if err != nil {
		return nil, err
	}
	command := append(cfg.pin[:len(cfg.pin):len(cfg.pin)], l.weir, "run", "-c", file, "--log-format", "text")
	return started(ctx, dir, socket, command)
}

// makeTable lets weir make its table in a database, so that every contender
// writes into the very same.
func (l *lab) makeTable(ctx context.Context, kind, address string) error {
	dir, err := l.fresh("make")
	if err != nil {
		return err
	}
	file, _, err := l.weirFile(dir, weirConfig{destination: weirByDefault(kind, address, "")})
	if err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, l.weir, "check", "--connect", "-c", file).CombinedOutput(); err != nil {
		return fmt.Errorf("make the table: %w\n%s", err, out)
	}
	return nil
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
	return &running{process: p, socket: socket}, nil
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

// measure sends n messages as fast as the router takes them, and returns when they have arrived.
func (l *lab) measure(ctx context.Context, dir string, r *running, n int, arrived func() (result, error)) (result, error) {
	others, cpu, begin := foreign(), r.cpu(), time.Now()
	sent, err := l.send(ctx, dir, r, n)
	if err != nil {
		return result{}, err
	}
	stored, err := arrived()
	stored.sent, stored.foreign = sent, others()
	stored.seconds = stored.end.Sub(begin).Seconds()
	stored.cpu, stored.peak = r.cpu()-cpu, r.peak()
	return stored, err
}
