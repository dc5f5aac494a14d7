package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unicode/utf16"

	"golang.org/x/sys/unix"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/weirlog/weir/filters/stock"
	"github.com/weirlog/weir/router/routertest"
)

// surroundings are what a broken case finds on its machine.
type surroundings struct {
	t       *testing.T
	says    []string  // pairs: what is said on this machine, and what stands for it
	without []uintptr // capabilities that the command does not get
	network bool      // that the command gets one of its own, without anything in it
}

// execute runs weir in this process, or as one that lacks rights.
func (s *surroundings) execute(args []string, out, errout io.Writer) (code int) {
	if s.without == nil && !s.network {
		return execute(args, strings.NewReader(""), out, errout)
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlock: the thread, which has lost rights for good, ends with this goroutine
		for _, right := range s.without {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, right, 0, 0, 0); err != nil {
				done <- err
				return
			}
		}
		c := exec.Command("weir", args...)
		c.Stdout, c.Stderr = out, errout
		if s.network {
			c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
			if os.Getuid() != 0 {
				c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
			}
		}
		err := c.Run()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			code, err = exit.ExitCode(), nil
		}
		done <- err
	}()
	if err := <-done; s.network && errors.Is(err, syscall.EPERM) {
		s.t.Skipf("everybody may listen on port 514 here, and no other network can be made: %v", err)
	} else if err != nil {
		s.t.Fatal(err)
	}
	return code
}

