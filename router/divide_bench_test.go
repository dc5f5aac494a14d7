package router

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// BenchmarkRoutes asks what it costs to divide messages among many routes: each batch has messages for all of them, one
// host's for each.
func BenchmarkRoutes(b *testing.B) {
	for _, n := range []int{1, 50} {
		b.Run(fmt.Sprintf("routes=%d", n), func(b *testing.B) { benchmarkRoutes(b, n) })
	}
}

func benchmarkRoutes(b *testing.B, routes int) {
	c := Config{Memory: 64 << 20, Destinations: []DestinationConfig{{Name: "out", Destination: nowhere{}, Flush: Flush{Messages: 1000, Bytes: 4 << 20, After: time.Second, Severity: -1}}}}
	for i := range routes {
		rt := Route{Name: fmt.Sprint(i), From: []string{"in"}, To: []string{"out"}}
		if routes > 1 {
			rt.Match = &Match{Hostname: []Glob{NewGlob(fmt.Sprintf("host-%02d", i))}}
		}
		c.Routes = append(c.Routes, rt)
	}
	const batch = 256
	line := make([]byte, 256)
	src := sourceFunc(func(ctx context.Context, in Inlet) error {
		n := 0
		for b.Loop() {
			batched, err := in.Take(ctx, batch*len(line), batch)
			if err != nil {
				return err
			}
			for range batch {
				m := batched.Add(benchOrigin)
				m.Raw = batched.Copy(line)
				m.Hostname = m.Raw[10:17]
				copy(m.Hostname, hosts[n%50])
				m.AppName, m.Text = m.Raw[20:30], m.Raw[40:]
				n++
			}
			in.Deliver(batched)
		}
		b.ReportMetric(float64(b.Elapsed())/float64(n), "ns/msg")
		return fmt.Errorf("done")
	})
	c.Sources = []SourceConfig{{Name: "in", Source: src, MaxMessage: 64 << 10}}
	r, err := New(c)
	if err != nil {
		b.Fatal(err)
	}
	r.Run(b.Context())
}

var benchOrigin = &Origin{Source: "in"}

var hosts = func() (h [50]string) {
	for i := range h {
		h[i] = fmt.Sprintf("host-%02d", i)
	}
	return h
}()

type sourceFunc func(ctx context.Context, in Inlet) error

func (f sourceFunc) Run(ctx context.Context, in Inlet) error { return f(ctx, in) }
