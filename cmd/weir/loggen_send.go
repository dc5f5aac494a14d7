package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// A pace says when the messages of one connection are due: message k at
// start + phase + k/rate. The zero rate is no limit.
//
// A receiver that holds the sender back for a while is not paid out with a
// burst: what is more than 100 ms late is put off.
type pace struct {
	rate  float64 // messages a second
	start time.Time
	phase time.Duration // so that many connections do not all send at once
	sent  int64         // or put off
}

const (
	paceTick = 2 * time.Millisecond // faster senders gather this much into one write
	paceDebt = 100 * time.Millisecond
)

// due returns how many messages are due at now.
func (p *pace) due(now time.Time) int64 {
	since := now.Sub(p.start) - p.phase
	if since < 0 {
		return 0
	}
	all := int64(since.Seconds()*p.rate) + 1
	if debt := int64(paceDebt.Seconds() * p.rate); all-p.sent > debt+1 {
		late := all - p.sent - debt - 1
		p.start = p.start.Add(time.Duration(float64(late) / p.rate * float64(time.Second)))
		all -= late
	}
	return all - p.sent
}

// wait returns how long to sleep until the next write.
func (p *pace) wait(now time.Time) time.Duration {
	next := p.start.Add(p.phase + time.Duration(float64(p.sent)/p.rate*float64(time.Second)) + 1)
	return max(next.Sub(now), paceTick)
}

// A sender sends the messages of one connection.
type sender struct {
	conn   net.Conn
	stream bool // not datagrams
	feed   feed
	pace   pace
	end    time.Time     // zero: when the feed or the quota ends
	quota  int64         // messages
	count  *atomic.Int64 // messages sent, of all connections
	bytes  *atomic.Int64 // their bytes, framing included
}

// run returns when everything is sent, at the end of the interval, when ctx
// ends, or with the reason why the receiver takes no more. Messages are sent
// whole; one that cannot be finished is not counted.
func (s *sender) run(ctx context.Context) error {
	if err := s.conn.SetWriteDeadline(s.end); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { s.conn.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	for s.quota > 0 && ctx.Err() == nil {
		now, last := time.Now(), false
		if !s.end.IsZero() && !now.Before(s.end) {
			now, last = s.end.Add(-1), true
		}
		n := min(s.quota, blockSize)
		if s.pace.rate > 0 {
			n = min(n, s.pace.due(now))
		} else if last {
			return nil
		}
		if n > 0 {
			more, err := s.send(int(n), last)
			if err != nil || !more {
				return err
			}
			continue
		}
		if last {
			return nil
		}
		pause(ctx, min(s.pace.wait(now), untilEnd(now, s.end)))
	}
	return nil
}

// send writes at most n messages in as few writes as it can. more is false when
// there is nothing left to send, or no time.
func (s *sender) send(n int, last bool) (more bool, err error) {
	block, ends := s.feed.fill(n)
	if len(ends) == 0 {
		return false, nil
	}
	if last { // what is due before the end but did not get its turn
		s.conn.SetWriteDeadline(time.Now().Add(time.Second))
	}
	whole, size := 0, 0
	if s.stream {
		size, err = s.conn.Write(block)
		for whole < len(ends) && ends[whole] <= size {
			whole++
		}
		if errors.Is(err, os.ErrDeadlineExceeded) && size > endOf(ends, whole) && s.finish(block[size:ends[whole]]) {
			whole++
		}
	} else {
		for start := 0; whole < len(ends); whole++ {
			if _, err = s.conn.Write(block[start:ends[whole]]); err != nil {
				break
			}
			start = ends[whole]
		}
	}
	s.bytes.Add(int64(endOf(ends, whole)))
	s.count.Add(int64(whole))
	s.quota -= int64(whole)
	s.pace.sent += int64(whole)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return false, nil
	}
	return err == nil, err
}

// finish writes the rest of a message that the end of time has cut, so that no
// receiver sees half a message. It gives up after a second.
func (s *sender) finish(rest []byte) bool {
	s.conn.SetWriteDeadline(time.Now().Add(time.Second))
	_, err := s.conn.Write(rest)
	return err == nil
}

// endOf returns where the first n messages end.
func endOf(ends []int, n int) int {
	if n == 0 {
		return 0
	}
	return ends[n-1]
}

func untilEnd(now, end time.Time) time.Duration {
	if end.IsZero() {
		return time.Hour
	}
	return end.Sub(now)
}

// pause sleeps for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// dial connects to a receiver. A unix socket whose backlog is full answers
// EAGAIN at once; that is a busy receiver, not an absent one.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if !errors.Is(err, syscall.EAGAIN) || ctx.Err() != nil {
			return conn, err
		}
		pause(ctx, 5*time.Millisecond)
	}
}

// receiverError says in words what the system's answer means.
func receiverError(network, address string, err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err // the addresses are told already
	}
	what := ""
	switch {
	case errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET):
		what = "the receiver closed the connection: "
	case errors.Is(err, syscall.ECONNREFUSED):
		what = "nobody listens there: "
	case errors.Is(err, syscall.EMSGSIZE):
		what = "larger than a datagram may be (see --size): "
	}
	return fmt.Errorf("send to %s %s: %s%w", network, address, what, err)
}
