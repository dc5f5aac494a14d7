package deadletter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weirlog/weir/router"
)

func TestReplayedLettersAreStoredAndGone(t *testing.T) {
	dir, _ := kept(t, "a", "b", "bad c", "d", "e")
	d := &table{}
	got := replay(t, dir, to(map[string]router.Destination{"db": d}))
	has(t, d, "a", "b", "d", "e")
	left(t, dir, "db 23514 violates: bad c")
	reports(t, got, Report{Replayed: 4, Refused: 1, To: map[string]int{"db": 4}, Reasons: map[string]int{"db: 23514: violates": 1}})
	if d.calls != 3 { // of at most two each
		t.Errorf("%d transactions", d.calls)
	}
	got = replay(t, dir, to(map[string]router.Destination{"db": d}))
	has(t, d, "a", "b", "d", "e")
	reports(t, got, Report{Refused: 1, Reasons: map[string]int{"db: 23514: violates": 1}})
}

func TestAMessageIsReplayedAsItCame(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, defaults(nil))
	bad := rows("m", 1)
	m := bad[0].Message
	m.Text, m.Hostname = []byte("not \xff UTF-8 \x00"), []byte("h\xc3")
	m.Fields = []router.Field{{Name: []byte("n\xfe"), Value: router.Value{Kind: router.Bytes, Bytes: []byte{0, 1, 255}}}}
	keep(t, s, db(1), bad)
	settle(t, s)
	want := router.AppendBlob(nil, m)
	var got []byte
	look := filterFunc(func(_ context.Context, b *router.Batch) *router.Held {
		got = router.AppendBlob(nil, b.Messages()[0])
		return nil
	})
	d := &table{}
	replay(t, dir, to(map[string]router.Destination{"db": d}, Stage{"look", look}))
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	has(t, d, string(m.Text))
}

type filterFunc func(ctx context.Context, b *router.Batch) *router.Held

func (f filterFunc) Apply(ctx context.Context, b *router.Batch) *router.Held { return f(ctx, b) }

// edit is a filter that does f with each message.
func edit(f func(b *router.Batch, m *router.Message)) router.Filter {
	return filterFunc(func(_ context.Context, b *router.Batch) *router.Held {
		for _, m := range b.Messages() {
			f(b, m)
		}
		return nil
	})
}

func TestFiltersDecideAboutLetters(t *testing.T) {
	dir, _ := kept(t, "bad fix", "drop", "no", "split bad", "split", "skip", "plain")
	first := edit(func(b *router.Batch, m *router.Message) {
		switch text := string(m.Text); text {
		case "bad fix":
			m.Text = b.Copy([]byte("good"))
		case "drop":
			b.Drop(m)
		case "no":
			m.Text = b.Copy([]byte("edited"))
			m.Text = []byte(text) // undone
			b.Reject(m, "rejected", "not today")
		case "split", "split bad":
			e := b.Emit(m, m)
			e.Text = b.Copy([]byte("emitted by " + text))
			b.Drop(m)
			e = b.Emit(e, m)
			e.Text = b.Copy([]byte("second of " + strings.TrimSuffix(text, " bad")))
		case "skip":
			b.Skip(m)
		}
	})
	second := edit(func(b *router.Batch, m *router.Message) { m.Text = b.Copy(append([]byte("2:"), m.Text...)) })
	d := &table{}
	got := replay(t, dir, to(map[string]router.Destination{"db": d}, Stage{"one", first}, Stage{"two", second}))
	has(t, d, "2:good", "2:second of split", "2:emitted by split", "2:second of split", "skip", "2:plain")
	left(t, dir, "db rejected one: not today: no", "db 23514 violates: ")
	reports(t, got, Report{Replayed: 4, Dropped: 1, Refused: 2, To: map[string]int{"db": 6},
		Reasons: map[string]int{"one: rejected: not today": 1, "db: 23514: violates": 1}})
}

func TestALetterOfSeveralDestinations(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, defaults(nil))
	keep(t, s, router.LetterKey{Route: "main", Filter: "redact"}, texted("a", "bad b", "c", "only two"))
	one, two := &table{}, &table{}
	r := to(map[string]router.Destination{"one": one, "two": two})
	way := &Way{Route: "main", To: []string{"one", "two"}, Stages: []Stage{{"fix", edit(func(b *router.Batch, m *router.Message) {
		if string(m.Text) == "only two" && !b.Route(m, []byte("two")) {
			t.Error("no route")
		}
		if string(m.Text) == "c" {
			m.Text = b.Copy([]byte("c fixed"))
		}
	})}}}
	r.Way = func(*Letter) (*Way, error) { return way, nil }
	two.before = func() error {
		if two.calls == 2 {
			return router.NeedsOperator(errors.New("no permission"))
		}
		return nil
	}
	got := replay(t, dir, r)
	has(t, one, "a", "c fixed")
	has(t, two, "a")
	left(t, dir, "redact 23514 one: violates: bad b", "redact 22P02 row 3: only two", "two replay no permission: c")
	reports(t, got, Report{Replayed: 1, Refused: 3, To: map[string]int{"one": 2, "two": 1},
		Reasons: map[string]int{"one: 23514: violates": 1, "two: no permission": 2}})
	// What is left of c goes where it has not been, as it was offered.
	two.before = nil
	way.To = []string{"one", "two"}
	r = to(map[string]router.Destination{"one": one, "two": two})
	r.Which = Selection{Destination: "two"}
	replay(t, dir, r)
	has(t, one, "a", "c fixed")
	has(t, two, "a", "c fixed")
	left(t, dir, "redact 23514 one: violates: bad b", "redact 22P02 row 3: only two")
}

