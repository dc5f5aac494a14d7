package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/deadletter"
)

// weir is the program in process: its exit code and what it prints.
func weir(args ...string) (code int, out, errout string) {
	var stdout, stderr bytes.Buffer
	code = execute(args, strings.NewReader(""), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// letters makes a store with two dead letters that stays open, as a running
// router's does.
func letters(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	var c deadletter.Config
	c.Defaults()
	store, err := deadletter.Open(dir, c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	m := &router.Message{Origin: &router.Origin{}, Received: 1767225605e9, Raw: []byte("<13>evil \x1b[2J\x00\xff")}
	m.Timestamp, m.Facility, m.Severity, m.Text = router.NoTime, 1, 5, []byte("evil \x1b[2J\u202e text")
	for _, key := range []router.LetterKey{{Destination: "db", Span: router.Span{From: 3, To: 4}}, {Route: "main", Filter: "redact"}} {
		err := store.Keep(t.Context(), key, []router.Rejected{{Message: m, Code: "22P02", Column: "user_id", Reason: "not a \x07 number"}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// undated replaces the times of rejection.
func undated(s string) string {
	return regexp.MustCompile(`20\d\d-\d\d-\d\dT[\d:.]+Z`).ReplaceAllStringFunc(s, func(at string) string {
		if at == "2026-01-01T00:00:05Z" {
			return at
		}
		return "TIME"
	})
}

func TestDeadLettersAreListed(t *testing.T) {
	dir := letters(t)
	code, out, errout := weir("dlq", "ls", "--state-dir", dir, "--format", "text")
	want := `NUMBER  TIME  BY  CODE  COLUMN  REASON  MESSAGE
1  TIME  db  22P02  user_id  not a \a number  evil \x1b[2J\u202e text
2  TIME  main/redact  22P02  user_id  not a \a number  evil \x1b[2J\u202e text
`
	out = regexp.MustCompile(`  +`).ReplaceAllString(undated(out), "  ") // the width of columns is not promised
	if diff := cmp.Diff(want, out); code != 0 || errout != "" || diff != "" {
		t.Errorf("exit %d: %s%s", code, errout, diff)
	}
	code, out, _ = weir("dlq", "ls", "--state-dir", dir, "-n", "1")
	want = `{"number":2,"time":"TIME","route":"main","filter":"redact","code":"22P02","column":"user_id","reason":"not a \u0007 number",` +
		`"record":{"received_at":"2026-01-01T00:00:05Z","facility":1,"severity":5,"message":"evil \u001b[2J\u202e text"}}` + "\n"
	if diff := cmp.Diff(want, undated(out)); code != 0 || diff != "" {
		t.Errorf("exit %d: %s", code, diff)
	}
}

func TestADeadLetterIsShownSafely(t *testing.T) {
	dir := letters(t)
	code, out, _ := weir("dlq", "show", "1", "--state-dir", dir)
	want := `number       1
time         TIME
destination  db
code         22P02
column       user_id
reason       not a \a number
record       {"received_at":"2026-01-01T00:00:05Z","facility":1,"severity":5,"message":"evil \u001b[2J\u202e text"}
raw          "<13>evil \x1b[2J\x00\xff"
`
	if diff := cmp.Diff(want, undated(out)); code != 0 || diff != "" {
		t.Errorf("exit %d: %s", code, diff)
	}
	code, out, _ = weir("dlq", "show", "1", "--state-dir", dir, "--format", "json")
	if code != 0 || !strings.Contains(out, `"raw_b64":"PDEzPmV2aWwgG1sySgD/"`) || !strings.Contains(out, `"message":"evil \u001b[2J\u202e text"`) {
		t.Errorf("exit %d: %s", code, out)
	}
}

func TestDeadLettersAreFoundThroughTheConfiguration(t *testing.T) {
	dir := letters(t)
	path := filepath.Join(t.TempDir(), "weir.yaml")
	os.WriteFile(path, []byte("state_dir: "+dir+"\nsources: {s: {listen: [udp://127.0.0.1:0]}}\ndestinations: {d: {discard: {}}}\nroutes: {r: {from: [s], to: [d]}}\n"), 0o600)
	code, out, errout := weir("dlq", "ls", "-c", path)
	if code != 0 || strings.Count(out, "\n") != 2 {
		t.Errorf("exit %d: %s%s", code, out, errout)
	}
}

func TestDeadLettersThatAreNotThere(t *testing.T) {
	dir := letters(t)
	check := func(wantCode int, want string, args ...string) {
		t.Helper()
		code, out, errout := weir(append([]string{"dlq"}, args...)...)
		if code != wantCode || out != "" || !strings.Contains(errout, want) {
			t.Errorf("%v: exit %d: %s%s", args, code, out, errout)
		}
	}
	check(1, "no such dead letter: 9", "show", "9", "--state-dir", dir)
	check(2, "no number", "show", "x", "--state-dir", dir)
	check(2, "", "show", "--state-dir", dir)
	check(2, "--format", "ls", "--state-dir", dir, "--format", "xml")
	check(0, "nothing was ever rejected", "ls", "--state-dir", t.TempDir())
	check(1, "no such dead letter: 1", "show", "1", "--state-dir", t.TempDir())
}

func TestTimesSelectLetters(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	check := func(text string, want time.Time) {
		t.Helper()
		if got, err := moment(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	check("2h", now.Add(-2*time.Hour))
	check("1h30m", now.Add(-90*time.Minute))
	check("7d", now.AddDate(0, 0, -7))
	check("2026-11-29T10:00:00+02:00", time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC))
	for _, bad := range []string{"last week", "2026-11-31", "5", "--2h", "$HOME", "2h: {}", "[2h]"} {
		if got, err := moment(bad, now); err == nil {
			t.Errorf("%s: %v", bad, got)
		}
	}
	dir := letters(t)
	for _, args := range [][]string{{"--since", "2h"}, {"--until", "2999-01-01T00:00:00Z", "--since", "7d"}, {"--code", "22"}, {"1", "2", "2"}} {
		code, out, errout := weir(append([]string{"dlq", "ls", "--state-dir", dir}, args...)...)
		if code != 0 || strings.Count(out, "\n") != 2 {
			t.Errorf("%v: exit %d: %s%s", args, code, out, errout)
		}
	}
	code, _, errout := weir("dlq", "purge", "--state-dir", dir, "--since", "1h", "--until", "2h")
	if code != 2 || !strings.Contains(errout, "nothing lies between") {
		t.Errorf("exit %d: %s", code, errout)
	}
}

func TestReportsShowTheCommonestReasons(t *testing.T) {
	var b bytes.Buffer
	r := deadletter.Report{Replayed: 3, Refused: 22, LeftOut: 1, Earlier: 1, Reasons: map[string]int{"f": 1, "a\x1b[2J": 12, "b": 2, "c": 2, "d": 2, "e": 2, "g": 2}}
	writeReport(&b, r, false)
	want := `replayed 3, dropped 0, still refused 22, left out 1
  1 letter of these had been stored by a replay that was broken off
  12: a\x1b[2J
  2: b
  2: c
  2: d
  2: e
  and 2 other reasons (weir dlq ls)
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}
