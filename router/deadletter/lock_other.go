//go:build !unix

package deadletter

import (
	"fmt"
	"os"
	"path/filepath"
)

// lockReplay opens the file that is the lock elsewhere. Here nothing keeps a second replay away.
func lockReplay(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the replay: %w", err)
	}
	return f, nil
}
