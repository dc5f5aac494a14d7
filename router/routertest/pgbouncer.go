//go:build unix

package routertest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// A PgBouncer is a private pgbouncer before a PostgresServer, on a unix socket,
// that pools transactions. It dies with the test process.
type PgBouncer struct {
	program, dir string
	server       *PostgresServer
	process      *exec.Cmd
	settled      chan struct{} // closed when process was waited for
}

// NewPgBouncer starts one, which ends with the test. Sessions are the connections that
// it opens to a database at most. A missing pgbouncer fails the test.
func NewPgBouncer(t testing.TB, server *PostgresServer, sessions int) *PgBouncer {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if program = "/usr/sbin/pgbouncer"; !isFile(program) {
			t.Fatal("no pgbouncer on this machine: apt-get install pgbouncer (the tests start one of their own)")
		}
	}
	dir, err := os.MkdirTemp("", "weir-pb")
	if err != nil {
		t.Fatal(err)
	}
	b := &PgBouncer{program: program, dir: dir, server: server}
	t.Cleanup(func() {
		b.Stop()
		os.RemoveAll(dir)
	})
	b.write(t, "users", `"weir" ""`)
	b.write(t, "ini", fmt.Sprintf(`[databases]
* = host=%s port=%d
[pgbouncer]
unix_socket_dir = %s
listen_port = 6432
auth_type = trust
auth_file = %s/users
pool_mode = transaction
default_pool_size = %d
server_login_retry = 1
server_check_delay = 0
max_client_conn = 50
`, server.dir, server.portNumber(), dir, dir, sessions))
	if server.as != nil {
		if err := os.Chown(dir, int(server.as.Uid), int(server.as.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	b.Start(t)
	return b
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func (b *PgBouncer) write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// DSN is the connection string of a database behind it.
func (b *PgBouncer) DSN(database string) string {
	return "postgres://weir@/" + database + "?port=6432&host=" + url.QueryEscape(b.dir)
}

// Socket is the path of its unix socket.
func (b *PgBouncer) Socket() string { return filepath.Join(b.dir, ".s.PGSQL.6432") }

// Start starts a stopped one and returns when it answers.
func (b *PgBouncer) Start(t testing.TB) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(b.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	c := exec.Command(b.program, filepath.Join(b.dir, "ini"))
	c.Dir = b.dir
	c.SysProcAttr = serverAttr(b.server.as)
	c.Stdout, c.Stderr = log, log
	settled, err := launch(c)
	if err != nil {
		t.Fatal(err)
	}
	b.process, b.settled = c, settled
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		conn, err := pgconn.Connect(ctx, b.DSN("postgres"))
		if err == nil {
			_, err = conn.Exec(ctx, "SELECT 1").ReadAll()
			conn.Close(ctx)
		}
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			words, _ := os.ReadFile(log.Name())
			t.Fatalf("pgbouncer does not answer: %v\n%s", err, words)
		}
	}
}

// Stop kills it: its clients and its sessions on the server are cut off.
func (b *PgBouncer) Stop() {
	if b.process == nil {
		return
	}
	b.process.Process.Signal(syscall.SIGKILL)
	<-b.settled
	b.process = nil
}