func TestVoidLettersAreLeftOut(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, defaults(nil))
	run, other := router.NewRun(), router.NewRun()
	keep(t, s, of(run, 0, 4), numbered("first", 2))
	keep(t, s, of(run, 4, 9), numbered("underway", 6))
	keep(t, s, of(other, 0, 9), numbered("putback", 6))
	d := &table{at: map[router.RunID]uint64{run: 4}}
	got := replay(t, dir, to(map[string]router.Destination{"db": d}))
	has(t, d, "first message 0", "putback message 0")
	left(t, dir, "db 22P02 row 0: <133>1 underway message 0")
	if got.LeftOut != 1 || got.Replayed != 2 {
		t.Errorf("got %+v", got)
	}
}

func TestOneReplayAtATime(t *testing.T) {
	dir, _ := kept(t, "a")
	d := &table{}
	var inner error
	d.before = func() error {
		_, inner = replayIn(t, t.Context(), dir, to(map[string]router.Destination{"db": &table{}}))
		return nil
	}
	replay(t, dir, to(map[string]router.Destination{"db": d}))
	if inner == nil || !strings.Contains(inner.Error(), "another replay is under way") {
		t.Errorf("got %v", inner)
	}
	has(t, d, "a")
}

func TestADryRunChangesNothing(t *testing.T) {
	dir, _ := kept(t, "a", "drop", "no")
	r := to(nil, Stage{"f", edit(func(b *router.Batch, m *router.Message) {
		switch string(m.Text) {
		case "drop":
			b.Drop(m)
		case "no":
			b.Reject(m, "rejected", "no")
		}
	})})
	r.Dry = true
	got := replay(t, dir, r)
	reports(t, got, Report{Replayed: 1, Dropped: 1, Refused: 1, To: map[string]int{"db": 1}, Reasons: map[string]int{"f: rejected: no": 1}})
	left(t, dir, "db 22P02 row 0: a", "db 22P02 row 1: drop", "db 22P02 row 2: no")
}

// A lastWords filter says how many messages it has seen when it ends.
type lastWords struct{ seen int }

func (f *lastWords) Apply(_ context.Context, b *router.Batch) *router.Held {
	for _, m := range b.Messages() {
		f.seen++
		b.Drop(m)
	}
	return nil
}
func (f *lastWords) Tick(context.Context, *router.Batch) {}
func (f *lastWords) Finish(_ context.Context, b *router.Batch) {
	m := b.Add(&router.Origin{})
	m.Text = fmt.Appendf(nil, "bad: saw %d", f.seen)
}

func TestLastWordsOfAFilterArrive(t *testing.T) {
	dir, _ := kept(t, "a", "b", "c")
	d := &table{}
	fix := edit(func(b *router.Batch, m *router.Message) { m.Text = b.Copy(m.Text[len("bad: "):]) })
	got := replay(t, dir, to(map[string]router.Destination{"db": d}, Stage{"count", &lastWords{}}, Stage{"fix", fix}))
	has(t, d, "saw 3")
	left(t, dir)
	reports(t, got, Report{Dropped: 3, To: map[string]int{"db": 1}})

	dir, _ = kept(t, "a")
	got = replay(t, dir, to(map[string]router.Destination{"db": d}, Stage{"count", &lastWords{}}))
	left(t, dir, "db 23514 violates: ")
	reports(t, got, Report{Dropped: 1, Refused: 1, Reasons: map[string]int{"db: 23514: violates": 1}})
}

func TestAFilterThatHoldsEndsTheReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, _ := kept(t, "a")
		holds := filterFunc(func(context.Context, *router.Batch) *router.Held {
			return &router.Held{Retry: 1e9, Cause: errors.New("cannot start")}
		})
		d := &table{}
		_, err := replayIn(t, t.Context(), dir, to(map[string]router.Destination{"db": d}, Stage{"f", holds}))
		if err == nil || !strings.Contains(err.Error(), "filter f") {
			t.Errorf("got %v", err)
		}
		left(t, dir, "db 22P02 row 0: a")
	})
}

func TestLettersOfTheOlderLayoutAreReplayed(t *testing.T) {
	dir, s := kept(t, "a")
	record := string(router.AppendRecord(nil, rows("old", 1)[0].Message))
	exec(t, s, "UPDATE letters SET blob = NULL, raw = x'00', record = '"+record+"'")
	d := &table{}
	replay(t, dir, to(map[string]router.Destination{"db": d}))
	has(t, d, "old message 0")
	left(t, dir)

	dir, s = kept(t, "a", "b")
	exec(t, s, "UPDATE letters SET blob = x'01ff' WHERE number = 1")
	got := replay(t, dir, to(map[string]router.Destination{"db": d}))
	if got.LeftOut != 1 || got.Replayed != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestADestinationThatNeedsAPersonIsAskedOnce(t *testing.T) {
	dir, _ := kept(t, "a", "b", "c", "d", "e")
	asked := 0
	d := &table{asked: func() error { asked++; return router.NeedsOperator(errors.New("no table weir_positions")) }}
	got := replay(t, dir, to(map[string]router.Destination{"db": d}))
	reports(t, got, Report{Refused: 5, Reasons: map[string]int{"db: no table weir_positions": 5}})
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}
