package main

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// copyAlone is what the database itself takes: rows of the same size by COPY
// from one client that has them at hand, 1000 a transaction, no router.
func (l *lab) copyAlone(ctx context.Context, n int) (result, error) {
	var stored result
	err := l.withPostgres(ctx, func(_ string, server *postgres) error {
		c, err := pgx.Connect(ctx, server.url("logs"))
		if err != nil {
			return err
		}
		defer c.Close(context.Background())
		rows := make([][]any, 1000)
		for i := range rows {
			rows[i] = []any{time.Now(), "localhost", "loggen", "1234", "seq: 0000000000, conn: 0000, " + strings.Repeat("x", 182)}
		}
		others, cpu, begin := foreign(), ownCPU(), time.Now()
		for range n / len(rows) {
			err := pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
				_, err := tx.CopyFrom(ctx, pgx.Identifier{"messages"}, []string{"datetime", "host", "program", "pid", "message"}, pgx.CopyFromRows(rows))
				return err
			})
			if err != nil {
				return err
			}
		}
		stored = result{rows: n, distinct: n, sent: n, seconds: time.Since(begin).Seconds(), cpu: ownCPU() - cpu, foreign: others()}
		return nil
	})
	return stored, err
}

// ownCPU is the processor time of this program, without its children.
func ownCPU() float64 {
	b, _ := os.ReadFile("/proc/self/stat")
	return ticks(string(b), 11, 12)
}
