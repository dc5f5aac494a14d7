package admin

import (
	"net"
	"sync"
	"time"
)

// What those who ask may take: few connections, each with an answer that it must read in time. Answers wait in
// memory while nobody reads them, and files that are open here are lacking where messages come in.
const (
	mostConnections = 64
	answerTime      = 20 * time.Second
	reloadTime      = 2 * time.Minute // it compiles
)

// limited is a listener of which so many connections at most are open; others wait in the system's queue.
type limited struct {
	net.Listener
	slots chan struct{}
	ended chan struct{} // closed by Close
	once  sync.Once
}

func limit(l net.Listener, most int) *limited {
	return &limited{Listener: l, slots: make(chan struct{}, most), ended: make(chan struct{})}
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.ended:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &slotted{Conn: c, leave: sync.OnceFunc(func() { <-l.slots })}, nil
}

func (l *limited) Close() error {
	l.once.Do(func() { close(l.ended) })
	return l.Listener.Close()
}

// slotted is a connection that makes room for another one when it is closed.
type slotted struct {
	net.Conn
	leave func()
}

func (c *slotted) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
