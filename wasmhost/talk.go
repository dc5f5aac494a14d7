package wasmhost

import (
	"bytes"
	"context"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tetratelabs/wazero/api"
)

func configGet(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	buf := in.bytes(mod, stack[0], stack[1])
	config := in.program.config
	in.clock.Charge(min(len(buf), len(config)))
	stack[0] = answer(buf, config)
}

func timeNow(ctx context.Context, _ api.Module, stack []uint64) {
	ctx.(*instance).clock.Charge(0)
	stack[0] = uint64(time.Now().UnixNano())
}

func random(ctx context.Context, _ api.Module, stack []uint64) {
	ctx.(*instance).clock.Charge(0)
	stack[0] = rand.Uint64() // ChaCha8, seeded by the system
}

// mostReason is how much of the text given to fail is kept.
const mostReason = 4096

// fail takes the reason for verdict 3, for a failure, or for a refusing weir_init. The last one counts.
func fail(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	text := in.bytes(mod, stack[0], stack[1])
	if in.phase == starting {
		return
	}
	text = text[:min(len(text), mostReason)]
	in.clock.Charge(len(text))
	in.reason = append(in.reason[:0], text...)
}

// levels are the levels of log, by number.
var levels = [...]slog.Level{slog.LevelDebug - 4, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}

func levelOf(n uint64) slog.Level { return levels[min(uint32(n), uint32(len(levels)-1))] }

func logEnabled(ctx context.Context, _ api.Module, stack []uint64) {
	in := ctx.(*instance)
	in.clock.Charge(0)
	on := in.guest.log.Enabled(ctx, levelOf(stack[0]))
	stack[0] = 0
	if on {
		stack[0] = 1
	}
}

func logLine(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	text := in.bytes(mod, stack[1], stack[2])
	text = text[:min(len(text), mostLine)]
	in.clock.Charge(len(text))
	in.guest.say(levelOf(stack[0]), text)
}

const (
	mostLine  = 8 << 10 // bytes
	mostLines = 100     // a second
)

// A lineQuota bounds how many lines a filter writes into the log.
type lineQuota struct {
	mu     sync.Mutex
	second time.Time // when the second began that is being counted
	used   int
	hushed int
}

// take reports whether a line may be written, and how many were not since the last that was.
func (q *lineQuota) take(now time.Time) (ok bool, hushed int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now.Sub(q.second) >= time.Second {
		q.second, q.used = now, 0
	}
	if q.used == mostLines {
		q.hushed++
		return false, 0
	}
	q.used++
	hushed, q.hushed = q.hushed, 0
	return true, hushed
}

// say writes a line of the guest into weir's log.
func (g *Guest) say(level slog.Level, text []byte) {
	if !g.log.Enabled(context.Background(), level) {
		return
	}
	ok, hushed := g.lines.take(time.Now())
	if !ok && !g.host.tellAll {
		return
	}
	line := strings.ToValidUTF8(string(bytes.TrimRight(text, "\r\n")), "\ufffd")
	if hushed > 0 {
		g.log.Log(context.Background(), level, line, "lines_left_out_before", hushed)
		return
	}
	g.log.Log(context.Background(), level, line)
}

// A lineLog is a guest's standard output or error: its lines go into weir's log.
type lineLog struct {
	in    *instance
	level slog.Level
	used  int
	line  []byte // mostLine long once there is a line
}

// Write takes what the guest writes. It counts as the guest's work.
func (l *lineLog) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		part := rest[:min(len(rest), 64<<10)]
		rest = rest[len(part):]
		l.in.clock.Charge(len(part))
		l.take(part)
	}
	return len(p), nil
}

func (l *lineLog) take(p []byte) {
	if l.line == nil {
		l.line = make([]byte, mostLine)
	}
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		part := p
		if end >= 0 {
			part = p[:end]
		}
		l.used += copy(l.line[l.used:], part) // what is longer is cut
		if end < 0 {
			return
		}
		l.flush()
		p = p[end+1:]
	}
}

// flush writes the line as far as it came.
func (l *lineLog) flush() {
	text := l.line[:l.used]
	for i := 0; l.used == mostLine && i < utf8.UTFMax-1 && !utf8.Valid(text[len(text)-1:]); i++ {
		text = text[:len(text)-1] // a character that was cut
	}
	l.used = 0
	if len(text) > 0 {
		l.in.guest.say(l.level, text)
	}
}

func (in *instance) flushOutput() {
	if in.stdout.used > 0 {
		in.stdout.flush()
	}
	if in.stderr.used > 0 {
		in.stderr.flush()
	}
}
