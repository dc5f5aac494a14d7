package deadletter

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/weirlog/weir/router"
)

// numbered are rejected messages of a run.
func numbered(name string, numbers ...uint64) (out []router.Rejected) {
	for i, r := range rows(name, len(numbers)) {
		r.Number = numbers[i]
		out = append(out, r)
	}
	return out
}

// of is the key of a transaction of run at the destination db.
func of(run router.RunID, from, to uint64) router.LetterKey {
	return router.LetterKey{Destination: "db", Span: router.Span{Run: run, From: from, To: to}}
}

func TestLettersOfAnotherProcessAreSettled(t *testing.T) {
	dir := t.TempDir()
	one, two := router.NewRun(), router.NewRun()
	s := open(t, dir, defaults(nil))
	unsettled := func(destination string, want ...router.RunID) {
		t.Helper()
		got, err := s.Unsettled(t.Context(), destination)
		if err != nil {
			t.Fatal(err)
		}
		have := map[router.RunID]bool{}
		for _, run := range got {
			have[run] = true
		}
		for _, run := range want {
			if !have[run] {
				t.Errorf("%v is settled", run)
			}
		}
		if len(got) != len(want) {
			t.Errorf("got %v", got)
		}
	}
	keep(t, s, of(one, 0, 10), numbered("a", 3, 7))
	keep(t, s, of(one, 10, 20), numbered("b", 12, 13, 20))
	keep(t, s, of(two, 0, 5), numbered("c", 5))
	keep(t, s, router.LetterKey{Destination: "other", Span: router.Span{Run: one, To: 30}}, numbered("o", 29))
	keep(t, s, router.LetterKey{Route: "main", Filter: "redact"}, rows("f", 1))
	unsettled("db") // they are this process's own
	s.Close()
	s = open(t, dir, defaults(nil))
	unsettled("db", one, two)
	unsettled("other", one)
	unsettled("elsewhere")
	if err := s.Settle(t.Context(), "db", one, 12); err != nil {
		t.Fatal(err)
	}
	unsettled("db", two)
	unsettled("other", one)
	left := func(want ...string) {
		t.Helper()
		for i := range want {
			want[i] = "<133>1 " + want[i]
		}
		if diff := cmp.Diff(want, raws(t, dir)); diff != "" {
			t.Error(diff)
		}
	}
	left("a message 0", "a message 1", "b message 0", "c message 0", "o message 0", "f message 0")
	if err := s.Settle(t.Context(), "db", two, 1<<64-1); err != nil {
		t.Fatal(err)
	}
	unsettled("db")
	// The database was put back: what was final is offered again, and rejected again.
	keep(t, s, of(one, 5, 12), numbered("again", 7))
	left("a message 0", "c message 0", "o message 0", "f message 0", "again message 0")
	if s.stats.letters != 5 {
		t.Errorf("%d counted", s.stats.letters)
	}
}

