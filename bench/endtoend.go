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

// endToEnd asks: from a unix socket, through a metered C filter, into a table:
// is that as fast as what does nothing but put the same rows there?
func endToEnd(ctx context.Context, l *lab) error {
	fmt.Println("\n  into PostgreSQL")
	err := l.compare(ctx, []contender{
		{name: "weir, C filter", messages: 1_500_000, run: weirPostgres(true, "")},
		{name: `psql \copy of the same rows`, messages: 1_500_000, run: psqlCopy, atLeast: 1},
	})
	if err != nil {
		return err
	}
	fmt.Println("\n  into SQLite")
	return l.compare(ctx, []contender{
		{name: "weir, C filter", messages: 1_500_000, run: weirSQLite(true, "")},
		{name: "C program that inserts the same rows", messages: 1_000_000, run: cInsert, atLeast: 0.8},
	})
}

// rowsOnce lets weir bring n messages into a table once, and keeps what keep
// makes of the table, for the contender that is given rows instead of messages.
func (l *lab) rowsOnce(kind string, n int, keep func(to string) error) (string, error) {
	file := filepath.Join(l.dir, fmt.Sprintf("rows-%s-%d", kind, n))
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	if err := keep(file + ".part"); err != nil {
		return "", fmt.Errorf("rows to insert: %w", err)
	}
	return file, os.Rename(file+".part", file)
}

// psqlCopy is psql that copies the rows out of a file, which is in the system's
// cache, into weir's table.
func psqlCopy(ctx context.Context, l *lab, n int) (result, error) {
	var stored result
	err := l.withPostgres(ctx, defaultTable, nil, func(_ string, server *postgres) error {
		psql := func(command string) (*exec.Cmd, error) {
			c := exec.CommandContext(ctx, filepath.Join(server.bin, "psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", command, server.url("logs"))
			if out, err := c.CombinedOutput(); err != nil {
				return nil, fmt.Errorf("psql: %w\n%s", err, out)
			}
			return c, nil
		}
		file, err := l.rowsOnce("postgres", n, func(to string) error {
			if _, err := l.weirIntoServer(ctx, server, n); err != nil {
				return err
			}
			_, err := psql(`\copy logs to '` + to + `'`)
			return err
		})
		if err != nil {
			return err
		}
		if err := server.exec(ctx, "logs", "TRUNCATE logs", "CHECKPOINT"); err != nil {
			return err
		}
		others, begin := foreign(), time.Now()
		c, err := psql(`\copy logs from '` + file + `'`)
		if err != nil {
			return err
		}
		took, disturbed := time.Since(begin).Seconds(), others()
		if stored, err = server.rows(ctx); err != nil {
			return err
		}
		stored.spent(c)
		stored.sent, stored.seconds, stored.foreign = n, took, disturbed
		return nil
	})
	return stored, err
}

func (l *lab) weirIntoServer(ctx context.Context, server *postgres, n int) (result, error) {
	dir, err := l.fresh("rows")
	if err != nil {
		return result{}, err
	}
	r, err := l.startWeir(ctx, dir, weirConfig{filter: true, destination: weirByDefault("postgres", server.url("logs"), "")})
	if err != nil {
		return result{}, err
	}
	defer r.stop(syscall.SIGTERM)
	return l.measure(ctx, dir, r, n, func() (result, error) { return result{}, server.settle(ctx, quiet) })
}

// cInsert is insert/insert.c, compiled by the system's compiler with the system's SQLite.
func cInsert(ctx context.Context, l *lab, n int) (result, error) {
	program := filepath.Join(l.dir, "insert")
	if _, err := os.Stat(program); err != nil {
		if out, err := exec.CommandContext(ctx, "gcc", "-O2", "-o", program, "bench/insert/insert.c", "-lsqlite3").CombinedOutput(); err != nil {
			return result{}, fmt.Errorf("gcc (bench/install.sh installs it and SQLite): %w\n%s", err, out)
		}
	}
	source, err := l.rowsOnce("sqlite", n, func(to string) error {
		var made sqliteFile
		_, err := l.intoSQLite(ctx, n, defaultTable, func(dir string, db sqliteFile) (*running, error) {
			made = db
			return l.startWeir(ctx, dir, weirConfig{filter: true, destination: weirByDefault("sqlite", string(db), "")})
		})
		if err != nil {
			return err
		}
		return os.Rename(string(made), to) // the last reader has emptied its write-ahead log
	})
	if err != nil {
		return result{}, err
	}
	dir, err := l.fresh("data")
	if err != nil {
		return result{}, err
	}
	db := sqliteFile(filepath.Join(dir, "logs.db"))
	others, c := foreign(), exec.CommandContext(ctx, program, source, string(db))
	out, err := c.CombinedOutput()
	if err != nil {
		return result{}, fmt.Errorf("insert: %w\n%s", err, out)
	}
	disturbed := others()
	var stored result
	if stored.rows, stored.distinct, err = db.rows(defaultTable); err != nil {
		return stored, err
	}
	stored.spent(c)
	stored.sent, stored.foreign = n, disturbed
	// It says how many rows, too; what counts is what the file holds.
	_, err = fmt.Sscanf(strings.TrimSpace(string(out)), "%d rows %f s", new(int), &stored.seconds)
	return stored, err
}

// spent notes what a program that has ended used.
func (r *result) spent(c *exec.Cmd) {
	r.cpu = (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
	if u, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
		r.peak = float64(u.Maxrss) / 1024
	}
}
