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

// Config returns the filter's config: setting as JSON, {} when there is none. The bytes are the caller's. Into a struct it
// goes with encoding/json, which makes the module 1.5 MB larger:
//
//	d := json.NewDecoder(bytes.NewReader(weir.Config()))
//	d.DisallowUnknownFields() // a misspelt setting refuses the module
//	return d.Decode(&settings)
func Config() []byte {
	b, n := full(configGet)
	if n < 0 {
		panic("weir: config_get: " + Error(n).Error())
	}
	return append([]byte(nil), b...)
}

// MetricAdd adds to a metric of the filter's own, weir_filter_user_<name>{filter="…"}, which starts at 0. A name is
// [a-zA-Z_][a-zA-Z0-9_]*; others, and NaN, are ignored and logged once. A filter has 1000 at most.
func MetricAdd(name string, delta float64) { metricAdd(name, delta) }

// MetricSet sets such a metric.
func MetricSet(name string, value float64) { metricSet(name, value) }

// Now returns the time in ns since 1970. time.Now does the same.
func Now() int64 { return timeNow() }

// Random returns 64 random bits. crypto/rand and math/rand work too.
func Random() uint64 { return uint64(random()) }
