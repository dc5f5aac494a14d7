//go:build unix

package deadletter

import (
	"errors"
	"os"
	"syscall"
)

// lock keeps others out until f is closed; the kernel does that when the process is killed.
func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errLocked
	}
	return err
}
