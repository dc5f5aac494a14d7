package sqlstore

import (
	"context"
	"iter"
	"slices"
)

// A looker is a database to look into. Each call is a transaction of its own.
type looker interface {
	open(ctx context.Context) error
	close()
	// list names the tables and views, as far as the schema of the destination goes.
	list(ctx context.Context) ([]string, error)
	// describe looks at one; nil when there is none.
	describe(ctx context.Context, t table) (*seen, error)
	// boundary is where the row n behind the first one of a piece stands in the order; ok is false when there are fewer.
	boundary(ctx context.Context, t *seen, p piece, n int) (at key, ok bool, err error)
	// rows gives the rows of a piece that q wants, in order, after the first skip of them and at most limit, to fn,
	// until it says that this is enough. Those that only Regexp does not want are counted, and are nil.
	rows(ctx context.Context, t *seen, q *Look, p piece, skip, limit int, fn func(at key, row *Row) (more bool)) error
	// end is the highest rowid of a table, and the time of its row; of those not later than before, unless that is nil.
	end(ctx context.Context, t *seen, before key) (id int64, at key, some bool, err error)
	// after gives the rows with a rowid, which is at, above id and at most to, as rows does.
	after(ctx context.Context, t *seen, q *Look, id, to int64, limit int, fn func(at key, row *Row) (more bool)) error
	// news tells what may have changed since the last time, and connects when there is no connection.
	news(ctx context.Context) (news, error)
}

// news is what may have changed.
type news struct {
	rows, tables bool
	replaced     bool // it is another database
}

// A piece is a part of a table, by the order in which it is walked through.
type piece struct {
	low, high   key  // nil: no bound
	above, upTo bool // low itself is not in it; high itself is
	back        bool // from high to low
	null        bool // those that have no place in the order, instead
}

// to is the beginning of p up to and including at.
func (p piece) to(at key) piece {
	if p.back {
		p.low, p.above = at, false
	} else {
		p.high, p.upTo = at, true
	}
	return p
}

// from is the rest of p from at on; with is whether at itself belongs to it.
func (p piece) from(at key, with bool) piece {
	if p.back {
		p.high, p.upTo = at, with
	} else {
		p.low, p.above = at, !with
	}
	return p
}

const (
	pageLeast = 16
	pageRows  = 1000
	pageBytes = 4 << 20
	sortRows  = 50_000 // of a page where each costs a look at the whole table
	scanRows  = 20_000 // of a page of which each row is looked at here
	scanLeast = 500
	scanMost  = 1 << 16 // rows that one transaction looks at
)

// walk gives the rows of a table that are wanted, oldest first or (back) newest first.
//
// Each page is a transaction of its own and is in memory before the first of
// its rows is shown: whoever reads slowly, or stops in a pager, holds nothing up. A
// page goes on behind the last row of the one before: at its place in the order, after as many
// rows as had the same place. Where few rows are wanted, a transaction looks at a
// limited number of rows nevertheless.
func (v *View) walk(ctx context.Context, t *seen, back bool) iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		p := piece{back: back}
		if t.order != byRowID {
			if !v.q.Since.IsZero() {
				p.low = t.moment(v.q.Since)
			}
			if !v.q.Until.IsZero() {
				p.high = t.moment(v.q.Until)
			}
		}
		pieces := []piece{p}
		if t.mayBeNull() && p.low == nil && p.high == nil {
			pieces = append(pieces, piece{null: true, back: back})
		}
		if !back {
			slices.Reverse(pieces)
		}
		for _, p := range pieces {
			if !v.walkPiece(ctx, t, p, yield) {
				return
			}
		}
	}
}

// walkPiece gives the rows of p; false when nobody wants more.
func (v *View) walkPiece(ctx context.Context, t *seen, p piece, yield func(*Row, error) bool) bool {
	limit := pageRows
	if v.q.N >= 0 {
		limit = min(max(v.q.N, pageLeast), pageRows)
	}
	if t.order == bySorting {
		limit = sortRows
	}
	skip, scan := 0, scanLeast
	for {
		part, more, end := p, false, key(nil)
		if v.scans(t) && !p.null {
			var err error
			if end, more, err = v.r.db.boundary(ctx, t, p, scan); err != nil {
				return yield(nil, err)
			}
			if more {
				part = p.to(end)
			}
		}
		page, err := v.page(ctx, t, part, skip, limit)
		if err != nil {
			return yield(nil, err)
		}
		for _, row := range page.rows {
			if !yield(row, nil) {
				return false
			}
		}
		switch {
		case page.full:
			if skip = page.same + skip*b2i(page.same == page.count && page.first == p.start()); !p.null {
				p = p.from(page.last, true)
			}
		case more:
			if skip, p = 0, p.from(end, false); len(page.rows) < limit/2 {
				scan = min(2*scan, scanMost)
			}
		default:
			return true
		}
	}
}

// scans reports whether many rows may be looked at that are not wanted.
func (v *View) scans(t *seen) bool {
	bounded := !v.q.Since.IsZero() || !v.q.Until.IsZero()
	return t.order != bySorting && (v.q.filtered() || t.order == byRowID && bounded)
}

// start is where p begins.
func (p piece) start() key {
	if p.back {
		return p.high
	}
	return p.low
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A page is what one transaction found.
type page struct {
	rows        []*Row
	full        bool // there may be more in the piece
	count, same int  // rows, wanted by Regexp or not; how many of the last ones have the same place
	first, last key
}

func (v *View) page(ctx context.Context, t *seen, p piece, skip, limit int) (found page, err error) {
	size := 0
	most := limit
	if v.q.Regexp != nil {
		most = max(limit, scanRows)
	}
	err = v.r.db.rows(ctx, t, &v.q, p, skip, most, func(at key, row *Row) bool {
		if found.count++; found.count == 1 {
			found.first = at
		}
		if found.same++; found.count > 1 && at != found.last {
			found.same = 1
		}
		if found.last = at; row != nil {
			found.rows = append(found.rows, row)
			size += row.size()
		}
		found.full = found.count == most || len(found.rows) == limit || size > pageBytes
		return !found.full
	})
	return found, err
}
