//go:build !race

package wasmhost

const raceDetector = false
