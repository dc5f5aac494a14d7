package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/sqlstore"
)

// What does it cost that a transaction of 1000 rows moves the position of its run? The same rows with and without, in turn,
// over two connections into one table of weir's default form; the medians of the transactions.
func BenchmarkPosition(b *testing.B) {
	b.Run("database=sqlite", func(b *testing.B) {
		benchmarkPosition(b, sqlstore.Config{SQLite: filepath.Join(b.TempDir(), "logs.db")})
	})
	b.Run("database=postgres", func(b *testing.B) {
		l := &lab{}
		var err error
		if l.dir, err = os.MkdirTemp("", "weir-bench-"); err != nil {
			b.Fatal(err)
		}
		defer os.RemoveAll(l.dir)
		if err := os.Chmod(l.dir, 0o755); err != nil { // PostgreSQL runs as another user
			b.Fatal(err)
		}
		server, err := l.postgres(b.Context())
		if server != nil && server.server != nil {
			defer func() { server.stop(syscall.SIGINT) }()
		}
		if err == nil {
			err = server.exec(b.Context(), "postgres", "CREATE DATABASE logs")
		}
		if err != nil {
			b.Fatal(err)
		}
		benchmarkPosition(b, sqlstore.Config{Postgres: config.PlainSecret(server.url("logs"))})
	})
}

func benchmarkPosition(b *testing.B, cfg sqlstore.Config) {
	cfg.Table = "logs"
	open := func() router.Positioner {
		s, err := sqlstore.Open(b.Context(), cfg, "out", "", slog.New(slog.DiscardHandler))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { s.Close() })
		return s.Destination().(router.Positioner)
	}
	plain, placed := open(), open()
	msgs := make([]*router.Message, 1000)
	for i := range msgs {
		m := &router.Message{Origin: origin}
		m.Timestamp, m.Facility, m.Severity = router.NoTime, 1, 6
		m.Hostname, m.AppName, m.ProcID = []byte("localhost"), []byte("loggen"), []byte("1234")
		m.Text = []byte("seq: 0000000042, conn: 0003, " + strings.Repeat("x", 182))
		msgs[i] = m
	}
	ctx := context.Background()
	run := router.NewRun()
	if _, _, err := placed.Position(ctx, run); err != nil {
		b.Fatal(err)
	}
	rejected := func([]router.Rejected) error { return errors.New("rows are refused") }
	var without, with []time.Duration
	at := uint64(0)
	write := func(took *[]time.Duration, write func() error) {
		for _, m := range msgs {
			m.Received = time.Now().UnixNano()
		}
		began := time.Now()
		if err := write(); err != nil {
			b.Fatal(err)
		}
		*took = append(*took, time.Since(began))
	}
	next := func() error {
		at += uint64(len(msgs))
		return placed.WriteAt(ctx, router.Span{Run: run, From: at - uint64(len(msgs)), To: at}, msgs, rejected)
	}
	for b.Loop() {
		write(&without, func() error { return plain.Write(ctx, msgs, rejected) })
		write(&with, next)
	}
	middle := func(took []time.Duration) float64 {
		slices.Sort(took)
		return float64(took[len(took)/2].Nanoseconds()) / float64(len(msgs))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(middle(without), "ns/row-without")
	b.ReportMetric(middle(with), "ns/row-with")
	b.ReportMetric((middle(with)/middle(without)-1)*100, "%")
}
