// Command bench runs weir as its users would and measures it: beside another
// router in one run, or against a promise of its own. README.md has the
// commands and what they printed.
//
// It needs Linux. Everything it starts it ends, by process id; everything it
// writes is in one temporary directory.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

var scenarios = []struct {
	name, what string
	run        func(context.Context, *lab) error
}{
	{"postgres", "rows/s beside syslog-ng and rsyslog into PostgreSQL, same table", besidePostgres},
	{"onecore", "the same, router and server on one core", besideOnOneCore},
	{"sqlite", "rows/s beside syslog-ng into SQLite, same table", besideSQLite},
	{"buffer", "rows/s with a disk buffer and without", buffers},
	{"endtoend", "rows/s beside psql \\copy, and beside a C program that inserts into SQLite", endToEnd},
	{"connections", "rows/s into PostgreSQL over two connections and over one", connections},
	{"commits", "explicit_commits false against true, SQLite in journal mode DELETE", commits},
	{"held", "8 fast senders on a destination that takes 1000 rows/s: memory, loss", held},
	{"routes", "50 routes of five teams, each for a fiftieth of the messages, beside one route for all", routes},
	{"trickle", "1000 connections at 1 msg/s: size of the transactions", trickle},
	{"filters", "memory of idle filters; start of weir with 5 of them and a warm cache", filters},
	{"outage", "PostgreSQL stopped and crashed under 2000 msg/s: loss, doubles", outage},
}

// A lab is where one run happens.
type lab struct {
	dir    string // temporary, removed at the end
	weir   string // the binary
	guest  string // the filter in weir's path
	rounds int
	scale  float64 // of the number of messages
	only   string  // contenders whose names contain it

	sqliteTable string // what tableSQL found
}

func main() {
	l := &lab{}
	binary := flag.String("weir", "", "the weir to measure; built from this checkout when empty")
	flag.IntVar(&l.rounds, "rounds", 3, "how often each measurement is repeated; medians are printed")
	flag.Float64Var(&l.scale, "scale", 1, "factor on the number of messages")
	flag.StringVar(&l.only, "only", "", "of a comparison, just those whose name contains this")
	keep := flag.Bool("keep", false, "keep the temporary directory")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: go run ./bench [flags] SCENARIO...")
		for _, s := range scenarios {
			fmt.Fprintf(os.Stderr, "  %-11s %s\n", s.name, s.what)
		}
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, l, *binary, *keep, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, l *lab, binary string, keep bool, names []string) error {
	dir, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return err
	}
	if keep {
		fmt.Fprintln(os.Stderr, "bench: files are in", dir)
	} else {
		defer os.RemoveAll(dir)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // PostgreSQL runs as another user
		return err
	}
	l.dir = dir
	if l.weir, err = filepath.Abs(binary); binary == "" {
		l.weir = filepath.Join(dir, "weir")
		err = build(ctx, l.weir)
	}
	if err != nil {
		return err
	}
	if l.guest, err = filepath.Abs("bench/guests/touch.wasm"); err != nil {
		return err
	}
	if _, err := os.Stat(l.guest); err != nil {
		return fmt.Errorf("run it from the top of the checkout: %w", err)
	}
	fmt.Println(machine())
	for _, name := range names {
		found := false
		for _, s := range scenarios {
			if s.name != name {
				continue
			}
			found = true
			fmt.Printf("\n%s: %s\n", s.name, s.what)
			if err := s.run(ctx, l); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		if !found {
			return fmt.Errorf("no scenario %s", name)
		}
	}
	return nil
}

func build(ctx context.Context, to string) error {
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", to, "./cmd/weir")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("build weir: %w\n%s", err, out)
	}
	return nil
}

// machine says on what the figures were measured, and when.
func machine() string {
	model := "unknown processor"
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	return fmt.Sprintf("%s, %d cores, %s/%s, %s, %s", model, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), time.Now().UTC().Format(time.DateOnly))
}

// scaled applies -scale to a number of messages and keeps whole transactions.
func (l *lab) scaled(n int) int { return max(1000, int(float64(n)*l.scale)/1000*1000) }

// fresh returns a new directory for one measurement.
func (l *lab) fresh(name string) (string, error) {
	dir, err := os.MkdirTemp(l.dir, name+"-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	return dir, err
}

var errNotRun = errors.New("ended before it was ready")
