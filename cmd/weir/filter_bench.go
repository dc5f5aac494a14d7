package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/wasmhost"
)

func newFilterBenchCommand() *cobra.Command {
	var settings filterSettings
	var input, message string
	var lasts time.Duration
	cmd := &cobra.Command{
		Use:   "bench MODULE",
		Short: "Measure what a filter costs for each message",
		Long: `Bench gives messages to a filter again and again, as one lane of the router would, and beside it, in turn, to a filter
that does nothing. It prints the time and the work (units, which are instructions) that a message takes.

Times are of this machine and of this moment; units are the same everywhere, but for what depends on time or chance.`,
		Example: `  weir filter bench mask.wasm --message 'order 4711 is ready'
  weir parse < /var/log/messages > records && weir filter bench mask.wasm --input records`,
		Args: cobra.ExactArgs(1),
	}
	flags := cmd.Flags()
	flags.StringVar(&input, "input", "", "a file with record JSON lines (- for standard input)")
	flags.StringVar(&message, "message", "", "the text of the one message that is given instead")
	flags.DurationVar(&lasts, "for", 2*time.Second, "how long to measure")
	cmd.MarkFlagsMutuallyExclusive("input", "message")
	settings.flags(cmd)
	settings.running(cmd)
	cmd.RunE = func(c *cobra.Command, args []string) error {
		if lasts < 10*time.Millisecond {
			return usagef("bench: --for %v is too short to measure anything: 10ms or more", lasts)
		}
		log, err := newLogger(c)
		if err != nil {
			return err
		}
		m, cfg, err := settings.guest(args[0])
		if err != nil {
			return err
		}
		records, err := benchRecords(c.InOrStdin(), input, message, c.Flags().Changed("message"))
		if err != nil {
			return err
		}
		host, err := openHost(c.Context(), wasmhost.Options{Log: log})
		if err != nil {
			return err
		}
		defer host.Close(c.Context())
		own, err := newBenched(c.Context(), host, filterName(m.name), cfg)
		if err != nil {
			return usageError{err}
		}
		defer own.guest.Close(c.Context())
		empty, err := emptyFilter(c.Context(), host)
		if err != nil {
			return err
		}
		defer empty.guest.Close(c.Context())
		if err := measure(c.Context(), records, lasts, own, empty); err != nil {
			return err
		}
		if err := own.count(c.Context(), cfg, records, lasts/4); err != nil {
			return err
		}
		printBench(c.OutOrStdout(), records, own, empty)
		return nil
	}
	return cmd
}

// benchRecords reads what the filter is to be given.
func benchRecords(stdin io.Reader, input, message string, given bool) ([][]byte, error) {
	switch {
	case given:
		record, err := json.Marshal(map[string]any{"severity": 6, "hostname": "host.example.com", "app_name": "bench", "message": message})
		return [][]byte{record}, err
	case input == "":
		return nil, usagef("bench: with which messages? --input FILE (records, as weir parse prints them) or --message TEXT")
	}
	if input != "-" {
		f, err := os.Open(input)
		if err != nil {
			return nil, usageError{fmt.Errorf("bench: %w", err)}
		}
		defer f.Close()
		stdin = f
	}
	var records [][]byte
	lines, bytesRead := bufio.NewScanner(stdin), 0
	lines.Buffer(make([]byte, 64<<10), mostRecord)
	for n := 1; lines.Scan() && bytesRead < mostBench; n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		b := router.NewBatch(mostRecord*4, 1)
		err := addRecord(b, line)
		b.Discard()
		if err != nil {
			return nil, usagef("bench: %s:%d: %w", input, n, err)
		}
		records, bytesRead = append(records, bytes.Clone(line)), bytesRead+len(line)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("bench: read %s: %w", input, err)
	}
	if len(records) == 0 {
		return nil, usagef("bench: no record in %s", input)
	}
	return records, nil
}

const mostBench = 64 << 20 // bytes of input that are used

// addRecord makes a record a message of the batch.
func addRecord(b *router.Batch, record []byte) error {
	m := b.Add(&router.Origin{Source: "bench"})
	m.Received = time.Now().UnixNano()
	var p router.RecordParser
	return p.Parse(m, b.Copy(record), b)
}

// A benched is a filter that is measured.
type benched struct {
	name     string
	guest    *wasmhost.Guest
	filter   router.Filter
	size     int // messages of a batch
	messages int
	spent    time.Duration     // on messages, in batches
	batches  []time.Duration   // of a message, the mean of each batch
	alone    []time.Duration   // of each message in a batch of its own
	units    []uint64          // of each of counted messages
	where    map[string]uint64 // all of those units, by function
	verdicts map[string]int    // of those
	before   wasmhost.Usage
}

