package main

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

// trickle asks: do 1000 connections that each send one message a second fill
// transactions of 1000 rows, with little memory?
func trickle(ctx context.Context, l *lab) error {
	return l.withPostgres(ctx, narrowTable, nil, func(dir string, server *postgres) error {
		r, err := l.startWeir(ctx, dir, weirConfig{memory: "64MiB",
			destination: weirInto("postgres", server.url("logs"), "    flush_lines: 1000\n    flush_timeout: 10s\n")})
		if err != nil {
			return err
		}
		defer r.stop(syscall.SIGTERM)
		s, err := l.loggen(dir, r.socket, "--rate", "1000", "--connections", "1000", "--number", "30000")
		if err != nil {
			return err
		}
		sent, err := s.sent(ctx)
		if err != nil {
			return err
		}
		if err := server.settle(ctx, 11*time.Second); err != nil {
			return err
		}
		stored, err := server.rows(ctx)
		if err != nil {
			return err
		}
		full := 0
		for _, n := range stored.transactions {
			if n == 1000 {
				full++
			}
		}
		fmt.Printf("  %d sent, %d rows (%d different) in %d transactions, %d of them with 1000 rows; peak RSS %.1f MiB\n",
			sent, stored.rows, stored.distinct, len(stored.transactions), full, r.peak())
		return verdict(stored.rows == sent && stored.distinct == sent && full == len(stored.transactions))
	})
}