// change rewrites a file of the case.
func (s *surroundings) change(name string, to func([]byte) []byte) {
	s.t.Helper()
	text, err := os.ReadFile(name)
	if err == nil {
		err = os.WriteFile(name, to(text), 0o644)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// port puts a number, which has as many digits as $PORT has letters, for $PORT.
func (s *surroundings) port(addr net.Addr) {
	s.t.Helper()
	_, port, _ := net.SplitHostPort(addr.String())
	if len(port) != len("$PORT") {
		s.t.Fatalf("port %s has not five digits", port)
	}
	s.change("weir.yaml", func(text []byte) []byte { return []byte(strings.ReplaceAll(string(text), "$PORT", port)) })
	s.says = append(s.says, port, "$PORT")
}

// brokenSetups are the words of a case's setup.
var brokenSetups = map[string]func(s *surroundings, args string){
	// Files.
	"mkdir": func(s *surroundings, path string) {
		if err := os.MkdirAll(path, 0o755); err != nil {
			s.t.Fatal(err)
		}
	},
	"chmod": func(s *surroundings, args string) {
		mode, path, _ := strings.Cut(args, " ")
		n, err := strconv.ParseUint(mode, 8, 32)
		if err == nil {
			err = os.Chmod(path, os.FileMode(n))
		}
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { os.Chmod(path, 0o755) })
	},
	"crlf": func(s *surroundings, name string) {
		s.change(name, func(text []byte) []byte { return []byte(strings.ReplaceAll(string(text), "\n", "\r\n")) })
	},
	"bom": func(s *surroundings, name string) {
		s.change(name, func(text []byte) []byte { return append([]byte("\ufeff"), text...) })
	},
	"utf16": func(s *surroundings, name string) {
		s.change(name, func(text []byte) (out []byte) {
			for _, u := range utf16.Encode([]rune("\ufeff" + string(text))) {
				out = append(out, byte(u), byte(u>>8))
			}
			return out
		})
	},
	"latin1": func(s *surroundings, name string) {
		s.change(name, func(text []byte) (out []byte) {
			for _, r := range string(text) {
				out = append(out, byte(r))
			}
			return out
		})
	},
	"char": func(s *surroundings, args string) { // a letter of weir.yaml, and the code point that it stands for
		letter, code, _ := strings.Cut(args, " ")
		n, err := strconv.ParseInt(code, 16, 32)
		if err != nil {
			s.t.Fatal(err)
		}
		s.change("weir.yaml", func(text []byte) []byte { return []byte(strings.ReplaceAll(string(text), letter, string(rune(n)))) })
	},
	"base64": func(s *surroundings, name string) {
		s.change(name, func(text []byte) []byte {
			out, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(text)), ""))
			if err != nil {
				s.t.Fatal(err)
			}
			return out
		})
	},
	"repeat": func(s *surroundings, args string) { // a text of so many copies of a letter, for XXX
		n, _ := strconv.Atoi(args)
		s.change("weir.yaml", func(text []byte) []byte {
			return []byte(strings.ReplaceAll(string(text), "XXX", strings.Repeat("x", n)))
		})
	},
	"env": func(s *surroundings, args string) {
		name, value, _ := strings.Cut(args, " ")
		s.t.Setenv(name, value)
	},
	// File systems.
	"readonly": func(s *surroundings, dir string) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			s.t.Fatal(err)
		}
		abs, _ := filepath.Abs(dir)
		if err := syscall.Mount("tmpfs", abs, "tmpfs", syscall.MS_RDONLY, ""); err != nil {
			s.t.Skipf("no file system can be mounted here: %v", err)
		}
		s.t.Cleanup(func() { syscall.Unmount(abs, syscall.MNT_DETACH) })
	},
	"full": func(s *surroundings, dir string) {
		abs, _ := filepath.Abs(dir)
		smallDisk(s.t, abs, 1)
		takeUp(s.t, abs)
	},
	"weir": func(s *surroundings, stateDir string) { // another one
		err := os.MkdirAll(stateDir, 0o755)
		if err == nil {
			var other *os.File
			other, err = takeSole(stateDir)
			s.t.Cleanup(func() { other.Close() })
		}
		if err != nil {
			s.t.Fatal(err)
		}
	},
	// Sockets.
	"listen": func(s *surroundings, args string) {
		network, at, _ := strings.Cut(args, " ")
		if network == "udp" || network == "unixgram" {
			c, err := net.ListenPacket(network, at)
			if err != nil {
				s.t.Fatal(err)
			}
			s.t.Cleanup(func() { c.Close() })
			if network == "udp" {
				s.port(c.LocalAddr())
			}
			return
		}
		l, err := net.Listen(network, at)
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { l.Close() })
		if network == "tcp" {
			s.port(l.Addr())
		}
	},
	"free": func(s *surroundings, network string) { // a port that nobody has
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			s.t.Fatal(err)
		}
		s.port(l.Addr())
		l.Close()
	},
	// without takes rights away that root has: the command runs as a process of its own, which lacks them.
	"without": func(s *surroundings, rights string) {
		if os.Getuid() != 0 {
			return // who is not root has none of them
		}
		for _, r := range strings.Fields(rights) {
			s.without = append(s.without, map[string][]uintptr{"dac": {unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH}, "bind": {unix.CAP_NET_BIND_SERVICE}}[r]...)
		}
	},
	"privileged": func(s *surroundings, _ string) { // only root may listen on port 514, as it is in every new network
		first, err := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start")
		n, _ := strconv.Atoi(strings.TrimSpace(string(first)))
		s.network = err != nil || n <= 514
	},
	"small": func(s *surroundings, dir string) {
		abs, _ := filepath.Abs(dir)
		smallDisk(s.t, abs, 1)
	},
	"huge": func(s *surroundings, path string) {
		if err := os.WriteFile(path, bytes.Repeat([]byte("# a line\n"), 1<<20), 0o644); err != nil {
			s.t.Fatal(err)
		}
	},
	"stock": func(s *surroundings, args string) { // a module that ships inside weir, as a file
		name, path, _ := strings.Cut(args, " ")
		module, ok := stock.Module(name)
		if !ok {
			s.t.Fatalf("no stock filter %s", name)
		}
		if err := os.WriteFile(path, module, 0o644); err != nil {
			s.t.Fatal(err)
		}
	},
	"database": func(s *surroundings, path string) { // a SQLite database
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			s.t.Fatal(err)
		}
		conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite|sqlite.OpenCreate)
		if err == nil {
			err = sqlitex.ExecuteTransient(conn, "CREATE TABLE other (x)", nil)
			conn.Close()
		}
		if err != nil {
			s.t.Fatal(err)
		}
	},
	// A database: $WEIR_PG leads to it, and what follows is run in it.
	"postgres": func(s *surroundings, sql string) {
		server, dsn := routertest.Postgres(s.t)
		if sql != "" {
			server.Exec(s.t, dsn, sql)
		}
		s.t.Setenv("WEIR_PG", dsn)
		s.says = append(s.says, dsn, "$PG")
		if u, err := url.Parse(dsn); err == nil {
			s.says = append(s.says, u.Query().Get("host"), "$HOST", strings.TrimPrefix(u.Path, "/"), "logs")
		}
	},
}
