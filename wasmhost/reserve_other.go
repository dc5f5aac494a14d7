//go:build !unix

package wasmhost

import "github.com/tetratelabs/wazero/experimental"

func reserve(uint64) experimental.LinearMemory { return &plainMemory{} }
