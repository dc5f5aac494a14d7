package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/routertest"
	"github.com/weirlog/weir/router/sqlstore"
)

func TestMomentsAreReadAsAPersonTypesThem(t *testing.T) {
	zone := time.FixedZone("here", 3600)
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, zone)
	for text, want := range map[string]time.Time{
		"now": now, "2d": now.AddDate(0, 0, -2), "1w": now.AddDate(0, 0, -7), "-1h": now.Add(-time.Hour), "90m ago": now.Add(-90 * time.Minute),
		"today": time.Date(2026, 11, 30, 0, 0, 0, 0, zone), "Yesterday": time.Date(2026, 11, 29, 0, 0, 0, 0, zone), "10:00": time.Date(2026, 11, 30, 10, 0, 0, 0, zone),
		"10:00:05.5": time.Date(2026, 11, 30, 10, 0, 5, 5e8, zone), "2026-11-29": time.Date(2026, 11, 29, 0, 0, 0, 0, zone), "2026-11-29 10:00": time.Date(2026, 11, 29, 10, 0, 0, 0, zone),
		"2026-11-29 10:00:05": time.Date(2026, 11, 29, 10, 0, 5, 0, zone), "2026-11-29T10:00:05": time.Date(2026, 11, 29, 10, 0, 5, 0, zone),
		"2026-11-29T10:00:05Z": time.Date(2026, 11, 29, 10, 0, 5, 0, time.UTC), "2026-11-29 10:00:05.25-02:00": time.Date(2026, 11, 29, 12, 0, 5, 25e7, time.UTC),
	} {
		if got, err := moment(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "5", "25:00", "2026-13-01", "tomorrow?", "1h 1h:", "2026-11-29 10"} {
		if got, err := moment(text, now); err == nil {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestASeverityMeansAtLeastAsSevere(t *testing.T) {
	for text, want := range map[string]uint8{"warning": 0x1f, "WARN": 0x1f, "4": 0x1f, "=err": 8, "==3": 8, "err..crit": 0x0c, "<=warning": 0x1f, "<err": 0x07, ">=notice": 0xe0, "debug": 0xff, "emerg": 1} {
		if got, err := atLeast(text); err != nil || got != want {
			t.Errorf("%s: %08b, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "loud", "8", "err..", "!err", "<emerg", "err,crit"} {
		if got, err := atLeast(text); err == nil {
			t.Errorf("%s: %08b", text, got)
		}
	}
}

// logsOf is what weir logs prints of a file whose table is made by these statements.
func logsOf(t *testing.T, args []string, statements ...string) (out, errout string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "made.db")
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range statements {
		if err := sqlitex.ExecuteTransient(conn, s, nil); err != nil {
			t.Fatal(err)
		}
	}
	conn.Close()
	code, out, errout := weir(append([]string{"logs", path, "--utc"}, args...)...)
	if code != 0 {
		t.Fatal(errout)
	}
	return out, errout
}

func TestNothingOfAMessageReachesATerminalUnescaped(t *testing.T) {
	nasty := `char(27) || '[2J' || char(10) || char(13) || char(0x9b) || '31m' || char(0x202e) || char(0x200f) || char(7) || char(0x7f) || CAST(x'fffe80' AS TEXT) || char(0)`
	make := []string{"CREATE TABLE logs (received_at TEXT, severity TEXT, hostname TEXT, app_name TEXT, proc_id TEXT, message TEXT, fields TEXT, \"e\x1b[1m\" TEXT)",
		`INSERT INTO logs VALUES ('2026-01-02T03:04:05.678901Z', ` + strings.Repeat(nasty+", ", 6)[:len(nasty)*6+10] + `, NULL)`,
		`INSERT INTO logs VALUES (` + nasty + `, NULL, NULL, NULL, NULL, NULL, '{"a":"' || char(0x9b) || '"}', 'x')`}
	for _, format := range []string{"text", "json"} {
		out, _ := logsOf(t, []string{"--format", format, "--color", "never"}, make...)
		if n := strings.Count(out, "\n"); n != 2 {
			t.Errorf("%s: %d lines", format, n)
		}
		if strings.Trim(out, "\n") != strings.Map(func(r rune) rune {
			if r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || r >= 0x2000 && r < 0x2070 {
				return -1
			}
			return r
		}, strings.Trim(out, "\n")) {
			t.Errorf("%s: %q", format, out)
		}
	}
}

func TestWhatIsAbsentLeavesNothingBehind(t *testing.T) {
	out, _ := logsOf(t, nil, "CREATE TABLE logs (received_at TEXT, severity INTEGER, hostname TEXT, app_name TEXT, proc_id TEXT, message TEXT, peer TEXT)", "CREATE INDEX logs_at ON logs (received_at)",
		"INSERT INTO logs VALUES ('2026-01-02T03:04:05.678901Z', 4, 'web-1', 'sshd', '123', 'all' || char(10) || 'there', '192.0.2.1')",
		"INSERT INTO logs VALUES ('2026-01-02T03:04:06Z', 4, 'web-1', 'sshd', NULL, 'no process', '192.0.2.1')",
		"INSERT INTO logs VALUES ('2026-01-02T03:04:07Z', 4, NULL, 'sshd', '', 'no host', '192.0.2.1')",
		"INSERT INTO logs VALUES ('2026-01-02T03:04:08Z', NULL, NULL, NULL, '7', 'nobody', NULL)",
		"INSERT INTO logs VALUES ('2026-01-02T03:04:09Z', 9, 'h', NULL, NULL, NULL, NULL)",
		"INSERT INTO logs VALUES (NULL, 9, NULL, NULL, NULL, 'never', NULL)")
	want := `- never
2026-01-02 03:04:05.678 web-1 sshd[123]: all\nthere
2026-01-02 03:04:06.000 web-1 sshd: no process
2026-01-02 03:04:07.000 192.0.2.1 sshd: no host
2026-01-02 03:04:08.000 nobody
2026-01-02 03:04:09.000 h received_at="2026-01-02T03:04:09Z" severity="9" hostname="h"
`
	if d := cmp.Diff(want, out); d != "" {
		t.Error(d)
	}
}

func TestColumnsAreTyped(t *testing.T) {
	make := []string{"CREATE TABLE logs (received_at TEXT, severity INTEGER, message TEXT, fields TEXT, raw BLOB, n REAL)",
		`INSERT INTO logs VALUES ('2026-01-02T03:04:05.678901Z', 4, 'a "b", c', '{"x": [1, 2]}', x'00ff', 2.5)`,
		`INSERT INTO logs VALUES ('2026-01-02T03:04:06.678901Z', NULL, '=1+2', 'no JSON', NULL, NULL)`}
	out, _ := logsOf(t, []string{"--format", "json"}, append(make[:2:2], make[2])...)
	want := `{"received_at":"2026-01-02T03:04:05.678901Z","severity":4,"message":"a \"b\", c","fields":"{\"x\": [1, 2]}","raw":"\\x00ff","n":2.5}
{"received_at":"2026-01-02T03:04:06.678901Z","severity":null,"message":"=1+2","fields":"no JSON","raw":null,"n":null}
`
	want = strings.Replace(want, `"{\"x\": [1, 2]}"`, `{"x":[1,2]}`, 1)
	if d := cmp.Diff(want, out); d != "" {
		t.Error(d)
	}
	out, _ = logsOf(t, []string{"--format", "csv"}, make...)
	want = `received_at,severity,message,fields,raw,n
2026-01-02T03:04:05.678901Z,4,"a ""b"", c","{""x"": [1, 2]}",\x00ff,2.5
2026-01-02T03:04:06.678901Z,,=1+2,no JSON,,
`
	if d := cmp.Diff(want, out); d != "" {
		t.Error(d)
	}
}

// The whole program follows a destination that is written beside it, in both
// databases, and ends well by Ctrl-C and when nobody reads its output any more.
func TestLogsFollowsARunningDestination(t *testing.T) {
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			cfg := sqlstore.Config{SQLite: "logs.db"}
			text := "sqlite: logs.db"
			if kind == "postgres" {
				_, dsn := routertest.Postgres(t)
				cfg = sqlstore.Config{Postgres: config.PlainSecret(dsn)}
				text = "postgres: '" + dsn + "'"
			}
			os.WriteFile(filepath.Join(dir, "weir.yaml"), fmt.Appendf(nil, "state_dir: .\nsources: {edge: {listen: [unix://weir.sock]}}\ndestinations: {db: {%s}}\nroutes: {main: {from: [edge], to: [db]}}\n", text), 0o600)
			follow := func() (*exec.Cmd, *routertest.Transcript, io.ReadCloser) {
				c := exec.Command("weir", "logs", "-f", "-n", "1")
				c.Dir = dir
				errout := &routertest.Transcript{}
				c.Stderr = errout
				out, err := c.StdoutPipe()
				if err == nil {
					err = c.Start()
				}
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { c.Process.Kill() })
				return c, errout, out
			}
			first, told, out := follow()
			shown := &routertest.Transcript{}
			copied := make(chan struct{})
			go func() { io.Copy(shown, out); close(copied) }()
			within(t, time.Minute, func() bool { return strings.Contains(told.String(), "waiting: there is no") }, told.String)
			store, err := sqlstore.Open(t.Context(), cfg, "db", dir, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			write := func(text string) {
				m := &router.Message{Origin: &router.Origin{}, Received: time.Now().UnixNano()}
				m.Timestamp, m.Hostname, m.AppName, m.Text = router.NoTime, []byte("h"), []byte("app"), []byte(text)
				if err := store.Write(context.Background(), []*router.Message{m}, nil); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 3 {
				write(fmt.Sprint("row ", i))
				within(t, time.Minute, func() bool { return strings.Contains(shown.String(), fmt.Sprintf(" h app: row %d\n", i)) }, shown.String)
			}
			first.Process.Signal(syscall.SIGINT)
			<-copied
			if err := first.Wait(); err != nil || strings.Count(shown.String(), "\n") != 3 {
				t.Errorf("%v: %s%s", err, shown, told)
			}
			second, told, out := follow()
			if _, err := io.ReadFull(out, make([]byte, 10)); err != nil {
				t.Fatal(err)
			}
			out.Close() // | head
			write("nobody sees this")
			second.Wait()
			if words := told.String(); words != "" {
				t.Error(words)
			}
		})
	}
}
