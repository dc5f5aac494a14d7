package socket

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/weirlog/weir/router"
)

// errEvicted ends the connection whose unfinished frame is the oldest.
var errEvicted = errors.New("its unfinished message was the oldest, and the memory for such is used up")

var past = time.Unix(1, 0) // a deadline that wakes who waits

// A deadlines sets the read deadline of a connection that a stop may wake at
// any moment.
type deadlines struct {
	mu   sync.Mutex
	conn interface{ SetReadDeadline(time.Time) error }
	mine bool // the reader has seen the stop and sets its own deadlines
}

func (d *deadlines) wake() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.mine {
		d.conn.SetReadDeadline(past)
	}
}

// own sets a deadline that no stop overrides any more.
func (d *deadlines) own(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mine = true
	d.conn.SetReadDeadline(t)
}

// A stream is one connection.
type stream struct {
	*Source
	in     router.Inlet
	conn   net.Conn
	sender sender
	framer Framer
	tail   *router.Tail
	wait   *waiter
	limit  deadlines
	began  bool // a frame was unfinished at the end of the last read
}

// serve reads the connection until it ends, ctx ends, or the router takes it no more.
func (c *stream) serve(ctx context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer c.conn.Close()
	c.limit.conn = c.conn
	stop := context.AfterFunc(ctx, c.limit.wake)
	defer stop()
	c.tail = c.in.Tails().Open(func() { cancel(errEvicted) })
	defer c.tail.Close()
	c.framer.Grow = c.tail.Resize

	var end ending
	for end == goesOn {
		end = c.next(ctx)
	}
	if ctx.Err() != nil && context.Cause(ctx) != errEvicted {
		// What the kernel holds already is ours; the sender cannot know better.
		last, done := context.WithDeadline(context.WithoutCancel(ctx), c.lastCall())
		defer done()
		c.limit.own(c.lastCall())
		for end != byPeer && end != byUs && last.Err() == nil && c.wait.now() {
			end = c.read(last)
		}
		if end == byPeer {
			c.finish(last)
			return
		}
	} else if end == byPeer {
		c.finish(ctx)
		return
	}
	evicted := c.tail.Evicted()
	if _, lost := c.framer.End(false); lost || evicted {
		c.in.Missed("partial", 1)
	}
	switch {
	case evicted:
		c.odd.tell(func(n int) {
			c.log.Warn("connections closed: theirs were the oldest unfinished messages, and the memory for such is used up", "source", c.name, "closed", n)
		})
	case c.framer.Bad():
		c.in.Missed("framing", 1)
		c.odd.tell(func(n int) {
			c.log.Warn("connections closed: what came was no counted frame (framing: octet)", "source", c.name, "closed", n, "peer", c.sender.origin.Peer)
		})
	}
}

// An ending says why a connection is not read on.
type ending uint8

const (
	goesOn  ending = iota
	byPeer         // no more will come
	byUs           // it idles, or sends what cannot be cut
	stopped        // the context has ended
)

// next waits for data and reads once.
func (c *stream) next(ctx context.Context) ending {
	if c.cfg.IdleTimeout > 0 {
		c.conn.SetReadDeadline(time.Now().Add(c.cfg.IdleTimeout))
		if ctx.Err() != nil { // our deadline may have replaced the stop's
			return stopped
		}
	}
	if err := c.wait.wait(); err != nil {
		switch {
		case ctx.Err() != nil:
			return stopped
		case isTimeout(err):
			return byUs
		}
		return byPeer
	}
	if c.cfg.IdleTimeout > 0 { // it is not idle while it waits for us
		c.conn.SetReadDeadline(time.Time{})
	}
	return c.read(ctx)
}

