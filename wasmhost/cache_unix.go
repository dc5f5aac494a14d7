//go:build unix

package wasmhost

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ownDirectory makes dir, readable to nobody else, and refuses one that somebody else owns or may write to.
func ownDirectory(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", dir)
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, weir runs as %d, and what lies there is executed (remove it, or chown it)", dir, owner.Uid, os.Geteuid())
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s has mode %04o, and what lies there is executed (chmod 700 it, after a look inside)", dir, info.Mode().Perm())
	}
	return nil
}

const temporaryPrefix = "weir-modules-"

// temporaryDirectory makes a directory for this process, which holds a lock on it as long as it lives, and removes those
// of processes that were killed.
func temporaryDirectory() (dir string, release func() error, err error) {
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), temporaryPrefix+"*"))
	for _, old := range left {
		if ownDirectory(old) != nil {
			continue
		}
		if f, err := lock(old); err == nil {
			os.RemoveAll(old)
			f.Close()
		}
	}
	var f *os.File
	for f == nil {
		if dir, err = os.MkdirTemp("", temporaryPrefix); err != nil {
			return "", nil, err
		}
		if f, err = lock(dir); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.EWOULDBLOCK) {
			os.RemoveAll(dir)
			return "", nil, err
		} // else another process has just taken it for one that was left behind
	}
	return dir, func() error {
		defer f.Close()
		return os.RemoveAll(dir)
	}, nil
}

// lock takes a directory for this process, if no other has it.
func lock(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	if _, err := os.Lstat(dir); err != nil { // its last holder was about to remove it
		f.Close()
		return nil, err
	}
	return f, nil
}
