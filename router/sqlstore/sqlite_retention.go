package sqlstore

import (
	"fmt"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// removal is what the retention is at. It goes in passes: one begins when a bound
// is exceeded and ends when it is kept, or when a tenth of the rows are gone and as many
// as have come since the last one, so that a mistake costs no more than that at once.
type removal struct {
	reason reason // of the pass that is under way
	left   int64  // rows that it may still remove
	high   int64  // the highest rows of all tables, added up, when it began
	tables []keptTable
	after  int64 // by age: rows of tables[0] up to that one were looked at
	rows   int64 // in a step

	next    [len(removalReasons)]time.Time // of each reason, before which no pass begins
	removed [len(removalReasons)]int64     // since it was told in the log
	told    time.Time
}

// reason is that of a pass.
type reason uint8

const (
	noPass reason = iota
	byAge
	bySize
	byKeepFree
)

var removalReasons = [...]string{byAge: "age", bySize: "size", byKeepFree: "keep_free"}

const (
	passPart = 10   // a pass removes one row of so many
	passRows = 100  // or so many, if that is more
	stepRows = 16   // in a step, at least
	stepMost = 8192 // and at most

	tendBehind = 4  // times as long a step may take when the size is exceeded by more than a sixteenth
	sizeSlack  = 64 // a pass goes below the size by this part of it, so that passes are seldom
)

// removeOld does one step of the retention.
func (d *lite) removeOld(now time.Time, trusted bool) (worked bool, f *failure) {
	r := &d.tending.removal
	if !d.cfg.Retention.on() {
		return false, nil
	}
	if r.reason == noPass {
		if f := d.beginPass(now, trusted); f != nil || r.reason == noPass {
			return false, f
		}
	}
	if f := d.count(); f != nil {
		return false, f
	}
	if r.reason == byAge {
		if !trusted {
			r.end(now, 0)
			return false, nil
		}
		pause := min(max(d.cfg.Retention.Age/20, time.Second), time.Hour)
		return d.stepByAge(now, pause)
	}
	over := d.over(r.reason)
	if over <= 0 || r.left <= 0 {
		r.end(now, tendEvery)
		return false, nil
	}
	return d.stepOldest(now, over)
}

// exceeded reports whether the size is exceeded by so much that rows have to wait.
func (d *lite) exceeded() bool {
	size := int64(d.cfg.Retention.Size)
	return size > 0 && d.tending.pages.used() > size+size/16
}

// end ends the pass; the next one for the same reason begins after a pause.
func (r *removal) end(now time.Time, pause time.Duration) {
	r.next[r.reason] = now.Add(pause)
	r.reason, r.tables = noPass, nil
}

// beginPass begins a pass when one is due.
func (d *lite) beginPass(now time.Time, trusted bool) *failure {
	r, keep := &d.tending.removal, d.cfg.Retention
	due := func(why reason) bool { return !now.Before(r.next[why]) }
	switch {
	case keep.Size > 0 && due(bySize) && d.tending.pages.used() > int64(keep.Size):
		r.reason = bySize
	case keep.KeepFree > 0 && due(byKeepFree) && d.short():
		// What the WAL holds may be enough.
		if f := d.truncateWAL(); f != nil && f.class != temp {
			return f
		}
		if !d.short() {
			return nil
		}
		r.reason = byKeepFree
	case keep.Age > 0 && due(byAge) && trusted:
		r.reason = byAge
	default:
		return nil
	}
	r.after, r.left = minRowID, 0
	r.rows = max(r.rows, stepRows)
	var f *failure
	if r.tables, f = d.keptTables(); f != nil {
		r.reason = noPass
		return f
	}
	before := r.high
	r.high = 0
	for i := range r.tables {
		t := &r.tables[i]
		low, high, f := d.ends(t)
		if f != nil {
			r.reason = noPass
			return f
		}
		if high >= low {
			t.left = max((high-low)/passPart+1, passRows)
			r.left += t.left
			r.high += high
		}
	}
	if before > 0 && r.high > before {
		r.left += r.high - before // as many as have come since
	}
	return nil
}

const minRowID = -1 << 63

// saneTime has passed wherever weir runs.
var saneTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// short reports whether the disk has less free space than it should, and the
// database is large enough to do something about it.
func (d *lite) short() bool {
	free, total, ok := d.disk()
	return ok && free < d.keepFree(total) && d.over(byKeepFree) > 0
}

// keepFree is the free space at which a pass begins, on a disk of that size.
func (d *lite) keepFree(total int64) int64 {
	return max(int64(d.cfg.Retention.KeepFree), stopBelow(total))
}

// wantedFree is the free space at which it ends.
func (d *lite) wantedFree(total int64) int64 { n := d.keepFree(total); return n + n/8 }

// over is how many bytes too much the rows take.
func (d *lite) over(why reason) int64 {
	p, keep := &d.tending.pages, d.cfg.Retention
	if why == bySize {
		return p.used() - int64(keep.Size-keep.Size/sizeSlack)
	}
	free, total, ok := d.disk()
	if !ok {
		return 0
	}
	// Pages that are free already will be given back, or used for the next rows.
	return min(d.wantedFree(total)-free-p.free*p.size, p.used()-int64(keep.KeepFree))
}

// stepOldest removes some of the oldest rows, of the table that has the oldest.
func (d *lite) stepOldest(now time.Time, over int64) (worked bool, f *failure) {
	r := &d.tending.removal
	t, rows, f := d.oldest()
	if f != nil {
		return false, f
	}
	if t == nil {
		r.end(now, tendEvery)
		return false, nil
	}
	n := min(r.rows, r.left)
	if used := d.tending.pages.used(); used > 0 {
		// About what is needed, and not much more; with several tables they take turns.
		n = min(n, max(rows*over/used/int64(len(r.tables))+1, stepRows))
	}
	began := time.Now()
	last, found := int64(0), false
	err := sqlitex.Execute(d.conn, fmt.Sprintf("SELECT max(%s) FROM (SELECT %[1]s FROM %s ORDER BY %[1]s LIMIT ?)", t.rowid, t.sql()), &sqlitex.ExecOptions{
		Args: []any{n}, ResultFunc: func(s *sqlite.Stmt) error {
			last, found = s.ColumnInt64(0), s.ColumnType(0) != sqlite.TypeNull
			return nil
		}})
	if err != nil {
		return false, notRows(liteFailure("find the oldest rows of "+t.String(), err))
	}
	if !found {
		r.end(now, tendEvery)
		return false, nil
	}
	removed, f := d.removeUpTo(t, last, began)
	if f != nil {
		return false, f
	}
	r.left -= max(removed, 1)
	d.tellRemoved(now)
	return true, nil
}

// removeUpTo removes the rows up to one, in a transaction of its own. The next
// step is larger or smaller by the time since began, without the COMMIT: that takes
// as long as the disk takes, however few the rows are.
func (d *lite) removeUpTo(t *keptTable, last int64, began time.Time) (removed int64, f *failure) {
	r := &d.tending.removal
	if f = d.run("begin", "BEGIN IMMEDIATE"); f != nil {
		return 0, f
	}
	if f = d.run("remove old rows of "+t.String(), fmt.Sprintf("DELETE FROM %s WHERE %s <= ?", t.sql(), t.rowid), last); f != nil {
		return 0, f
	}
	removed = int64(d.conn.Changes())
	took := time.Since(began)
	if r.reason == bySize && d.exceeded() {
		took /= tendBehind
	}
	r.rows = adapt(r.rows, took, stepRows, stepMost)
	if f = d.run("commit", "COMMIT"); f != nil {
		return 0, f
	}
	r.removed[r.reason] += removed
	d.tending.gauge.removed.WithLabelValues(removalReasons[r.reason]).Add(float64(removed))
	return removed, d.count()
}

// tellRemoved says in the log what was removed, at most once an hour.
func (d *lite) tellRemoved(now time.Time) {
	r := &d.tending.removal
	if !r.told.IsZero() && now.Sub(r.told) < time.Hour {
		return
	}
	r.told = now
	d.log.Info("the retention removes old rows; told once an hour", "by_age", r.removed[byAge], "by_size", r.removed[bySize], "by_keep_free", r.removed[byKeepFree])
	r.removed = [len(removalReasons)]int64{}
}

// stepByAge looks at some rows of a table, from the oldest on, and removes those
// that arrived too long ago. One that says to have arrived in the future, or before there was weir, was
// stored by a wrong clock: it goes with the rows that arrived after it.
func (d *lite) stepByAge(now time.Time, pause time.Duration) (worked bool, f *failure) {
	r := &d.tending.removal
	if len(r.tables) == 0 {
		r.end(now, pause)
		return false, nil
	}
	t := &r.tables[0]
	next := func() { r.tables, r.after = r.tables[1:], minRowID }
	if t.arrival == "" || t.left <= 0 {
		next()
		return true, nil
	}
	if newest, known, f := d.newest(t); f != nil || !known || newest.After(now) {
		next() // the clock is behind the newest row: it may be wrong
		return f == nil, f
	}
	oldest, limit := now.Add(-d.cfg.Retention.Age), min(r.rows, t.left)
	began := time.Now()
	last, found, young, seen := int64(0), false, false, int64(0)
	err := sqlitex.Execute(d.conn, fmt.Sprintf("SELECT %s, %s FROM %s WHERE %[1]s > ? ORDER BY %[1]s LIMIT ?", t.rowid, quote(t.arrival), t.sql()), &sqlitex.ExecOptions{
		Args: []any{r.after, limit}, ResultFunc: func(s *sqlite.Stmt) error {
			at, known := arrived(s, 1)
			if known = known && !at.Before(saneTime) && !at.After(now); young || known && !at.Before(oldest) {
				young = true
				return nil
			}
			r.after = s.ColumnInt64(0)
			seen++
			if known {
				last, found = r.after, true
			}
			return nil
		}})
	if err != nil {
		return false, notRows(liteFailure("find the oldest rows of "+t.String(), err))
	}
	if found {
		removed, f := d.removeUpTo(t, last, began)
		if f != nil {
			return false, f
		}
		t.left -= removed
		d.tellRemoved(now)
	} else {
		r.rows = adapt(r.rows, time.Since(began), stepRows, stepMost)
	}
	if young || seen < limit {
		next()
	}
	return true, nil
}