// read reads once, cuts, and delivers all whole frames.
func (c *stream) read(ctx context.Context) ending {
	limits := c.in.Limits()
	k, err := c.kits.borrow(ctx, max(limits.Bytes, leastRead))
	if err != nil {
		return stopped
	}
	held := true
	defer func() {
		if held {
			c.kits.giveBack(k)
		}
	}()
	size := min(len(k.buf), max(limits.Bytes-c.framer.Unfinished(), leastRead))
	b, err := c.in.Take(ctx, size+c.framer.Unfinished(), limits.Messages)
	if err != nil {
		return stopped
	}
	n, err := c.conn.Read(k.buf[:size])
	if err != nil {
		c.in.Deliver(b)
		if isTimeout(err) {
			return stopped
		}
		return byPeer
	}
	received := time.Now().UnixNano()
	for from := 0; ; {
		next, truncated := k.cut(&c.framer, from, n, limits.Messages)
		if truncated > 0 {
			c.in.Truncated(truncated)
		}
		k.fill(b, &c.sender, received)
		if from = next; from == n {
			break
		}
		c.in.Deliver(b)
		if b, err = c.more(ctx, n-from, limits.Messages); err != nil {
			return stopped
		}
	}
	held = false
	c.kits.giveBack(k)
	c.in.Deliver(b)
	if unfinished := c.framer.Unfinished() > 0; unfinished || c.began || cap(c.framer.tail) > 0 {
		c.tail.Unfinished(unfinished)
		c.began = unfinished
	}
	if c.framer.Bad() {
		return byUs
	}
	return goesOn
}

// more takes memory for the rest of what was read. It is in our hands: a stop
// gives it the last call's time, as what the kernel holds.
func (c *stream) more(ctx context.Context, bytes, messages int) (*router.Batch, error) {
	b, err := c.in.Take(ctx, bytes, messages)
	if err == nil || context.Cause(ctx) == errEvicted {
		return b, err
	}
	last, done := context.WithDeadline(context.WithoutCancel(ctx), c.lastCall())
	defer done()
	return c.in.Take(last, bytes, messages)
}

// finish delivers what the peer left unfinished when it closed.
func (c *stream) finish(ctx context.Context) {
	frame, lost := c.framer.End(true)
	if lost {
		c.in.Missed("partial", 1)
	}
	if frame == nil {
		return
	}
	limits := c.in.Limits()
	k, err := c.kits.borrow(ctx, max(limits.Bytes, leastRead))
	if err == nil {
		defer c.kits.giveBack(k)
		var b *router.Batch
		if b, err = c.more(ctx, len(frame), 1); err == nil {
			k.spans, k.head = k.spans[:0], k.head[:0]
			k.addHead(frame)
			k.fill(b, &c.sender, time.Now().UnixNano())
			c.in.Deliver(b)
		}
	}
	if err != nil {
		c.in.Missed("partial", 1)
	}
}

// leastRead is worth a read, even where a batch is small.
const leastRead = 4 << 10

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// accept serves connections until ctx ends, and then until all of them have.
func (l *streamListener) accept(ctx context.Context, s *Source, in router.Inlet) error {
	var serving sync.WaitGroup
	defer serving.Wait()
	limit := deadlines{conn: acceptDeadline{l.listener}}
	stop := context.AfterFunc(ctx, limit.wake)
	defer stop()
	stopping := false
	for {
		c, err := l.listener.Accept()
		switch {
		case err == nil:
			s.admit(ctx, l, c, in, &serving)
		case ctx.Err() != nil && !stopping:
			// Connections that the kernel accepted for us have been promised, too.
			stopping = true
			limit.own(time.Now().Add(20 * time.Millisecond))
		case ctx.Err() != nil:
			l.close()
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		default: // out of descriptors, most likely: it passes when connections end
			s.odd.tell(func(n int) {
				s.log.Warn("cannot accept connections", "source", s.name, "listener", l.label, "error", err, "times", n)
			})
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
	}
}

// admit serves a connection, or refuses it when there are too many.
func (s *Source) admit(ctx context.Context, l *streamListener, conn net.Conn, in router.Inlet, serving *sync.WaitGroup) {
	if n := s.open.Add(1); n > int64(s.cfg.MaxConnections) {
		s.open.Add(-1)
		in.Missed("connections", 1)
		s.refused.tell(func(n int) {
			s.log.Warn("connections refused: max_connections are open", "source", s.name, "max_connections", s.cfg.MaxConnections, "refused", n)
		})
		conn.Close()
		return
	}
	w, err := newWaiter(conn.(syscall.Conn))
	if err != nil {
		s.open.Add(-1)
		conn.Close()
		return
	}
	c := &stream{Source: s, in: in, conn: conn, wait: w, sender: s.sender(l.label, conn.RemoteAddr()),
		framer: Framer{Framing: s.cfg.framing(), Max: int(s.cfg.MaxMessage), Hard: max(hardCount, int(s.cfg.MaxMessage))}}
	serving.Go(func() {
		defer s.open.Add(-1)
		c.serve(ctx)
	})
}

// hardCount is the largest count of a frame, if max_message is not larger.
const hardCount = 1 << 20
