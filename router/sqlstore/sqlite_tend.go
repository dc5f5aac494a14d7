package sqlstore

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/weirlog/weir/router"
)

// tending is what a SQLite file gets between transactions. All of it belongs to
// the goroutine that writes.
type tending struct {
	clock router.Clock
	disk  func(dir string) (free, total int64, ok bool) // diskSpace

	filesystem func(dir string) string // NetworkFilesystem
	network    string                  // kind of file system, when it is one that is not safe
	home       string                  // the file that holds the tables
	pages      pages
	wal        wal
	removal    removal
	index      fullText
	space      space

	looks time.Time         // when the next look is due
	rest  time.Time         // no work before that, so that rows have most of the time
	said  map[string]string // what does not work, by what it is; logged once
	gauge *tendingMetrics
}

const (
	tendEvery    = time.Second
	tendStep     = 5 * time.Millisecond // of work at a time
	tendShare    = 4                    // times as long as the work rest, so a fifth of the time
	tendPatience = 20                   // ms that the lock of another program is waited for
	tendSulk     = time.Minute          // rest after what did not work
)

// Tend implements router.Tender.
func (s *Store) Tend(ctx context.Context) (more bool, note string) {
	if t, ok := s.db.(interface {
		tend(context.Context) (more bool, note string)
	}); ok {
		return t.tend(ctx)
	}
	return false, ""
}

// tend does one piece of the work that is due.
func (d *lite) tend(ctx context.Context) (more bool, note string) {
	c, now := &d.tending, time.Now()
	trusted := c.clock.Trusted(now)
	if d.conn == nil || ctx.Err() != nil {
		return false, d.note() // Write opens it, when there is something to write
	}
	restore := d.hurry(tendPatience)
	defer restore()
	if due := !now.Before(c.looks); due || c.wal.high {
		if due {
			c.looks = now.Add(tendEvery)
		}
		if f := d.look(now); f != nil {
			return false, d.fails("look at the database", f)
		}
		if f := d.tendWAL(now); f != nil {
			return false, d.fails("checkpoint", f)
		}
		if due {
			d.keepReserve()
		}
	}
	if now.Before(c.rest) && !d.exceeded() {
		return c.busy(), d.note()
	}
	if d.cramped() {
		return false, d.note()
	}
	for _, piece := range [...]struct {
		what string
		do   func(now time.Time, trusted bool) (worked bool, f *failure)
	}{
		{"remove old rows", d.removeOld},
		{"build the full-text index", d.indexOlder},
		{"give free pages back", d.giveBack},
	} {
		worked, f := piece.do(now, trusted)
		if f != nil {
			return false, d.fails(piece.what, f)
		}
		d.works(piece.what)
		if worked {
			c.rest = time.Now().Add(tendShare * time.Since(now))
			return true, d.note()
		}
	}
	return c.busy(), d.note()
}

// busy reports whether the next call should come soon.
func (c *tending) busy() bool {
	return c.wal.high || c.removal.reason != noPass || c.index.behind() || c.pages.giving
}

// note is what a person should know of a file that works.
func (d *lite) note() string {
	c := &d.tending
	var notes []string
	if c.network != "" {
		notes = append(notes, fmt.Sprintf("the file is on a network file system (%s), where SQLite may damage it", c.network))
	}
	if w := &c.wal; !w.held.IsZero() {
		notes = append(notes, fmt.Sprintf("a reader has kept its transaction open since %s: the WAL cannot be emptied and has grown to %s",
			w.held.UTC().Format(time.RFC3339), sized(w.bytes)))
	}
	if c.index.behind() {
		notes = append(notes, fmt.Sprintf("the full-text index is being built, about %d rows are to do", c.index.left()))
	}
	for _, what := range slices.Sorted(maps.Keys(c.said)) { // in the same order each time
		notes = append(notes, "cannot "+what+": "+c.said[what])
	}
	return strings.Join(notes, "; ")
}

// fails ends a piece of work that did not work, and says so once.
func (d *lite) fails(what string, f *failure) string {
	c := &d.tending
	d.abort(f)
	if f.class == temp {
		c.rest = time.Now().Add(tendEvery) // another program has the file
		return d.note()
	}
	c.rest = time.Now().Add(tendSulk)
	c.removal.reason = noPass
	d.say(what, f.code, f)
	return d.note()
}

// say notes that something does not work. It is logged once, and again when the
// code is another one.
func (d *lite) say(what, code string, err error) {
	c := &d.tending
	if c.said[what] == "" || !strings.Contains(c.said[what], code) {
		d.log.Warn("cannot "+what, "error", err)
	}
	if c.said == nil {
		c.said = map[string]string{}
	}
	c.said[what] = err.Error()
}

