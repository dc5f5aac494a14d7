package sqlstore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/weirlog/weir/router"
)

func TestSQLiteWaitsForRoomOnTheDisk(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const total = 8 << 20 // nothing is stored below 1 MiB
		free := int64(8 << 20)
		d := openLite(t, Config{})
		d.thinDisk(&free, total)
		g := d.db.(*lite).tending.gauge
		d.mustWrite(messages(100)...)
		free = 1 << 20
		err := d.tryWrite(messages(100)...)
		if !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), "disk full: ") || !strings.Contains(err.Error(), "nothing is stored below 1 MiB") {
			t.Errorf("Write = %v", err)
		}
		if _, _, err := d.Destination().(router.Positioner).Position(t.Context(), router.NewRun()); !router.IsNeedsOperator(err) {
			t.Errorf("Position = %v", err)
		}
		if metric(t, g.full) != 1 {
			t.Error("weir_sqlite_disk_full is not 1")
		}
		d.want("SELECT count(*) FROM logs", "100")
		free = 8 << 20
		d.mustWrite(messages(100)...)
		d.want("SELECT count(*) FROM logs", "200")
		if metric(t, g.full) != 0 {
			t.Error("weir_sqlite_disk_full is not 0")
		}
	})
}

func TestSQLiteMakesRoomByItsRetention(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const total = 16 << 20 // nothing is stored below 2 MiB
		free := int64(10 << 20)
		d := openLite(t, Config{Retention: Retention{KeepFree: 2 << 20}})
		d.thinDisk(&free, total)
		for range 15 {
			d.mustWrite(benchMessages(1000)...)
		}
		free = 6 << 20
		// A writer that waits calls no Tend.
		for i := 0; ; i++ {
			err := d.tryWrite(message("after"))
			if err == nil {
				break
			}
			if !strings.Contains(err.Error(), "disk full") || i > 50 {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
		}
		d.want("SELECT count(*), max(id) FROM logs WHERE message = 'after'", "1|15001")
		if n := len(d.query("SELECT 1 FROM logs")); n < 3000 || n > 14000 {
			t.Errorf("%d rows are left", n)
		}
	})
}

func TestSQLiteReserveHasBlocks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := openLite(t, Config{})
		free := int64(1 << 40)
		d.thinDisk(&free, 1<<40)
		d.tendFor(2 * time.Second)
		info, err := os.Stat(filepath.Join(d.dir, "logs.db-reserve"))
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() != 16<<20 || info.Mode() != 0o600 {
			t.Errorf("%d bytes, %v", info.Size(), info.Mode())
		}
		if got := blocks(info); got >= 0 && got < info.Size() {
			t.Errorf("%d bytes have blocks", got)
		}
		// It is given away only for SQLite, and made again.
		if !d.db.(*lite).dropReserve() {
			t.Error("it was not removed")
		}
		d.tendFor(2 * time.Second)
		if _, err := os.Stat(filepath.Join(d.dir, "logs.db-reserve")); err != nil {
			t.Error(err)
		}
	})
	for total, want := range map[int64]int64{1 << 40: 16 << 20, 128 << 20: 8 << 20, 16 << 20: 1 << 20, 15 << 20: 0} {
		if got := reserveSize(total); got != want {
			t.Errorf("%d bytes of reserve on a disk of %d", got, total)
		}
	}
}

// reader is another program that reads.
type reader struct {
	t    testing.TB
	conn *sqlite.Conn
}

func (r *rig) reader() *reader {
	r.t.Helper()
	conn, err := sqlite.OpenConn(filepath.Join(r.dir, "logs.db"), sqlite.OpenReadWrite)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	return &reader{r.t, conn}
}

func (r *reader) exec(sql string) {
	if err := sqlitex.ExecuteTransient(r.conn, sql, nil); err != nil {
		r.t.Error(err)
	}
}

func (r *reader) begin() { r.exec("BEGIN"); r.exec("SELECT 1 FROM logs LIMIT 1") }
func (r *reader) end()   { r.exec("COMMIT") }

