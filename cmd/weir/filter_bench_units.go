package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/wasmhost"
)

// mostCounted is how long a message may take that is counted; without it is a small part of that.
const mostCounted = 5 * time.Second

// count gives each record to another instance of the filter, whose units are exact and which is therefore slow, for at most
// that long.
func (f *benched) count(ctx context.Context, cfg wasmhost.Config, records [][]byte, lasts time.Duration) error {
	host, err := openHost(ctx, wasmhost.Options{Profile: true})
	if err != nil {
		return err
	}
	defer host.Close(ctx)
	cfg.Time = mostCounted
	guest, err := host.Load(ctx, f.name, cfg)
	if err != nil {
		return err
	}
	defer guest.Close(ctx)
	for began := time.Now(); !guest.CountExactly(); { // a first grant is to be used up
		if time.Since(began) > lasts+time.Second || ctx.Err() != nil {
			return ctx.Err() // it does so little that nothing is counted
		}
		b := router.NewBatch(benchRoom, 1<<20)
		for range f.size {
			addRecord(b, records[0]) // which was read before
		}
		guest.Filter(0).Apply(ctx, b)
		b.Discard()
	}
	guest.TakeProfile()
	for began, i := time.Now(), 0; i < len(records) && time.Since(began) < lasts; i++ {
		trial, err := guest.Try(ctx, records[i])
		if err != nil {
			return err
		}
		if !guest.CountExactly() { // its instance is another one
			break
		}
		f.units = append(f.units, uint64(trial.Units))
	}
	f.where = guest.TakeProfile()
	return nil
}

// printBench prints the figures of the filter beside those of the one that does nothing.
func printBench(w io.Writer, records [][]byte, own, empty *benched) {
	size := 0
	for _, r := range records {
		size += len(r)
	}
	fmt.Fprintf(w, "%s: %d messages of %d different ones, %d bytes as records; %s/%s, %d CPUs\n\n",
		own.name, own.messages+len(own.alone), len(records), size/len(records), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	fmt.Fprintf(w, "%-22s%14s%14s\n", "", "this filter", "an empty one")
	row := func(name string, of func(f *benched) any) {
		fmt.Fprintf(w, "%-22s%14v%14v\n", name, of(own), of(empty))
	}
	row("ns a message, mean", func(f *benched) any { return f.spent.Nanoseconds() / int64(f.messages) })
	row("of a usual batch", func(f *benched) any { return part(f.batches, 50).Nanoseconds() })
	row("messages/s and core", func(f *benched) any { return int64(float64(f.messages) / f.spent.Seconds()) })
	row("alone, p50 ns", func(f *benched) any { return part(f.alone, 50).Nanoseconds() })
	row("alone, p99 ns", func(f *benched) any { return part(f.alone, 99).Nanoseconds() })
	for _, p := range []struct {
		name    string
		percent int
	}{{"units, p50", 50}, {"units, p99", 99}, {"units, most", 100}} {
		row(p.name, func(f *benched) any {
			if f.units == nil {
				return "-"
			}
			return part(f.units, p.percent)
		})
	}
	row("memory, KiB", func(f *benched) any { return f.guest.Usage().Memory >> 10 })
	row("memory grew by, KiB", func(f *benched) any { return max(f.guest.Usage().Memory-f.before.Memory, 0) >> 10 })
	printProfile(w, own)
	fmt.Fprintln(w)
	for _, verdict := range []string{"keep", "drop", "skip", "reject", "failed"} {
		if n := own.verdicts[verdict]; n > 0 {
			fmt.Fprintf(w, "%s %.1f%%  ", verdict, 100*float64(n)/float64(len(own.alone)))
		}
	}
	fmt.Fprintln(w)
}

// part returns the value below which percent of them lie.
func part[T time.Duration | uint64](all []T, percent int) T {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[(len(sorted)-1)*percent/100]
}

const mostFunctions = 12 // that are listed

// printProfile prints in which functions the units were spent: those with the most first.
func printProfile(w io.Writer, f *benched) {
	var all uint64
	for _, units := range f.where {
		all += units
	}
	if all == 0 {
		return
	}
	names := slices.SortedFunc(maps.Keys(f.where), func(a, b string) int {
		return cmp.Or(cmp.Compare(f.where[b], f.where[a]), cmp.Compare(a, b))
	})
	fmt.Fprintf(w, "\nunits of a message, by function:\n")
	for i, name := range names {
		shown := cmp.Or(name, "(weir, for the filter)")
		share := float64(f.where[name]) / float64(all)
		if i == mostFunctions || share < 0.005 {
			fmt.Fprintf(w, "  %d more functions\n", len(names)-i)
			break
		}
		fmt.Fprintf(w, "%10.0f %5.1f%%  %-20s %s\n", float64(f.where[name])/float64(len(f.units)), 100*share, strings.Repeat("#", int(20*share+0.5)), shown)
	}
}
