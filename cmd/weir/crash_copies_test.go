package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/weirlog/weir/router/routertest"
)

// Two weirs with the same disk buffer, one a copy of the other, and one database.
func TestCopiesOfAStateDirectoryStoreEachMessageOnceSQLite(t *testing.T) {
	t.Parallel()
	copies(t, newLiteCrash(t))
}

func TestCopiesOfAStateDirectoryStoreEachMessageOncePostgres(t *testing.T) {
	t.Parallel()
	copies(t, newPGCrash(t, 3))
}

func copies(t *testing.T, db crashDatabase) {
	rng, seed := crashRandom(t)
	r := newCrashRig(t, rng, db)
	r.pace = 5 * time.Millisecond
	senders := crashSenders(r, seed)
	dirs := []string{r.stateDir()}
	for round := range kills(1, 2) {
		release := db.block(t)
		r.start()
		r.loadUntilAcked(senders, 1500)
		r.kill()
		twin := newCrashRig(t, rng, db)
		copyDir(t, r.stateDir(), twin.stateDir())
		dirs = append(dirs, twin.stateDir())
		release()
		other := newCrashSender(fmt.Sprint("b", round), twin.acking(), seed)
		other.pause = 3 * time.Millisecond
		other.start()
		r.start()
		twin.start()
		twin.loadUntilAcked([]*crashSender{other}, 200)
		r.loadUntilAcked(senders, 200)
		twin.finish([]*crashSender{other})
		senders = append(senders, other)
		r.kill()
	}
	r.start()
	r.finish(senders)
	r.expectNothingLost(look(t, db, dirs...), senders)
	if r.told > 0 {
		t.Errorf("weir says that %d messages were lost in the database", r.told)
	}
}

// A state directory that is put back to an older one, in which there waits what has long been stored.
func TestAnOlderStateDirectoryStoresNothingTwiceSQLite(t *testing.T) {
	t.Parallel()
	olderState(t, newLiteCrash(t))
}

func TestAnOlderStateDirectoryStoresNothingTwicePostgres(t *testing.T) {
	t.Parallel()
	olderState(t, newPGCrash(t, 1))
}

func olderState(t *testing.T, db crashDatabase) {
	rng, seed := crashRandom(t)
	r := newCrashRig(t, rng, db)
	senders := crashSenders(r, seed)
	release := db.block(t)
	r.start()
	r.loadUntilAcked(senders, 1500)
	r.kill()
	yesterday, today := filepath.Join(r.dir, "yesterday"), filepath.Join(r.dir, "today")
	copyDir(t, r.stateDir(), yesterday)
	release()
	r.start()
	r.loadUntilAcked(senders, 500)
	r.quiet(senders, true)
	for r.stop()["kept"] > 0 {
		r.start()
		r.awaitReady()
	}
	if err := os.Rename(r.stateDir(), today); err != nil {
		t.Fatal(err)
	}
	copyDir(t, yesterday, r.stateDir())
	for _, s := range senders {
		s.restored.Store(true)
	}
	r.quiet(senders, false)
	r.start()
	r.loadUntilAcked(senders, 500)
	r.finish(senders)
	// Letters that were written since yesterday are where the older directory has not been.
	r.expectNothingLost(look(t, db, r.stateDir(), today), senders)
}

// A database that is put back to an older one: what the disk buffer still has is sent again, and all is told.
func TestADatabaseThatIsPutBackWhileWeirIsStopped(t *testing.T) {
	t.Parallel()
	olderDatabase(t, false, 500, 60)
}

func TestADatabaseThatIsPutBackUnderARunningWeir(t *testing.T) {
	t.Parallel()
	olderDatabase(t, true, 500, 60)
}

func TestADatabaseThatIsPutBackBehindTheDiskBuffer(t *testing.T) {
	t.Parallel()
	olderDatabase(t, false, 12_000, 900)
}

// olderDatabase puts a database back after so many more messages of so many bytes.
func olderDatabase(t *testing.T, running bool, more, pad int) {
	rng, seed := crashRandom(t)
	db := newLiteCrash(t)
	r := newCrashRig(t, rng, db)
	r.buffer = "{disk: 4MiB, keep_free: 0B}\n    flush_bytes: 2MiB"
	r.more = "admin: { listen: unix://admin.sock }\n"
	senders := crashSenders(r, seed)
	for _, s := range senders {
		s.pad.Store(int64(pad))
	}
	r.start()
	r.loadUntilAcked(senders, 300)
	r.quiet(senders, true)
	r.stop()
	yesterday := filepath.Join(r.dir, "yesterday.db")
	copyFile(t, db.path, yesterday)
	rows := len(db.messages(t))
	r.quiet(senders, false)
	r.start()
	r.loadUntilAcked(senders, more)
	r.await("rows of today", func() bool { return len(db.messages(t)) > rows })
	if !running {
		r.kill()
	}
	copyFile(t, yesterday, yesterday+".new")
	os.Remove(db.path + "-wal")
	os.Remove(db.path + "-shm")
	if err := os.Rename(yesterday+".new", db.path); err != nil {
		t.Fatal(err)
	}
	if !running {
		r.start()
	}
	r.loadUntilAcked(senders, 300)
	r.quiet(senders, true)
	r.await("all to be stored", func() bool { return r.metric("weir_in_flight", `kind="destination"`, `name="db"`) == 0 })
	metric := r.metric("weir_destination_went_back_total", `destination="db"`)
	r.finish(senders)
	lost := 0
	f := look(t, db, r.stateDir())
	for _, s := range senders {
		sum := f.judge(t, s, r.filters)
		lost += sum.lost
		if sum.doubled > 0 {
			t.Errorf("%s: %d doubled", s.name, sum.doubled)
		}
	}
	t.Logf("weir tells of %d messages, metric %d; %d are gone", r.told, metric, lost)
	// A process that was killed may not have noted that anything was delivered: then all of it is sent again.
	if uint64(lost) > r.told || metric != r.told || running && r.told == 0 {
		t.Error("something is lost in silence")
	}
	if all := more < 1000; all != (lost == 0) {
		t.Errorf("%d are gone; does the disk buffer still have all of them: %v", lost, all)
	}
}

