package sqlstore

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"zombiezen.com/go/sqlite"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/routertest"
)

// A watch follows a destination in a goroutine of its own.
type watch struct {
	t     *testing.T
	mu    sync.Mutex
	texts []string
	told  []string
	end   func() error
}

func follow(t *testing.T, b *base, q Look) *watch {
	t.Helper()
	r, err := NewReader(b.cfg, b.dir)
	if err != nil {
		t.Fatal(err)
	}
	return followWith(t, r, q)
}

func followWith(t *testing.T, r *Reader, q Look) *watch {
	if q.Late == 0 {
		q.Late = 5 * time.Second
	}
	w := &watch{t: t}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- r.Follow(ctx, q, func(what string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.told = append(w.told, what)
		}, func(rows []*Row) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, row := range rows {
				w.texts = append(w.texts, string(row.Get(router.KeyMessage).Text))
			}
			return nil
		})
	}()
	w.end = sync.OnceValue(func() error { cancel(); err := <-done; r.Close(); return err })
	t.Cleanup(func() {
		if err := w.end(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// until waits until something is so.
func (w *watch) until(what string, so func() bool) {
	w.t.Helper()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		w.mu.Lock()
		ok := so()
		w.mu.Unlock()
		if ok {
			return
		}
		if time.Since(began) > 30*time.Second {
			w.t.Fatalf("%s: shown %v, told %v", what, w.texts, w.told)
		}
	}
}

// shows waits until these, and no others, were shown since the last call.
func (w *watch) shows(want ...string) {
	w.t.Helper()
	w.until(fmt.Sprint("want ", want), func() bool { return len(w.texts) >= len(want) })
	w.mu.Lock()
	defer w.mu.Unlock()
	if d := cmp.Diff(want, w.texts); d != "" {
		w.t.Error(d)
	}
	w.texts = nil
}

func (w *watch) tells(what string) {
	w.t.Helper()
	w.until("want told "+what, func() bool {
		return slices.ContainsFunc(w.told, func(s string) bool { return strings.Contains(s, what) })
	})
}

// now is a message that arrives in this moment.
func now(text string) *router.Message {
	m := message(text)
	m.Received = time.Now().UnixNano()
	return m
}

func TestFollowShowsWhatIsCommitted(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, b *base) {
		b.mustWrite(now("before 1"), now("before 2"))
		w := follow(t, b, Look{N: 1})
		w.shows("before 2")
		twin := now("twin")
		b.mustWrite(twin, twin)
		w.shows("twin", "twin")
		b.mustWrite(twin)
		w.shows("twin")
		late := now("late") // by less than q.Late
		late.Received -= int64(2 * time.Second)
		b.mustWrite(now("punctual"))
		w.shows("punctual")
		b.mustWrite(late)
		w.shows("late")
		var many []*router.Message
		var want []string
		for i := range 3*pageRows + 7 {
			m := now(fmt.Sprint("many ", i))
			many, want = append(many, m), append(want, string(m.Text))
		}
		b.mustWrite(many...)
		w.shows(want...)
	})
}

// What the destination could not store for a while is committed at once, and arrived long ago.
func TestFollowShowsWhatWasHeldUp(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, b *base) {
		var many []*router.Message
		var want []string
		for i := range 2*followMore + 77 {
			m := now(fmt.Sprint("held ", i))
			m.Received -= int64(time.Hour) - int64(i)*int64(100*time.Millisecond)
			many, want = append(many, m), append(want, string(m.Text))
		}
		first := now("first")
		first.Received -= int64(2 * time.Hour)
		b.run("DROP TABLE logs")
		w := follow(t, b, Look{})
		w.tells("waiting: there is no table logs")
		b.mustWrite(append([]*router.Message{first}, many[:len(many)/2]...)...)
		w.shows(append([]string{"first"}, want[:len(many)/2]...)...)
		b.mustWrite(many[len(many)/2:]...)
		w.shows(want[len(many)/2:]...)
	})
}

// A person who stops the terminal for longer than rows may be late misses none.
func TestFollowMissesNothingForASlowReader(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, b *base) {
		b.mustWrite(now("a"))
		r, err := NewReader(b.cfg, b.dir)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var got []string
		err = r.Follow(ctx, Look{N: 1, Late: time.Microsecond}, func(string) {}, func(rows []*Row) error {
			for _, row := range rows {
				got = append(got, string(row.Get(router.KeyMessage).Text))
			}
			switch len(got) {
			case 1:
				b.mustWrite(now("b"))
			case 2:
				b.mustWrite(now("c"))
				b.mustWrite(now("d"))
			case 4:
				cancel()
			}
			return nil
		})
		if d := cmp.Diff([]string{"a", "b", "c", "d"}, got); d != "" || err != nil {
			t.Error(d, err)
		}
	})
}

func TestFollowGoesOnAtOnceAfterASlowReader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made.db")
	conn, err := sqlite.OpenConn(path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	run(t, conn, "CREATE TABLE logs (id INTEGER PRIMARY KEY, received_at TEXT, message TEXT)")
	run(t, conn, "INSERT INTO logs (message) VALUES ('first')")
	synctest.Test(t, func(t *testing.T) {
		r, err := NewReader(Config{SQLite: path}, "")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		var resumed time.Time
		n := 0
		r.Follow(ctx, Look{N: 1}, func(string) {}, func(rows []*Row) error {
			if n++; n == 3 {
				cancel()
				return nil
			}
			time.Sleep(time.Hour)
			run(t, conn, "INSERT INTO logs (message) VALUES ('next')")
			resumed = time.Now()
			return nil
		})
		if took := time.Since(resumed); n != 3 || took > followPause {
			t.Errorf("%d shown, the last one after %v", n, took)
		}
	})
}

