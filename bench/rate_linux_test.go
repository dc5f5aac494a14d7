package main

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/wasmhost"
)

// How many messages of 256 bytes a second and core take filters that read two fields and set one: in each language with
// weir's own ABI, and in the ABIs of others?
func BenchmarkRate(b *testing.B) {
	for _, guest := range []string{"touch", "work/c", "work/go", "work/rust", "work/assemblyscript", "foreign/fluentbit", "foreign/extism", "foreign/stdio"} {
		b.Run("guest="+guest, func(b *testing.B) {
			watch := through(b, guest, 0, func(ctx context.Context, in router.Inlet) error {
				for b.Loop() {
					if _, err := deliver(ctx, in, 1000); err != nil {
						return err
					}
				}
				return nil
			})
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(watch.spent.Nanoseconds())/float64(watch.messages), "ns/msg")
			b.ReportMetric(float64(watch.messages)/watch.spent.Seconds(), "msg/s")
			if watch.kept != watch.messages {
				b.Errorf("the filter kept %d of %d messages", watch.kept, watch.messages)
			}
		})
	}
}

// How much faster are two lanes than one? The same messages, from as many sources as there are lanes. msg/s is by the
// wall's clock, so nothing else may run meanwhile; ns/msg is processor time of all that the router does, which shows what
// lanes take from each other in caches and memory.
func BenchmarkLanes(b *testing.B) {
	for _, guest := range []string{"", "touch", "work/c", "work/go"} {
		for lanes := 1; lanes <= 2; lanes++ {
			b.Run(fmt.Sprintf("guest=%s/lanes=%d", filepath.Base(guest), lanes), func(b *testing.B) { benchmarkLanes(b, guest, lanes) })
		}
	}
}

func benchmarkLanes(b *testing.B, guest string, lanes int) {
	c := router.Config{
		Memory: 64 << 20, Lanes: lanes, DeadLetters: nowhere{},
		Destinations: []router.DestinationConfig{{Name: "out", Destination: nowhere{}, Flush: router.Flush{Messages: 1000, Bytes: 4 << 20, After: time.Second}}},
		Routes:       []router.Route{{Name: "main", To: []string{"out"}}},
	}
	if guest != "" {
		host, err := wasmhost.Open(b.Context(), wasmhost.Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer host.Close(context.Background())
		var cfg wasmhost.Config
		cfg.Defaults()
		cfg.Module = guestFile(b, guest)
		g, err := host.Load(b.Context(), "f", cfg)
		if err != nil {
			b.Fatal(err)
		}
		defer g.Close(context.Background())
		stage := router.Stage{Name: "f"}
		for lane := range lanes {
			stage.Filters = append(stage.Filters, g.Filter(lane))
		}
		c.Routes[0].Filters = []router.Stage{stage}
	}
	// The first source takes the time: it begins when all are at work, and they end when it does.
	var ready sync.WaitGroup
	var over atomic.Bool
	var counts [8]struct {
		messages int64
		_        [120]byte // lines of the cache for each
	}
	ready.Add(lanes)
	var took, spent time.Duration
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	for lane := range lanes {
		name := fmt.Sprint("in", lane)
		c.Routes[0].From = append(c.Routes[0].From, name)
		c.Sources = append(c.Sources, router.SourceConfig{Name: name, MaxMessage: 64 << 10, Source: function(func(ctx context.Context, in router.Inlet) error {
			for range 20 { // the instance is made, the pools are filled
				if _, err := deliver(ctx, in, 1000); err != nil {
					return err
				}
			}
			ready.Done()
			ready.Wait()
			began := time.Now()
			if lane == 0 {
				spent = -processTime()
			}
			for lane > 0 && !over.Load() || lane == 0 && b.Loop() {
				n, err := deliver(ctx, in, 1000)
				if err != nil {
					break
				}
				counts[lane].messages += int64(n)
			}
			if lane == 0 {
				took = time.Since(began)
				spent += processTime()
				over.Store(true)
				stop()
			}
			return nil
		})})
	}
	r, err := router.New(c)
	if err != nil {
		b.Fatal(err)
	}
	if err := r.Run(ctx); err != nil {
		b.Fatal(err)
	}
	var n int64
	for _, c := range counts {
		n += c.messages
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(n)/took.Seconds(), "msg/s")
	b.ReportMetric(float64(spent.Nanoseconds())/float64(n), "ns/msg")
}

// processTime is the processor time of all threads of this process.
func processTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
