package deadletter

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router"
)

// A table is a destination that keeps positions, which refuses texts with "bad" in them.
type table struct {
	rows []string
	at   map[router.RunID]uint64

	before func() error // when set, decides about a WriteAt before it stores
	after  func() error // when set, what the WriteAt that stored answers
	asked  func() error // when set, what Position answers
	calls  int
}

func (d *table) Position(_ context.Context, run router.RunID) (uint64, bool, error) {
	if d.asked != nil {
		if err := d.asked(); err != nil {
			return 0, false, err
		}
	}
	if d.at == nil {
		d.at = map[router.RunID]uint64{}
	}
	at, known := d.at[run]
	d.at[run] = at
	return at, known, nil
}

func (d *table) WriteAt(_ context.Context, span router.Span, msgs []*router.Message, reject func([]router.Rejected) error) error {
	d.calls++
	if d.at[span.Run] != span.From {
		return router.ErrMoved
	}
	var bad []router.Rejected
	var good []string
	for _, m := range msgs {
		if strings.Contains(string(m.Text), "bad") {
			bad = append(bad, router.Rejected{Message: m, Code: "23514", Column: "c", Reason: "violates"})
		} else {
			good = append(good, string(m.Text))
		}
	}
	if d.before != nil {
		if err := d.before(); err != nil {
			return err
		}
	}
	if len(bad) > 0 {
		if err := reject(bad); err != nil {
			return err
		}
	}
	d.rows = append(d.rows, good...)
	d.at[span.Run] = span.To
	if d.after != nil {
		return d.after()
	}
	return nil
}

func (d *table) Write(context.Context, []*router.Message, func([]router.Rejected) error) error {
	panic("BUG: a positioner is written with positions")
}

func (d *table) Close() error { return nil }

// kept makes letters of texts, rejected by the destination db, and gives the directory.
func kept(t *testing.T, texts ...string) (dir string, s *Store) {
	t.Helper()
	dir = t.TempDir()
	s = open(t, dir, defaults(nil))
	keep(t, s, router.LetterKey{Destination: "db", Span: router.Span{Run: testRun, To: uint64(len(texts))}}, texted(texts...))
	settle(t, s)
	return dir, s
}

func settle(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Settle(t.Context(), "db", testRun, 1<<62); err != nil {
		t.Fatal(err)
	}
}

func texted(texts ...string) []router.Rejected {
	out := numbered("x", make([]uint64, len(texts))...)
	for i, text := range texts {
		out[i].Number = uint64(i + 1)
		out[i].Message.Text, out[i].Message.Raw = []byte(text), []byte(text)
	}
	return out
}

// to is a replay of letters to where they were rejected, by way of filters.
func to(targets map[string]router.Destination, stages ...Stage) Replay {
	ways := map[string]*Way{}
	return Replay{
		Way: func(l *Letter) (*Way, error) {
			name := l.Destination
			if name == "" {
				name = "db"
			}
			if ways[name] == nil {
				ways[name] = &Way{Route: l.Route, Stages: stages, To: []string{name}}
			}
			return ways[name], nil
		},
		Open: func(_ context.Context, name string) (Target, error) {
			if d := targets[name]; d != nil {
				return Target{d, 2, 1 << 20}, nil
			}
			return Target{}, ErrUnknown
		},
		Log: slog.New(slog.DiscardHandler),
	}
}

func replayIn(t *testing.T, ctx context.Context, dir string, r Replay) (Report, error) {
	t.Helper()
	e, err := OpenEditor(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	return e.Replay(ctx, r)
}

func replay(t *testing.T, dir string, r Replay) Report {
	t.Helper()
	report, err := replayIn(t, t.Context(), dir, r)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// left are the letters in dir, and what is planned.
func left(t *testing.T, dir string, want ...string) {
	t.Helper()
	e, err := OpenEditor(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var got []string
	r := Reader{e.conn, columnsOf(version)}
	letters, err := r.List(Selection{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range letters {
		whole, err := r.Show(l.Number)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s%s %s %s: %s", l.Destination, l.Filter, l.Code, l.Reason, whole.Raw))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("letters: %s", diff)
	}
	if n, err := number(e.conn, "SELECT count(*) FROM replays"); n != 0 || err != nil {
		t.Errorf("%d pieces are planned, %v", n, err)
	}
}

func has(t *testing.T, d *table, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, d.rows); diff != "" {
		t.Errorf("rows: %s", diff)
	}
}

func reports(t *testing.T, got, want Report) {
	t.Helper()
	if want.To == nil {
		want.To = map[string]int{}
	}
	if want.Reasons == nil {
		want.Reasons = map[string]int{}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report: %s", diff)
	}
}
