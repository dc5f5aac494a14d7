//go:build unix && !linux

package routertest

import "syscall"

func serverAttr(as *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: as}
}
