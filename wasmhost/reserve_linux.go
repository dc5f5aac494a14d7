package wasmhost

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// reserveFlags: what is reserved and not used does not count against what the machine may promise.
const reserveFlags = unix.MAP_NORESERVE

const hugePage = 2 << 20 // bytes, where there are any

// pageSizes keeps a small guest from being given huge pages, for it shall cost what it touches, and asks for them where
// a guest has grown large: it takes the kernel milliseconds to find it thousands of small ones, in which nobody can
// stop it.
func pageSizes(b []byte) {
	small := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b)))%hugePage) + hugePage
	if small >= len(b) {
		small = len(b)
	}
	unix.Madvise(b[:small], unix.MADV_NOHUGEPAGE)
	if small < len(b) {
		unix.Madvise(b[small:], unix.MADV_HUGEPAGE)
	}
}