func TestFollowShowsOnlyWhatIsWanted(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, b *base) {
		w := follow(t, b, Look{N: -1, Text: "yes", Severities: 0xff})
		b.mustWrite(now("yes 1"), now("no"))
		w.shows("yes 1")
		b.mustWrite(now("no"))
		b.mustWrite(now("yes 2"))
		w.shows("yes 2")
	})
}

func TestFollowOutlivesARowOfTheFuture(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, b *base) {
		b.mustWrite(now("past"))
		w := follow(t, b, Look{N: 1})
		w.shows("past")
		future := now("future")
		future.Received += int64(400 * 24 * time.Hour)
		b.mustWrite(future)
		w.shows("future")
		b.mustWrite(now("present"))
		w.shows("present")
	})
}

func TestFollowWaitsForTheTable(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, b *base) {
		b.run("DROP TABLE logs")
		w := follow(t, b, Look{N: 5})
		w.tells("waiting: there is no table logs")
		b.mustWrite(now("first"))
		w.tells("going on")
		w.shows("first")
	})
}

func TestFollowSeesNewTables(t *testing.T) {
	onBoth(t, Config{Table: config.Template("logs_${app_name}")}, func(t *testing.T, b *base) {
		app := func(name, text string) *router.Message {
			m := now(text)
			m.AppName = []byte(name)
			return m
		}
		b.mustWrite(app("a", "one"))
		w := follow(t, b, Look{N: 5})
		w.shows("one")
		b.mustWrite(app("b", "two"))
		w.shows("two")
		b.mustWrite(app("a", "three"), app("b", "four"))
		w.shows("three", "four")
		b.run("DROP TABLE logs_a")
		b.mustWrite(app("b", "five"))
		w.shows("five")
	})
}

func TestFollowOutlivesRemovalAndVacuum(t *testing.T) {
	for name, cfg := range map[string]Config{"with id": {}, "without id": {Columns: columns("received_at", "received_at", "message", "message")}} {
		onBoth(t, cfg, func(t *testing.T, b *base) {
			b.mustWrite(now("a"), now("b"), now("c"), now("d"))
			w := follow(t, b, Look{N: 1})
			w.shows("d")
			b.run("DELETE FROM logs WHERE message < 'd'")
			b.run("VACUUM")
			b.mustWrite(now("e"))
			w.shows("e")
			b.run("DELETE FROM logs")
			b.mustWrite(now("f"))
			w.shows("f")
		})
		_ = name
	}
}

func TestFollowOutlivesAReplacedFile(t *testing.T) {
	b := &base{rig: openLite(t, Config{}), cfg: Config{SQLite: "logs.db"}}
	path := filepath.Join(b.dir, "logs.db")
	w := follow(t, b, Look{N: 1})
	b.mustWrite(now("a"))
	w.shows("a")
	b.Close()
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	w.tells("there is no file")
	b.rig = open(t, b.dir, b.cfg)
	b.mustWrite(now("b"), now("c"))
	w.shows("b", "c")
	// A copy that holds what was shown takes the place of the file.
	query(t, path, "VACUUM INTO "+literalLite(path+".new"))
	b.Close()
	os.Remove(path + "-wal")
	os.Remove(path + "-shm")
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	b.rig = open(t, b.dir, b.cfg)
	b.mustWrite(now("d"))
	w.shows("d")
}

func literalLite(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func TestFollowWaitsForTheServer(t *testing.T) {
	server, dsn := routertest.Postgres(t)
	b := &base{rig: open(t, t.TempDir(), Config{Postgres: plainSecret(dsn)}), cfg: Config{Postgres: plainSecret(dsn)}}
	b.mustWrite(now("a"))
	w := follow(t, b, Look{N: 1})
	w.shows("a")
	server.Stop(routertest.StopImmediate)
	w.tells("waiting: ")
	server.Start(t)
	for b.tryWrite(now("b")) != nil {
	}
	w.shows("b")
	w.tells("going on")
}

func TestFollowTellsThatTheServerIsSilent(t *testing.T) {
	server, dsn := routertest.Postgres(t)
	proxy := routertest.NewPGProxy(t, server)
	b := &base{rig: open(t, t.TempDir(), Config{Postgres: plainSecret(dsn)}), cfg: Config{Postgres: plainSecret(dsn)}}
	b.mustWrite(now("a"))
	b.cfg.Postgres = plainSecret(proxy.DSN(server.Query(t, dsn, "SELECT current_database()")[0]))
	r, err := NewReader(b.cfg, b.dir)
	if err != nil {
		t.Fatal(err)
	}
	r.pg.patience = time.Second
	w := followWith(t, r, Look{N: 1})
	w.shows("a")
	proxy.Arm(routertest.PGCut{At: 1, How: routertest.CutStall})
	w.tells("waiting: look at the server")
	b.mustWrite(now("b"))
	w.shows("b")
	w.tells("going on")
}

func TestFollowEndsForAMistake(t *testing.T) {
	onBoth(t, Config{Columns: columns("received_at", "received_at", "message", "message")}, func(t *testing.T, b *base) {
		b.mustWrite(now("a"))
		err := b.reader().Follow(t.Context(), Look{Severities: 1}, func(string) {}, func([]*Row) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "no column that holds the severity") {
			t.Error(err)
		}
	})
}
