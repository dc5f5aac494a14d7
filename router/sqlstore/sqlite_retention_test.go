package sqlstore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
)

// tendFor does what a writer does that has nothing to write.
func (r *rig) tendFor(d time.Duration) (note string) {
	more := false
	for end := time.Now().Add(d); time.Now().Before(end); {
		if more, note = r.Tend(r.t.Context()); more {
			time.Sleep(10 * time.Millisecond)
		} else {
			time.Sleep(time.Second)
		}
	}
	return note
}

// bubble runs f in a time of its own that begins a day after the program was built.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(router.Built().Add(24 * time.Hour)))
		f(t)
	})
}

// arrivedAt are n messages that arrived one after the other, the last one at last.
func arrivedAt(last time.Time, step time.Duration, n int) []*router.Message {
	msgs := messages(n)
	for i, m := range msgs {
		m.Received = last.Add(-time.Duration(n-1-i) * step).UnixNano()
	}
	return msgs
}

func TestSQLiteRetentionRemovesByAge(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := openLite(t, Config{Retention: Retention{Age: 10 * time.Hour}})
		d.mustWrite(arrivedAt(time.Now(), time.Minute, 1200)...)
		for range 3 { // passes are half an hour apart
			d.tendFor(time.Minute)
		}
		if got := d.query("SELECT count(*), min(id) FROM logs")[0]; got != "1080|121" {
			t.Errorf("the first pass left %s: it removes a tenth, from the oldest on", got)
		}
		for range 10 {
			d.mustWrite(arrivedAt(time.Now(), time.Minute, 1)...)
			d.tendFor(30 * time.Minute)
		}
		oldest := time.Now().Add(-10 * time.Hour)
		rows := 0
		for _, at := range d.query("SELECT received_at FROM logs ORDER BY id") {
			arrived, err := time.Parse(time.RFC3339Nano, at)
			if err != nil || arrived.Before(oldest.Add(-31*time.Minute)) {
				t.Fatalf("a row of %s is still there (%v)", at, err)
			}
			rows++
		}
		if rows < 250 {
			t.Errorf("only %d rows are left: rows went that were not old", rows)
		}
		if got := d.query("SELECT max(message) FROM logs WHERE message = 'message 1199'")[0]; got != "message 1199" {
			t.Errorf("the newest row is gone: %s", got)
		}
	})
}

func TestSQLiteRetentionDoesNotTrustTheClock(t *testing.T) {
	const all = "600|1"
	retention := Config{Retention: Retention{Age: time.Hour}}
	left := func(d *rig) string { return d.query("SELECT count(*), min(id) FROM logs")[0] }

	synctest.Test(t, func(t *testing.T) { // a box that believes to be in the year 2000
		d := openLite(t, retention)
		d.mustWrite(arrivedAt(time.Now().Add(-48*time.Hour), time.Minute, 600)...)
		d.tendFor(2 * time.Hour)
		if got := left(d); got != all {
			t.Errorf("before the build: %s", got)
		}
	})
	bubble(t, func(t *testing.T) { // the newest row is from tomorrow
		d := openLite(t, retention)
		d.mustWrite(arrivedAt(time.Now().Add(24*time.Hour), 10*time.Minute, 600)...)
		d.tendFor(2 * time.Hour)
		if got := left(d); got != all {
			t.Errorf("behind the newest row: %s", got)
		}
		time.Sleep(24 * time.Hour)
		if d.tendFor(2 * time.Hour); left(d) == all {
			t.Error("later than the newest row nothing was removed")
		}
	})
	bubble(t, func(t *testing.T) { // rows of wrong clocks go with those behind them
		d := openLite(t, retention)
		now := time.Now()
		d.mustWrite(arrivedAt(time.Unix(1000, 0), time.Second, 10)...)
		d.mustWrite(arrivedAt(now.Add(50*365*24*time.Hour), time.Second, 10)...)
		d.mustWrite(arrivedAt(now.Add(-30*time.Minute), time.Second, 10)...)
		if d.tendFor(10 * time.Minute); left(d) != "30|1" {
			t.Errorf("rows that arrived before young ones: %s left", left(d))
		}
		time.Sleep(time.Hour)
		d.mustWrite(arrivedAt(time.Now(), time.Second, 1)...)
		if d.tendFor(10 * time.Minute); left(d) != "1|31" {
			t.Errorf("rows that arrived before old ones: %s left", left(d))
		}
	})
}