// A server that crashes forgets its last commits where they are not durable: they are sent again.
func TestAServerThatForgetsCommitsGetsThemAgain(t *testing.T) {
	t.Parallel()
	rng, seed := crashRandom(t)
	db := newPGCrash(t, 1)
	db.forgets = true
	r := newCrashRig(t, rng, db)
	r.pace = 5 * time.Millisecond
	senders := crashSenders(r, seed)
	r.start()
	crashes := kills(1, 5)
	for range crashes {
		r.loadUntilAcked(senders, 200)
		stored := len(db.messages(t))
		r.await("a hundred more to be stored", func() bool { return len(db.messages(t)) >= stored+100 })
		db.server.Stop(routertest.StopImmediate)
		db.server.Start(t)
	}
	r.finish(senders)
	r.expectNothingLost(look(t, db, r.stateDir()), senders)
	t.Logf("in %d crashes the server forgot %d messages", crashes, r.told)
	if r.told == 0 {
		t.Error("the server forgot nothing: this test tests nothing")
	}
}

// await returns when something has come true.
func (r *crashRig) await(what string, there func() bool) {
	r.t.Helper()
	within(r.t, 2*time.Minute, there, func() string { return fmt.Sprintf("waited for two minutes for %s:\n%s", what, r.log.text()) })
}

// metric is the value of a metric with these labels, which is there, once.
func (r *crashRig) metric(name string, labels ...string) uint64 {
	r.t.Helper()
	sum, n := metricOf(r.t, askAdmin(r.t, r.dir, "/metrics"), name, labels...)
	if n != 1 {
		r.t.Fatalf("metric %s %q is there %d times", name, labels, n)
	}
	return uint64(sum)
}

// loadUntilAcked lets the senders send until so many more of their messages are acknowledged.
func (r *crashRig) loadUntilAcked(senders []*crashSender, more int) {
	r.t.Helper()
	r.awaitReady()
	sum := func() (n uint64) {
		for _, s := range senders {
			n += s.ackedUpTo.Load()
		}
		return n
	}
	from := sum()
	within(r.t, 3*time.Minute, func() bool { return sum() >= from+uint64(more) }, func() string {
		return fmt.Sprintf("%d of %d more messages are acknowledged after three minutes:\n%s", sum()-from, more, r.log.text())
	})
}

// quiet says whether the senders make messages, and waits until they have no open ones.
func (r *crashRig) quiet(senders []*crashSender, quiet bool) {
	r.t.Helper()
	for _, s := range senders {
		s.quiet.Store(quiet)
	}
	if !quiet {
		return
	}
	for _, s := range senders {
		within(r.t, time.Minute, s.settled, func() string {
			return fmt.Sprintf("%s: %d of %d are acknowledged after a minute", s.name, s.ackedUpTo.Load(), s.made.Load())
		})
	}
}

// expectNothingLost fails unless all is where it must be, once.
func (r *crashRig) expectNothingLost(f found, senders []*crashSender) (all tally) {
	r.t.Helper()
	for _, s := range senders {
		sum := f.judge(r.t, s, r.filters)
		all.add(sum)
		if sum.lost > 0 || sum.doubled > 0 {
			r.t.Errorf("%s: %d lost, %d doubled", s.name, sum.lost, sum.doubled)
		}
	}
	r.t.Logf("%d messages sent, %d acknowledged, %d rows, %d dead letters, %d stored whose acknowledgement was lost; lost %d, doubled %d",
		all.made, all.acked, all.rows, all.letters, all.unacked, all.lost, all.doubled)
	return all
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func copyDir(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	filepath.WalkDir(to, func(path string, d os.DirEntry, _ error) error {
		if d.IsDir() {
			os.Chmod(path, 0o700)
		} else {
			os.Chmod(path, 0o600)
		}
		return nil
	})
}

// block keeps everybody else from writing.
func (l *liteCrash) block(t *testing.T) (release func()) {
	t.Helper()
	conn, err := sqlite.OpenConn(l.path, sqlite.OpenReadWrite)
	if err == nil {
		err = sqlitex.ExecuteTransient(conn, "BEGIN IMMEDIATE", nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() { conn.Close() }
}

// block ends the server.
func (p *pgCrash) block(t *testing.T) (release func()) {
	p.server.Stop(routertest.StopFast)
	return func() { p.server.Start(t) }
}