// works takes back what say said.
func (d *lite) works(what string) {
	if _, ok := d.tending.said[what]; ok {
		delete(d.tending.said, what)
		d.log.Info("can " + what + " again")
	}
}

// hurry makes statements wait no longer than that many ms for other programs,
// until restore is called.
func (d *lite) hurry(ms int) (restore func()) {
	conn := d.conn
	before, err := sqlitex.ResultInt64(conn.Prep("PRAGMA busy_timeout"))
	if err != nil {
		return func() {}
	}
	if before > int64(ms) {
		conn.SetBusyTimeout(time.Duration(ms) * time.Millisecond)
	}
	return func() {
		if d.conn == conn {
			conn.SetBusyTimeout(time.Duration(before) * time.Millisecond)
		}
	}
}

// pages are those of the file that holds the tables.
type pages struct {
	count, free, size int64
	vacuum            int64 // auto_vacuum: 2 is INCREMENTAL
	giving            bool  // free pages are being given back
	step              int64 // pages that are given back at once
}

// used is what the rows take, with their indexes.
func (p *pages) used() int64 { return (p.count - p.free) * p.size }

// look reads how large all is.
func (d *lite) look(now time.Time) *failure {
	c := &d.tending
	if c.home == "" {
		err := sqlitex.Execute(d.conn, "SELECT file FROM pragma_database_list WHERE name = ?", &sqlitex.ExecOptions{
			Args: []any{d.schemaName()}, ResultFunc: func(s *sqlite.Stmt) error { c.home = s.ColumnText(0); return nil }})
		if err != nil || c.home == "" {
			c.home = d.path
		}
	}
	if f := d.count(); f != nil {
		return f
	}
	c.wal.bytes = 0
	if info, err := os.Stat(c.home + "-wal"); err == nil {
		c.wal.bytes = info.Size()
	}
	g := c.gauge
	g.used.Set(float64(c.pages.used()))
	g.free.Set(float64(c.pages.free * c.pages.size))
	g.wal.Set(float64(c.wal.bytes))
	g.index.Set(float64(c.index.left()))
	if free, _, ok := d.disk(); ok {
		g.disk.Set(float64(free))
	}
	return nil
}

// count reads the number of pages.
func (d *lite) count() *failure {
	p := &d.tending.pages
	schema := quote(d.schemaName())
	for _, v := range []struct {
		pragma string
		to     *int64
	}{{"page_count", &p.count}, {"freelist_count", &p.free}, {"page_size", &p.size}, {"auto_vacuum", &p.vacuum}} {
		stmt, err := d.conn.Prepare("PRAGMA " + schema + "." + v.pragma)
		if err == nil {
			*v.to, err = sqlitex.ResultInt64(stmt)
		}
		if err != nil {
			return liteFailure("read "+v.pragma, err)
		}
	}
	return nil
}

// run executes a statement between transactions.
func (d *lite) run(attempt, sql string, args ...any) *failure {
	if err := sqlitex.Execute(d.conn, sql, &sqlitex.ExecOptions{Args: args}); err != nil {
		return notRows(liteFailure(attempt, err))
	}
	return nil
}

// notRows is f where no row of weir's is to blame.
func notRows(f *failure) *failure {
	switch f.class {
	case row, suspect, bug:
		f.class = operator
	}
	return f
}

// stored are the tables into which rows are put. Where a template names them they
// are all that are there of such names.
func (d *lite) stored() (list []table, f *failure) {
	if d.naming.fixed != "" {
		return []table{d.table}, nil
	}
	err := sqlitex.Execute(d.conn, "SELECT name FROM "+quote(d.schemaName())+".sqlite_schema WHERE type = 'table'", &sqlitex.ExecOptions{
		ResultFunc: func(s *sqlite.Stmt) error {
			if name := s.ColumnText(0); d.naming.matches(name) {
				list = append(list, table{d.naming.schema, name})
			}
			return nil
		}})
	if err != nil {
		return nil, notRows(liteFailure("list the tables", err))
	}
	return list, nil
}

// schemaName is the name under which the connection knows the file that holds the tables.
func (d *lite) schemaName() string {
	if d.table.schema == "" {
		return "main"
	}
	return d.table.schema
}

// home is the file that holds the tables, as far as is known.
func (d *lite) home() string { return cmp.Or(d.tending.home, d.path) }

// disk is the space of the file's disk.
func (d *lite) disk() (free, total int64, ok bool) {
	return d.tending.disk(filepath.Dir(d.home()))
}

// sized is a number of bytes for people.
func sized(n int64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

// adapt changes the size of a step so that it takes about tendStep.
func adapt(n int64, took time.Duration, least, most int64) int64 {
	switch {
	case took > tendStep:
		n /= 2
	case took < tendStep/2:
		n *= 2
	}
	return min(max(n, least), most)
}