func (r *rig) walBytes() int64 {
	info, err := os.Stat(filepath.Join(r.dir, "logs.db-wal"))
	if err != nil {
		return 0
	}
	return info.Size()
}

func TestSQLiteLongReaderIsToldOf(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := openLite(t, Config{Indexes: []string{}})
		d.mustWrite(messages(10)...)
		long := d.reader()
		long.begin()
		for d.walBytes() < 20<<20 {
			d.mustWrite(benchMessages(5000)...)
		}
		note := d.tendFor(3 * time.Second)
		if !strings.Contains(note, "a reader has kept its transaction open since") || !strings.Contains(note, "MiB") {
			t.Errorf("note %q", note)
		}
		if got := metric(t, d.db.(*lite).tending.gauge.wal); got < 20<<20 {
			t.Errorf("weir_sqlite_wal_bytes %v", got)
		}
		long.end()
		if note := d.tendFor(15 * time.Second); note != "" {
			t.Errorf("note %q after the reader", note)
		}
		if n := d.walBytes(); n > liteWALBytes {
			t.Errorf("the WAL still has %d bytes", n)
		}
	})
}

// Readers that follow each other without a pause leave SQLite no moment to begin
// its WAL anew.
func TestSQLiteShortReadersDoNotMakeTheWALGrow(t *testing.T) {
	d := openLite(t, Config{Indexes: []string{}})
	d.mustWrite(messages(10)...)
	stop, done := make(chan struct{}), make(chan struct{})
	a, b := d.reader(), d.reader()
	a.begin()
	go func() {
		defer close(done)
		for {
			b.begin()
			a.end()
			select {
			case <-stop:
				b.end()
				return
			case <-time.After(time.Millisecond): // or they would take the whole machine
			}
			a, b = b, a
		}
	}()
	defer func() { close(stop); <-done }()
	most := int64(0)
	for range 100 {
		d.mustWrite(benchMessages(2000)...)
		d.db.(*lite).tending.looks = time.Time{} // as if a second had passed
		d.db.(*lite).tending.wal.next = time.Time{}
		d.Tend(t.Context())
		n := d.walBytes()
		if n < most {
			return // it was emptied
		}
		most = n
	}
	if most > liteWALBytes { // else SQLite found moments to begin it anew, which keeps the file's size
		t.Errorf("the WAL has grown to %d bytes", most)
	}
}

// Field case C27: readers do not disturb, and who locks the file is waited for.
func TestSQLiteIsLockedByOthersForAWhile(t *testing.T) {
	d := openLite(t, Config{})
	d.mustWrite(messages(10)...)
	long := d.reader()
	long.begin()
	d.mustWrite(messages(1000)...)
	long.end()
	for _, lock := range []string{"BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"} {
		other := d.reader()
		other.exec(lock)
		released := make(chan struct{})
		time.AfterFunc(50*time.Millisecond, func() {
			other.exec("ROLLBACK")
			close(released)
		})
		d.mustWrite(messages(10)...)
		<-released
	}
	d.want("SELECT count(*) FROM logs", "1030")

	// Tend waits for nobody.
	other := d.reader()
	other.exec("BEGIN IMMEDIATE")
	d.db.(*lite).cfg.Retention.Size = 1
	d.db.(*lite).tending.looks = time.Time{}
	began := time.Now()
	d.Tend(t.Context())
	if took := time.Since(began); took > liteBusy/2 {
		t.Errorf("Tend took %v", took)
	}
	other.exec("ROLLBACK")
	if got := d.query("SELECT count(*) FROM logs")[0]; got != "1030" {
		t.Error(got)
	}
	if got := fmt.Sprint(timeout(d)); got != fmt.Sprint(liteBusy.Milliseconds()) {
		t.Errorf("busy_timeout is %s afterwards", got)
	}
}

func timeout(d *rig) int64 {
	n, _ := sqlitex.ResultInt64(d.db.(*lite).conn.Prep("PRAGMA busy_timeout"))
	return n
}
