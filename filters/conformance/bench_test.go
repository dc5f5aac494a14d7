package conformance

import (
	"testing"

	"github.com/weirlog/weir/router"
)

// What a filter that ships costs a message of 256 bytes without anything to find, and one with.
func BenchmarkStockFilters(b *testing.B) {
	plain := "GET /api/v1/orders/2026/items?page=3&sort=price HTTP/1.1 status=200 bytes=48213 duration_ms=37 upstream=10.1.20.17:8080 " +
		"request_id=7f0c4a52-7d1e-4b5c-9a6e-3f2d1c0b9a88 user_agent=\"curl/8.5.0\" referer=\"-\" cache=MISS tls=TLSv1.3 cipher=AES_256 ok"
	personal := plain[:180] + " bob@example.com paid 4111 1111 1111 1111 Bearer abc.def.ghi"
	for _, c := range []struct{ name, module, config, text string }{
		{"filter=severity", "stock:severity", `{"min":"debug"}`, plain},
		{"filter=redact/finds=nothing", "stock:redact", `{}`, plain},
		{"filter=redact/finds=3", "stock:redact", `{}`, personal},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := newRunner(b)
			f := r.load(b, c.module, []byte(c.config)).Filter(0)
			const messages = 256
			for b.Loop() {
				batch := router.NewBatch(1<<20, messages)
				for range messages {
					m := batch.Add(&router.Origin{})
					m.Text, m.Hostname, m.AppName = []byte(c.text), []byte("web1"), []byte("shop")
				}
				if held := f.Apply(b.Context(), batch); held != nil {
					b.Fatal(held)
				}
				batch.Discard()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/messages, "ns/msg")
		})
	}
}