func newBenched(ctx context.Context, host *wasmhost.Host, name string, cfg wasmhost.Config) (*benched, error) {
	guest, err := host.Load(ctx, name, cfg)
	if err != nil {
		return nil, err
	}
	return &benched{name: name, guest: guest, filter: guest.Filter(0), verdicts: map[string]int{}, before: guest.Usage()}, nil
}

// nothing is a filter that keeps every message: (module (memory (export "memory") 1)
// (func (export "weir_process") (result i32) (i32.const 0))).
var nothing = []byte("\x00asm\x01\x00\x00\x00" +
	"\x01\x05\x01\x60\x00\x01\x7f" + // type: () -> i32
	"\x03\x02\x01\x00" + "\x05\x03\x01\x00\x01" + // a function, a memory of one page
	"\x07\x19\x02\x06memory\x02\x00\x0cweir_process\x00\x00" +
	"\x0a\x06\x01\x04\x00\x41\x00\x0b")

func emptyFilter(ctx context.Context, host *wasmhost.Host) (*benched, error) {
	dir, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var cfg wasmhost.Config
	cfg.Defaults()
	cfg.Module = filepath.Join(dir, "nothing.wasm")
	if err := os.WriteFile(cfg.Module, nothing, 0o600); err != nil {
		return nil, err
	}
	return newBenched(ctx, host, "nothing", cfg)
}

const (
	benchBatch = 256     // messages
	benchRoom  = 1 << 30 // bytes that a batch may take; it takes what it needs
	benchMost  = 200_000 // messages that are timed one by one
)

// measure gives the records to the filters in turn: first in batches, then each by itself.
func measure(ctx context.Context, records [][]byte, lasts time.Duration, filters ...*benched) error {
	next := 0
	batch := func(n int) (*router.Batch, error) {
		b := router.NewBatch(benchRoom, 1<<20)
		for range n {
			if err := addRecord(b, records[next%len(records)]); err != nil {
				b.Discard()
				return nil, err
			}
			next++
		}
		return b, nil
	}
	phase := func(n int, until time.Duration, apply func(f *benched, b *router.Batch) error) error {
		for began, first := time.Now(), true; first || time.Since(began) < until; first = false {
			from := next
			for _, f := range filters {
				next = from // the same messages for all
				b, err := batch(n)
				if err != nil {
					return err
				}
				err = apply(f, b)
				b.Discard()
				if err != nil {
					return err
				}
			}
		}
		return nil
	}
	size := benchBatch // of batches that take a few milliseconds
	if err := phase(1, 0, func(f *benched, b *router.Batch) error {
		began := time.Now()
		err := f.apply(ctx, b)
		size = max(1, min(size, int(5*time.Millisecond/max(time.Since(began), 1))))
		return err
	}); err != nil {
		return err
	}
	for _, f := range filters {
		f.size = size
	}
	if err := phase(size, lasts/10, func(f *benched, b *router.Batch) error { return f.apply(ctx, b) }); err != nil { // caches
		return err
	}
	if err := phase(size, lasts*5/10, func(f *benched, b *router.Batch) error {
		n, began := len(b.Messages()), time.Now()
		err := f.apply(ctx, b)
		spent := time.Since(began)
		f.spent, f.messages, f.batches = f.spent+spent, f.messages+n, append(f.batches, spent/time.Duration(n))
		return err
	}); err != nil {
		return err
	}
	next = 0
	return phase(1, lasts*4/10, func(f *benched, b *router.Batch) error {
		if len(f.alone) >= benchMost {
			return nil
		}
		m, faults := b.Messages()[0], f.guest.Usage().Faults
		began := time.Now()
		err := f.apply(ctx, b)
		f.alone = append(f.alone, time.Since(began))
		if f.guest.Usage().Faults > faults {
			f.verdicts["failed"]++
		} else {
			f.verdicts[b.Outcome(m).Verdict]++
		}
		return err
	})
}

// apply gives a batch to the filter, as a lane does.
func (f *benched) apply(ctx context.Context, b *router.Batch) error {
	for {
		held := f.filter.Apply(ctx, b)
		switch {
		case held == nil:
			return ctx.Err()
		case ctx.Err() != nil:
			return ctx.Err()
		case held.Stop:
			return fmt.Errorf("bench: %w", held.Cause)
		}
		return fmt.Errorf("bench: %s stopped working: %w", f.name, held.Cause)
	}
}
