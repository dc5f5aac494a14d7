package socket

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// setReceiveBuffer asks for size bytes of datagrams and returns how many the
// kernel grants.
func setReceiveBuffer(c syscall.RawConn, size int) (granted int, err error) {
	e := c.Control(func(fd uintptr) {
		if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, size) != nil { // needs CAP_NET_ADMIN
			if err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, size); err != nil {
				return
			}
		}
		granted, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
		granted /= 2 // the kernel doubles it for its own needs
	})
	if e != nil {
		err = e
	}
	return granted, err
}

// countDrops makes the kernel send along how many datagrams it has dropped.
func countDrops(c syscall.RawConn) (err error) {
	e := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1) })
	if e != nil {
		return e
	}
	return err
}

// dropSpace is the room that the count needs beside a datagram.
var dropSpace = unix.CmsgSpace(4)

// dropsIn reads the count, of all drops since the socket was made, modulo 2³².
func dropsIn(oob []byte) (n uint32, ok bool) {
	if len(oob) < unix.CmsgLen(4) {
		return 0, false
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&oob[0]))
	if h.Level != unix.SOL_SOCKET || h.Type != unix.SO_RXQ_OVFL {
		return 0, false
	}
	return *(*uint32)(unsafe.Pointer(&oob[unix.CmsgLen(0)])), true
}

// restrict gives a unix socket its mode before bind makes the file, so that it
// is never there with another one.
func restrict(mode uint32) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) (err error) {
		e := c.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), mode) })
		if e != nil {
			return e
		}
		return err
	}
}
