//go:build wasip1

package weir

// A Level is the level of a line in weir's own log.
type Level int32

const (
	LevelTrace Level = iota
	LevelDebug
	LevelInfo
	LevelWarn
	LevelError
)

// Log writes a line to weir's own log, with the filter's name. Over 100 lines a second are left out and counted.
func Log(level Level, text string) { hostLog(int32(level), text) }

// Enabled tells whether lines of this level are written at all.
func Enabled(level Level) bool { return logEnabled(int32(level)) != 0 }

// Config returns the filter's config: setting as JSON, {} when there is none. The bytes are the caller's.
//
// encoding/json makes the module 1.5 MB larger; for a setting or two, looking for them by hand may do.
func Config() []byte {
	b, n := full(configGet)
	if n < 0 {
		panic("weir: config_get: " + Error(n).Error())
	}
	return append([]byte(nil), b...)
}

// Now returns the time in ns since 1970. time.Now does the same.
func Now() int64 { return timeNow() }

// Random returns 64 random bits. crypto/rand and math/rand work too.
func Random() uint64 { return uint64(random()) }