func TestSQLiteRetentionReadsEveryFormOfTime(t *testing.T) {
	for _, declared := range []string{"TEXT", "INTEGER", "REAL", "DATETIME", ""} {
		t.Run(declared, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				d := openLite(t, Config{Columns: columns("arrived", Column{From: "received_at", Type: declared}, "message", "message"), Retention: Retention{Age: time.Hour}})
				d.mustWrite(arrivedAt(time.Now(), time.Minute, 100)...)
				d.tendFor(time.Minute)
				d.want("SELECT count(*) FROM logs", "60")
			})
		})
	}
}

func TestSQLiteRetentionKeepsTheSize(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const size = 2 << 20
		d := openLite(t, Config{Retention: Retention{Size: size}})
		for range 20 {
			d.mustWrite(benchMessages(1000)...)
		}
		rows := func() (n, low, high int) {
			fmt.Sscanf(d.query("SELECT count(*), min(id), max(id) FROM logs")[0], "%d|%d|%d", &n, &low, &high)
			return n, low, high
		}
		before, _, _ := rows()
		if d.tendFor(time.Second); true {
			if n, _, _ := rows(); n < before*9/10 || n == before {
				t.Errorf("one pass left %d of %d rows: it removes up to a tenth", n, before)
			}
		}
		d.tendFor(time.Minute)
		n, low, high := rows()
		if high != 20000 || high-low+1 != n {
			t.Errorf("rows %d to %d, %d of them: not the newest ones", low, high, n)
		}
		lite := d.db.(*lite)
		if used := lite.tending.pages.used(); used > size || used < size*3/4 {
			t.Errorf("%d bytes are used of %d", used, size)
		}
		if f := lite.truncateWAL(); f != nil {
			t.Fatal(f)
		}
		info, err := os.Stat(filepath.Join(d.dir, "logs.db"))
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > size*5/4+1<<20 { // a megabyte of free pages is nothing
			t.Errorf("the file still has %d bytes for %d", info.Size(), size)
		}
		if got := metric(t, lite.tending.gauge.removed.WithLabelValues("size")); int(got) != 20000-n {
			t.Errorf("counted %v removed rows of %d", got, 20000-n)
		}
		// Under load the bound is kept too.
		for range 40 {
			d.mustWrite(benchMessages(1000)...)
			d.Tend(t.Context())
			time.Sleep(250 * time.Millisecond) // a pass each second
			if used := lite.tending.pages.used(); used > 2*size {
				t.Fatalf("%d bytes are used of %d while rows come", used, size)
			}
		}
	})
}

func metric(t testing.TB, m prometheus.Metric) float64 {
	t.Helper()
	var out dto.Metric
	if err := m.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.GetCounter().GetValue() + out.GetGauge().GetValue()
}

// thinDisk is a disk on which others have left so much, less what the database takes.
func (r *rig) thinDisk(free *int64, total int64) {
	path := filepath.Join(r.dir, "logs.db")
	r.db.(*lite).tending.disk = func(string) (int64, int64, bool) {
		left := *free
		for _, suffix := range []string{"", "-wal", "-reserve"} {
			if info, err := os.Stat(path + suffix); err == nil {
				left -= info.Size()
			}
		}
		return max(left, 0), total, true
	}
}

