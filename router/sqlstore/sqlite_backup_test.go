package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router"
)

// filled is a destination with so many rows of a run.
func filled(t testing.TB, cfg Config, run router.RunID, rows int) *rig {
	t.Helper()
	r := openLite(t, cfg)
	if _, _, err := r.positioner().Position(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < rows; {
		more := min(rows-n, 2000)
		r.mustWriteAt(run, uint64(n), uint64(n+more), messages(more)...)
		n += more
	}
	return r
}

// wantCopy checks what a copy holds: so many rows, the position that belongs to them, and nothing else in its directory.
func wantCopy(t testing.TB, path string, rows int) {
	t.Helper()
	if d := cmp.Diff([]string{fmt.Sprintf("%d|%[1]d|%[1]d", rows)}, query(t, path, "SELECT count(*), max(id), (SELECT pos FROM weir_positions) FROM logs")); d != "" {
		t.Error(d)
	}
	wantAlone(t, path)
}

// wantAlone checks that nothing but these is in a directory, which exists.
func wantAlone(t testing.TB, paths ...string) {
	t.Helper()
	var want, got []string
	for _, p := range paths {
		want = append(want, filepath.Base(p))
	}
	files, err := os.ReadDir(filepath.Dir(paths[0]))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		got = append(got, f.Name())
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestBackupBesideAWriterIsOneMoment(t *testing.T) {
	run := router.RunID{7}
	r := filled(t, Config{}, run, 20_000)
	at, looks := 20_000, 0
	path := filepath.Join(t.TempDir(), "copy.db")
	report, err := readerOf(t, r.cfg, r.dir).Backup(t.Context(), Backup{Path: path, Check: "integrity_check", Progress: func(done, total int64) {
		looks++ // in the middle of the copy
		r.mustWriteAt(run, uint64(at), uint64(at+100), messages(100)...)
		at += 100
	}})
	if err != nil {
		t.Fatal(err)
	}
	if looks < 3 || int64(looks) > report.Bytes/(backupPages*4096)+1 {
		t.Errorf("%d steps for %d bytes: it began anew, or was one step", looks, report.Bytes)
	}
	wantCopy(t, path, 20_000)
	r.want("SELECT count(*) FROM logs", fmt.Sprint(at))
}

func TestBackupKeepsWhatTheFileIs(t *testing.T) {
	r := openLite(t, Config{FullText: "message", SessionStatements: []string{"PRAGMA page_size = 8192"}})
	r.mustWrite(messages(300)...)
	for _, sql := range []string{"PRAGMA user_version = 41", "PRAGMA application_id = 42", "CREATE TABLE own (a)", "INSERT INTO own (rowid, a) VALUES (5, 'five'), (9, 'nine')", "DELETE FROM logs WHERE id < 100"} {
		r.query(sql)
	}
	if err := os.Chmod(filepath.Join(r.dir, "logs.db"), 0o604); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	if _, err := readerOf(t, r.cfg, r.dir).Backup(t.Context(), Backup{Path: path, Check: "integrity_check"}); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{"PRAGMA user_version", "PRAGMA application_id", "PRAGMA auto_vacuum", "PRAGMA page_size", "PRAGMA page_count", "SELECT rowid, a FROM own",
		"SELECT name, sql FROM sqlite_schema ORDER BY 1", "SELECT count(*), min(id) FROM logs", "SELECT count(*) FROM weir_fts_logs WHERE weir_fts_logs MATCH 'message'"} {
		if d := cmp.Diff(r.query(sql), query(t, path, sql)); d != "" {
			t.Errorf("%s: %s", sql, d)
		}
	}
	if got := query(t, path, "PRAGMA journal_mode"); got[0] != "delete" {
		t.Errorf("journal mode %s: it cannot be read where nothing can be written", got)
	}
	wantAlone(t, path)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o604 {
		t.Error(info.Mode(), err)
	}
}

func TestBackupIsRefusedWhereItWouldHarm(t *testing.T) {
	r := filled(t, Config{}, router.RunID{7}, 100)
	reader, dir := readerOf(t, r.cfg, r.dir), t.TempDir()
	own := filepath.Join(r.dir, "logs.db")
	refused := func(path string, force bool, want string) {
		t.Helper()
		_, err := reader.Backup(t.Context(), Backup{Path: path, Force: force})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.Symlink(own, in("symlink.db")), os.Link(own, in("hardlink.db")), os.WriteFile(in("there.db"), []byte("x"), 0o600),
		os.WriteFile(in("other.db-wal"), nil, 0o600), os.Symlink(in("nothing"), in("dangling.db")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, force := range []bool{false, true} {
		refused(own, force, "the database itself")
		refused(in("symlink.db"), force, "the database itself")
		refused(in("hardlink.db"), force, "the database itself")
		refused(own+"-wal", force, "the database itself")
		refused(own+"-journal", force, "the database itself") // there is none
		refused(in("other.db"), force, "other.db-wal is there")
		refused(dir, force, "is a directory")
		refused("/dev/null", force, "is no file")
		refused(in("no/copy.db"), force, "there is no directory "+in("no"))
	}
	refused(in("there.db"), false, "or --force")
	refused(in("dangling.db"), true, "is no file")
	wantAlone(t, in("dangling.db"), in("hardlink.db"), in("other.db-wal"), in("symlink.db"), in("there.db"))
	if _, err := reader.Backup(t.Context(), Backup{Path: in("there.db"), Force: true}); err != nil {
		t.Fatal(err)
	}
	if got := query(t, in("there.db"), "SELECT count(*) FROM logs"); got[0] != "100" {
		t.Error(got)
	}
	r.want("SELECT count(*) FROM logs", "100")
}

func TestBackupThatIsStoppedLeavesNothing(t *testing.T) {
	r := filled(t, Config{}, router.RunID{7}, 20_000)
	dir := t.TempDir()
	stop := errors.New("the signal")
	ctx, cancel := context.WithCancelCause(t.Context())
	reader := readerOf(t, r.cfg, r.dir)
	_, err := reader.Backup(ctx, Backup{Path: filepath.Join(dir, "copy.db"), Progress: func(int64, int64) { cancel(stop) }})
	if !errors.Is(err, stop) {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Error(left)
	}
	// Nothing keeps the WAL.
	if f := r.db.(*lite).truncateWAL(); f != nil {
		t.Error(f)
	}
}

func TestBackupOfADamagedFileIsNone(t *testing.T) {
	r := filled(t, Config{}, router.RunID{7}, 2000)
	r.Close()
	own := filepath.Join(r.dir, "logs.db")
	info, err := os.Stat(own)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(own, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(make([]byte, 16<<10), info.Size()/2); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	for _, check := range []string{"quick_check", "integrity_check"} {
		if _, err := readerOf(t, r.cfg, r.dir).Backup(t.Context(), Backup{Path: path, Check: check}); err == nil || !strings.Contains(err.Error(), "the copy is damaged") {
			t.Errorf("%s: %v", check, err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
	if _, err := readerOf(t, r.cfg, r.dir).Backup(t.Context(), Backup{Path: path}); err != nil {
		t.Error(err) // as somebody asked for
	}
}

// A file that nobody has open is read as one that does not change. It may begin to.
func TestBackupOfAFileThatAWeirOpensMeanwhile(t *testing.T) {
	run := router.RunID{7}
	r := filled(t, Config{}, run, 20_000)
	r.Close()
	reader := readerOf(t, r.cfg, r.dir)
	if !reader.lite.frozen {
		t.Fatal("somebody has it open")
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	opened := false
	_, err := reader.Backup(t.Context(), Backup{Path: path, Check: "integrity_check", Progress: func(int64, int64) {
		if !opened {
			opened = true
			r = open(t, r.dir, r.cfg)
			r.mustWriteAt(run, 20_000, 20_100, messages(100)...)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	wantCopy(t, path, 20_100)
}

// A copy that is put in the place of its original has the position that its rows have: what came later is sent again by who still has it, and nothing twice.
func TestBackupThatIsPutBackGoesOnWhereItWas(t *testing.T) {
	run := router.RunID{7}
	r := filled(t, Config{}, run, 300)
	path := filepath.Join(r.dir, "copy.db")
	reader := readerOf(t, r.cfg, r.dir)
	if _, err := reader.Backup(t.Context(), Backup{Path: path, Check: "quick_check"}); err != nil {
		t.Fatal(err)
	}
	reader.Close() // the last one to close the old file takes its WAL away
	r.mustWriteAt(run, 300, 400, messages(100)...)
	r.Close()
	if err := os.Rename(path, filepath.Join(r.dir, "logs.db")); err != nil {
		t.Fatal(err)
	}
	r = open(t, r.dir, r.cfg)
	r.wantPosition(run, 300, true)
	if err := r.writeAt(run, 200, 300, messages(100)...); !errors.Is(err, router.ErrMoved) {
		t.Error(err)
	}
	r.mustWriteAt(run, 300, 400, messages(100)...)
	r.want("SELECT count(*), (SELECT pos FROM weir_positions) FROM logs", "400|400")
	r.want("PRAGMA journal_mode", "wal")
}

func TestPostgresBackupIsAMatterOfItsOwnTools(t *testing.T) {
	r := openPG(t, Config{})
	if _, err := readerOf(t, r.cfg, r.dir).Backup(t.Context(), Backup{Path: filepath.Join(t.TempDir(), "copy.db")}); err == nil || !strings.Contains(err.Error(), "pg_dump") {
		t.Error(err)
	}
}
