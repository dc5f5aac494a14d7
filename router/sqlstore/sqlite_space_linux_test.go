package sqlstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weirlog/weir/router"
)

// blocks are the bytes that a file takes of the disk.
func blocks(info fs.FileInfo) int64 { return info.Sys().(*syscall.Stat_t).Blocks * 512 }

// smallDisk mounts a disk of that size, where the machine lets us.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fillDisk takes all that is free but so many bytes.
func fillDisk(t *testing.T, dir string, leave int64) (path string) {
	t.Helper()
	free, _, _ := diskSpace(dir)
	path = filepath.Join(dir, "other")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, max(free-leave, 0))); err != nil && !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	return path
}

func TestSQLiteOnADiskThatIsReallyFull(t *testing.T) {
	dir := smallDisk(t, "64m") // nothing is stored below 8 MiB, 4 MiB of reserve
	d := open(t, dir, Config{SQLite: "logs.db"})
	d.mustWrite(messages(1000)...)
	d.Tend(t.Context())
	reserve := filepath.Join(dir, "logs.db-reserve")
	if _, err := os.Stat(reserve); err != nil {
		t.Fatal(err)
	}
	full := func(err error) {
		t.Helper()
		if !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("Write = %v", err)
		}
		if len(d.letters) > 0 {
			t.Errorf("%d dead letters", len(d.letters))
		}
	}
	// SQLite meets the end in the middle of a transaction.
	other := fillDisk(t, dir, 9<<20)
	full(d.tryWrite(benchMessages(60000)...))
	d.want("SELECT count(*) FROM logs", "1000")
	// Others take the last byte, and what the WAL and the reserve give away.
	stored := 1000
	for range 5 {
		fillDisk(t, dir, 0)
		if err := d.tryWrite(messages(10)...); err == nil {
			stored += 10
		}
		d.Tend(t.Context())
	}
	fillDisk(t, dir, 0)
	full(d.tryWrite(messages(10)...))
	d.Close() // may fail: nothing can be written
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	d = open(t, dir, Config{SQLite: "logs.db"})
	d.mustWrite(messages(10)...)
	stored += 10
	d.want("SELECT count(*) FROM logs", fmt.Sprint(stored))
	d.Tend(t.Context())
	if _, err := os.Stat(reserve); err != nil {
		t.Errorf("the reserve was not made again: %v", err)
	}
	// The same without a restart.
	other = fillDisk(t, dir, 0)
	full(d.tryWrite(messages(10)...))
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	d.mustWrite(messages(10)...)
	d.want("SELECT count(*) FROM logs", fmt.Sprint(stored+10))
	d.want("PRAGMA integrity_check", "ok")
}

func TestSQLiteFullDiskOfItsOwnMaking(t *testing.T) {
	dir := smallDisk(t, "32m") // nothing is stored below 4 MiB
	d := open(t, dir, Config{SQLite: "logs.db", Retention: Retention{KeepFree: 6 << 20}})
	stored := 0
	for i := range 45 {
		if err := d.tryWrite(benchMessages(2000)...); err != nil {
			if !strings.Contains(err.Error(), "disk full") {
				t.Fatalf("transaction %d: %v", i, err)
			}
			continue
		}
		stored++
		d.db.(*lite).tending.rest, d.db.(*lite).tending.looks = time.Time{}, time.Time{}
		d.Tend(t.Context())
	}
	if stored < 40 { // 80 000 rows take more than the disk has
		t.Errorf("only %d transactions were stored", stored)
	}
	d.want("PRAGMA integrity_check", "ok")
}

func TestSQLiteStartsOnAFullDisk(t *testing.T) {
	dir := smallDisk(t, "64m")
	d := open(t, dir, Config{SQLite: "logs.db"})
	d.mustWrite(messages(100)...)
	d.Tend(t.Context())
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	other := fillDisk(t, dir, 0)
	d = open(t, dir, Config{SQLite: "logs.db"})
	if err := d.tryWrite(messages(10)...); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("Write = %v", err)
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	d.mustWrite(messages(10)...)
	d.want("SELECT count(*) FROM logs", "110")
}

// While a reader keeps the WAL from being emptied nothing may be written that
// the file could not take afterwards: that would be a dead end.
func TestSQLiteFullDiskUnderALongReader(t *testing.T) {
	dir := smallDisk(t, "64m") // nothing is stored below 8 MiB
	d := open(t, dir, Config{SQLite: "logs.db", Retention: Retention{KeepFree: 16 << 20}})
	tend := func() {
		d.db.(*lite).tending.rest, d.db.(*lite).tending.looks = time.Time{}, time.Time{}
		d.Tend(t.Context())
	}
	d.mustWrite(benchMessages(20000)...)
	tend()
	long := d.reader()
	long.begin()
	var err error
	for range 60 {
		if err = d.tryWrite(benchMessages(2000)...); err != nil {
			break
		}
		tend()
	}
	for range 20 {
		tend()
	}
	if err == nil || !strings.Contains(err.Error(), "a reader's transaction keeps the WAL from being emptied") {
		t.Errorf("Write = %v", err)
	}
	long.end()
	for i := 0; ; i++ {
		if err := d.tryWrite(message("after")); err == nil {
			break
		} else if i == 50 {
			t.Fatalf("not over after the reader: %v", err)
		}
	}
	d.want("SELECT count(*) FROM logs WHERE message = 'after'", "1")
	d.want("PRAGMA integrity_check", "ok")
}
