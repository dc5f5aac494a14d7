//go:build !linux

package sqlstore

import "syscall"

// userTimeout is a setting of Linux.
func userTimeout(string, string, syscall.RawConn) error { return nil }
