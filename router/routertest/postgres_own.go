//go:build unix

package routertest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// A PostgresOwn says how a server differs from the shared one.
type PostgresOwn struct {
	Settings map[string]string // of postgresql.conf
	HBA      string            // the whole pg_hba.conf; "": everybody is trusted, on the unix socket and 127.0.0.1
	Files    map[string][]byte // beside the data, by name: certificates, keys; readable for the server alone
	TCP      bool              // listen on 127.0.0.1 as well
}

// OwnPostgres starts a server for one test, which ends with the test.
func OwnPostgres(t testing.TB, own PostgresOwn) *PostgresServer {
	t.Helper()
	bin, err := postgresBin()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "weir-pg")
	if err != nil {
		t.Fatal(err)
	}
	s := &PostgresServer{bin: bin, dir: dir}
	t.Cleanup(func() {
		s.stop(StopImmediate)
		os.RemoveAll(dir)
	})
	if err := s.init(); err != nil {
		t.Fatal(err)
	}
	if own.HBA != "" {
		s.writeFile(t, "pg_hba.conf", []byte(own.HBA))
	}
	for name, data := range own.Files {
		s.writeFile(t, name, data)
	}
	var lines []string
	if own.TCP {
		s.port = freePort(t)
		lines = append(lines, "listen_addresses='127.0.0.1'", fmt.Sprintf("port=%d", s.port))
	}
	for name, value := range own.Settings {
		lines = append(lines, fmt.Sprintf("%s='%s'", name, value))
	}
	if err := errors.Join(s.configure(lines...), s.start()); err != nil {
		t.Fatal(err)
	}
	return s
}

// Port is where a server of OwnPostgres listens on 127.0.0.1.
func (s *PostgresServer) Port() int { return s.port }

// portNumber is that of the unix socket.
func (s *PostgresServer) portNumber() int {
	if s.port == 0 {
		return 5432
	}
	return s.port
}

// writeFile puts a file beside the data.
func (s *PostgresServer) writeFile(t testing.TB, name string, data []byte) {
	t.Helper()
	path := filepath.Join(s.dir, "data", name)
	err := os.WriteFile(path, data, 0o600)
	if err == nil && s.as != nil {
		err = os.Chown(path, int(s.as.Uid), int(s.as.Gid))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// freePort is a port that nobody listens on at the moment.
func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
