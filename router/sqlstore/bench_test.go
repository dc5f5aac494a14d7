package sqlstore

import "testing"

func TestEncodingAllocatesNothing(t *testing.T) {
	d := encoder(t)
	msgs := benchMessages(500)
	for _, d.form = range []form{copyBinary, copyText, insertRows} {
		d.encode(msgs)
		d.all()
		if n := testing.AllocsPerRun(10, func() { d.encode(msgs); d.all() }); n > 0 {
			t.Errorf("form %d: %v allocations for %d rows", d.form, n, len(msgs))
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
	for range d.columns {
		d.types = append(d.types, pgType{kind: pgText})
	}
	for i, k := range []pgKind{pgTimestamptz, pgTimestamptz, pgInt2, pgInt2} {
		d.types[i].kind = k
	}
	d.types[8].kind, d.types[9].kind = pgJSONB, pgJSONB
	return d
}

// What does it cost to encode a row for COPY, apart from the server?
func BenchmarkEncode(b *testing.B) {
	d := encoder(b)
	msgs := benchMessages(5000)
	for _, form := range []form{copyBinary, copyText} {
		b.Run([]string{"binary", "text"}[form], func(b *testing.B) {
			d.form = form
			for b.Loop() {
				d.encode(msgs)
				d.all()
			}
			b.SetBytes(int64(len(d.buf)))
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(msgs)), "ns/row")
		})
	}
}
