//go:build race

package router

// raceDetector says that pools forget some of what they are given.
const raceDetector = true
