//go:build !linux

package wasmhost

import (
	"os/exec"
	"time"
)

// set bounds the time of this process, by the clock. Its memory is bounded by what the system gives it.
func (l limits) set(expired func()) error {
	time.AfterFunc(time.Duration(l.CPUSeconds)*time.Second, expired)
	return nil
}

// MachineMemory is not known here.
func MachineMemory() int64 { return 0 }

func separate(*exec.Cmd) {}
