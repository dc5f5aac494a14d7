package sqlstore

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// userTimeout makes the kernel give a connection up when the other side
// acknowledges nothing for pgUserTimeout (RFC 5482, tcp(7)).
func userTimeout(network, _ string, c syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	return c.Control(func(fd uintptr) {
		// Keepalive alone sees nothing while bytes are on their way. An old
		// kernel that refuses is no reason not to connect.
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(pgUserTimeout.Milliseconds()))
	})
}
