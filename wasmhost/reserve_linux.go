package wasmhost

import "golang.org/x/sys/unix"

// reserveFlags: what is reserved and not used does not count against what the machine may promise.
const reserveFlags = unix.MAP_NORESERVE

// smallPages keeps a small guest from being given huge pages: it shall cost what it touches.
func smallPages(b []byte) { unix.Madvise(b, unix.MADV_NOHUGEPAGE) }
