package wasmhost

import (
	"testing"

	"github.com/weirlog/weir/router"
)

func TestCGuestCostsNoAllocation(t *testing.T) {
	g, _ := loadFile(t, "mask.c")
	b := batch(t, "user 4711 has paid 12 euros for 3 things")
	defer b.Discard()
	m := b.Messages()[0]
	l := g.lanes[0]
	before := *m
	if n := testing.AllocsPerRun(1000, func() {
		*m = before
		if ok, _ := l.message(b, m); !ok {
			t.Fatal("the guest failed")
		}
	}); n != 0 {
		t.Errorf("%v allocations a message", n)
	}
}

// BenchmarkFilter measures a metered C guest that reads two fields and sets one: nanoseconds for each message of 256
// bytes, batches included.
func BenchmarkFilter(b *testing.B) {
	for name, source := range map[string]string{"guest=c-pick": "pick.c", "guest=c-mask": "mask.c", "guest=go-mask": "maskgo"} {
		b.Run(name, func(b *testing.B) {
			g, _ := loadFile(b, source)
			f := g.Filter(0)
			text := []byte("192.0.2.7 user 4711 has paid 12 euros for 3 things; " + string(make([]byte, 200)))
			for i, c := range text {
				if c == 0 {
					text[i] = "abcdefgh "[i%9]
				}
			}
			const messages = 1000
			done := 0
			for b.Loop() {
				batch := router.NewBatch(2<<20, messages)
				origin := &router.Origin{Source: "s"}
				for range messages {
					m := batch.Add(origin)
					m.Text, m.Hostname, m.AppName = text, text[:9], text[10:14]
				}
				if held := f.Apply(b.Context(), batch); held != nil {
					b.Fatal(held)
				}
				done += messages
				batch.Discard()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(done), "ns/msg")
			b.ReportMetric(0, "ns/op")
		})
	}
}
