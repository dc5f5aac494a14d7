package socket

import (
	"strings"
	"testing"

	"github.com/weirlog/weir/router"
)

// BenchmarkStream is the way from a unix socket to a destination that only
// counts; the sender writes as many messages at once as the name says.
func BenchmarkStream(b *testing.B) {
	line := "<165>1 2026-01-01T00:00:04.003Z web1.example.com shopd 8710 ID47 - " + strings.Repeat("x", 188) + "\n"
	for name, lines := range map[string]int{"write=1": 1, "write=250": 250} {
		b.Run(name, func(b *testing.B) {
			f := start(b, flowOptions{flush: router.Flush{Messages: 1000, Bytes: 4 << 20, After: 1 << 30, Severity: -1}},
				func(c *Config) { c.Listen = []string{"unix://" + b.TempDir() + "/s"} })
			f.store.quiet.Store(true)
			c := f.dial(0)
			block := []byte(strings.Repeat(line, lines))
			b.SetBytes(int64(len(block)))
			sent := int64(0)
			for b.Loop() {
				if _, err := c.Write(block); err != nil {
					b.Fatal(err)
				}
				sent += int64(lines)
			}
			c.Close()
			until(b, "all is stored", func() bool {
				return int64(f.router.Ledger().Routes[0].Income) == sent
			})
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(sent), "ns/msg")
		})
	}
}
