package main

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

// outage asks: what does a database that goes away for 5 seconds under 2000
// messages a second cost? Stopped, it finishes what it has; crashed, it does
// not, and an answer to COMMIT may be lost.
func outage(ctx context.Context, l *lab) error {
	for _, how := range []struct {
		name string
		sig  syscall.Signal
	}{{"stopped", syscall.SIGINT}, {"crashed", syscall.SIGQUIT}} {
		for range l.rounds {
			if err := l.outage(ctx, how.name, how.sig); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *lab) outage(ctx context.Context, name string, sig syscall.Signal) error {
	return l.withPostgres(ctx, narrowTable, nil, func(dir string, server *postgres) error {
		r, err := l.startWeir(ctx, dir, weirConfig{filter: true,
			destination: weirInto("postgres", server.url("logs"), "    flush_lines: 1000\n    flush_timeout: 200ms\n")})
		if err != nil {
			return err
		}
		defer r.stop(syscall.SIGTERM)
		s, err := l.loggen(dir, r.socket, "--rate", "2000", "--interval", "12s")
		if err != nil {
			return err
		}
		time.Sleep(3 * time.Second)
		server.stop(sig)
		time.Sleep(5 * time.Second)
		if err := server.start(ctx); err != nil {
			return err
		}
		back := time.Now()
		sent, err := s.sent(ctx)
		if err != nil {
			return err
		}
		if err := server.settle(ctx, 5*time.Second); err != nil {
			return err
		}
		stored, err := server.rows(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("  %s: %d sent, %d stored, %d lost, %d double; all there %.1f s after the database was back\n",
			name, sent, stored.rows, sent-stored.distinct, stored.rows-stored.distinct, stored.end.Sub(back).Seconds())
		return verdict(stored.distinct == sent)
	})
}
