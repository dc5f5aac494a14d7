package deadletter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/routertest"
)

func defaults(edit func(c *Config)) Config {
	var c Config
	c.Defaults()
	if edit != nil {
		edit(&c)
	}
	return c
}

func open(t *testing.T, dir string, c Config) *Store {
	t.Helper()
	s, err := Open(dir, c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// rows are n rejected messages whose texts begin with name.
func rows(name string, n int) []router.Rejected {
	msgs, _ := routertest.Messages(name, n)
	var out []router.Rejected
	for i, m := range msgs {
		out = append(out, router.Rejected{Message: m, Code: "22P02", Column: "user_id", Reason: fmt.Sprint("row ", i)})
	}
	return out
}

func keep(t *testing.T, s *Store, key router.LetterKey, rows []router.Rejected) {
	t.Helper()
	if err := s.Keep(t.Context(), key, rows); err != nil {
		t.Fatal(err)
	}
}

// raws are the raw messages in the store, by a reader of its own.
func raws(t *testing.T, dir string) []string {
	t.Helper()
	r, err := OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	letters, err := r.List(Selection{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, l := range letters {
		whole, err := r.Show(l.Number)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(whole.Raw))
	}
	return out
}

var testRun = router.RunID{1, 2, 3}

func db(transaction uint64) router.LetterKey {
	return router.LetterKey{Destination: "db", Span: router.Span{Run: testRun, From: transaction - 1, To: transaction}}
}

func TestLettersHoldAllThatIsKnown(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, defaults(nil))
	bad := rows("a", 1)
	bad[0].Message.Raw = []byte("raw \x00\xff bytes")
	keep(t, s, db(7), bad)
	keep(t, s, router.LetterKey{Route: "main", Filter: "redact"}, []router.Rejected{{Message: bad[0].Message, Code: "verdict", Reason: "no"}})
	r, err := OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	record := router.AppendRecord(nil, bad[0].Message)
	want := []Letter{
		{Number: 1, Destination: "db", Run: testRun, Position: 7, Code: "22P02", Column: "user_id", Reason: "row 0", Record: record, Raw: bad[0].Message.Raw},
		{Number: 2, Final: true, Route: "main", Filter: "redact", Code: "verdict", Reason: "no", Record: record, Raw: bad[0].Message.Raw},
	}
	for _, w := range want {
		got, err := r.Show(w.Number)
		if err != nil {
			t.Fatal(err)
		}
		if age := time.Since(got.Time); age < 0 || age > time.Hour {
			t.Errorf("kept at %v", got.Time)
		}
		got.Time = time.Time{}
		if diff := cmp.Diff(w, got, cmpopts.IgnoreUnexported(Letter{})); diff != "" {
			t.Error(diff)
		}
	}
	if _, err := r.Show(3); !errors.Is(err, ErrNone) {
		t.Errorf("got %v", err)
	}
	newest, err := r.List(Selection{}, 1)
	if err != nil || len(newest) != 1 || newest[0].Number != 2 || newest[0].Raw != nil {
		t.Errorf("got %v, %v", newest, err)
	}
}

func TestALaterAttemptReplacesTheLettersOfItsTransaction(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, defaults(nil))
	filter := router.LetterKey{Route: "main", Filter: "redact"}
	keep(t, s, db(1), rows("one", 1))
	keep(t, s, db(2), rows("first", 3))
	keep(t, s, filter, rows("f", 1))
	keep(t, s, filter, rows("g", 1))
	keep(t, s, db(2), rows("second", 1))
	keep(t, s, router.LetterKey{Destination: "other", Span: router.Span{From: 1, To: 2}}, rows("other", 1))
	check := func(want ...string) {
		t.Helper()
		for i := range want {
			want[i] = "<133>1 " + want[i] + " message 0"
		}
		if diff := cmp.Diff(want, raws(t, dir)); diff != "" {
			t.Error(diff)
		}
	}
	check("one", "f", "g", "second", "other")
	keep(t, s, db(2), nil)
	check("one", "f", "g", "other")
	s.Close()
	s = open(t, dir, defaults(nil))
	other := db(1)
	other.Span.Run = router.NewRun() // counts anew
	keep(t, s, other, rows("new", 1))
	check("one", "f", "g", "other", "new")
}

func TestOldestLettersMakeRoom(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, defaults(func(c *Config) { c.Size = minSize }))
	for i := range 40 {
		keep(t, s, db(uint64(i+1)), rows(fmt.Sprintf("batch%02d", i), 50))
	}
	got := raws(t, dir)
	if last := "<133>1 batch39 message 49"; len(got) < 100 || len(got) > 1500 || got[len(got)-1] != last {
		t.Errorf("%d letters are left", len(got))
	}
	if s.stats.used > minSize {
		t.Errorf("%d bytes used", s.stats.used)
	}
	if info, err := os.Stat(filepath.Join(dir, FileName)); err != nil || info.Size() > 2*minSize {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
	if s.stats.dropped.size != 2000-len(got) {
		t.Errorf("%d counted as dropped of %d", s.stats.dropped.size, 2000-len(got))
	}
}

func TestOneCallMayBringMoreThanFits(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, defaults(func(c *Config) { c.Size = minSize }))
	big := rows("big", 20)
	for _, r := range big {
		r.Message.Text = bytes.Repeat([]byte("x"), 60<<10)
	}
	keep(t, s, db(1), big)
	got := raws(t, dir)
	if len(got) == 0 || len(got) > 4 || got[len(got)-1] != "<133>1 big message 19" {
		t.Errorf("left: %q", got)
	}
	if s.stats.dropped.size != 20-len(got) {
		t.Errorf("%d counted as dropped", s.stats.dropped.size)
	}
}

