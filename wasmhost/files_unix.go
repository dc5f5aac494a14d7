//go:build unix

package wasmhost

import (
	"os"
	"syscall"
)

// noWaiting keeps an open from waiting for the other end of what turns out to be a pipe.
const noWaiting = syscall.O_NONBLOCK

// fileID tells files of one size and time apart.
func fileID(info os.FileInfo) any {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ino
	}
	return nil
}
