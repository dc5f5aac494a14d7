package conformance

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
)

// A guestLog keeps what guests log, which is told from what the host has to say about them by having no attributes of
// its own.
type guestLog struct {
	mu    sync.Mutex
	lines []string // level: text
	told  []string // by the host
}

var levelNames = map[slog.Level]string{slog.LevelDebug - 4: "trace", slog.LevelDebug: "debug", slog.LevelInfo: "info",
	slog.LevelWarn: "warn", slog.LevelError: "error"}

func (l *guestLog) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.NumAttrs() == 0 {
		l.lines = append(l.lines, fmt.Sprintf("%s: %s", levelNames[r.Level], r.Message))
		return nil
	}
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		value := a.Value.String()
		if strings.Contains(value, "\n") {
			value = "\n  " + strings.ReplaceAll(value, "\n", "\n  ")
		}
		text += " " + a.Key + "=" + value
		return true
	})
	l.told = append(l.told, text)
	return nil
}

func (l *guestLog) Enabled(context.Context, slog.Level) bool { return true }
func (l *guestLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *guestLog) WithGroup(string) slog.Handler            { return l }

// take returns what came since it was last called, lines of guests never as nil.
func (l *guestLog) take() (lines, told []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines, told = l.lines, l.told
	l.lines, l.told = []string{}, nil
	return lines, told
}