func TestFullStoreMayBlock(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, defaults(func(c *Config) { c.Size, c.WhenFull = minSize, Block }))
	var err error
	n := 0
	for ; err == nil && n < 100; n++ {
		err = s.Keep(t.Context(), db(uint64(n+1)), rows("x", 50))
	}
	if !router.IsNeedsOperator(err) {
		t.Fatalf("got %v", err)
	}
	if p := s.Parts(); p[0].Ready || p[0].Reason == "" {
		t.Errorf("got %+v", p)
	}
	if got := raws(t, dir); len(got) != 50*(n-1) {
		t.Errorf("%d letters after %d whole calls", len(got), n-1)
	}
	keep(t, s, db(1), nil)
	keep(t, s, db(uint64(n)), rows("x", 50))
	if p := s.Parts(); !p[0].Ready {
		t.Errorf("got %+v", p)
	}
}

func TestOldLettersExpire(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, defaults(func(c *Config) { c.Age = time.Hour }))
	keep(t, s, db(1), rows("old", 1))
	keep(t, s, db(2), rows("unknown", 1))
	keep(t, s, db(3), rows("new", 1))
	set := func(number int64, at time.Time) {
		err := sqlitex.Execute(s.conn, "UPDATE letters SET time = ? WHERE number = ?", &sqlitex.ExecOptions{Args: []any{at.UnixNano(), number}})
		if err != nil {
			t.Fatal(err)
		}
	}
	set(1, time.Now().Add(-2*time.Hour))
	set(2, time.Unix(100, 0)) // written before the box knew the time
	keep(t, s, db(4), nil)
	if diff := cmp.Diff([]string{"<133>1 unknown message 0", "<133>1 new message 0"}, raws(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestContextEndsKeep(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, defaults(nil))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Keep(ctx, db(1), rows("x", 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	keep(t, s, db(1), rows("y", 1))
	if got := raws(t, dir); len(got) != 1 {
		t.Errorf("got %q", got)
	}
}

func TestRemovedDatabaseIsMadeAnew(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, defaults(nil))
	keep(t, s, db(1), rows("x", 1))
	for _, suffix := range []string{"", "-wal", "-shm"} {
		os.Remove(filepath.Join(dir, FileName+suffix))
	}
	keep(t, s, db(2), rows("y", 1))
	if diff := cmp.Diff([]string{"<133>1 y message 0"}, raws(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestNobodyElseMayRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := open(t, dir, defaults(nil))
	keep(t, s, db(1), rows("x", 1))
	check := func(path string, want fs.FileMode) {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	check(dir, 0o700)
	check(filepath.Join(dir, FileName), 0o600)
	check(filepath.Join(dir, FileName+"-wal"), 0o600)
}

func TestStoresOfOthersAreRefused(t *testing.T) {
	check := func(name string, content func(path string)) {
		t.Helper()
		dir := t.TempDir()
		content(filepath.Join(dir, FileName))
		if s, err := Open(dir, defaults(nil), slog.New(slog.DiscardHandler)); err == nil {
			s.Close()
			t.Errorf("%s: opened", name)
		}
	}
	check("no database", func(path string) { os.WriteFile(path, bytes.Repeat([]byte("no database"), 1000), 0o600) })
	check("newer", func(path string) {
		conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite|sqlite.OpenCreate)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := sqlitex.ExecuteTransient(conn, "PRAGMA user_version = 99", nil); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := OpenReader(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestManyMayKeepAtOnce(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, defaults(nil))
	var wg sync.WaitGroup
	for d := range 4 {
		wg.Go(func() {
			for i := range 5 {
				key := router.LetterKey{Destination: fmt.Sprint(d), Span: router.Span{From: uint64(i), To: uint64(i + 1)}}
				if err := s.Keep(t.Context(), key, rows("x", 3)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		for range 10 {
			raws(t, dir)
		}
	})
	wg.Wait()
	if got := raws(t, dir); len(got) != 60 {
		t.Errorf("%d letters", len(got))
	}
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(s)
	families, err := reg.Gather()
	if err != nil || len(families) != 7 {
		t.Errorf("%d metrics, %v", len(families), err)
	}
}
