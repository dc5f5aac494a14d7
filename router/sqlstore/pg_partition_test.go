package sqlstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router"
)

func day(y, m, d, h int) time.Time { return time.Date(y, time.Month(m), d, h, 0, 0, 0, time.UTC) }

func TestPeriodsAreOfUTC(t *testing.T) {
	check := func(by string, at, start, next time.Time, name string) {
		t.Helper()
		p := Partition{By: by}
		if got := p.start(at); !got.Equal(start) || !p.next(at).Equal(next) || p.name("logs", got) != name {
			t.Errorf("%s of %v: %v to %v, %s", by, at, got, p.next(at), p.name("logs", got))
		}
		if began, ok := p.began("logs", name); !ok || !began.Equal(start) {
			t.Errorf("%s began %v, %v", name, began, ok)
		}
	}
	east := time.FixedZone("", 14*3600)
	check("hour", day(2026, 11, 30, 18).Add(59*time.Minute), day(2026, 11, 30, 18), day(2026, 11, 30, 19), "logs_p2026_11_30_18")
	check("day", time.Date(2026, 12, 1, 3, 0, 0, 0, east), day(2026, 11, 30, 0), day(2026, 12, 1, 0), "logs_p2026_11_30")
	check("week", day(2026, 11, 29, 23), day(2026, 11, 23, 0), day(2026, 11, 30, 0), "logs_p2026_11_23") // a Sunday
	check("week", day(2026, 11, 30, 0), day(2026, 11, 30, 0), day(2026, 12, 7, 0), "logs_p2026_11_30")
	check("month", day(2026, 12, 31, 23), day(2026, 12, 1, 0), day(2027, 1, 1, 0), "logs_p2026_12")
	p := Partition{By: "week"}
	for _, name := range []string{"logs_p2026_11_24", "logs_p2026_11", "logs_pold", "logs", "log_p2026_11_30", "logs_p2026_11_30_1"} {
		if at, ok := p.began("logs", name); ok {
			t.Errorf("%s is one of ours, of %v", name, at)
		}
	}
}

func TestMistakesInPartition(t *testing.T) {
	check := func(want string, c Config) {
		t.Helper()
		c.Postgres = plainSecret("postgres://weir@127.0.0.1/logs")
		if c.Partition.Column == "" {
			c.Partition.Column = "received_at"
		}
		if c.Partition.Ahead == 0 {
			c.Partition.Ahead = 3
		}
		var all []string
		for _, p := range c.Check() {
			all = append(all, p.Path+": "+p.What)
		}
		if got := strings.Join(all, "\n"); got != want && (want == "" || !strings.Contains(got, want)) {
			t.Errorf("check says %q, want %q", got, want)
		}
	}
	check("", Config{Partition: &Partition{By: "day", Keep: 90 * 24 * time.Hour}})
	check(`partition.by: unknown word "daily"`, Config{Partition: &Partition{By: "daily"}})
	check("partition.column: no column ts", Config{Partition: &Partition{By: "day", Column: "ts"}})
	check("partition.column: column message holds no time", Config{Partition: &Partition{By: "day", Column: "message"}})
	check("partition.column: column n holds no time", Config{Partition: &Partition{By: "day", Column: "n"}, AddColumns: columns("n", Column{From: "received_at", Type: "bigint"})})
	check("received_at: the server knows no other", Config{Partition: &Partition{By: "day", Column: "hostname"}, Tables: Tables{OnConflict: &OnConflict{Key: []string{"hostname"}}}})
	check("partition.keep: 1h is shorter than a partition", Config{Partition: &Partition{By: "day", Keep: time.Hour}})
	check("partition.ahead: ", Config{Partition: &Partition{By: "day", Ahead: 101}})
	check("on_conflict.key: a key of a partitioned table holds the column", Config{Partition: &Partition{By: "day"}, Tables: Tables{OnConflict: &OnConflict{Key: []string{"hostname"}}}})
	check("", Config{Partition: &Partition{By: "day"}, Tables: Tables{OnConflict: &OnConflict{Key: []string{"hostname", "received_at"}}}})
	check("explicit_commits: ", Config{Partition: &Partition{By: "day"}, ExplicitCommits: new(bool)})
	check("create_suffix: create_suffix and partition both divide the table", Config{Partition: &Partition{By: "day"}, Tables: Tables{CreateSuffix: "PARTITION BY LIST (hostname)"}})
	check("partition: a table that is named by a template", Config{Partition: &Partition{By: "day"}, Table: "logs_${app_name}"})
	check("table: too long", Config{Partition: &Partition{By: "day"}, Table: "a234567890123456789012345678901234567890123456789"})
	c := Config{SQLite: "a", Partition: &Partition{By: "day"}}
	if bad := c.Check(); len(bad) != 1 || bad[0].Path != "partition" {
		t.Error(bad)
	}
}

