//go:build unix

package routertest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// A PostgresServer is a private PostgreSQL server on a unix socket. It dies
// with the test process.
type PostgresServer struct {
	bin     string // where postgres and initdb are
	dir     string // holds the data and the socket
	port    int    // also of TCP on 127.0.0.1; 0: unix socket only, with the usual number
	as      *syscall.Credential
	mu      sync.Mutex
	process *exec.Cmd
	settled chan struct{} // closed when process was waited for
}

// StopMode is how a server ends.
type StopMode syscall.Signal

const (
	StopFast      = StopMode(syscall.SIGINT)  // sessions are cut, everything is written
	StopImmediate = StopMode(syscall.SIGQUIT) // a crash: the next start recovers
)

var shared struct {
	sync.Once
	server *PostgresServer
	err    error
}

// Postgres returns a running server, which all tests of a package share, with an
// empty database of the test's own and its connection string. A test that stops
// the server starts it again before it ends. A missing PostgreSQL fails the test.
func Postgres(t testing.TB) (server *PostgresServer, dsn string) {
	t.Helper()
	shared.Do(func() { shared.server, shared.err = newPostgres() })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	name := fmt.Sprintf("test%d", databases.next())
	shared.server.Exec(t, shared.server.DSN("postgres"), "CREATE DATABASE "+name)
	return shared.server, shared.server.DSN(name)
}

// ClosePostgres ends the shared server and removes its files. Call it from
// TestMain, after the tests:
//
//	func TestMain(m *testing.M) {
//		code := m.Run()
//		routertest.ClosePostgres()
//		os.Exit(code)
//	}
func ClosePostgres() {
	if s := shared.server; s != nil {
		s.stop(StopImmediate)
		os.RemoveAll(s.dir)
	}
}

var databases counter

type counter struct {
	sync.Mutex
	n int
}

func (c *counter) next() int {
	c.Lock()
	defer c.Unlock()
	c.n++
	return c.n
}

func newPostgres() (*PostgresServer, error) {
	bin, err := postgresBin()
	if err != nil {
		return nil, err
	}
	// A socket's path may have about 100 bytes: no t.TempDir.
	dir, err := os.MkdirTemp("", "weir-pg")
	if err != nil {
		return nil, err
	}
	s := &PostgresServer{bin: bin, dir: dir}
	if err = s.init(); err == nil {
		err = s.start()
	}
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return s, nil
}

// init makes the data directory.
func (s *PostgresServer) init() error {
	if os.Geteuid() == 0 { // the server refuses to run as root
		as, err := unprivileged()
		if err != nil {
			return err
		}
		s.as = as
		if err := os.Chown(s.dir, int(as.Uid), int(as.Gid)); err != nil {
			return err
		}
	}
	init := s.command("initdb", "--pgdata", filepath.Join(s.dir, "data"), "--username=weir", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync")
	if out, err := init.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return s.configure("listen_addresses=''", "fsync=off", "max_connections=30", "shared_buffers=64MB", "max_wal_size=512MB")
}

// configure adds lines to postgresql.conf; the last of a name counts.
func (s *PostgresServer) configure(lines ...string) error {
	f, err := os.OpenFile(filepath.Join(s.dir, "data", "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("\n" + strings.Join(lines, "\n") + "\n")
	return errors.Join(err, f.Close())
}

func (s *PostgresServer) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(s.bin, name), args...)
	c.Dir = s.dir
	c.SysProcAttr = serverAttr(s.as)
	return c
}

func (s *PostgresServer) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		return nil
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	c := s.command("postgres", "-D", filepath.Join(s.dir, "data"), "-k", s.dir)
	c.Stdout, c.Stderr = log, log
	settled, err := launch(c)
	if err != nil {
		return err
	}
	s.process, s.settled = c, settled
	for end := time.Now().Add(30 * time.Second); ; {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		conn, err := pgconn.Connect(ctx, s.DSN("postgres"))
		cancel()
		if err == nil {
			return conn.Close(context.Background())
		}
		select {
		case <-settled:
			s.process = nil
			words, _ := os.ReadFile(log.Name())
			return fmt.Errorf("postgres did not start: %w\n%s", err, words)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(end) {
			return fmt.Errorf("postgres did not start: %w", err)
		}
	}
}

// launch starts a server that is to die with us: with the thread that has started it, says the kernel, so that
// one stays its own. settled is closed when the server has ended and was waited for.
func launch(c *exec.Cmd) (settled chan struct{}, err error) {
	settled = make(chan struct{})
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.Start()
		if started <- err; err == nil {
			c.Wait()
			close(settled)
		}
	}()
	return settled, <-started
}

func (s *PostgresServer) stop(mode StopMode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return
	}
	s.process.Process.Signal(syscall.Signal(mode))
	<-s.settled
	s.process = nil
}

// Start starts a stopped server and returns when it answers.
func (s *PostgresServer) Start(t testing.TB) {
	t.Helper()
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
}

// Stop stops the server and returns when it is gone.
func (s *PostgresServer) Stop(mode StopMode) { s.stop(mode) }

// DSN is the connection string of a database.
func (s *PostgresServer) DSN(database string) string {
	dsn := "postgres://weir@/" + database + "?host=" + url.QueryEscape(s.dir)
	if s.port != 0 {
		dsn += fmt.Sprintf("&port=%d", s.port)
	}
	return dsn
}

// Exec runs SQL over a connection of its own.
func (s *PostgresServer) Exec(t testing.TB, dsn, sql string) {
	t.Helper()
	s.Query(t, dsn, sql)
}

// Query runs SQL over a connection of its own and returns the rows of its last
// statement as text: columns joined by |, NULL for NULL.
func (s *PostgresServer) Query(t testing.TB, dsn, sql string) []string {
	t.Helper()
	ctx := context.Background()
	conn, err := pgconn.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	if len(results) == 0 {
		return nil
	}
	var rows []string
	for _, values := range results[len(results)-1].Rows {
		var row []string
		for _, v := range values {
			if v == nil {
				v = []byte("NULL")
			}
			row = append(row, string(v))
		}
		rows = append(rows, strings.Join(row, "|"))
	}
	return rows
}

// postgresBin finds the newest installed server.
func postgresBin() (string, error) {
	candidates, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	version := func(dir string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
		return n
	}
	slices.SortFunc(candidates, func(a, b string) int { return version(b) - version(a) })
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		candidates = append(candidates, strings.TrimSpace(string(out)))
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		candidates = append(candidates, filepath.Dir(path))
	}
	for _, dir := range candidates {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("no PostgreSQL server on this machine: apt-get install postgresql (the tests start one of their own)")
}

// unprivileged is the user that the server runs as when the tests run as root.
func unprivileged() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, fmt.Errorf("tests run as root, and there is no user postgres or nobody for the PostgreSQL server")
}
