package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

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
		`"record":{"received_at":"2026-01-01T00:00:05Z","facility":1,"severity":5,"message":"evil \u001b[2J` + "\u202e" + ` text"}}` + "\n"
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
	if code != 0 || !strings.Contains(out, `"raw_b64":"PDEzPmV2aWwgG1sySgD/"`) {
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
