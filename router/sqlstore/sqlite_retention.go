package sqlstore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// removal is what the retention is at. It goes in passes: one begins when a bound
// is exceeded and ends when it is kept, or when a tenth of the rows are gone, so that
// a mistake costs no more than that at once.
type removal struct {
	reason string // of the pass that is under way; "": none
	left   int64  // rows that it may still remove
	behind bool   // it is so late that rows have to wait for it
	tables []keptTable
	after  int64 // by age: rows of tables[0] up to that one were looked at
	rows   int64 // in a step

	next    [3]time.Time // of each reason, before which no pass begins
	removed [3]int64     // since it was told in the log
	told    time.Time
}

// Reasons of a pass.
const (
	byAge = iota
	bySize
	byKeepFree
)

var removalReasons = [...]string{"age", "size", "keep_free"}

const (
	passPart  = 10   // a pass removes one row of so many
	passRows  = 100  // or so many, if that is more
	stepRows  = 16   // in a step, at least
	stepMost  = 8192 // and at most
	sizeSlack = 64   // a pass goes below the size by this part of it, so that passes are seldom
)

// keptTable is a table whose rows are in order of their arrival.
type keptTable struct {
	table
	rowid   string // the name of its rowid
	arrival string // the column of the time; "": there is none
	left    int64  // rows that a pass by age may still remove from it
}

// removeOld does one step of the retention.
func (d *lite) removeOld(now time.Time, trusted bool) (worked bool, f *failure) {
	r := &d.tending.removal
	if !d.cfg.Retention.on() {
		return false, nil
	}
	if r.reason == "" {
		if f := d.beginPass(now, trusted); f != nil || r.reason == "" {
			return false, f
		}
	}
	if f := d.count(); f != nil {
		return false, f
	}
	switch i := r.index(); i {
	case byAge:
		if !trusted {
			r.end(now, 0)
			return false, nil
		}
		pause := min(max(d.cfg.Retention.Age/20, time.Second), time.Hour)
		return d.stepByAge(now, pause)
	default:
		over := d.over(i)
		if over <= 0 || r.left <= 0 {
			r.end(now, tendEvery)
			return false, nil
		}
		return d.stepOldest(now, i, over)
	}
}

func (r *removal) index() int {
	for i, reason := range removalReasons {
		if r.reason == reason {
			return i
		}
	}
	panic("BUG: no such reason: " + r.reason)
}

// end ends the pass; the next one for the same reason begins after a pause.
func (r *removal) end(now time.Time, pause time.Duration) {
	r.next[r.index()] = now.Add(pause)
	r.reason, r.tables, r.behind = "", nil, false
}

// beginPass begins a pass when one is due.
func (d *lite) beginPass(now time.Time, trusted bool) *failure {
	r, keep := &d.tending.removal, d.cfg.Retention
	due := func(i int) bool { return !now.Before(r.next[i]) }
	switch {
	case keep.Size > 0 && due(bySize) && d.tending.pages.used() > int64(keep.Size):
		r.reason = removalReasons[bySize]
	case keep.KeepFree > 0 && due(byKeepFree) && d.short():
		// What the WAL holds may be enough.
		if f := d.truncateWAL(); f != nil && f.class != temp {
			return f
		}
		if !d.short() {
			return nil
		}
		r.reason = removalReasons[byKeepFree]
	case keep.Age > 0 && due(byAge) && trusted:
		r.reason = removalReasons[byAge]
	default:
		return nil
	}
	r.after, r.left = minRowID, 0
	r.rows = max(r.rows, stepRows)
	var f *failure
	if r.tables, f = d.keptTables(); f != nil {
		r.reason = ""
		return f
	}
	for i := range r.tables {
		t := &r.tables[i]
		low, high, f := d.ends(t)
		if f != nil {
			r.reason = ""
			return f
		}
		if high >= low {
			t.left = max((high-low)/passPart+1, passRows)
			r.left += t.left
		}
	}
	return nil
}

const minRowID = -1 << 63

// saneTime has passed wherever weir runs.
var saneTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// short reports whether the disk has less free space than it should, and the
// database is large enough to do something about it.
func (d *lite) short() bool {
	free, _, ok := d.disk()
	return ok && free < d.keepFree() && d.over(byKeepFree) > 0
}

