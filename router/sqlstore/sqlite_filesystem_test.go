package sqlstore

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// openOn opens a database on a file system of that kind.
func openOn(t *testing.T, dir, kind string, cfg Config) (d *rig, logged string) {
	t.Helper()
	var log bytes.Buffer
	cfg.SQLite = "logs.db"
	s, err := newStore(cfg, "db", slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	l := newLite(s, filepath.Join(dir, "logs.db"))
	l.tending.filesystem = func(at string) string {
		if at != dir {
			t.Errorf("looked at %s", at)
		}
		return kind
	}
	s.db = l
	if err := l.first(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &rig{Store: s, t: t, dir: dir}, log.String()
}

// Field case C29.
func TestSQLiteWarnsOfNetworkFilesystems(t *testing.T) {
	d, logged := openOn(t, t.TempDir(), "NFS", Config{})
	if !strings.Contains(logged, "network file system") || !strings.Contains(logged, "filesystem=NFS") || !strings.Contains(logged, "wal=true") {
		t.Errorf("log: %s", logged)
	}
	if _, note := d.Tend(t.Context()); !strings.Contains(note, "network file system (NFS)") {
		t.Errorf("note %q", note)
	}
	d.mustWrite(messages(3)...)

	if d, logged := openOn(t, t.TempDir(), "", Config{}); strings.Contains(logged, "WARN") {
		t.Errorf("log: %s", logged)
	} else if _, note := d.Tend(t.Context()); note != "" {
		t.Errorf("note %q", note)
	}
	if kind := NetworkFilesystem(filepath.Join(t.TempDir(), "to", "be", "made")); kind != "" {
		t.Errorf("the directory of tests is on %s", kind)
	}
}

// Field case C29: without WAL means without WAL, also for a file that had one.
func TestSQLiteWithoutWALIsWithout(t *testing.T) {
	check := func(d *rig) {
		t.Helper()
		d.mustWrite(messages(3)...)
		head, err := os.ReadFile(filepath.Join(d.dir, "logs.db"))
		if err != nil {
			t.Fatal(err)
		}
		if head[18] != 1 || head[19] != 1 { // fileformat2.html, 1.3.3
			t.Errorf("file format versions %d and %d: WAL", head[18], head[19])
		}
		for _, suffix := range []string{"-wal", "-shm"} {
			if _, err := os.Stat(filepath.Join(d.dir, "logs.db"+suffix)); err == nil {
				t.Errorf("there is a logs.db%s", suffix)
			}
		}
	}
	off := []string{"PRAGMA cache_size = -2000", "pragma main.journal_mode=delete;"}
	fresh := openLite(t, Config{SessionStatements: off})
	check(fresh)
	fresh.want("PRAGMA auto_vacuum", "2")

	d := openLite(t, Config{})
	d.mustWrite(messages(3)...)
	d.want("PRAGMA journal_mode", "wal")
	d.Close()
	d = open(t, d.dir, Config{SQLite: "logs.db", SessionStatements: off})
	check(d)
	d.want("SELECT count(*) FROM logs", "6")
}

func TestSQLiteFileIsForItsGroup(t *testing.T) {
	d := openLite(t, Config{})
	d.mustWrite(messages(3)...)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(filepath.Join(d.dir, "logs.db"+suffix))
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode(); mode&0o137 != 0 || mode&0o600 != 0o600 {
			t.Errorf("logs.db%s has mode %v", suffix, mode)
		}
	}
	// A file that is there keeps its mode.
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "logs.db"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	open(t, dir, Config{SQLite: "logs.db"})
	if info, err := os.Stat(filepath.Join(dir, "logs.db")); err != nil || info.Mode().Perm()&0o004 == 0 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestSQLiteDirectoryIsNoFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), Config{SQLite: "data"}, "db", dir, slogDiscard)
	if err == nil || !strings.Contains(err.Error(), "is a directory: name a file in it") {
		t.Errorf("Open = %v", err)
	}
}
