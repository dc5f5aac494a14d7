// Package socket brings messages in from sockets: streams and datagrams, unix,
// TCP and UDP.
//
// A connection that has nothing to say costs its own structs. When there is
// something to read, the reader borrows a buffer, takes memory from the router
// for the most that the read may bring, reads, cuts, decodes, keeps what it
// needs in right-sized pieces, and delivers, all in one goroutine.
package socket

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weirlog/weir/router"
)

// A Source listens on sockets. It is a router.Source.
type Source struct {
	name    string
	cfg     Config
	log     *slog.Logger
	streams []*streamListener
	packets []*packetListener
	addrs   []string
	kits    *kits
	self    []byte       // this host's name, for senders on unix sockets
	open    atomic.Int64 // connections
	refused rare         // log of connections over the limit
	odd     rare         // log of connections that we close
	stopped atomic.Int64 // Unix ns when Run was stopped; 0: not yet
	closing sync.Once
	failed  error // of Close
}

// lastWord is how long a stop reads what the kernel holds already.
const lastWord = time.Second

type streamListener struct {
	label    string // as configured
	listener net.Listener
	file     socketFile
}

type packetListener struct {
	label string
	conn  packetConn
	udp   *net.UDPConn // conn, if it is one
	file  socketFile
}

type packetConn interface {
	net.Conn
	syscall.Conn
}

// Listen opens all sockets of cfg, which Check found good, or none. Senders can
// connect and send from now on; they are read when Run is called. log gets what
// happens to connections, never their content.
func Listen(name string, cfg Config, log *slog.Logger) (*Source, error) {
	s := &Source{name: name, cfg: cfg, log: log}
	s.kits = newKits(&s.cfg)
	if host, err := os.Hostname(); err == nil {
		s.self = []byte(host)
	}
	var all []address
	for _, text := range cfg.Listen {
		a, _, err := parseAddress(text)
		if err != nil {
			return nil, fmt.Errorf("listen: %w", err)
		}
		all = append(all, a)
	}
	for _, a := range all {
		at, err := s.listen(a, all)
		if err != nil {
			s.Close()
			return nil, &ListenError{len(s.addrs), a.text, err}
		}
		s.addrs = append(s.addrs, a.network+"://"+at.String())
	}
	return s, nil
}

// A ListenError says which of the listeners of a source could not be opened.
type ListenError struct {
	Index   int    // in Config.Listen
	Address string // as there
	Err     error
}

func (e *ListenError) Error() string { return fmt.Sprintf("listen on %s: %v", e.Address, e.Err) }
func (e *ListenError) Unwrap() error { return e.Err }

func (s *Source) listen(a address, all []address) (net.Addr, error) {
	ctx := context.Background()
	switch a.network {
	case "tcp":
		lc := net.ListenConfig{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: 15 * time.Second, Count: 4}}
		l, err := lc.Listen(ctx, a.net(all), a.at.String())
		if err != nil {
			return nil, bindError(err)
		}
		s.streams = append(s.streams, &streamListener{label: a.text, listener: l})
		return l.Addr(), nil
	case "udp":
		c, err := net.ListenUDP(a.net(all), net.UDPAddrFromAddrPort(a.at))
		if err != nil {
			return nil, bindError(err)
		}
		s.packets = append(s.packets, &packetListener{label: a.text, conn: c, udp: c})
		return c.LocalAddr(), s.tuneUDP(c, a.text)
	}

	if a.path[0] != '@' {
		if err := removeStale(a.network, a.path); err != nil {
			return nil, err
		}
	}
	mode, err := strconv.ParseUint(s.cfg.Mode, 8, 32)
	if err != nil {
		return nil, fmt.Errorf("mode: %w", err)
	}
	lc := net.ListenConfig{Control: restrict(uint32(mode))}
	if a.network == "unix" {
		l, err := lc.Listen(ctx, "unix", a.path)
		if err != nil {
			return nil, bindError(err)
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false) // by ourselves: it may not be ours any more
		sl := &streamListener{label: a.text, listener: l}
		s.streams = append(s.streams, sl)
		sl.file, err = s.cfg.owned(a.path)
		return l.Addr(), err
	}
	c, err := lc.ListenPacket(ctx, "unixgram", a.path)
	if err != nil {
		return nil, bindError(err)
	}
	pl := &packetListener{label: a.text, conn: c.(*net.UnixConn)}
	s.packets = append(s.packets, pl)
	pl.file, err = s.cfg.owned(a.path)
	return c.LocalAddr(), err
}

