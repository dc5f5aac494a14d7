//go:build !unix

package wasmhost

import "os"

// ownDirectory makes dir. Who may write to it is not checked on this system.
func ownDirectory(dir string) error { return os.MkdirAll(dir, 0o700) }
