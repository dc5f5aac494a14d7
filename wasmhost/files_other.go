//go:build !unix

package wasmhost

import "os"

const noWaiting = 0

func fileID(os.FileInfo) any { return nil }
