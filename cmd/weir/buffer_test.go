package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/router/config"
)

// buffered is the configuration with these destinations, and what is wrong with it.
func buffered(t *testing.T, dir, destinations string) (*settings, *config.Document) {
	t.Helper()
	s := newSettings()
	text := fmt.Sprintf("state_dir: %s\nsources: {in: {listen: [\"unix://in.sock\"]}}\nroutes: {main: {from: [in], to: [db]}}\ndestinations:\n%s\n", dir, destinations)
	return s, config.Parse(s, config.Options{}, "weir.yaml", []byte(text))
}

func TestADiskBufferHasRoomForTwoTransactions(t *testing.T) {
	const away = "postgres: postgres://weir@db/logs, "
	for _, c := range []struct{ settings, what, hint string }{
		{"discard: {}, buffer: {disk: 8MiB}", "", ""},
		{"discard: {}, buffer: {disk: 4MiB}", "4MiB has no room for two transactions of flush_bytes: 4MiB", "at least 8MiB, or a smaller flush_bytes"},
		{"discard: {}, flush_bytes: 1MiB, buffer: {disk: 4MiB}", "", ""},
		{"discard: {}, flush_bytes: 1MiB, buffer: {disk: 3MiB}", "3MiB is too small", "at least 4MiB"},
		{"discard: {}, flush_bytes: 1GiB, buffer: {disk: 1GiB}", "1GiB has no room for two transactions of flush_bytes: 1GiB", "at least 2GiB"},
		{away + "connections: 4, buffer: {disk: 32MiB}", "", ""},
		{away + "connections: 4, buffer: {disk: 30MiB}", "30MiB are 7.5 MiB for each of 4 connections, which has no room for two transactions of flush_bytes: 4MiB", "at least 32MiB, or a smaller flush_bytes, or fewer connections"},
		{away + "connections: 4, flush_bytes: 1MiB, buffer: {disk: 12MiB}", "12MiB are 3.0 MiB for each of 4 connections, which is too small", "at least 16MiB, or fewer connections"},
	} {
		_, doc := buffered(t, t.TempDir(), "  db: {"+c.settings+"}")
		switch err := doc.Err(); {
		case c.what == "" && err != nil:
			t.Errorf("%s: %v", c.settings, err)
		case c.what != "" && (err == nil || !strings.Contains(err.Error(), c.what) || !strings.Contains(err.Error(), c.hint)):
			t.Errorf("%s: %v, want %s, %s", c.settings, err, c.what, c.hint)
		}
	}
}

// warnings are what warnBuffers says.
func warnings(t *testing.T, dir, destinations string) (said []string) {
	t.Helper()
	s, doc := buffered(t, dir, destinations)
	if err := doc.Err(); err != nil {
		t.Fatal(err)
	}
	s.warnBuffers(doc)
	for _, w := range doc.Warnings() {
		said = append(said, w.What)
	}
	return said
}

func TestADiskBufferThatTheDiskHasNoRoomForIsWarnedOf(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "yet")
	if runtime.GOOS != "linux" {
		t.Skip("free space is known on Linux only")
	}
	const one = "  db: { discard: {}, flush_bytes: 1MiB, buffer: { disk: 4MiB, keep_free: 0B } }\n"
	if said := warnings(t, dir, one); len(said) > 0 {
		t.Error(said)
	}
	said := warnings(t, dir, one+"  big: { discard: {}, buffer: { disk: 1000000TiB } }\n  small: { discard: {}, buffer: { disk: 8MiB } }")
	if len(said) != 2 || !strings.Contains(said[0], "destination big: its disk buffer and those before it may take 1000000.0 TiB, but in "+bufferDir(dir)) || !strings.Contains(said[1], "destination small") {
		t.Error(said)
	}
}

