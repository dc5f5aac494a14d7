//go:build unix

package routertest

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// A PGProxy stands between clients and a PostgreSQL server, on a unix socket of
// its own, and can cut a connection at any message of the protocol. It knows
// how messages are framed (PostgreSQL manual, "Message Formats") and nothing
// of what is in them. It is safe for concurrent use.
type PGProxy struct {
	dir      string
	server   string // path of the server's socket
	listener net.Listener
	relays   sync.WaitGroup

	mu    sync.Mutex
	armed *PGCut
	seen  int
	fired *PGMessage
	left  []net.Conn            // of servers whose client was cut off
	open  map[net.Conn]struct{} // both ends of what is relayed
}

// A PGCut says where a connection is cut, and how.
type PGCut struct {
	At    int  // number of the message, of all connections and both directions, from 1 at Arm
	After bool // the message still goes through
	How   CutHow
}

// CutHow is what becomes of the two ends of a connection.
type CutHow uint8

const (
	CutBoth   CutHow = iota // both are closed
	CutClient               // the server's session goes on with what it was doing, and is not told
	CutStall                // both stay open, and nothing goes through any more
)

func (h CutHow) String() string { return [...]string{"both", "client", "stall"}[h] }

// A PGMessage is one message that went by.
type PGMessage struct {
	FromServer bool
	Type       byte // 0: the packet with which a connection starts
}

func (m PGMessage) String() string {
	from := "client"
	if m.FromServer {
		from = "server"
	}
	return fmt.Sprintf("%c of the %s", max(m.Type, '0'), from)
}

// NewPGProxy starts a proxy before server, which ends with the test.
func NewPGProxy(t testing.TB, server *PostgresServer) *PGProxy {
	t.Helper()
	return NewPGProxyTo(t, server.socket())
}

// NewPGProxyTo starts a proxy before what listens on a unix socket.
func NewPGProxyTo(t testing.TB, socket string) *PGProxy {
	t.Helper()
	dir, err := os.MkdirTemp("", "weir-px")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	p := &PGProxy{dir: dir, server: socket, listener: l, open: map[net.Conn]struct{}{}}
	p.relays.Go(p.accept)
	t.Cleanup(func() {
		l.Close()
		p.Release()
		p.mu.Lock()
		for c := range p.open {
			c.Close()
		}
		p.mu.Unlock()
		p.relays.Wait()
		os.RemoveAll(dir)
	})
	return p
}

// socket is the path of the server's unix socket.
func (s *PostgresServer) socket() string {
	return filepath.Join(s.dir, fmt.Sprintf(".s.PGSQL.%d", s.portNumber()))
}

// DSN is the connection string of a database behind the proxy.
func (p *PGProxy) DSN(database string) string {
	return "postgres://weir@/" + database + "?host=" + url.QueryEscape(p.dir)
}

// Arm makes the next cut and counts messages anew. Only one cut is armed at a time.
func (p *PGProxy) Arm(cut PGCut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed, p.seen, p.fired = &cut, 0, nil
}

// Fired returns the message at which the armed cut was made, nil when it was not.
func (p *PGProxy) Fired() *PGMessage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fired
}

// Release closes the servers' ends of connections whose client was cut off.
func (p *PGProxy) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.left {
		c.Close()
	}
	p.left = nil
}

func (p *PGProxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", p.server)
		if err != nil { // as when the server is down
			client.Close()
			continue
		}
		p.mu.Lock()
		p.open[client], p.open[server] = struct{}{}, struct{}{}
		p.mu.Unlock()
		r := &relay{proxy: p, client: client, server: server}
		p.relays.Go(func() { r.run(client, server, false) })
		p.relays.Go(func() { r.run(server, client, true) })
	}
}

// look counts a message and says what is to become of its connection.
func (p *PGProxy) look(m PGMessage) *PGCut {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.armed == nil {
		return nil
	}
	if p.seen++; p.seen != p.armed.At {
		return nil
	}
	cut := p.armed
	p.armed, p.fired = nil, &m
	return cut
}

// A relay is one connection.
type relay struct {
	proxy          *PGProxy
	client, server net.Conn

	mu  sync.Mutex
	cut *PGCut
}

// run hands messages of one direction on until an end is closed.
func (r *relay) run(from, to net.Conn, fromServer bool) {
	defer r.close(from, to, fromServer)
	var frame []byte
	for first := !fromServer; ; first = false {
		m, next, err := readMessage(from, frame, first)
		if err != nil {
			return
		}
		frame, m.FromServer = next, fromServer
		r.mu.Lock() // one message at a time: after a cut none goes through in either direction
		cut := r.cut
		if cut == nil {
			if cut = r.proxy.look(m); cut == nil || cut.After {
				_, err = to.Write(frame)
			}
			if r.cut = cut; cut != nil {
				r.separate(cut.How)
			}
		}
		r.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// separate does what a cut says to the ends.
func (r *relay) separate(how CutHow) {
	switch how {
	case CutBoth:
		r.client.Close()
		r.server.Close()
	case CutClient:
		r.proxy.mu.Lock()
		r.proxy.left = append(r.proxy.left, r.server)
		r.proxy.mu.Unlock()
		r.client.Close()
	}
}

// close ends the other end too, unless the cut leaves it. What the server still
// sends to a client that was cut off is read and thrown away by its direction's run.
func (r *relay) close(from, to net.Conn, fromServer bool) {
	r.mu.Lock()
	leave := r.cut != nil && r.cut.How == CutClient && !fromServer
	r.mu.Unlock()
	from.Close()
	if !leave {
		to.Close()
	}
	r.proxy.mu.Lock()
	defer r.proxy.mu.Unlock()
	delete(r.proxy.open, from)
	if !leave {
		delete(r.proxy.open, to)
	}
}

// readMessage reads the next message into frame: a type and a length that
// counts itself, or a length alone at the start of a connection.
func readMessage(from io.Reader, frame []byte, first bool) (PGMessage, []byte, error) {
	head := 5
	if first {
		head = 4
	}
	frame = append(frame[:0], make([]byte, head)...)
	if _, err := io.ReadFull(from, frame); err != nil {
		return PGMessage{}, frame, err
	}
	n := int(binary.BigEndian.Uint32(frame[head-4:])) - 4
	if n < 0 || n > 1<<26 {
		return PGMessage{}, frame, fmt.Errorf("a message of %d bytes", n)
	}
	frame = append(frame, make([]byte, n)...)
	if _, err := io.ReadFull(from, frame[head:]); err != nil {
		return PGMessage{}, frame, err
	}
	var m PGMessage
	if !first {
		m.Type = frame[0]
	}
	return m, frame, nil
}