// partitioned opens a destination whose clock stands.
func partitioned(t *testing.T, cfg Config, now time.Time, before ...string) (*pgRig, *postgres) {
	t.Helper()
	d := openPG(t, cfg, before...)
	pg := d.db.(*postgres)
	pg.partitions.now = func() time.Time { return now }
	return d, pg
}

func received(at ...time.Time) []*router.Message {
	msgs := messages(len(at))
	for i, t := range at {
		msgs[i].Received = t.UnixNano()
	}
	return msgs
}

const ofLogs = "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_class p ON p.oid = i.inhparent WHERE p.relname = 'logs' ORDER BY 1"

func TestPartitionsAreMadeAheadAndOldOnesDropped(t *testing.T) {
	now := time.Now().UTC()
	for _, by := range []string{"hour", "day", "week", "month"} {
		t.Run(by, func(t *testing.T) {
			p := &Partition{By: by, Column: "received_at", Ahead: 2, Keep: 70 * 24 * time.Hour}
			d, pg := partitioned(t, Config{Partition: p}, now)
			d.mustWrite(received(now)...)
			names := []string{p.name("logs", p.start(now))}
			d.want(ofLogs, names...)
			if more, note := d.Tend(t.Context()); more || note != "" {
				t.Errorf("Tend = %v, %q", more, note)
			}
			at := now
			for range 2 {
				at = p.next(at)
				names = append(names, p.name("logs", at))
			}
			d.want(ofLogs, names...)
			// Old ones: two of weir's, and one of somebody else's.
			last := p.start(now.Add(-p.Keep)) // not over yet for so long
			older := p.start(last.Add(-time.Hour))
			oldest := p.start(older.Add(-time.Hour))
			for _, start := range []time.Time{oldest, older, last} {
				d.query(fmt.Sprintf("CREATE TABLE %s PARTITION OF logs FOR VALUES %s", p.name("logs", start), p.bounds(start)))
			}
			d.query("CREATE TABLE logs_old PARTITION OF logs FOR VALUES FROM ('2001-01-01') TO ('2002-01-01')")
			d.query(fmt.Sprintf("CREATE TABLE %s (message text)", p.name("logs", p.start(oldest.Add(-time.Hour))))) // somebody took it out to keep it
			now = now.Add(time.Minute)
			pg.partitions.now = func() time.Time { return now }
			calls := 0
			for more := true; more; calls++ {
				var note string
				if more, note = d.Tend(t.Context()); note != "" {
					t.Fatal(note)
				}
			}
			got := d.query(ofLogs)
			if diff := cmp.Diff(append([]string{"logs_old", p.name("logs", last)}, names...), got); diff != "" || calls != 2 {
				t.Errorf("after %d calls: %s", calls, diff)
			}
			d.want("SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relname = '"+p.name("logs", p.start(oldest.Add(-time.Hour)))+"'", "1")
			d.want("SHOW lock_timeout", "0") // of another session
			d.mustWrite(received(now)...)
			d.want("SELECT count(*) FROM logs", "2")
		})
	}
}

// Field case C05: rows outside of what partition covers are dead letters; inside it, their partitions are made.
func TestRowsOutsideOfThePartitions(t *testing.T) {
	now := time.Now().UTC()
	p := &Partition{By: "day", Column: "timestamp", Ahead: 2, Keep: 30 * 24 * time.Hour}
	d, _ := partitioned(t, Config{Partition: p, Columns: columns("timestamp", "timestamp", "message", "message")}, now)
	msgs := messages(6)
	for i, days := range []int{-40, -30, -5, 0, 2, 4} {
		msgs[i].Timestamp = now.AddDate(0, 0, days).UnixNano()
	}
	none := message("none")
	none.Timestamp = router.NoTime
	d.mustWrite(append(msgs, none)...)
	d.wantLetters("message 0 23514 ", "message 5 23514 ", "none 23514 ")
	d.want("SELECT message FROM logs ORDER BY timestamp", "message 1", "message 2", "message 3", "message 4")
	for _, l := range d.letters {
		if l.Reason != `no partition of relation "logs" found for row` {
			t.Errorf("reason %q", l.Reason)
		}
	}
	d.letters = nil
	lone := message("lone")
	lone.Timestamp = day(1999, 1, 1, 0).UnixNano()
	d.mustWrite(lone)
	d.wantLetters("lone 23514 ")
}

