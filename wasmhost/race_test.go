//go:build race

package wasmhost

// raceDetector says that everything takes ten times as long.
const raceDetector = true
