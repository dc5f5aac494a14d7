package sqlstore

import (
	"context"
	"hash/maphash"
	"strconv"
	"time"
)

// mark is how far a table was followed.
type mark struct {
	stale bool // another database may have taken the place of the one that was looked at

	// Of a table with rowids:
	id int64 // the highest
	at key   // the time of that row

	// Of another one:
	low    time.Time      // rows before it are not looked at any more
	looked time.Time      // when the table was read last
	newest key            // up to which it was read; nil: no row was there
	shown  map[uint64]int // the rows between, by what is in them
}

// Of a table without rowids, by and large:
const (
	followAgain = 10_000 // rows are read again at most
	followMore  = 20_000 // others are read before it is noted how far
)

var rowSeed = maphash.MakeSeed()

// sum is a number for what is in the row.
func (r *Row) sum() uint64 {
	var h maphash.Hash
	h.SetSeed(rowSeed)
	for _, v := range r.Values {
		maphash.WriteComparable(&h, [2]int{int(v.Kind), len(v.Text)})
		h.Write(v.Text)
	}
	return h.Sum64()
}

// known reports whether a row was there when it was made. What was not
// is left to fresh, or noted now; again counts such rows.
func (p *mark) known(row *Row, again map[uint64]int) bool {
	if row.t.rowid != "" {
		return row.id <= p.id
	}
	sum := row.sum()
	again[sum]++
	p.shown[sum] = max(p.shown[sum], again[sum])
	return true
}

func (f *follower) markOf(t *seen) *mark {
	p := f.marks[t.name]
	if p == nil {
		p = &mark{id: -1 << 63}
		f.marks[t.name] = p
	}
	return p
}

// fresh finds the wanted rows that are new in a table; more: there may be others already.
func (f *follower) fresh(ctx context.Context, t *seen) (rows []*Row, more bool, err error) {
	p := f.markOf(t)
	if t.rowid == "" {
		return f.freshByTime(ctx, t, p)
	}
	id, at, some, err := f.r.db.end(ctx, t, nil)
	if err != nil || !some && !f.began {
		return nil, false, err
	}
	if !f.began {
		p.id, p.at = id, at
		return nil, false, nil
	}
	if p.stale || id < p.id {
		// Rows were numbered anew, or those at the end were removed and their numbers are
		// used again. What came later than the last one that was there is new.
		before, _, found, err := f.r.db.end(ctx, t, p.at)
		if err != nil {
			return nil, false, err
		}
		if p.stale, p.id = false, before; !found {
			p.id = -1 << 63
		}
	}
	if !some || id <= p.id {
		return nil, false, nil
	}
	found, size := page{}, 0
	err = f.r.db.after(ctx, t, &f.q, p.id, id, followRows, func(at key, row *Row) bool {
		found.count++
		if found.last = at; row != nil {
			found.rows = append(found.rows, row)
			size += row.size()
		}
		found.full = found.count == followRows || size > pageBytes
		return !found.full
	})
	if err != nil {
		return nil, false, err
	}
	if more = found.full; more {
		id = found.last.(int64)
	} else {
		p.at = at
	}
	p.id = id
	return found.rows, more, nil
}

// freshByTime is fresh for a table without rowids. It reads on from where it was, not from the end of
// the table: many rows may have been committed since, with times that reach far back.
func (f *follower) freshByTime(ctx context.Context, t *seen, p *mark) (rows []*Row, more bool, err error) {
	looked := time.Now()
	newest, some, err := f.r.db.boundary(ctx, t, piece{back: true}, 0)
	if err != nil || !some {
		return nil, false, err
	}
	part, from := piece{}, p.newest
	if from == nil && !f.began {
		from = newest
	}
	if from != nil {
		if part.low, err = f.again(ctx, t, p, from, looked); err != nil {
			return nil, false, err
		}
	}
	end, more, err := f.r.db.boundary(ctx, t, piece{low: from, above: true}, followMore)
	if err != nil {
		return nil, false, err
	}
	if more {
		newest, part.high, part.upTo = end, end, true
	}
	now, size := map[uint64]int{}, 0
	all := f.View
	all.q.N = -1
	all.walkPiece(ctx, t, part, func(row *Row, failed error) bool {
		if err = failed; err != nil {
			return false
		}
		sum := row.sum()
		if now[sum]++; now[sum] > p.shown[sum] && f.began {
			rows = append(rows, row)
			size += row.size()
		}
		if size > pageBytes {
			err, rows, size = f.show(rows), nil, 0
		}
		return err == nil
	})
	if err != nil {
		for sum, n := range p.shown {
			now[sum] = max(now[sum], n)
		}
	} else {
		p.newest, p.looked = newest, looked
	}
	p.shown = now
	return rows, more, err
}

// again is where a table that was read up to from is read once more.
func (f *follower) again(ctx context.Context, t *seen, p *mark, from key, looked time.Time) (low key, err error) {
	low = from
	at, isTime := keyTime(from)
	if isTime {
		// A row that says to be from the future must not hide those that come after it.
		if !p.looked.IsZero() {
			looked = p.looked
		}
		if at.After(looked) {
			at = looked
		}
		if at = at.Add(-f.q.Late); at.After(p.low) {
			p.low = at
		}
		low = t.moment(p.low)
	}
	most, more, err := f.r.db.boundary(ctx, t, piece{low: low, high: from, upTo: true, back: true}, followAgain)
	if more {
		if low = most; isTime {
			p.low, _ = keyTime(most)
		}
	}
	return low, err
}

// keyTime is the time that a key says.
func keyTime(k key) (time.Time, bool) {
	v := Value{Kind: TextValue}
	switch k := k.(type) {
	case string:
		v.Text = []byte(k)
		if _, err := strconv.ParseFloat(k, 64); err == nil {
			v.Kind = NumberValue
		}
	case blob:
		v.Text = []byte(k)
	case int64:
		v = Value{NumberValue, strconv.AppendInt(nil, k, 10)}
	case float64:
		v = Value{NumberValue, appendReal(nil, k)}
	}
	return momentOf(v)
}
