package sqlstore

import "testing"

// What does it cost to encode a row for COPY, apart from the server?
func BenchmarkEncode(b *testing.B) {
	s, err := Open(b.Context(), Config{Postgres: plainSecret("postgres://weir@/logs?host=/nowhere")}, "db", "", slogDiscard)
	if err != nil {
		b.Fatal(err)
	}
	d := s.db.(*postgres)
	for range d.columns {
		d.types = append(d.types, pgType{kind: pgText})
	}
	for i, k := range []pgKind{pgTimestamptz, pgTimestamptz, pgInt2, pgInt2} {
		d.types[i].kind = k
	}
	d.types[8].kind, d.types[9].kind = pgJSONB, pgJSONB
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
