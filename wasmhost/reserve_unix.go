//go:build unix

package wasmhost

import (
	"math"

	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"
)

// reserve gives a guest's memory its place for ever: room for all that it may grow to, with pages that are there from
// their first use on. So memory that grows is never copied, which takes milliseconds in which nobody can stop the guest.
// It goes back when the instance is closed, and nothing may read it afterwards.
func reserve(most uint64) experimental.LinearMemory {
	if most == 0 || most > math.MaxInt {
		return &plainMemory{}
	}
	b, err := unix.Mmap(-1, 0, int(most), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|reserveFlags)
	if err != nil {
		return &plainMemory{}
	}
	pageSizes(b)
	return &mappedMemory{b}
}

type mappedMemory struct{ all []byte }

func (m *mappedMemory) Reallocate(size uint64) []byte {
	if size > uint64(len(m.all)) {
		return nil
	}
	return m.all[:size]
}

func (m *mappedMemory) Free() {
	if m.all != nil {
		unix.Munmap(m.all)
		m.all = nil
	}
}
