package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A contender is a router, its destination and how many messages it gets: those
// that are slower get fewer, so that each runs for some seconds.
type contender struct {
	name     string
	messages int
	run      func(ctx context.Context, l *lab, n int) (result, error)
	atLeast  float64 // what the first contender's rate is to be of this one's; 0: nothing is promised
}

// compare runs the contenders in turn, as often as asked, and prints each run,
// the medians, and the first one's rate as a multiple of each other's.
func (l *lab) compare(ctx context.Context, contenders []contender) error {
	contenders = slices.DeleteFunc(contenders, func(c contender) bool { return !strings.Contains(c.name, l.only) })
	if len(contenders) == 0 {
		return nil
	}
	results := make([][]result, len(contenders))
	for range l.rounds {
		for i, c := range contenders {
			r, err := c.run(ctx, l, l.scaled(c.messages))
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			fmt.Printf("  %-38s %v\n", c.name, r)
			results[i] = append(results[i], r)
		}
	}
	fmt.Printf("\n  | %-38s | rows/s | CPU s per 1M rows | peak RSS MiB | %s beside it | promised |\n  |---|---:|---:|---:|---:|---:|\n", "median of "+fmt.Sprint(l.rounds), contenders[0].name)
	first := median(results[0], result.rate)
	for i, c := range contenders {
		rate := median(results[i], result.rate)
		beside, promised := "", ""
		if i > 0 {
			beside = fmt.Sprintf("%.2f ×", first/rate)
		}
		if i > 0 && c.atLeast > 0 {
			promised = fmt.Sprintf("%g ×: kept", c.atLeast)
			if first/rate < c.atLeast {
				promised = fmt.Sprintf("%g ×: BROKEN", c.atLeast)
			}
		}
		fmt.Printf("  | %-38s | %.0f | %.2f | %.1f | %s | %s |\n", c.name, rate,
			median(results[i], func(r result) float64 { return r.cpu / float64(max(1, r.rows)) * 1e6 }),
			median(results[i], func(r result) float64 { return r.peak }), beside, promised)
	}
	return nil
}

func median(results []result, of func(result) float64) float64 {
	v := make([]float64, len(results))
	for i, r := range results {
		v[i] = of(r)
	}
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// quiet is how long a destination must not change until it is believed to have
// everything. It does not count as time used.
const quiet = 1500 * time.Millisecond

// weirPostgres is weir with its default table and more settings of its destination.
func weirPostgres(filter bool, more string, pin ...string) func(context.Context, *lab, int) (result, error) {
	return func(ctx context.Context, l *lab, n int) (result, error) {
		return l.intoPostgres(ctx, n, pin, func(dir string, p *postgres) (*running, error) {
			return l.startWeir(ctx, dir, weirConfig{filter: filter, pin: pin, destination: weirByDefault("postgres", p.url("logs"), more)})
		})
	}
}

// weirSQLite is the same into SQLite.
func weirSQLite(filter bool, more string) func(context.Context, *lab, int) (result, error) {
	return func(ctx context.Context, l *lab, n int) (result, error) {
		return l.intoSQLite(ctx, n, defaultTable, func(dir string, db sqliteFile) (*running, error) {
			return l.startWeir(ctx, dir, weirConfig{filter: filter, destination: weirByDefault("sqlite", string(db), more)})
		})
	}
}

// intoSQLite measures what open starts. open makes the file, or its router does.
func (l *lab) intoSQLite(ctx context.Context, n int, t table, open func(dir string, db sqliteFile) (*running, error)) (result, error) {
	dir, err := l.fresh("run")
	if err != nil {
		return result{}, err
	}
	data, err := l.fresh("data") // of its own: its time of change tells of commits
	if err != nil {
		return result{}, err
	}
	db := sqliteFile(filepath.Join(data, "logs.db"))
	r, err := open(dir, db)
	if err != nil {
		return result{}, err
	}
	stored, err := l.measure(ctx, dir, r, n, func() (result, error) {
		end, err := db.settle(ctx, quiet)
		return result{end: end}, err
	})
	r.stop(syscall.SIGTERM)
	if err != nil {
		return stored, err
	}
	stored.rows, stored.distinct, err = db.rows(t)
	return stored, err
}

// intoPostgres measures what open starts, on a server that is pinned as it is
// and has weir's default table.
func (l *lab) intoPostgres(ctx context.Context, n int, pin []string, open func(dir string, p *postgres) (*running, error)) (result, error) {
	var stored result
	err := l.withPostgres(ctx, defaultTable, pin, func(dir string, server *postgres) error {
		r, err := open(dir, server)
		if err != nil {
			return err
		}
		defer r.stop(syscall.SIGTERM)
		stored, err = l.measure(ctx, dir, r, n, func() (result, error) {
			if err := server.settle(ctx, quiet); err != nil {
				return result{}, err
			}
			return server.rows(ctx)
		})
		return err
	})
	return stored, err
}

// withPostgres runs f with a server that has an empty table.
func (l *lab) withPostgres(ctx context.Context, t table, pin []string, f func(dir string, server *postgres) error) error {
	dir, err := l.fresh("run")
	if err != nil {
		return err
	}
	server, err := l.postgres(ctx, pin...)
	if server != nil && server.server != nil {
		defer func() { server.stop(syscall.SIGINT) }()
	}
	if err == nil {
		err = l.empty(ctx, server, t)
	}
	if err != nil {
		return err
	}
	return f(dir, server)
}
