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
	if f, err := d.begin(ctx, msgs[start:]); f != nil || err != nil {
		if f != nil {
			err = d.judge(ctx, f, 1)
		}
		return err
	}
	of := make([]*pgTable, len(msgs)-start)
	for _, t := range d.parts {
		for _, i := range t.mine {
			of[i] = t
		}
	}
	var bad []refused
	for i, t := range of {
		if t == nil { // surplus: begin has refused it
			continue
		}
		f := d.putOne(ctx, t, int32(i))
		switch {
		case f == nil:
		case f.class == row || f.class == suspect:
			d.metrics.refused.Inc()
			bad = append(bad, refused{i, f.refusal})
		default:
			// Rows that weir itself refuses behind this one are found again.
			d.auto.stop(msgs, start+i, append(d.auto.bad, moved(before(append(bad, d.bad...), i), start)...))
			return d.judge(ctx, f, 1)
		}
	}
	d.bad = append(d.bad, bad...)
	if t, r := d.unproven(); r != nil {
		d.auto.stop(msgs, start, d.auto.bad[:known])
		return held(t.table, r, len(msgs)-start)
	}
	d.metrics.repaired.Add(float64(d.s.repaired))
	return d.auto.finish(msgs, append(d.auto.bad, moved(d.bad, start)...), reject)
}

// putOne stores one row.
func (d *postgres) putOne(ctx context.Context, t *pgTable, i int32) *failure {
	all := t.mine
	t.mine = append(d.lone[:0], i)
	d.start(t)
	d.all()
	d.lone, t.mine = t.mine, all
	f := d.put(ctx, 0, d.len())
	if f == nil && d.len() > 0 {
		t.proven = true
	}
	return f
}

// moved are refused rows of what begins at message start.
func moved(bad []refused, start int) []refused {
	for i := range bad {
		bad[i].index += start
	}
	return bad
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
