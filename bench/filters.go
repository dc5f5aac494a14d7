package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// filters asks what filters cost while nothing happens, and when weir starts: resident memory for each that is there, and
// the time from the start of the program to the first connection that it accepts, when the compile cache is warm. No two
// of the filters are of the same module.
func filters(ctx context.Context, l *lab) error {
	dir, err := l.fresh("filters")
	if err != nil {
		return err
	}
	c, err := os.ReadFile(l.guest)
	if err != nil {
		return err
	}
	g, err := goGuest(ctx, dir)
	if err != nil {
		return err
	}
	f := &filterBench{lab: l, dir: dir}
	few, manyC, manyGo := f.modules(c, 1), f.modules(c, 9), f.modules(g, 5)
	fmt.Println("\n  | resident MiB, after 4000 messages | filters | in all | for each more |\n  |---|---:|---:|---:|")
	var before float64
	for _, row := range []struct {
		name    string
		modules []string
		more    int // than in the row before
	}{{"C", few, 0}, {"C", manyC, 8}, {"C and Go", append(few, manyGo[0]), 0}, {"C and Go", append(few, manyGo...), 4}} {
		var held []float64
		for range l.rounds {
			_, rss, err := f.run(ctx, row.modules, 4000)
			if err != nil {
				return err
			}
			held = append(held, rss)
		}
		slices.Sort(held)
		rss, each := held[len(held)/2], ""
		if row.more > 0 {
			each = fmt.Sprintf("%.2f", (rss-before)/float64(row.more))
		}
		before = rss
		fmt.Printf("  | %s | %d | %.1f | %s |\n", row.name, len(row.modules), rss, each)
	}
	five := append(manyC[:4:4], manyGo[0])
	var took []float64
	for range 4 * l.rounds {
		t, _, err := f.run(ctx, five, 0)
		if err != nil {
			return err
		}
		took = append(took, float64(t.Microseconds())/1000)
	}
	slices.Sort(took)
	fmt.Printf("\n  start to the first connection, 5 filters, one of them Go, warm cache: %.0f ms, at best %.0f, at worst %.0f (%d starts)\n",
		took[len(took)/2], took[0], took[len(took)-1], len(took))
	return nil
}

// goGuest builds the Go guest, which is too large to be kept.
func goGuest(ctx context.Context, dir string) ([]byte, error) {
	out := filepath.Join(dir, "go.wasm")
	c := exec.CommandContext(ctx, "go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", out, "./bench/guests/work/go")
	c.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if msg, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the Go guest: %w\n%s", err, msg)
	}
	return os.ReadFile(out)
}

// A filterBench starts weir with filters, always with the same state directory and so the same compile cache.
type filterBench struct {
	*lab
	dir  string
	made int
}

// modules writes n modules that do the same and are not the same: a custom section makes the difference.
func (f *filterBench) modules(module []byte, n int) (paths []string) {
	for range n {
		f.made++
		name := fmt.Sprintf("bench%04d", f.made)
		path := filepath.Join(f.dir, name+".wasm")
		section := append([]byte{0, byte(1 + len(name)), byte(len(name))}, name...)
		if err := os.WriteFile(path, append(slices.Clip(module), section...), 0o644); err != nil {
			panic(err) // a temporary directory of our own
		}
		paths = append(paths, path)
	}
	return paths
}

// run starts weir, gives it n messages over four connections, and returns how long it took to accept the first
// connection, and what it holds a second after the last message, in MiB.
func (f *filterBench) run(ctx context.Context, modules []string, n int) (took time.Duration, rss float64, err error) {
	dir, err := f.fresh("run")
	if err != nil {
		return 0, 0, err
	}
	var b strings.Builder
	socket := filepath.Join(dir, "in.sock")
	fmt.Fprintf(&b, "memory: 64MiB\nstate_dir: %s\nsources:\n  in: {listen: [%q]}\nfilters:\n", filepath.Join(f.dir, "state"), "unix://"+socket)
	var names []string
	for i, path := range modules {
		names = append(names, fmt.Sprint("f", i))
		fmt.Fprintf(&b, "  f%d: {module: %q, memory: 16MiB}\n", i, path)
	}
	fmt.Fprintf(&b, "destinations:\n  out: {discard: {}}\nroutes:\n  main: {from: [in], filters: [%s], to: [out]}\n", strings.Join(names, ", "))
	file := filepath.Join(dir, "weir.yaml")
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		return 0, 0, err
	}
	began := time.Now()
	p, err := start(dir, f.weir, "run", "-c", file, "--log-format", "text")
	if err != nil {
		return 0, 0, err
	}
	defer p.stop(syscall.SIGTERM)
	for {
		c, err := net.Dial("unix", socket)
		if err == nil {
			took = time.Since(began)
			c.Close()
			break
		}
		select {
		case <-p.done:
			return 0, 0, fmt.Errorf("weir: %w\n%s", errNotRun, p.tail())
		case <-time.After(time.Millisecond):
		}
		if time.Since(began) > time.Minute {
			return 0, 0, fmt.Errorf("weir does not listen\n%s", p.tail())
		}
	}
	if n > 0 {
		s, err := f.loggen(dir, socket, "--rate", "0", "--number", fmt.Sprint(n), "--connections", "4")
		if err == nil {
			_, err = s.sent(ctx)
		}
		if err != nil {
			return took, 0, err
		}
		time.Sleep(time.Second)
	}
	return took, p.status("VmRSS"), nil
}
