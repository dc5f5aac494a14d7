package routertest

import "syscall"

// serverAttr lets the server die with the test process, however that ends.
func serverAttr(as *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: as, Pdeathsig: syscall.SIGQUIT}
}
