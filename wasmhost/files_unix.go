//go:build unix

package wasmhost

import "syscall"

// noWaiting keeps an open from waiting for the other end of what turns out to be a pipe.
const noWaiting = syscall.O_NONBLOCK
