package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// A gate stands before a server's unix socket, on a TCP port, and can be shut.
type gate struct {
	socket   string
	listener net.Listener
	mu       sync.Mutex
	how      gateHow
	ends     map[net.Conn]bool
	knocks   int // connections that came
}

type gateHow int

const (
	open gateHow = iota
	shut         // connections end at once
	hole         // connections stay, and nothing is ever answered
)

func newGate(t *testing.T, socket string, how gateHow) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{socket: socket, listener: l, how: how, ends: map[net.Conn]bool{}}
	var relays sync.WaitGroup
	relays.Go(func() {
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				relays.Go(func() { g.relay(c) })
			}
		}
	})
	t.Cleanup(func() {
		l.Close()
		g.set(shut)
		relays.Wait()
	})
	return g
}

// set opens or shuts the gate. What went through before is cut.
func (g *gate) set(how gateHow) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.how = how
	for c := range g.ends {
		c.Close()
	}
}

func (g *gate) relay(c net.Conn) {
	defer c.Close()
	g.mu.Lock()
	how := g.how
	g.knocks++
	g.ends[c] = true
	g.mu.Unlock()
	defer g.forget(c)
	switch how {
	case shut:
		return
	case hole:
		io.Copy(io.Discard, c)
		return
	}
	s, err := net.Dial("unix", g.socket)
	if err != nil {
		return
	}
	defer s.Close()
	g.mu.Lock()
	g.ends[s] = true
	g.mu.Unlock()
	defer g.forget(s)
	go func() {
		io.Copy(s, c)
		s.Close()
	}()
	io.Copy(c, s)
}

func (g *gate) forget(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.ends, c)
}

func (g *gate) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.knocks
}

// dsn is the connection string of a database behind the gate.
func (g *gate) dsn(database string) string {
	return fmt.Sprintf("postgres://weir@%s/%s?sslmode=disable&connect_timeout=5", g.listener.Addr(), database)
}

// lockTable holds a table of a PostgreSQL database until release is called.
func lockTable(t *testing.T, dsn, table string) (release func()) {
	t.Helper()
	conn, err := pgconn.Connect(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(context.Background(), "BEGIN; LOCK TABLE "+table).ReadAll(); err != nil {
		t.Fatal(err)
	}
	release = func() { conn.Close(context.Background()) }
	t.Cleanup(release)
	return release
}