func TestSQLiteRetentionKeepsTheDiskFree(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const keep, total = 2 << 20, 8 << 20 // nothing is stored below 1 MiB
		free := int64(10 << 20)
		d := openLite(t, Config{Retention: Retention{KeepFree: keep}})
		d.thinDisk(&free, total)
		for range 15 {
			d.mustWrite(benchMessages(1000)...)
		}
		d.tendFor(time.Minute)
		d.want("SELECT count(*) FROM logs", "15000")

		free = 5 << 20 // others take a part
		d.tendFor(2 * time.Minute)
		if left, _, _ := d.db.(*lite).disk(); left < keep {
			t.Errorf("%d bytes are free", left)
		}
		var n, low, high int
		fmt.Sscanf(d.query("SELECT count(*), min(id), max(id) FROM logs")[0], "%d|%d|%d", &n, &low, &high)
		if n < 3000 || n > 12000 || high != 15000 || high-low+1 != n {
			t.Errorf("%d rows are left, %d to %d", n, low, high)
		}

		free = 0 // others take all: what is newest stays nevertheless
		d.tendFor(2 * time.Minute)
		if used := d.db.(*lite).tending.pages.used(); used < keep*3/4 {
			t.Errorf("the database was emptied to %d bytes", used)
		}
	})
}

func TestSQLiteRetentionTellsWhatItCannotDo(t *testing.T) {
	check := func(create, want string) {
		t.Helper()
		bubble(t, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "logs.db")
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			for _, s := range strings.Split(create, ";;") {
				query(t, path, s)
			}
			d := open(t, dir, Config{SQLite: path, Columns: columns("message", "message", "received_at", "received_at"), Retention: Retention{Age: time.Minute}})
			d.mustWrite(arrivedAt(time.Now().Add(-time.Hour), time.Second, 10)...)
			if note := d.tendFor(time.Minute); !strings.Contains(note, want) || want == "" && note != "" {
				t.Errorf("%s: %q", create, note)
			}
			if n := len(d.query("SELECT 1 FROM logs")); (n == 0) != (want == "") {
				t.Errorf("%s: %d rows are left", create, n)
			}
		})
	}
	check("CREATE TABLE logs (message, received_at, rowid, oid)", "")
	check("CREATE TABLE logs (message, received_at, id INTEGER PRIMARY KEY DESC)", "")
	check("CREATE TABLE logs (message TEXT PRIMARY KEY, received_at) WITHOUT ROWID", "WITHOUT ROWID")
	check("CREATE TABLE kept (m, r);;CREATE VIEW logs AS SELECT m AS message, r AS received_at FROM kept;;"+
		"CREATE TRIGGER t INSTEAD OF INSERT ON logs BEGIN INSERT INTO kept VALUES (new.message, new.received_at); END", "it is a view")
	check("CREATE TABLE logs (message, received_at);;CREATE TRIGGER t BEFORE DELETE ON logs BEGIN SELECT RAISE(ABORT, 'kept by law'); END", "kept by law")
}

func TestSQLiteRetentionForgetsWhatWasMended(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "logs.db")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		query(t, path, "CREATE TABLE logs (message TEXT PRIMARY KEY, received_at) WITHOUT ROWID")
		d := open(t, dir, Config{SQLite: path, Columns: columns("message", "message", "received_at", "received_at"), Retention: Retention{Age: time.Minute}})
		old := func() []*router.Message { return arrivedAt(time.Now().Add(-time.Hour), time.Second, 10) }
		d.mustWrite(old()...)
		if note := d.tendFor(time.Minute); !strings.Contains(note, "cannot remove rows of logs: it is WITHOUT ROWID") {
			t.Errorf("%q", note)
		}
		d.query("DROP TABLE logs")
		d.query("CREATE TABLE logs (message, received_at)")
		d.mustWrite(old()...)
		if note := d.tendFor(time.Minute); note != "" {
			t.Errorf("still %q", note)
		}
		d.want("SELECT count(*) FROM logs", "0")
	})
}