func TestWhatCannotStayFreeIsWarnedOf(t *testing.T) {
	dir := t.TempDir()
	if runtime.GOOS != "linux" {
		t.Skip("free space is known on Linux only")
	}
	said := warnings(t, dir, "  a: { discard: {}, buffer: { disk: 500TB, keep_free: 900TB } }\n  b: { sqlite: logs.db, retention: { keep_free: 900TB } }\n  c: { sqlite: c.db, retention: { keep_free: 1MiB } }")
	if len(said) != 2 || !strings.HasSuffix(said[0], ": its disk buffer takes nothing") || !strings.HasPrefix(said[1], "destination b: ") || !strings.HasSuffix(said[1], "the retention cannot reach that, whatever it removes") {
		t.Errorf("%q", said)
	}
}

func TestLeftBuffersAreWarnedOfWithWhatIsInThem(t *testing.T) {
	dir := t.TempDir()
	fillSpool(t, dir, "gone", 7, 3).Close()
	fillSpool(t, dir, "empty", 7, 7).Close()
	fillSpool(t, dir, "db", 7, 0).Close()
	said := warnings(t, dir, "  db: { discard: {}, buffer: { disk: 8MiB, keep_free: 0B } }")
	if want := "the disk buffer " + bufferDir(dir) + "/gone belongs to no destination with a disk buffer: 4 messages in it reach nobody"; len(said) != 1 || said[0] != want {
		t.Errorf("%q, want %q", said, want)
	}
	// One that cannot be read is told in any case.
	files, _ := filepath.Glob(filepath.Join(bufferDir(dir), "empty", "1.0", "*.seg"))
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	data[8], data[4096+8] = 99, 99
	os.WriteFile(files[0], data, 0o600)
	if said = warnings(t, dir, "  db: { discard: {}, buffer: { disk: 8MiB, keep_free: 0B } }"); len(said) != 2 || !strings.Contains(said[0], "newer weir") {
		t.Errorf("%q", said)
	}
}

func TestTheStartTellsWhatWaitsInDiskBuffers(t *testing.T) {
	dir := t.TempDir()
	fillSpool(t, dir, "db", 5, 2).Close()
	for _, c := range []struct{ buffer, want string }{
		{"db", "messages=3"},
		{"empty", ""},
	} {
		s, doc := buffered(t, dir, "  "+c.buffer+": { discard: {}, buffer: { disk: 8MiB, keep_free: 0B } }")
		if err := doc.Err(); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		at := site{name: c.buffer, stateDir: dir, log: slog.New(slog.NewTextHandler(&log, nil))}
		all, err := s.Destinations.Get(c.buffer).open(t.Context(), at, prometheus.NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		closeConnections(all)
		if c.want == "" && log.Len() > 0 {
			t.Error(log.String())
		}
		for _, w := range []string{c.want, "destination=" + c.buffer, filepath.Join(bufferDir(dir), "db", "1.0"), "bytes=", "oldest="} {
			if c.want != "" && (!strings.Contains(log.String(), w) || strings.Count(log.String(), "\n") != 1) {
				t.Errorf("%q is not in %s", w, log.String())
			}
		}
	}
}

// Also where the path of state_dir looks like a pattern.
func TestBuffersOfAnotherNumberOfConnectionsAreOpened(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state[1]*")
	fillSpool(t, dir, "db", 5, 2).Close()
	mine := filepath.Join(bufferDir(dir), "db")
	if err := os.Rename(filepath.Join(mine, "1.0"), filepath.Join(mine, "2.1")); err != nil {
		t.Fatal(err)
	}
	s, doc := buffered(t, dir, "  db: { discard: {}, buffer: { disk: 8MiB, keep_free: 0B } }")
	if err := doc.Err(); err != nil {
		t.Fatal(err)
	}
	all, err := s.Destinations.Get("db").open(t.Context(), site{name: "db", stateDir: dir, log: slog.New(slog.DiscardHandler)}, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	defer closeConnections(all)
	if len(all) != 2 || all[0].Old || !all[1].Old || all[1].Spool.Backlog().Messages != 3 {
		t.Errorf("%+v", all)
	}
}
