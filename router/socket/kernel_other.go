//go:build !linux

package socket

import "syscall"

// setReceiveBuffer cannot tell here what the kernel grants.
func setReceiveBuffer(c syscall.RawConn, size int) (granted int, err error) { return size, nil }

// countDrops is not possible here: the kernel drops in silence.
func countDrops(syscall.RawConn) error { return nil }

var dropSpace = 0

func dropsIn([]byte) (n uint32, ok bool) { return 0, false }

// restrict does nothing here: the mode is set after bind.
func restrict(uint32) func(network, address string, c syscall.RawConn) error { return nil }