func TestOlderLayoutKeepsItsLetters(t *testing.T) {
	dir := t.TempDir()
	conn, err := sqlite.OpenConn(filepath.Join(dir, FileName), sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	const one = `
CREATE TABLE letters (number INTEGER PRIMARY KEY AUTOINCREMENT, time INTEGER NOT NULL, run TEXT NOT NULL, destination TEXT, txn INTEGER,
	route TEXT, filter TEXT, code TEXT NOT NULL, field TEXT, reason TEXT NOT NULL, record TEXT NOT NULL, raw BLOB);
CREATE INDEX letters_txn ON letters (destination, txn) WHERE destination IS NOT NULL;
PRAGMA user_version = 1;
INSERT INTO letters VALUES (3, 1790000000000000000, '5f3a', 'db', 12, NULL, NULL, '22P02', 'n', 'bad', '{"message":"m"}', x'00ff');
INSERT INTO letters VALUES (4, 1790000000000000000, '00000000-0000-0000-0000-000000000000', NULL, NULL, 'main', 'redact', 'trap', NULL, 'oh', '{"message":"n"}', NULL);`
	if err := sqlitex.ExecuteScript(conn, one, nil); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	check := func(when string) {
		t.Helper()
		r, err := OpenReader(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		first, err := r.Show(3)
		if err != nil || first.Destination != "db" || first.Column != "n" || string(first.Raw) != "\x00\xff" || !first.Final || first.Position != 0 {
			t.Errorf("%s: %+v, %v", when, first, err)
		}
		second, err := r.Show(4)
		if err != nil || second.Filter != "redact" || string(second.Record) != `{"message":"n"}` || second.Raw != nil || !second.Final {
			t.Errorf("%s: %+v, %v", when, second, err)
		}
	}
	check("as it was")
	e, err := OpenEditor(dir)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := e.Purge(Selection{Numbers: []int64{9}}); n != 0 || err != nil {
		t.Errorf("%d purged, %v", n, err)
	}
	e.Close()
	s := open(t, dir, defaults(func(c *Config) { c.Age = 0 }))
	check("migrated")
	if runs, err := s.Unsettled(t.Context(), "db"); err != nil || len(runs) != 0 {
		t.Errorf("got %v, %v", runs, err)
	}
	keep(t, s, db(1), rows("new", 1))
	if got := raws(t, dir); len(got) != 3 {
		t.Errorf("got %q", got)
	}
	s.Close()
	open(t, dir, defaults(func(c *Config) { c.Age = 0 }))
	check("opened again")
}

// What the disk does not do must not end weir.
func TestAStoreThatCannotWriteGoesOnLater(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, defaults(nil))
	keep(t, s, db(1), rows("a", 1))
	for range 2 {
		if err := sqlitex.ExecuteTransient(s.conn, "PRAGMA max_page_count = 1", nil); err != nil {
			t.Fatal(err)
		}
		big := rows("big", 1)
		big[0].Message.Text = make([]byte, 1<<20)
		if err := s.Keep(t.Context(), db(2), big); !router.IsNeedsOperator(err) {
			t.Fatalf("got %v", err)
		}
		if p := s.Parts()[0]; p.Ready {
			t.Error("ready")
		}
		if err := s.Settle(t.Context(), "db", testRun, 5); err != nil {
			t.Fatal(err)
		}
	}
	keep(t, s, db(2), rows("b", 1))
	if diff := cmp.Diff([]string{"<133>1 a message 0", "<133>1 b message 0"}, raws(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestOldLettersExpireWhileNothingIsRejected(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, defaults(func(c *Config) { c.Age = time.Hour }))
	keep(t, s, db(1), rows("x", 3))
	now := s.stats.began
	s.look(t.Context(), now.Add(59*time.Minute), true)
	if got := raws(t, dir); len(got) != 3 || s.stats.letters != 3 {
		t.Errorf("%d letters, %d counted", len(got), s.stats.letters)
	}
	s.look(t.Context(), now.Add(61*time.Minute), false)
	if got := raws(t, dir); len(got) != 3 {
		t.Errorf("%d letters", len(got))
	}
	s.look(t.Context(), now.Add(61*time.Minute), true)
	if got := raws(t, dir); len(got) != 0 || s.stats.letters != 0 || s.stats.dropped.age != 3 {
		t.Errorf("%d letters, %d counted, %d dropped", len(got), s.stats.letters, s.stats.dropped.age)
	}
}

func TestGrowingLettersAreTold(t *testing.T) {
	s := open(t, t.TempDir(), defaults(nil))
	check := func(after time.Duration, want string) {
		t.Helper()
		if p := s.stats.part(time.Now().Add(after)); !p.Ready || p.Reason != want {
			t.Errorf("after %v: %+v", after, p)
		}
	}
	check(0, "")
	keep(t, s, db(2), rows("x", 1))
	check(0, "1 letter in the last 5 minutes: 22P02 of db")
	keep(t, s, db(2), rows("x", 1)) // the same again
	check(0, "1 letter in the last 5 minutes: 22P02 of db")
	filter := rows("y", 2)
	filter[1].Code = "trap"
	keep(t, s, router.LetterKey{Route: "main", Filter: "redact"}, filter)
	check(time.Minute, "3 letters in the last 5 minutes, newest: trap of main/redact")
	check(6*time.Minute, "")
}

func TestCodesHaveClasses(t *testing.T) {
	for code, want := range map[string]string{"22P02": "22", "23514": "23", "SQLITE_CONSTRAINT_CHECK": "SQLITE_CONSTRAINT", "SQLITE_MISMATCH": "SQLITE_MISMATCH",
		"trap": "trap", "stack": "stack", "rejected": "rejected", "": ""} {
		if got := class(code); got != want {
			t.Errorf("%s: %s", code, got)
		}
	}
}

func TestOnlyWhatIsSelectedIsPurged(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, defaults(func(c *Config) { c.Size, c.WhenFull = minSize, Block }))
	keep(t, s, db(1), rows("a", 2))
	other := rows("b", 1)
	other[0].Code = "SQLITE_CONSTRAINT_CHECK"
	keep(t, s, router.LetterKey{Destination: "lite", Span: router.Span{Run: testRun, To: 1}}, other)
	keep(t, s, router.LetterKey{Route: "main", Filter: "redact"}, rows("c", 1))
	r, err := OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	check := func(which Selection, want ...int64) {
		t.Helper()
		letters, err := r.List(which, 0)
		var got []int64
		for _, l := range letters {
			got = append(got, l.Number)
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%+v: %v %s", which, err, diff)
		}
	}
	hour := time.Hour
	check(Selection{}, 1, 2, 3, 4)
	check(Selection{Numbers: []int64{4, 1, 77}}, 1, 4)
	check(Selection{Numbers: []int64{}})
	check(Selection{Destination: "db"}, 1, 2)
	check(Selection{Route: "main"}, 4)
	check(Selection{Filter: "redact", Destination: "db"})
	check(Selection{Code: "22"}, 1, 2, 4)
	check(Selection{Code: "22P02"}, 1, 2, 4)
	check(Selection{Code: "SQLITE_CONSTRAINT", Numbers: []int64{1, 3}}, 3)
	check(Selection{Code: "%"})
	check(Selection{Since: s.stats.began.Add(-hour), Until: s.stats.began.Add(hour)}, 1, 2, 3, 4)
	check(Selection{Since: s.stats.began.Add(hour)})
	check(Selection{Until: s.stats.began.Add(-hour)})
	check(Selection{Since: time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), Until: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}, 1, 2, 3, 4)
	if got, err := r.Oldest(Selection{Code: "22"}, 2); err != nil || !slices.Equal(got, []int64{1, 2}) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := r.Rejecters(Selection{Code: "22"}); err != nil || !slices.Equal(got, []Rejecter{{Route: "main", Filter: "redact"}, {Destination: "db"}}) {
		t.Errorf("got %v, %v", got, err)
	}

	// Full and blocking: purging makes room, while the store is open.
	var full error
	for n := uint64(2); full == nil && n < 100; n++ {
		full = s.Keep(t.Context(), db(n), rows(fmt.Sprint("fill", n), 50))
	}
	if !errors.Is(full, errFull) {
		t.Fatalf("got %v", full)
	}
	e, err := OpenEditor(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	before := s.stats.letters
	n, err := e.Purge(Selection{Destination: "db"})
	if err != nil || int64(n) != before-2 {
		t.Errorf("%d purged of %d, %v", n, before, err)
	}
	keep(t, s, db(200), rows("room", 1))
	check(Selection{Numbers: []int64{1, 2, 3, 4}}, 3, 4)
	s.look(t.Context(), time.Now(), false)
	if s.stats.letters != 3 {
		t.Errorf("%d counted", s.stats.letters)
	}
}

func TestEditorsMakeNoStore(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenEditor(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if found, _ := os.ReadDir(dir); len(found) != 0 {
		t.Errorf("made %v", found)
	}
	os.WriteFile(filepath.Join(dir, FileName), nil, 0o600)
	if _, err := OpenEditor(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// exec changes the database behind the store's back.
func exec(t *testing.T, s *Store, script string) {
	t.Helper()
	if err := sqlitex.ExecuteScript(s.conn, script, nil); err != nil {
		t.Fatal(err)
	}
}
