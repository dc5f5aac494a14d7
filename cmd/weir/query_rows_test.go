package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router/sqlstore"
)

// cellOf makes a value of what a test says.
func cellOf(v any) sqlstore.Value {
	switch v := v.(type) {
	case string:
		return sqlstore.Value{Kind: sqlstore.TextValue, Text: []byte(v)}
	case []byte:
		return sqlstore.Value{Kind: sqlstore.BytesValue, Text: v}
	case json.RawMessage:
		return sqlstore.Value{Kind: sqlstore.JSONValue, Text: v}
	case bool:
		return sqlstore.Value{Kind: sqlstore.BoolValue, Text: fmt.Append(nil, v)}
	case nil:
		return sqlstore.Value{}
	}
	return sqlstore.Value{Kind: sqlstore.NumberValue, Text: fmt.Append(nil, v)}
}

// shownBy is what a writer makes of a result.
func shownBy(t testing.TB, make func(io.Writer) rowWriter, names []string, rows ...[]any) string {
	t.Helper()
	var out bytes.Buffer
	w := make(&out)
	err := w.Columns(names)
	for _, row := range rows {
		var values []sqlstore.Value
		for _, v := range row {
			values = append(values, cellOf(v))
		}
		err = errors.Join(err, w.Row(values))
		for _, v := range values { // they belong to the database
			clear(v.Text)
		}
	}
	if err = errors.Join(err, w.End()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func asJSON(w io.Writer) rowWriter { return &jsonRows{w: w} }

func asCSV(w io.Writer) rowWriter { return &csvRows{w: w} }

func asTable(fit int) func(w io.Writer) rowWriter {
	return func(w io.Writer) rowWriter { return &tableRows{w: w, fit: fit} }
}

func is(t testing.TB, got, want string) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestQueryJSONKeepsValuesAndTheirOrder(t *testing.T) {
	got := shownBy(t, asJSON, []string{"z", "a", "m\"", "n", "o"},
		[]any{int64(math.MaxInt64), "12345678901234567890.12", nil, true, json.RawMessage("{\"b\" : 1,\n \"a\": [1.50]}")},
		[]any{json.Number("123456789012345678901234567890.10"), []byte{0, 0xff}, json.Number("NaN"), json.Number("-Infinity"), json.Number("1e+300")})
	is(t, got, `{"z":9223372036854775807,"a":"12345678901234567890.12","m\"":null,"n":true,"o":{"b":1,"a":[1.50]}}`+"\n"+
		`{"z":123456789012345678901234567890.10,"a":"\\x00ff","m\"":"NaN","n":"-Infinity","o":1e+300}`+"\n")
}

func TestQueryJSONHasEachNameOnce(t *testing.T) {
	got := shownBy(t, asJSON, []string{"a", "a", "a_2", "a", "", ""}, []any{1, 2, 3, 4, 5, 6})
	is(t, got, `{"a":1,"a_3":2,"a_2":3,"a_4":4,"":5,"_2":6}`+"\n")
}

func TestQueryJSONHarmsNoTerminal(t *testing.T) {
	got := shownBy(t, asJSON, []string{"\x1b[2J"}, []any{"\x1b]0;x\a \u009b31m \u202etxt \xff \U000e0001 é 漢"}, []any{json.RawMessage("\"\u009b \x9b31m\"")})
	is(t, got, `{"\u001b[2J":"\u001b]0;x\u0007 \u009b31m \u202etxt `+"\ufffd"+` \udb40\udc01 é 漢"}`+"\n"+`{"\u001b[2J":"\u009b `+"\ufffd"+`31m"}`+"\n")
}

// FuzzQueryJSON holds what is written against encoding/json.
func FuzzQueryJSON(f *testing.F) {
	f.Add("a\u009b\x00\u2028\U000e0001\xff\"\\")
	f.Fuzz(func(t *testing.T, s string) {
		got := shownBy(t, asJSON, []string{"a"}, []any{s})
		var back map[string]string
		if err := json.Unmarshal([]byte(got), &back); err != nil {
			t.Fatalf("%q: %v", got, err)
		}
		if want := string([]rune(s)); back["a"] != want { // U+FFFD for each byte that is not UTF-8
			t.Errorf("got %q, want %q", back["a"], want)
		}
		for _, r := range strings.TrimSuffix(got, "\n") {
			if !unicode.IsPrint(r) {
				t.Errorf("%q in %q", r, got)
			}
		}
	})
}

func TestQueryCSVTellsNullFromEmpty(t *testing.T) {
	got := shownBy(t, asCSV, []string{"a", "b,c", `d"`}, []any{nil, "", "x"}, []any{"1\r\n2", nil, nil}, []any{1.5, " y", []byte("hi")}, []any{`"`, true, "\x1b"})
	is(t, got, "a,\"b,c\",\"d\"\"\"\n,\"\",x\n\"1\r\n2\",,\n1.5,\" y\",\\x6869\n\"\"\"\",true,\x1b\n")
	onTerminal := func(w io.Writer) rowWriter { return &csvRows{w: w, terminal: true} }
	is(t, shownBy(t, onTerminal, []string{"a"}, []any{"\x1b[31m\n"}), "a\n"+`\x1b[31m\n`+"\n")
}

// FuzzQueryCSV holds what is written against encoding/csv.
func FuzzQueryCSV(f *testing.F) {
	f.Add("a,b", " \"x\"\n")
	f.Fuzz(func(t *testing.T, a, b string) {
		got := shownBy(t, asCSV, []string{"a", "b"}, []any{a, b})
		r := csv.NewReader(strings.NewReader(got))
		rows, err := r.ReadAll()
		want := func(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") } // as that reader has it
		if err != nil || len(rows) != 2 || rows[1][0] != want(a) || rows[1][1] != want(b) {
			t.Errorf("%q: %q, %v", got, rows, err)
		}
	})
}

func TestQueryTableAlignsWhatIsShown(t *testing.T) {
	got := shownBy(t, asTable(0), []string{"n", "host", "text"}, []any{1, "web", "漢字x"}, []any{nil, "é\u0301", "line\nend\x1b[2J"}, []any{-22.5, nil, ""})
	is(t, got, ""+
		"    n  host  text\n"+
		"-----  ----  ----------------\n"+
		"    1  web   漢字x\n"+
		" NULL  é\u0301     line\\nend\\x1b[2J\n"+
		"-22.5  NULL  \n")
}

func TestQueryTableFitsTheTerminal(t *testing.T) {
	long := strings.Repeat("漢", 100)
	got := shownBy(t, asTable(40), []string{"id", "host", "message"}, []any{1, "web-1.example.com", long}, []any{123456, strings.Repeat("h", 40), "short"})
	is(t, got, ""+
		"    id  host             message\n"+
		"------  ---------------  ---------------\n"+
		"     1  web-1.example.…  漢漢漢漢漢漢漢…\n"+
		"123456  hhhhhhhhhhhhhh…  short\n")
	for _, line := range strings.Split(got, "\n") {
		if cells(line) > 40 {
			t.Errorf("%d cells: %s", cells(line), line)
		}
	}
	is(t, shownBy(t, asTable(30), []string{"a", "bb", "c", "d"}, []any{"aaaaaaaaaa", "bbbbbbbbbb", "cccccccccc", "dddddddddd"}, []any{1, nil, "x", ""}),
		"a   aaaaaaaaaa\nbb  bbbbbbbbbb\nc   cccccccccc\nd   dddddddddd\n\na   1\nbb  NULL\nc   x\nd   \n")
}

// The first rows say how wide a column is; rows behind them are not held.
func TestQueryTableHoldsNoMoreThanItsBeginning(t *testing.T) {
	var out bytes.Buffer
	table := &tableRows{w: &out}
	table.Columns([]string{"n", "t"})
	for n := range heldRows + 5 {
		table.Row([]sqlstore.Value{cellOf(n), cellOf("x")})
		if held := len(table.held); held >= heldRows {
			t.Fatalf("%d rows are held", held)
		}
	}
	table.Row([]sqlstore.Value{cellOf(123456), cellOf("longer than any before")})
	is(t, out.String()[strings.LastIndex(out.String(), "1004"):], "1004  x\n123456  longer than any before\n") // nothing is lost
	out.Reset()
	table = &tableRows{w: &out}
	table.Columns([]string{"t"})
	table.Row([]sqlstore.Value{cellOf(strings.Repeat("x", heldBytes))})
	if len(table.held) > 0 || out.Len() < heldBytes {
		t.Error("a large row is held")
	}
}

func TestQueryLimitKnowsWhetherThereIsMore(t *testing.T) {
	for _, c := range []struct {
		most, rows int
		more       bool
	}{{3, 2, false}, {3, 3, false}, {3, 4, true}, {0, 9, false}} {
		l := &limited{rowWriter: &jsonRows{w: io.Discard}, most: c.most}
		l.Columns([]string{"a"})
		var err error
		for n := 0; n < c.rows && err == nil; n++ {
			err = l.Row([]sqlstore.Value{cellOf(n)})
		}
		if l.more != c.more || c.more != errors.Is(err, sqlstore.ErrEnough) {
			t.Errorf("%+v: %v, %v", c, l.more, err)
		}
	}
}

// blocked takes nothing until it is told to.
type blocked struct {
	free chan struct{}
	bytes.Buffer
}

func (b *blocked) Write(p []byte) (int, error) {
	<-b.free
	return b.Buffer.Write(p)
}

// A person before a full screen keeps no transaction open: the result is taken, and what is too much ends by the deadline.
func TestQueryDoesNotWaitForWhoReadsIt(t *testing.T) {
	reader := &blocked{free: make(chan struct{})}
	late := errors.New("it took too long")
	ctx, stop := context.WithCancelCause(t.Context())
	q := newQueue(ctx, reader)
	piece := bytes.Repeat([]byte("x"), queuePiece)
	for range queuePieces { // none of these waits
		if _, err := q.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	stop(late)
	var err error
	for n := 0; n < 3 && err == nil; n++ {
		_, err = q.Write(piece)
	}
	if !errors.Is(err, late) {
		t.Error(err)
	}
	close(reader.free)
	if err := q.close(t.Context()); err != nil || reader.Len() < queuePiece*queuePieces {
		t.Errorf("%v, %d bytes of what was taken", err, reader.Len())
	}
}

func TestQueryEndsWhenNobodyTakesItsRows(t *testing.T) {
	r, w := io.Pipe()
	gone := errors.New("the pager has gone")
	r.CloseWithError(gone)
	q := newQueue(t.Context(), w)
	piece := bytes.Repeat([]byte("x"), queuePiece)
	var err error
	for n := 0; n < 10*queuePieces && err == nil; n++ {
		_, err = q.Write(piece)
	}
	if !errors.Is(err, gone) {
		t.Error(err)
	}
	if err := q.close(t.Context()); !errors.Is(err, gone) {
		t.Error(err)
	}
}

func TestQueryShowsThePlace(t *testing.T) {
	at := func(sql, of, want string) {
		t.Helper()
		var out strings.Builder
		writePlace(&out, sql, strings.Index(sql, of))
		is(t, out.String(), want)
	}
	at("SELECT 1\nFROM\t漢, lgs\r\nWHERE 1", "lgs", "    FROM 漢, lgs\n             ^\n")
	at(strings.Repeat("é", 80)+"X", "X", "    …"+strings.Repeat("é", 30)+"X\n    "+strings.Repeat(" ", 31)+"^\n")
	at("SELECT '\x1b[2J', x", ", x", "    SELECT '\\x1b[2J', x\n                    ^\n")
}

// FuzzCut holds a cut text against the width it is cut to.
func FuzzCut(f *testing.F) {
	f.Add("漢字漢字", 3)
	f.Add("e\u0301e\u0301e\u0301", 2)
	f.Fuzz(func(t *testing.T, s string, width int) {
		if width < 1 || width > 1000 || !utf8.ValidString(s) {
			return
		}
		got := cut(s, width)
		if cells(got) > width || cells(s) <= width && got != s || !strings.HasPrefix(s, strings.TrimSuffix(got, "…")) {
			t.Errorf("%q at %d: %q", s, width, got)
		}
	})
}
