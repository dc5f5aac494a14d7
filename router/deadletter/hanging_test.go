package deadletter

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// A disk that hangs looks from here like a lock that nobody gives back.
func TestADatabaseThatDoesNotAnswerIsToldMeanwhile(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, defaults(func(*Config) {}))
	keep(t, s, db(1), rows("x", 1))
	other, err := sqlite.OpenConn(filepath.Join(dir, FileName), sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	do := func(statement string) {
		t.Helper()
		if err := sqlitex.ExecuteTransient(other, statement, nil); err != nil {
			t.Fatal(err)
		}
	}
	do("BEGIN IMMEDIATE")
	done := make(chan error)
	go func() { done <- s.Keep(t.Context(), db(2), rows("y", 1)) }()
	unanswered := func() bool {
		s.stats.mu.Lock()
		defer s.stats.mu.Unlock()
		return !s.stats.asked.IsZero()
	}
	for began := time.Now(); !unanswered(); time.Sleep(time.Millisecond) {
		if time.Since(began) > 10*time.Second {
			t.Fatal("a Keep that waits is not told")
		}
	}
	if n := testutil.CollectAndCount(s); n < 5 {
		t.Errorf("%d metrics while the database does not answer", n)
	}
	if p := s.Parts(); !p[0].Ready {
		t.Errorf("%+v", p)
	}
	do("ROLLBACK")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if unanswered() {
		t.Error("still told as unanswered")
	}
}

func TestTheOldestLetterIsKnown(t *testing.T) {
	dir := t.TempDir()
	c := defaults(func(c *Config) { c.Size = minSize })
	s := open(t, dir, c)
	oldest := func() int64 {
		s.stats.mu.Lock()
		defer s.stats.mu.Unlock()
		return s.stats.oldest
	}
	if n := oldest(); n != 0 {
		t.Errorf("of no letters: %d", n)
	}
	before := time.Now().UnixNano()
	keep(t, s, db(1), rows("x", 1))
	first := oldest()
	if first < before || first > time.Now().UnixNano() {
		t.Errorf("kept at %d, not after %d", first, before)
	}
	for n := uint64(2); oldest() == first; n++ { // until it had to make room
		if n > 1000 {
			t.Fatal("the oldest letter never changes")
		}
		keep(t, s, db(n), rows("x", 50))
	}
	s.Close()
	if s = open(t, dir, c); oldest() <= first {
		t.Errorf("after a restart: %d", oldest())
	}
}
