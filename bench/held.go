package main

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

// held asks: does memory stay bounded when 8 senders are much faster than the
// destination, are they held back, and is nothing lost?
//
// The table's trigger waits a second for each statement, so that 1000 rows a
// transaction are 1000 rows a second. After a while the senders stop and the
// trigger goes, so that all can be counted.
func held(ctx context.Context, l *lab) error {
	const memory, allowed = 64, 60 // MiB
	return l.withPostgres(ctx, narrowTable, nil, func(dir string, server *postgres) error {
		err := server.exec(ctx, "logs",
			"CREATE TABLE brake (seconds float)", "INSERT INTO brake VALUES (1)",
			"CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(seconds) FROM public.brake; RETURN NULL; END'",
			"CREATE TRIGGER slow AFTER INSERT ON messages FOR EACH STATEMENT EXECUTE FUNCTION wait()")
		if err != nil {
			return err
		}
		r, err := l.startWeir(ctx, dir, weirConfig{memory: fmt.Sprint(memory, "MiB"), filter: true,
			destination: weirInto("postgres", server.url("logs"), "    flush_lines: 1000\n")})
		if err != nil {
			return err
		}
		defer r.stop(syscall.SIGTERM)
		var senders []*process
		for range 8 {
			s, err := l.loggen(dir, r.socket, "--rate", "0", "--interval", "20s")
			if err != nil {
				return err
			}
			senders = append(senders, s)
		}
		sent := 0
		for _, s := range senders {
			n, err := s.sent(ctx)
			if err != nil {
				return err
			}
			sent += n
		}
		before, err := server.rows(ctx)
		if err != nil {
			return err
		}
		if err := server.exec(ctx, "logs", "UPDATE brake SET seconds = 0"); err != nil {
			return err
		}
		if err := server.settle(ctx, 3*time.Second); err != nil {
			return err
		}
		after, err := server.rows(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("  %d messages taken in 20 s, %d of them stored by then, %d in the end and %d torn ones; peak RSS %.1f MiB of %d + %d\n",
			sent, before.rows, after.rows-after.torn, after.torn, r.peak(), memory, allowed)
		// All senders count from 0, so doubles would show as surplus only.
		return verdict(after.rows-after.torn == sent && r.peak() <= memory+allowed)
	})
}

// verdict prints whether a promise was kept; the run goes on either way.
func verdict(kept bool) error {
	word := "KEPT"
	if !kept {
		word = "BROKEN"
	}
	_, err := fmt.Println("  promise " + word)
	return err
}
