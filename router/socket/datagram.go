package socket

import (
	"context"
	"net/netip"
	"time"

	"github.com/weirlog/weir/router"
)

// gather is how long datagrams wait for others to share their batch.
const gather = 20 * time.Millisecond

// packets reads one datagram socket.
type packets struct {
	*Source
	*packetListener
	in      router.Inlet
	wait    *waiter
	limit   deadlines
	kit     *kit
	oob     []byte
	drops   uint32 // as the kernel counted last
	local   sender // unixgram
	senders map[netip.Addr]*sender
	last    *sender        // of senders, the one before
	held    *time.Duration // how long a sender is held before datagrams are dropped; nil: for ever
}

const (
	mostSenders = 4096 // remembered; then from the start again
	lineEndRoom = 4    // bytes beyond max_message that may turn out to be a line end
)

func (p *packetListener) receive(ctx context.Context, s *Source, in router.Inlet) error {
	w, err := newWaiter(p.conn)
	if err != nil {
		return err
	}
	r := &packets{Source: s, packetListener: p, in: in, wait: w, oob: make([]byte, dropSpace), senders: map[netip.Addr]*sender{}}
	r.limit.conn = p.conn
	if p.udp == nil {
		r.local = s.sender(p.label, nil)
	}
	if h := s.cfg.WhenHeld; h == nil && p.udp == nil {
		after := time.Second
		r.held = &after
	} else if h != nil && h.Then == "drop" {
		r.held = &h.After
	}
	stop := context.AfterFunc(ctx, r.limit.wake)
	defer stop()
	return r.run(ctx)
}

func (r *packets) run(ctx context.Context) error {
	limits := r.in.Limits()
	for ctx.Err() == nil {
		if err := r.wait.wait(); err != nil {
			if ctx.Err() == nil && !isTimeout(err) {
				return err
			}
			continue
		}
		if r.kit == nil {
			var err error
			if r.kit, err = r.kits.make(limits.Bytes + int(r.cfg.MaxMessage) + lineEndRoom); err != nil {
				return err
			}
		}
		b, err := r.take(ctx, limits)
		if err != nil {
			break
		}
		r.collect(b, limits, time.Now().Add(gather))
		r.setDeadline(ctx, time.Time{})
		r.in.Deliver(b)
	}
	last, done := context.WithDeadline(context.WithoutCancel(ctx), r.lastCall())
	defer done()
	r.limit.own(r.lastCall())
	for last.Err() == nil && r.wait.now() {
		if r.kit == nil {
			r.kit, _ = r.kits.make(limits.Bytes + int(r.cfg.MaxMessage) + lineEndRoom)
		}
		b, err := r.in.Take(last, limits.Bytes, limits.Messages)
		if err != nil {
			break
		}
		r.collect(b, limits, time.Time{})
		r.in.Deliver(b)
	}
	// At once, and not when the router has drained: what a sender may still put
	// into the socket would die with it.
	return ignoreClosed(r.conn.Close())
}

// collect reads datagrams into the batch until it is full, or until the deadline;
// with none, until there are no more right now.
func (r *packets) collect(b *router.Batch, limits router.Limits, until time.Time) {
	k, at := r.kit, 0
	k.spans = k.spans[:0]
	truncated := 0
	limit := int(r.cfg.MaxMessage)
	if !until.IsZero() {
		r.conn.SetReadDeadline(until)
	}
	for len(k.spans) < limits.Messages && at < limits.Bytes {
		if until.IsZero() && len(k.spans) > 0 && !r.wait.now() {
			break
		}
		n, s, err := r.read(k.buf[at : at+limit+lineEndRoom])
		if err != nil {
			break
		}
		if len(trimLineEnds(k.buf[at:at+n])) > limit {
			truncated++
		}
		n = min(n, limit)
		k.spans = append(k.spans, span{from: at, to: at + n, sender: s, received: time.Now().UnixNano()})
		at += n
	}
	k.fill(b, nil, 0)
	if truncated > 0 {
		r.in.Truncated(truncated)
	}
}

// setDeadline sets the deadline, unless a stop has set its own.
func (r *packets) setDeadline(ctx context.Context, t time.Time) {
	r.conn.SetReadDeadline(t)
	if ctx.Err() != nil {
		r.limit.wake()
	}
}

// read reads one datagram and says who sent it.
func (r *packets) read(buf []byte) (int, *sender, error) {
	if r.udp == nil {
		n, err := r.conn.Read(buf)
		return n, &r.local, err
	}
	n, oobn, _, from, err := r.udp.ReadMsgUDPAddrPort(buf, r.oob)
	if err != nil {
		return 0, nil, err
	}
	if drops, ok := dropsIn(r.oob[:oobn]); ok && drops != r.drops {
		r.in.Missed("kernel", int(drops-r.drops))
		r.drops = drops
	}
	addr := from.Addr().Unmap()
	if r.last == nil || r.last.origin.Addr != addr {
		s := r.senders[addr]
		if s == nil {
			if len(r.senders) >= mostSenders {
				clear(r.senders)
			}
			made := r.senderAt(r.label, addr)
			s = &made
			r.senders[addr] = s
		}
		r.last = s
	}
	return n, r.last, nil
}

// take takes memory for a batch. When that takes longer than senders may be
// held, datagrams are thrown away until there is room.
func (r *packets) take(ctx context.Context, limits router.Limits) (*router.Batch, error) {
	if r.held == nil {
		return r.in.Take(ctx, limits.Bytes, limits.Messages)
	}
	patience, cancel := context.WithTimeout(ctx, *r.held)
	b, err := r.in.Take(patience, limits.Bytes, limits.Messages)
	cancel()
	if err == nil || ctx.Err() != nil {
		return b, err
	}
	r.log.Warn("the router takes no more: datagrams are dropped", "source", r.name, "listener", r.label)
	began, dropped := time.Now(), 0
	got := make(chan struct{})
	go func() {
		b, err = r.in.Take(ctx, limits.Bytes, limits.Messages)
		close(got)
		r.limit.wake()
	}()
	for {
		select {
		case <-got:
			r.log.Info("the router takes messages again", "source", r.name, "listener", r.label, "dropped", dropped, "after", time.Since(began))
			r.setDeadline(ctx, time.Time{})
			return b, err
		default:
		}
		if _, _, err := r.read(r.kit.buf[:1]); err == nil {
			r.in.Missed("held", 1)
			dropped++
		} else if !isTimeout(err) {
			<-got
		}
	}
}

func trimLineEnds(s []byte) []byte {
	n := len(s)
	for n > 0 && isLineEnd(s[n-1]) {
		n--
	}
	return s[:n]
}
