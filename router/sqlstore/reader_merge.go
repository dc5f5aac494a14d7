package sqlstore

import (
	"container/heap"
	"context"
	"errors"
	"iter"
	"slices"
)

// merge gives the rows of all tables in order.
func (v *View) merge(ctx context.Context, back bool) iter.Seq2[*Row, error] {
	if len(v.tables) == 1 {
		return v.walk(ctx, v.tables[0], back)
	}
	return func(yield func(*Row, error) bool) {
		h := merging{back: back}
		for i, t := range v.tables {
			next, stop := iter.Pull2(v.walk(ctx, t, back))
			defer stop()
			row, err, ok := next()
			if err != nil {
				yield(nil, err)
				return
			}
			if ok {
				h.heads = append(h.heads, head{row, i, next})
			}
		}
		heap.Init(&h)
		for len(h.heads) > 0 {
			first := &h.heads[0]
			if !yield(first.row, nil) {
				return
			}
			row, err, ok := first.next()
			switch {
			case err != nil:
				yield(nil, err)
				return
			case !ok:
				heap.Pop(&h)
			default:
				first.row = row
				heap.Fix(&h, 0)
			}
		}
	}
}

// merging is a heap of tables by their next row.
type merging struct {
	heads []head
	back  bool
}

type head struct {
	row   *Row
	table int
	next  func() (*Row, error, bool)
}

func (h *merging) Len() int      { return len(h.heads) }
func (h *merging) Swap(i, j int) { h.heads[i], h.heads[j] = h.heads[j], h.heads[i] }
func (h *merging) Push(x any)    { h.heads = append(h.heads, x.(head)) }
func (h *merging) Pop() any {
	last := h.heads[len(h.heads)-1]
	h.heads = h.heads[:len(h.heads)-1]
	return last
}

func (h *merging) Less(i, j int) bool {
	a, b := &h.heads[i], &h.heads[j]
	if h.back {
		a, b = b, a
	}
	switch {
	case a.row.earlier(b.row):
		return true
	case b.row.earlier(a.row):
		return false
	}
	return a.table < b.table
}

// Last gives the rows that are wanted to fn: the newest N, oldest first. It
// holds them in memory, unless they are all or Reverse is set. A ctx that ends
// while it searches makes it give what it has found, and return the context's error.
func (v *View) Last(ctx context.Context, fn func(*Row) error) error {
	if len(v.tables) == 0 {
		return v.absent(ctx)
	}
	if v.q.N < 0 || v.q.Reverse {
		left := v.q.N
		if left == 0 {
			return nil
		}
		for row, err := range v.merge(ctx, v.q.Reverse) {
			if err != nil {
				return err
			}
			if err := fn(row); err != nil {
				return err
			}
			if left--; left == 0 {
				break
			}
		}
		return nil
	}
	rows, failed := v.newest(ctx)
	for _, row := range rows {
		if err := fn(row); err != nil {
			return errors.Join(err, failed)
		}
	}
	return failed
}

// newest are the newest N rows, oldest first.
func (v *View) newest(ctx context.Context) (rows []*Row, err error) {
	if v.q.N == 0 {
		return nil, nil
	}
	for row, failed := range v.merge(ctx, true) {
		if failed != nil {
			err = failed
			break
		}
		if rows = append(rows, row); len(rows) == v.q.N {
			break
		}
	}
	slices.Reverse(rows)
	return rows, err
}
