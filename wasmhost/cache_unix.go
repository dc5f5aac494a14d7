//go:build unix

package wasmhost

import (
	"fmt"
	"os"
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