func TestSQLiteRetentionGoesOverAllTables(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := openLite(t, Config{Table: "logs_${app_name}", Retention: Retention{Age: time.Hour, Size: 1 << 20}})
		d.query("CREATE TABLE logs_of_somebody (received_at, message)")
		d.query("INSERT INTO logs_of_somebody VALUES ('2026-01-01T00:00:00Z', 'mine')")
		write := func(app string, msgs []*router.Message) {
			for _, m := range msgs {
				m.AppName = []byte(app)
			}
			d.mustWrite(msgs...)
		}
		write("old", arrivedAt(time.Now().Add(-2*time.Hour), time.Second, 100))
		write("new", arrivedAt(time.Now(), time.Second, 100))
		d.tendFor(time.Minute)
		d.want("SELECT (SELECT count(*) FROM logs_old), (SELECT count(*) FROM logs_new), (SELECT count(*) FROM logs_of_somebody)", "0|100|1")

		// By size the oldest row of all tables goes first.
		for i := range 10 {
			msgs := arrivedAt(time.Now().Add(time.Duration(i-10)*time.Minute), time.Millisecond, 500)
			for _, m := range msgs {
				m.Text = []byte(strings.Repeat("x", 500))
			}
			write([]string{"a", "b"}[i%2], msgs)
		}
		d.tendFor(2 * time.Minute)
		a, b := d.query("SELECT min(received_at) FROM logs_a")[0], d.query("SELECT min(received_at) FROM logs_b")[0]
		first, _ := time.Parse(time.RFC3339Nano, a)
		second, _ := time.Parse(time.RFC3339Nano, b)
		if first.IsZero() || second.IsZero() || first.Sub(second).Abs() > 2*time.Minute+time.Second {
			t.Errorf("the oldest rows are of %s and %s", a, b)
		}
		if used := d.db.(*lite).tending.pages.used(); used > 1<<20 {
			t.Errorf("%d bytes are used", used)
		}
	})
}

func TestSQLiteSettingsOfRetentionAreChecked(t *testing.T) {
	check := func(c Config, want string) {
		t.Helper()
		for _, p := range c.Check() {
			if strings.Contains(p.Path+": "+p.What+" ("+p.Hint+")", want) {
				return
			}
		}
		t.Errorf("no problem with %q in %v", want, c.Check())
	}
	check(Config{SQLite: "a", Retention: Retention{Age: time.Second}}, "retention.age")
	check(Config{SQLite: "a", Retention: Retention{Age: time.Hour}, Columns: columns("m", "message")}, "retention.age: no column says when a row arrived")
	check(Config{SQLite: "a", Retention: Retention{Size: 1000}}, "retention.size")
	check(Config{SQLite: "a", Retention: Retention{KeepFree: 1}}, "retention.keep_free")
	check(Config{Postgres: plainSecret("postgres://x"), Retention: Retention{Age: time.Hour}}, "partition: {")
	check(Config{Postgres: plainSecret("postgres://x"), FullText: "message"}, "full_text: ")
	check(Config{SQLite: "a", FullText: "text"}, "full_text: no column text")
	check(Config{SQLite: "a", FullText: "rank", Columns: columns("rank", "message")}, "full_text: ")
	check(Config{SQLite: "./"}, "sqlite: a directory")
	check(Config{SQLite: "logs/"}, "logs/logs.db")
	check(Config{SQLite: ":memory:"}, "sqlite: a database in memory")

	var c Config
	doc := config.Parse(&c, config.Options{}, "weir.yaml", []byte("sqlite: logs.db\nretention: {age: 30d, size: 2GiB, keep_free: off}\nfull_text: message\n"))
	if err := doc.Err(); err != nil || c.Retention != (Retention{Age: 30 * 24 * time.Hour, Size: 2 << 30}) || c.FullText != "message" || len(c.Check()) > 0 {
		t.Errorf("%+v, %v, %v", c.Retention, err, c.Check())
	}
}
