package sqlstore

import (
	"context"

	"github.com/weirlog/weir/router"
)

// writeEach stores each row in a transaction of its own, as the database does
// by itself. A failed Write goes on where it stopped when it is tried again.
func (d *postgres) writeEach(ctx context.Context, msgs []*router.Message, reject func([]router.Rejected) error) error {
	d.auto.begin(msgs)
	start, known := d.auto.next, len(d.auto.bad)
	results, err := d.first(ctx, func() string { return "EXECUTE weir_print" })
	if err != nil {
		f, err := d.beginFailure(err)
		if f != nil {
			err = d.judge(ctx, f, 1)
		}
		return err
	}
	if string(results[len(results)-1].Rows[0][0]) != d.print {
		if err := d.readCatalogue(ctx); err != nil {
			return err
		}
	}
	d.encode(msgs[start:])
	d.all()
	for i := range d.bad {
		d.bad[i].index += start
	}
	bad := append(d.auto.bad[:known:known], d.bad...)
	for i := range d.len() {
		f := d.put(ctx, i, i+1)
		switch {
		case f == nil:
			d.proven = true
		case f.class == row || f.class == suspect:
			d.metrics.refused.Inc()
			bad = append(bad, refused{start + d.index[i], f.refusal})
		default:
			// Rows that weir itself refuses behind this one are found again.
			next := start + d.index[i]
			d.auto.stop(msgs, next, before(bad, next))
			return d.judge(ctx, f, 1)
		}
	}
	if r := unproven(bad[known:], d.proven); r != nil {
		d.auto.stop(msgs, start, bad[:known])
		return held(d.table, r, len(msgs)-start)
	}
	d.metrics.repaired.Add(float64(d.s.repaired))
	return d.auto.finish(msgs, bad, reject)
}

// before are those of bad whose message comes before index.
func before(bad []refused, index int) []refused {
	var out []refused
	for _, r := range bad {
		if r.index < index {
			out = append(out, r)
		}
	}
	return out
}
