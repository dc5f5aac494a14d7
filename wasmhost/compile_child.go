package wasmhost

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
)

// mostMetered bounds what a child reads: a module of the longest size that is accepted, with what the meter adds.
const mostMetered = 256 << 20

// Why a module was not compiled, as the child tells it.
const (
	childMemory = "memory"
	childTime   = "time"
)

// A childAnswer is what a child says at its end, as JSON. Without one it has crashed.
type childAnswer struct {
	Error string // "": the cache has the module
	Limit string // childMemory, childTime or "": the limit that was passed
}

// Compile is the process that compiles one module for a [Host], see [Options].Compiler: it takes its order from in, sets
// its own limits, fills the compile cache and answers on out. It is to be called by a process that does nothing else,
// with its standard input and output, and ends that process itself when in ends before the work does: then the host is
// gone. The error is returned when there was no order.
func Compile(in io.Reader, out io.Writer) error {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP) // the host decides when to end
	r := bufio.NewReader(in)
	line, err := r.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read an order: %w (this command is for weir's own use)", err)
	}
	var o compileOrder
	if err := json.Unmarshal(line, &o); err != nil {
		return fmt.Errorf("read an order: %w (this command is for weir's own use)", err)
	}
	if o.Size < 0 || o.Size > mostMetered {
		return fmt.Errorf("read an order: a module of %d bytes", o.Size)
	}
	reply := func(a childAnswer) error { return json.NewEncoder(out).Encode(a) }
	if err := o.Limits.set(func() {
		reply(childAnswer{Limit: childTime})
		os.Exit(0)
	}); err != nil {
		return reply(childAnswer{Error: "limit the compiler: " + err.Error()})
	}
	runtime.GOMAXPROCS(min(2, runtime.GOMAXPROCS(0))) // one compiles, one collects
	debug.SetMemoryLimit(o.Limits.Memory / 4 * 3)
	module := make([]byte, o.Size)
	if _, err := io.ReadFull(r, module); err != nil {
		return fmt.Errorf("read a module: %w", err)
	}
	go func() {
		io.Copy(io.Discard, r)
		o.abandon()
		os.Exit(1)
	}()
	o.alone = true
	if err := o.carryOut(context.Background(), module); err != nil {
		if isOutOfMemory(err) {
			return reply(childAnswer{Limit: childMemory})
		}
		return reply(childAnswer{Error: err.Error()})
	}
	return reply(childAnswer{})
}

// isOutOfMemory tells whether the system gave no more memory. Go's own heap ends the process instead, see saysNoMemory.
func isOutOfMemory(err error) bool { return errors.Is(err, syscall.ENOMEM) }

// saysNoMemory tells whether the last words of a Go process are that it got no memory.
func saysNoMemory(stderr string) bool {
	return strings.Contains(stderr, "out of memory") || strings.Contains(stderr, "cannot allocate memory") ||
		strings.Contains(stderr, "failed to create new OS thread") || strings.Contains(stderr, "errno: 12") || strings.Contains(stderr, "errno=12")
}
