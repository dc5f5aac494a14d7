package wasmhost

import (
	"runtime"

	"golang.org/x/sys/cpu"
)

// compilerRuns reports whether wazero's compiler makes code for this processor.
func compilerRuns() bool {
	switch runtime.GOARCH {
	case "amd64":
		return cpu.X86.HasSSE41
	case "arm64":
		return true
	}
	return false
}
