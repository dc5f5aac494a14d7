package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"time"
)

// send sends n messages to r as fast as it takes them and returns how many were sent.
func (l *lab) send(ctx context.Context, dir string, r *running, n int) (int, error) {
	if len(r.hosts) == 0 {
		sender, err := l.loggen(dir, r.socket, "--rate", "0", "--number", fmt.Sprint(n))
		if err != nil {
			return 0, err
		}
		return sender.sent(ctx)
	}
	ended := make(chan error)
	for i, host := range r.hosts {
		go func() { ended <- sendAs(ctx, r.socket, host, i, n/len(r.hosts)) }()
	}
	var failed error
	for range r.hosts {
		if err := <-ended; err != nil {
			failed = fmt.Errorf("send: %w", err)
		}
	}
	return n / len(r.hosts) * len(r.hosts), failed
}

// sendAs sends what weir loggen would, as a host of that name.
func sendAs(ctx context.Context, socket, host string, conn, n int) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	const messages = 256 // written at once: 64 KiB
	for from := 0; from < n; from += messages {
		line := fmt.Appendf(nil, "<14>%s %s loggen[1234]: seq: ", time.Now().Format(time.Stamp), host)
		at := len(line)
		line = fmt.Appendf(line, "0000000000, conn: %04d, ", conn)
		line = append(append(line, bytes.Repeat([]byte{'x'}, 255-len(line))...), '\n')
		block := bytes.Repeat(line, min(messages, n-from))
		for i := range min(messages, n-from) {
			digits := fmt.Appendf(nil, "%010d", from+i)
			copy(block[i*len(line)+at:], digits)
		}
		if _, err := c.Write(block); err != nil {
			return err
		}
	}
	return nil
}
