package sqlstore

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"
)

const (
	followPause = 200 * time.Millisecond // between two looks; a row shows within a second
	followRetry = time.Second            // after an error
	followRows  = 5000                   // of a table at once
)

// follower is what Follow knows.
type follower struct {
	View
	tell  func(string)
	show  func([]*Row) error
	marks map[string]*mark // by table
	began bool             // it is known which rows were there before
	said  string           // why it waits

	cost, showing time.Duration // of the last look at all tables; of the time, what show took
}

// Follow gives the rows that Look and Last give, and then each one that is committed, until
// ctx ends, which is no error, or show fails, which gets those that were found together. Whatever happens to the database meanwhile is waited
// for, and told in a sentence, and so is a table or a file that is not there yet.
//
// New rows of a table of SQLite's are those with a higher rowid. Others have nothing that rises
// with each commit: there the rows of the last q.Late before the newest one that was read are read
// again, at most followAgain of them, and those are new that were not there before. A row that is committed later than
// q.Late after its arrival, and after younger ones were read, does not show.
func (r *Reader) Follow(ctx context.Context, q Look, tell func(string), show func([]*Row) error) error {
	f := &follower{View: View{r: r, q: q}, tell: tell, marks: map[string]*mark{}}
	var stopped error
	f.show = func(rows []*Row) error {
		if len(rows) > 0 {
			began := time.Now()
			stopped = show(rows)
			f.showing += time.Since(began)
		}
		return stopped
	}
	for {
		f.cost = 0
		err := f.look(ctx)
		pause := max(followPause, 2*f.cost) // a table without an index is not read all the time
		switch {
		case stopped != nil:
			return stopped
		case ctx.Err() != nil:
			return nil
		case err != nil && !f.passes(err):
			return err
		case err != nil:
			f.wait(err.Error())
			r.Close()
			f.tables, pause = nil, followRetry
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// passes reports whether it makes sense to wait for the end of an error: not for
// what a person has said wrong.
func (f *follower) passes(err error) bool {
	if _, ok := errors.AsType[unsuited](err); ok {
		return false
	}
	if f.began || errors.Is(err, fs.ErrNotExist) {
		return true
	}
	failed, ok := errors.AsType[*failure](err)
	return ok && (failed.class == temp || failed.class == slow)
}

// wait tells why nothing comes, once; "": it goes on.
func (f *follower) wait(why string) {
	switch {
	case why != "" && why != f.said:
		f.tell("waiting: " + why)
	case why == "" && f.said != "":
		f.tell("going on")
	}
	f.said = why
}

// look shows what is new.
func (f *follower) look(ctx context.Context) error {
	news, err := f.r.db.news(ctx)
	if err != nil {
		return err
	}
	if news.replaced {
		for _, p := range f.marks {
			p.stale = true
		}
	}
	if news.tables {
		f.tables = nil
	}
	if !news.rows && f.began && f.tables != nil {
		return nil
	}
	if f.tables == nil || f.r.naming.fixed == "" {
		if err := f.find(ctx); err != nil {
			return err
		}
	}
	if len(f.tables) == 0 {
		f.began = true // all rows of a table that comes are new
		f.wait(f.absent(ctx).Error())
		return nil
	}
	f.wait("")
	if !f.began {
		return f.begin(ctx)
	}
	for more := true; more && err == nil; {
		more, f.showing = false, 0
		began := time.Now()
		var rows []*Row
		size := 0
		// Those that were found are shown also when the next table fails.
		show := func() error {
			slices.SortStableFunc(rows, func(a, b *Row) int { return b2i(b.earlier(a)) - b2i(a.earlier(b)) })
			found := rows
			rows, size = nil, 0
			return f.show(found)
		}
		for _, t := range f.tables {
			some, again, failed := f.fresh(ctx, t)
			for _, row := range some {
				size += row.size()
			}
			rows, more = append(rows, some...), more || again
			if err = failed; err != nil {
				break
			}
			if size > 4*pageBytes {
				if err = show(); err != nil {
					break
				}
			}
		}
		if e := show(); e != nil {
			return e
		}
		f.cost = time.Since(began) - f.showing
	}
	return err
}

// begin notes where each table ends, and shows the last rows before.
func (f *follower) begin(ctx context.Context) error {
	for _, t := range f.tables {
		if t.slow != "" {
			f.tell(t.slow)
		}
		if _, _, err := f.fresh(ctx, t); err != nil {
			return err
		}
	}
	rows, err := f.newest(ctx)
	if err != nil {
		return err
	}
	f.began = true
	again := map[uint64]int{}
	return f.show(slices.DeleteFunc(rows, func(row *Row) bool { return !f.markOf(row.t).known(row, again) }))
}
