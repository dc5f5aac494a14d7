//go:build unix && !linux

package wasmhost

const reserveFlags = 0

func pageSizes([]byte) {}
