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
}

// onOneCore is the trick that makes syslog-ng more than twice as fast into
// PostgreSQL: router and server wait for each other in turn anyway.
var onOneCore = []string{"taskset", "-c", "0"}

func peers(ctx context.Context, l *lab) error {
	sqlite := []contender{
		{"weir, C filter", 2_000_000, func(ctx context.Context, l *lab, n int) (result, error) {
			return l.weirSQLite(ctx, n, true, "    flush_lines: 1000\n    flush_timeout: 200ms\n")
		}},
		{"syslog-ng", 600_000, func(ctx context.Context, l *lab, n int) (result, error) {
			return l.syslogNGSQLite(ctx, n, "")
		}},
		{"syslog-ng, WAL, synchronous=NORMAL", 600_000, func(ctx context.Context, l *lab, n int) (result, error) {
			return l.syslogNGSQLite(ctx, n, `session-statements("PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL")`)
		}},
	}
	fmt.Println("\ninto SQLite")
	if err := l.compare(ctx, sqlite); err != nil {
		return err
	}
	postgres := []contender{
		{"weir, C filter", 2_000_000, func(ctx context.Context, l *lab, n int) (result, error) {
			return l.weirPostgres(ctx, n)
		}},
		{"syslog-ng", 60_000, func(ctx context.Context, l *lab, n int) (result, error) {
			return l.syslogNGPostgres(ctx, n)
		}},
		{"no router: one client, COPY", 1_000_000, func(ctx context.Context, l *lab, n int) (result, error) {
			return l.copyAlone(ctx, n)
		}},
		{"weir, on one core with the server", 1_000_000, func(ctx context.Context, l *lab, n int) (result, error) {
			return l.weirPostgres(ctx, n, onOneCore...)
		}},
		{"syslog-ng, on one core with the server", 120_000, func(ctx context.Context, l *lab, n int) (result, error) {
			return l.syslogNGPostgres(ctx, n, onOneCore...)
		}},
	}
	fmt.Println("\ninto PostgreSQL")
	return l.compare(ctx, postgres)
}

// compare runs the contenders in turn, as often as asked, and prints each run,
// the medians, and how many times faster the first one was than each other.
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
	fmt.Printf("\n  | %-38s | rows/s | CPU s per 1M rows | peak RSS MiB | %s is faster |\n  |---|---:|---:|---:|---:|\n", "median of "+fmt.Sprint(l.rounds), contenders[0].name)
	first := median(results[0], result.rate)
	for i, c := range contenders {
		rate := median(results[i], result.rate)
		fmt.Printf("  | %-38s | %.0f | %.2f | %.1f | %.2f× |\n", c.name, rate,
			median(results[i], func(r result) float64 { return r.cpu / float64(max(1, r.rows)) * 1e6 }),
			median(results[i], func(r result) float64 { return r.peak }), first/rate)
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

func (l *lab) weirSQLite(ctx context.Context, n int, filter bool, more string) (result, error) {
	return l.intoSQLite(ctx, n, func(dir string, db sqliteFile) (*running, error) {
		return l.startWeir(ctx, dir, weirConfig{filter: filter, destination: weirInto("sqlite", string(db), more)})
	})
}

func (l *lab) syslogNGSQLite(ctx context.Context, n int, more string) (result, error) {
	return l.intoSQLite(ctx, n, func(dir string, db sqliteFile) (*running, error) {
		return l.startSyslogNG(ctx, dir, syslogNG{destination: fmt.Sprintf(`type(sqlite3) database("%s") %s`, db, more)})
	})
}

func (l *lab) intoSQLite(ctx context.Context, n int, open func(dir string, db sqliteFile) (*running, error)) (result, error) {
	dir, err := l.fresh("run")
	if err != nil {
		return result{}, err
	}
	data, err := l.fresh("data") // of its own: its time of change tells of commits
	if err != nil {
		return result{}, err
	}
	db := sqliteFile(filepath.Join(data, "logs.db"))
	if err := db.create(); err != nil {
		return result{}, err
	}
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
	held, err := db.rows(stored.end)
	stored.rows, stored.distinct = held.rows, held.distinct
	return stored, err
}

func (l *lab) weirPostgres(ctx context.Context, n int, pin ...string) (result, error) {
	return l.intoPostgres(ctx, n, pin, func(dir string, p *postgres) (*running, error) {
		return l.startWeir(ctx, dir, weirConfig{filter: true, pin: pin,
			destination: weirInto("postgres", p.url("logs"), "    flush_lines: 1000\n    flush_timeout: 200ms\n")})
	})
}

func (l *lab) syslogNGPostgres(ctx context.Context, n int, pin ...string) (result, error) {
	return l.intoPostgres(ctx, n, pin, func(dir string, p *postgres) (*running, error) {
		return l.startSyslogNG(ctx, dir, syslogNG{pin: pin, destination: fmt.Sprintf(
			`type(pgsql) host("127.0.0.1") port("%d") username("postgres") password("") database("logs")`, p.port)})
	})
}

func (l *lab) intoPostgres(ctx context.Context, n int, pin []string, open func(dir string, p *postgres) (*running, error)) (result, error) {
	dir, err := l.fresh("run")
	if err != nil {
		return result{}, err
	}
	server, err := l.postgres(ctx, pin...)
	if server != nil && server.server != nil {
		defer func() { server.stop(syscall.SIGINT) }()
	}
	if err == nil {
		err = server.empty(ctx)
	}
	if err != nil {
		return result{}, err
	}
	r, err := open(dir, server)
	if err != nil {
		return result{}, err
	}
	defer r.stop(syscall.SIGTERM)
	return l.measure(ctx, dir, r, n, func() (result, error) {
		if err := server.settle(ctx, quiet); err != nil {
			return result{}, err
		}
		return server.rows(ctx)
	})
}