func TestTablesThatAreNotPartitionedAreTold(t *testing.T) {
	d, _ := partitioned(t, Config{Partition: &Partition{By: "day", Column: "received_at", Ahead: 1}, Columns: columns("received_at", "received_at")},
		time.Now(), "CREATE TABLE logs (received_at timestamptz)")
	if err := d.tryWrite(messages(1)...); !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), "table logs is not partitioned") {
		t.Errorf("Write = %v", err)
	}
	d.query("DROP TABLE logs; CREATE TABLE logs (received_at timestamptz) PARTITION BY RANGE (received_at)")
	now := time.Now()
	name := d.db.(*postgres).cfg.Partition.name("logs", day(now.UTC().Year(), int(now.UTC().Month()), now.UTC().Day(), 0))
	d.query("CREATE TABLE " + name + " (x int)")
	if err := d.tryWrite(received(now)...); !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), "there is a table of that name, which is no partition of logs") {
		t.Errorf("Write = %v", err)
	}
	// A partition of somebody else's that covers the time is as good.
	d.query("DROP TABLE " + name + "; CREATE TABLE mine PARTITION OF logs FOR VALUES FROM ('2000-01-01') TO ('2100-01-01')")
	d.mustWrite(received(now)...)
	d.want("SELECT count(*) FROM mine", "1")
	d.query("DROP TABLE mine; CREATE TABLE rest PARTITION OF logs DEFAULT")
	d.mustWrite(received(now)...)
}

func TestPartitionsStayWhileTheClockIsNotTrusted(t *testing.T) {
	for _, c := range []struct {
		name, newest string
		now          time.Time
		want         string
	}{
		{"before the build", "", day(2001, 1, 1, 0), "clock is not to be trusted"},
		{"after the newest row", time.Now().Add(48 * time.Hour).UTC().Format(time.RFC3339), time.Now(), "clock is not to be trusted"},
		{"fine", time.Now().UTC().Format(time.RFC3339), time.Now(), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, _ := partitioned(t, Config{Partition: &Partition{By: "day", Column: "received_at", Ahead: 3, Keep: 24 * time.Hour}}, c.now)
			d.mustWrite(received(c.now)...) // stored in any case
			d.query("CREATE TABLE logs_p2000_01_01 PARTITION OF logs FOR VALUES FROM ('2000-01-01 00:00:00+00') TO ('2000-01-02 00:00:00+00')")
			d.db.(*postgres).partitions.next = time.Time{}
			d.Tend(t.Context())
			if c.newest != "" {
				d.query("INSERT INTO logs (received_at) VALUES ('" + c.newest + "')")
			}
			d.query("CREATE TABLE logs_p2000_01_03 PARTITION OF logs FOR VALUES FROM ('2000-01-03 00:00:00+00') TO ('2000-01-04 00:00:00+00')")
			d.db.(*postgres).partitions.next = time.Time{}
			_, note := d.Tend(t.Context())
			if (note == "") != (c.want == "") || !strings.Contains(note, c.want) {
				t.Errorf("note %q, want %q", note, c.want)
			}
			if got := len(d.query("SELECT 1 FROM pg_class WHERE relname = 'logs_p2000_01_03'")); (got == 1) != (c.want != "") {
				t.Errorf("%d old partitions", got)
			}
		})
	}
}

// A reader in a long transaction holds the drop up, and nothing else; what was broken off is finished later.
func TestDropOfAPartitionWaitsForReaders(t *testing.T) {
	now := time.Now()
	d, pg := partitioned(t, Config{Partition: &Partition{By: "day", Column: "received_at", Ahead: 1, Keep: 24 * time.Hour}}, now)
	d.mustWrite(received(now)...)
	d.query("CREATE TABLE logs_p2020_01_01 PARTITION OF logs FOR VALUES FROM ('2020-01-01 00:00:00+00') TO ('2020-01-02 00:00:00+00')")
	end := d.session("BEGIN; SELECT count(*) FROM logs")
	pg.partitions.next = time.Time{}
	if _, note := d.Tend(t.Context()); !strings.Contains(note, "55P03") {
		t.Errorf("note %q", note)
	}
	d.mustWrite(received(now)...)
	d.want("SELECT count(*) FROM logs", "2")
	end()
	pg.partitions.next = time.Time{}
	if _, note := d.Tend(t.Context()); note != "" {
		t.Error(note)
	}
	d.want("SELECT count(*) FROM pg_class WHERE relname = 'logs_p2020_01_01'", "0")
	d.mustWrite(received(now)...)
}