// bindError leaves the operation and the address away: the caller tells them.
func bindError(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		return call.Err
	}
	return err
}

func (s *Source) tuneUDP(c *net.UDPConn, label string) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	if err := countDrops(raw); err != nil {
		s.log.Warn("the kernel does not count drops", "source", s.name, "listener", label, "error", err)
	}
	want := int(s.cfg.ReceiveBuffer)
	if want == 0 {
		return nil
	}
	got, err := setReceiveBuffer(raw, want)
	if err != nil {
		return fmt.Errorf("receive_buffer: %w", err)
	}
	if got < want {
		s.log.Warn("the kernel grants a smaller receive_buffer: raise net.core.rmem_max",
			"source", s.name, "listener", label, "wanted", want, "granted", got)
	}
	return nil
}

// Addrs are the addresses that are listened on, in the order of the
// configuration, with the port that was given where 0 was asked for.
func (s *Source) Addrs() []string { return slices.Clone(s.addrs) }

// Run reads until ctx ends, then for up to a second what the kernel still holds.
// It closes the sockets. It is called once.
func (s *Source) Run(ctx context.Context, in router.Inlet) error {
	note := context.AfterFunc(ctx, func() { s.stopped.CompareAndSwap(0, time.Now().UnixNano()) })
	defer note()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	failed := make(chan error, len(s.streams)+len(s.packets))
	run := func(f func() error) {
		running.Go(func() {
			if err := f(); err != nil {
				failed <- err
				cancel()
			}
		})
	}
	for _, l := range s.streams {
		run(func() error { return l.accept(ctx, s, in) })
	}
	for _, p := range s.packets {
		run(func() error { return p.receive(ctx, s, in) })
	}
	running.Wait()
	if err := s.Close(); err != nil {
		s.log.Warn("cannot close all sockets", "source", s.name, "error", err)
	}
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// lastCall is when a stop ends reading.
func (s *Source) lastCall() time.Time {
	s.stopped.CompareAndSwap(0, time.Now().UnixNano())
	return time.Unix(0, s.stopped.Load()).Add(lastWord)
}

// Close closes the sockets and removes their files. Connections are closed by
// Run. A second call does nothing.
func (s *Source) Close() error {
	s.closing.Do(func() {
		var errs []error
		for _, l := range s.streams {
			errs = append(errs, l.close())
		}
		for _, p := range s.packets {
			p.file.remove()
			errs = append(errs, ignoreClosed(p.conn.Close()))
		}
		s.failed = errors.Join(errs...)
	})
	return s.failed
}

func (l *streamListener) close() error {
	l.file.remove()
	return ignoreClosed(l.listener.Close())
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// sender says where a connection's messages come from.
func (s *Source) sender(label string, peer net.Addr) sender {
	if tcp, ok := peer.(*net.TCPAddr); ok {
		return s.senderAt(label, tcp.AddrPort().Addr())
	}
	return sender{origin: &router.Origin{Source: s.name, Listener: label}, host: s.self}
}

func (s *Source) senderAt(label string, addr netip.Addr) sender {
	addr = addr.Unmap()
	text := addr.String()
	return sender{origin: &router.Origin{Source: s.name, Listener: label, Peer: text, Addr: addr}, host: []byte(text)}
}

type acceptDeadline struct{ l net.Listener }

func (a acceptDeadline) SetReadDeadline(t time.Time) error {
	return a.l.(interface{ SetDeadline(time.Time) error }).SetDeadline(t)
}

// rare lets a log line through at most once a minute, with how often it was due.
type rare struct {
	mu   sync.Mutex
	last time.Time
	n    int
}

func (r *rare) tell(log func(n int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	if now := time.Now(); r.last.IsZero() || now.Sub(r.last) >= time.Minute {
		log(r.n)
		r.last, r.n = now, 0
	}
}