// keepFree is the free space at which a pass begins.
func (d *lite) keepFree() int64 {
	_, total, _ := d.disk()
	return max(int64(d.cfg.Retention.KeepFree), stopBelow(total))
}

// wantedFree is the free space at which it ends.
func (d *lite) wantedFree() int64 { n := d.keepFree(); return n + n/8 }

// over is how many bytes too much the rows take.
func (d *lite) over(reason int) int64 {
	p, keep := &d.tending.pages, d.cfg.Retention
	if reason == bySize {
		return p.used() - int64(keep.Size-keep.Size/sizeSlack)
	}
	free, _, ok := d.disk()
	if !ok {
		return 0
	}
	// Pages that are free already will be given back, or used for the next rows.
	return min(d.wantedFree()-free-p.free*p.size, p.used()-int64(keep.KeepFree))
}

// stepOldest removes some of the oldest rows, of the table that has the oldest.
func (d *lite) stepOldest(now time.Time, reason int, over int64) (worked bool, f *failure) {
	r := &d.tending.removal
	t, rows, f := d.oldest()
	if f != nil {
		return false, f
	}
	if t == nil {
		r.end(now, tendEvery)
		return false, nil
	}
	r.behind = reason == bySize && over > int64(d.cfg.Retention.Size)/16
	n := min(r.rows, r.left)
	if used := d.tending.pages.used(); used > 0 {
		n = min(n, max(rows*over/used+1, stepRows)) // about what is needed, and not much more
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
	removed, f := d.removeUpTo(t, last, reason)
	if f != nil {
		return false, f
	}
	r.left -= max(removed, 1)
	r.rows = adapt(r.rows, time.Since(began), stepRows, stepMost)
	d.tellRemoved(now)
	return true, nil
}

// removeUpTo removes the rows up to one, in a transaction of its own.
func (d *lite) removeUpTo(t *keptTable, last int64, reason int) (removed int64, f *failure) {
	if f := d.run("remove old rows of "+t.String(), fmt.Sprintf("DELETE FROM %s WHERE %s <= ?", t.sql(), t.rowid), last); f != nil {
		return 0, f
	}
	removed = int64(d.conn.Changes())
	d.tending.removal.removed[reason] += removed
	d.tending.gauge.removed.WithLabelValues(removalReasons[reason]).Add(float64(removed))
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
	r.removed = [3]int64{}
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
		removed, f := d.removeUpTo(t, last, byAge)
		if f != nil {
			return false, f
		}
		t.left -= removed
		d.tellRemoved(now)
	}
	r.rows = adapt(r.rows, time.Since(began), stepRows, stepMost)
	if young || seen < limit {
		next()
	}
	return true, nil
}

// arrived reads a time as weir stores it in column i: RFC 3339, nanoseconds or seconds.
func arrived(s *sqlite.Stmt, i int) (at time.Time, ok bool) {
	switch s.ColumnType(i) {
	case sqlite.TypeInteger:
		return time.Unix(0, s.ColumnInt64(i)), true
	case sqlite.TypeFloat:
		return time.UnixMicro(int64(s.ColumnFloat(i) * 1e6)), true
	case sqlite.TypeText:
		at, err := time.Parse(time.RFC3339Nano, s.ColumnText(i))
		return at, err == nil
	}
	return time.Time{}, false
}

// newest is when the newest row arrived; known is false when the table has none or does not say.
func (d *lite) newest(t *keptTable) (at time.Time, known bool, f *failure) {
	err := sqlitex.Execute(d.conn, fmt.Sprintf("SELECT %s FROM %s ORDER BY %s DESC LIMIT 1", quote(t.arrival), t.sql(), t.rowid), &sqlitex.ExecOptions{
		ResultFunc: func(s *sqlite.Stmt) error { at, known = arrived(s, 0); return nil }})
	if err != nil {
		return at, false, notRows(liteFailure("read the newest row of "+t.String(), err))
	}
	return at, known, nil
}

