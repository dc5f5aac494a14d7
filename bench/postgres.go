package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"sort"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// A postgres is a private server with the settings it comes with (fsync on) but
// one: it remembers when transactions were committed, so that nobody has to ask
// it while it is measured.
type postgres struct {
	dir, bin string
	port     int
	pin      []string // a command in front, such as taskset -c 0
	table    table    // of the database logs
	server   *process
}

// postgres makes a server in the lab and starts it.
func (l *lab) postgres(ctx context.Context, pin ...string) (*postgres, error) {
	dir, err := l.fresh("postgres")
	if err != nil {
		return nil, err
	}
	p := &postgres{dir: dir, pin: pin}
	if p.bin, err = newestPostgres(); err != nil {
		return nil, err
	}
	if p.port, err = freePort(); err != nil {
		return nil, err
	}
	if os.Getuid() == 0 { // the server refuses to run as root
		u, err := user.Lookup("postgres")
		if err != nil {
			return nil, err
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		if err := os.Chown(dir, uid, gid); err != nil {
			return nil, err
		}
	}
	args := p.command("initdb", "-D", filepath.Join(dir, "data"), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C")
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return p, p.start(ctx)
}

func (p *postgres) command(name string, args ...string) []string {
	c := append([]string{filepath.Join(p.bin, name)}, args...)
	if os.Getuid() == 0 {
		c = append([]string{"setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"}, c...)
	}
	return append(p.pin[:len(p.pin):len(p.pin)], c...)
}

// start starts the server, also again, and returns when it answers.
func (p *postgres) start(ctx context.Context) error {
	c := p.command("postgres", "-D", filepath.Join(p.dir, "data"), "-p", strconv.Itoa(p.port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "track_commit_timestamp=on")
	server, err := start(p.dir, c[0], c[1:]...)
	if err != nil {
		return err
	}
	p.server = server
	for deadline := time.Now().Add(30 * time.Second); ; {
		err := p.exec(ctx, "postgres", "SELECT 1")
		if err == nil {
			return nil
		}
		select {
		case <-server.done:
			return fmt.Errorf("postgres: %w\n%s", errNotRun, server.tail())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("postgres does not answer: %w", err)
		}
	}
}

// stop ends it: SIGINT is the fast shutdown, SIGQUIT the immediate one, which
// leaves it as a crash would.
func (p *postgres) stop(sig syscall.Signal) { p.server.stop(sig) }

func (p *postgres) url(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", p.port, database)
}

func (p *postgres) exec(ctx context.Context, database string, statements ...string) error {
	c, err := pgx.Connect(ctx, p.url(database))
	if err != nil {
		return err
	}
	defer c.Close(context.Background())
	for _, s := range statements {
		if _, err := c.Exec(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// settle waits until the table has not grown for a while. It looks at the size
// of its file only, which costs the server nothing.
func (p *postgres) settle(ctx context.Context, quiet time.Duration) error {
	c, err := pgx.Connect(ctx, p.url("logs"))
	if err != nil {
		return err
	}
	defer c.Close(context.Background())
	size, since := int64(-1), time.Now()
	for time.Since(since) < quiet {
		var now int64
		if err := c.QueryRow(ctx, "SELECT pg_relation_size('"+p.table.name+"')").Scan(&now); err != nil {
			return err
		}
		if now != size {
			size, since = now, time.Now()
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}

// rows returns how many rows there are, how many differ, how many are torn, the
// sizes of the transactions that brought them, and when the last was committed.
func (p *postgres) rows(ctx context.Context) (stored result, err error) {
	c, err := pgx.Connect(ctx, p.url("logs"))
	if err != nil {
		return stored, err
	}
	defer c.Close(context.Background())
	err = c.QueryRow(ctx, `SELECT count(*), count(DISTINCT substring(message FROM 'seq: \d+, conn: \d+')) FROM `+p.table.name).Scan(&stored.rows, &stored.distinct)
	if err != nil || stored.rows == 0 {
		return stored, err
	}
	err = c.QueryRow(ctx, fmt.Sprintf(`WITH m AS (SELECT length(message) + coalesce(length(%s), 0) AS n FROM %s)
		SELECT count(*) FROM m WHERE n < (SELECT max(n) FROM m)`, p.table.pid, p.table.name)).Scan(&stored.torn)
	if err != nil {
		return stored, err
	}
	var end time.Time
	if err = c.QueryRow(ctx, `SELECT max(pg_xact_commit_timestamp(xmin)) FROM `+p.table.name).Scan(&end); err != nil {
		return stored, err
	}
	stored.end = end
	sizes, err := c.Query(ctx, `SELECT count(*)::int FROM `+p.table.name+` GROUP BY xmin::text`)
	if err != nil {
		return stored, err
	}
	stored.transactions, err = pgx.CollectRows(sizes, pgx.RowTo[int])
	sort.Ints(stored.transactions)
	return stored, err
}

func newestPostgres() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 {
		return "", fmt.Errorf("no PostgreSQL under /usr/lib/postgresql: bench/install.sh installs it")
	}
	return filepath.Dir(found[len(found)-1]), nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
