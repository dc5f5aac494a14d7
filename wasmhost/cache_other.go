//go:build !unix

package wasmhost

import "os"

// ownDirectory makes dir. Who may write to it is not checked on this system.
func ownDirectory(dir string) error { return os.MkdirAll(dir, 0o700) }

// temporaryDirectory makes a directory for this process.
func temporaryDirectory() (dir string, release func() error, err error) {
	if dir, err = os.MkdirTemp("", "weir-modules-"); err != nil {
		return "", nil, err
	}
	return dir, func() error { return os.RemoveAll(dir) }, nil
}
