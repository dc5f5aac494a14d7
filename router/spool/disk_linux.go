package spool

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncData is fdatasync(2).
func syncData(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

// lock keeps other processes out until f is closed, or we die.
func lock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

// freeBytes is what weir's user may still write on the file system of path.
func freeBytes(path string) (int64, bool) {
	var s unix.Statfs_t
	if unix.Statfs(path, &s) != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
