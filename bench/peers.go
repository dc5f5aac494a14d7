package main

import (
	"context"
	"fmt"
)

// onOneCore is what makes syslog-ng and rsyslog more than twice as fast into
// PostgreSQL: router and server wait for each other in turn anyway.
var onOneCore = []string{"taskset", "-c", "0"}

func besidePostgres(ctx context.Context, l *lab) error {
	return l.compare(ctx, intoPostgresAll(nil, 20))
}

func besideOnOneCore(ctx context.Context, l *lab) error {
	return l.compare(ctx, intoPostgresAll(onOneCore, 10))
}

// intoPostgresAll are weir with its defaults and the others as they come, which
// weir is to be so many times faster than, and tuned. They have no filters; the
// one that weir is given besides adds a field to each row.
func intoPostgresAll(pin []string, goal float64) []contender {
	syslogNG := func(tuned bool) func(context.Context, *lab, int) (result, error) {
		return func(ctx context.Context, l *lab, n int) (result, error) {
			return l.intoPostgres(ctx, n, pin, func(dir string, p *postgres) (*running, error) {
				return l.startSyslogNG(ctx, dir, peer{pin: pin, tuned: tuned, database: fmt.Sprintf(
					`type(pgsql) host("127.0.0.1") port("%d") username("postgres") password("") database("logs")`, p.port)})
			})
		}
	}
	rsyslog := func(tuned bool) func(context.Context, *lab, int) (result, error) {
		return func(ctx context.Context, l *lab, n int) (result, error) {
			return l.intoPostgres(ctx, n, pin, func(dir string, p *postgres) (*running, error) {
				return l.startRsyslog(ctx, dir, p.port, peer{pin: pin, tuned: tuned})
			})
		}
	}
	return []contender{
		{name: "weir", messages: 1_000_000, run: weirPostgres(false, "", pin...)},
		{name: "syslog-ng as it comes", messages: 8_000, run: syslogNG(false), atLeast: goal},
		{name: "rsyslog as it comes", messages: 40_000, run: rsyslog(false), atLeast: goal},
		{name: "syslog-ng, 1000 rows a transaction", messages: 60_000, run: syslogNG(true)},
		{name: "rsyslog, 1000 rows a transaction", messages: 60_000, run: rsyslog(true)},
		{name: "weir, C filter", messages: 1_000_000, run: weirPostgres(true, "", pin...)},
	}
}

func besideSQLite(ctx context.Context, l *lab) error {
	syslogNG := func(tuned bool, more string) func(context.Context, *lab, int) (result, error) {
		return func(ctx context.Context, l *lab, n int) (result, error) {
			return l.intoSQLite(ctx, n, defaultTable, func(dir string, db sqliteFile) (*running, error) {
				sql, err := l.tableSQL(ctx)
				if err != nil {
					return nil, err
				}
				if err := db.create(sql); err != nil {
					return nil, err
				}
				return l.startSyslogNG(ctx, dir, peer{tuned: tuned, database: fmt.Sprintf(`type(sqlite3) database("%s") %s`, db, more)})
			})
		}
	}
	return l.compare(ctx, []contender{
		{name: "weir", messages: 1_500_000, run: weirSQLite(false, "")},
		{name: "syslog-ng as it comes", messages: 5_000, run: syslogNG(false, ""), atLeast: 3},
		{name: "syslog-ng, 1000 rows a transaction", messages: 400_000, run: syslogNG(true, ""), atLeast: 3},
		{name: "the same, WAL, synchronous=NORMAL", messages: 400_000, run: syslogNG(true,
			`session-statements("PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL")`)},
		{name: "weir, C filter", messages: 1_500_000, run: weirSQLite(true, "")},
	})
}

// buffers asks what a disk buffer costs that is synced for each batch.
func buffers(ctx context.Context, l *lab) error {
	const disk = "    buffer: {disk: 1GiB, sync: batch}\n"
	fmt.Println("\n  into PostgreSQL")
	err := l.compare(ctx, []contender{
		{name: "disk buffer", messages: 1_500_000, run: weirPostgres(true, disk)},
		{name: "none", messages: 1_500_000, run: weirPostgres(true, ""), atLeast: 0.8},
	})
	if err != nil {
		return err
	}
	fmt.Println("\n  into SQLite")
	return l.compare(ctx, []contender{
		{name: "disk buffer", messages: 1_500_000, run: weirSQLite(true, disk)},
		{name: "none", messages: 1_500_000, run: weirSQLite(true, ""), atLeast: 0.8},
	})
}

// connections asks what a second connection gains when two hosts send, whose
// messages go over one each.
func connections(ctx context.Context, l *lab) error {
	run := func(n int) func(context.Context, *lab, int) (result, error) {
		return func(ctx context.Context, l *lab, messages int) (result, error) {
			return l.intoPostgres(ctx, messages, nil, func(dir string, p *postgres) (*running, error) {
				r, err := l.startWeir(ctx, dir, weirConfig{filter: true,
					destination: weirByDefault("postgres", p.url("logs"), fmt.Sprintf("    connections: %d\n", n))})
				if err == nil {
					r.hosts = []string{"gateway0", "gateway1"}
				}
				return r, err
			})
		}
	}
	return l.compare(ctx, []contender{
		{name: "connections: 2", messages: 2_000_000, run: run(2)},
		{name: "connections: 1", messages: 2_000_000, run: run(1)},
	})
}
