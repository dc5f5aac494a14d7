//go:build unix

package deadletter

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockReplay keeps others from replaying letters of dir until the file is closed; the kernel does that when the
// process is killed.
func lockReplay(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the replay: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.New("another replay is under way")
		}
		return nil, fmt.Errorf("lock the replay (%s): %w", f.Name(), err)
	}
	return f, nil
}