// ends are the lowest and the highest rowid; high is below low when there is no row.
func (d *lite) ends(t *keptTable) (low, high int64, f *failure) {
	low, high = 0, -1
	err := sqlitex.Execute(d.conn, fmt.Sprintf("SELECT (SELECT min(%s) FROM %s), (SELECT max(%[1]s) FROM %[2]s)", t.rowid, t.sql()), &sqlitex.ExecOptions{
		ResultFunc: func(s *sqlite.Stmt) error {
			if s.ColumnType(0) != sqlite.TypeNull {
				low, high = s.ColumnInt64(0), s.ColumnInt64(1)
			}
			return nil
		}})
	if err != nil {
		return 0, 0, notRows(liteFailure("look at the rows of "+t.String(), err))
	}
	return low, high, nil
}

// oldest is the table of the pass with the row that arrived first, and about how
// many rows all of them have. Where rows do not say when they arrived it is the
// one with the most rows.
func (d *lite) oldest() (best *keptTable, rows int64, f *failure) {
	var first time.Time
	var most int64
	for i := range d.tending.removal.tables {
		t := &d.tending.removal.tables[i]
		low, high, f := d.ends(t)
		if f != nil {
			return nil, 0, f
		}
		if high < low {
			continue
		}
		n := high - low + 1
		rows += n
		var at time.Time
		known := false
		if t.arrival != "" && len(d.tending.removal.tables) > 1 {
			err := sqlitex.Execute(d.conn, fmt.Sprintf("SELECT %s FROM %s WHERE %s = ?", quote(t.arrival), t.sql(), t.rowid), &sqlitex.ExecOptions{
				Args: []any{low}, ResultFunc: func(s *sqlite.Stmt) error { at, known = arrived(s, 0); return nil }})
			if err != nil {
				return nil, 0, notRows(liteFailure("read the oldest row of "+t.String(), err))
			}
		}
		better := best == nil || n > most
		if known && !first.IsZero() {
			better = at.Before(first)
		}
		if better {
			best, first, most = t, at, n
		}
	}
	return best, rows, nil
}

// keptTables are the tables of the destination of which rows can be removed: not
// views, and not WITHOUT ROWID.
func (d *lite) keptTables() (list []keptTable, f *failure) {
	tables, f := d.stored()
	if f != nil {
		return nil, f
	}
	for _, t := range tables {
		k, why, f := d.kept(t)
		if f != nil {
			return nil, f
		}
		if why != "" && d.naming.fixed == "" {
			continue // nobody has said that it is ours
		}
		if why != "" {
			if _, ok := d.tending.said["remove rows of "+t.String()]; !ok {
				d.tending.say(d, "remove rows of "+t.String(), fmt.Errorf("%s", why))
			}
			continue
		}
		list = append(list, k)
	}
	return list, nil
}

// kept looks at a table; why is the reason for which it has no order of arrival.
func (d *lite) kept(t table) (k keptTable, why string, f *failure) {
	k = keptTable{table: t, rowid: "rowid", arrival: d.cfg.arrival()}
	kind, withoutRowid := "", false
	err := sqlitex.Execute(d.conn, "SELECT type, wr FROM pragma_table_list(?) WHERE schema = ?", &sqlitex.ExecOptions{
		Args: []any{t.name, d.schemaName()}, ResultFunc: func(s *sqlite.Stmt) error {
			kind, withoutRowid = s.ColumnText(0), s.ColumnInt(1) != 0
			return nil
		}})
	var names []string
	if err == nil {
		err = sqlitex.Execute(d.conn, "SELECT lower(name) FROM pragma_table_xinfo(?, ?)", &sqlitex.ExecOptions{
			Args: []any{t.name, d.schemaName()}, ResultFunc: func(s *sqlite.Stmt) error { names = append(names, s.ColumnText(0)); return nil }})
	}
	switch {
	case err != nil:
		return k, "", notRows(liteFailure("look at table "+t.String(), err))
	case kind == "":
		return k, "it is gone", nil
	case kind != "table":
		return k, "it is a " + kind, nil
	case withoutRowid:
		return k, "it is WITHOUT ROWID, so its rows have no order of arrival", nil
	}
	if d.naming.fixed == "" {
		for i := range d.columns {
			if !slices.Contains(names, strings.ToLower(d.columns[i].name)) {
				return k, "it has other columns", nil
			}
		}
	}
	for _, k.rowid = range []string{"rowid", "_rowid_", "oid"} {
		if !slices.Contains(names, k.rowid) {
			return k, "", nil
		}
	}
	return k, "columns hide its rowid", nil
}
