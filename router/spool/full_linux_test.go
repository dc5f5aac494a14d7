package spool

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weirlog/weir/router"
)

// A real file system that is full: nothing that was synced is lost, also over a restart, and it goes on by itself when there is room.
func TestAFullFileSystem(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=3m"); err != nil {
		t.Skip("only root may mount a small file system:", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	c := Config{Size: 64 << 20}
	s := openAt(t, filepath.Join(dir, "spool"), c)
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 256<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	run, synced := s.Run(), 0
	for ; ; synced += 10 {
		_, err := s.Append(texts(numbered(synced, 10, 1000)...), router.Mark{})
		if err == nil {
			err = s.Sync()
		}
		if errors.Is(err, unix.ENOSPC) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if synced < 1000 {
		t.Fatal(synced)
	}
	for range 3 { // nothing has changed by it
		if _, err := s.Append(texts(numbered(synced, 10, 1000)...), router.Mark{}); !errors.Is(err, unix.ENOSPC) {
			t.Fatal(err)
		}
	}
	s.Close()
	s = openAt(t, filepath.Join(dir, "spool"), c) // the disk is still full
	got, lost := drain(t, s)
	if wantTexts(t, got, numbered(0, synced, 1000)...); lost > 0 || got[0].run != run {
		t.Error(lost)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	add(t, s, "after")
	got, lost = drain(t, s)
	if wantTexts(t, got, "after"); lost > 0 {
		t.Error(lost)
	}
	s.Ack(s.Run(), 1) // all of it: its room is there at once
	for i := 0; i < 1000; i += 10 {
		if _, err := s.Append(texts(numbered(i, 10, 1000)...), router.Mark{}); err != nil {
			t.Fatal(i, err)
		}
		if err := s.Sync(); err != nil {
			t.Fatal(i, err)
		}
		s.Ack(s.Run(), s.next-1)
	}
	s.Close()
}
