package sqlstore

import (
	"context"
	"testing"

	"github.com/weirlog/weir/router"
)

func TestEncodingAllocatesNothing(t *testing.T) {
	d := encoder(t)
	msgs := benchMessages(500)
	for _, d.t.form = range []form{copyBinary, copyText, insertRows} {
		d.encodeAll(msgs)
		if n := testing.AllocsPerRun(10, func() { d.encodeAll(msgs) }); n > 0 {
			t.Errorf("form %d: %v allocations for %d rows", d.t.form, n, len(msgs))
		}
	}
}

// encoder is a destination that has read the catalogue of the default table.
func encoder(t testing.TB) *postgres {
	s, err := Open(t.Context(), Config{Postgres: plainSecret("postgres://weir@/logs?host=/nowhere")}, "db", "", slogDiscard)
	if err != nil {
		t.Fatal(err)
	}
	d := s.db.(*postgres)
	d.t = d.known["logs"]
	d.t.open = true
	for range d.columns {
		d.t.types = append(d.t.types, pgType{kind: pgText})
	}
	for i, k := range []pgKind{pgTimestamptz, pgTimestamptz, pgInt2, pgInt2} {
		d.t.types[i].kind = k
	}
	d.t.types[8].kind, d.t.types[9].kind = pgJSONB, pgJSONB
	return d
}

// encodeAll encodes msgs for the table that they go into.
func (d *postgres) encodeAll(msgs []*router.Message) {
	if err := d.assign(context.Background(), msgs); err != nil {
		panic(err)
	}
	d.msgs = msgs
	for _, t := range d.parts {
		d.start(t)
		d.all()
	}
}

// What does it cost to encode a row for COPY, apart from the server?
func BenchmarkEncode(b *testing.B) {
	d := encoder(b)
	msgs := benchMessages(5000)
	for _, form := range []form{copyBinary, copyText} {
		b.Run([]string{"binary", "text"}[form], func(b *testing.B) {
			d.t.form = form
			for b.Loop() {
				d.encodeAll(msgs)
			}
			b.SetBytes(int64(len(d.buf)))
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(msgs)), "ns/row")
		})
	}
}
