//go:build !unix

package wasmhost

const noWaiting = 0
