package wasmhost

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// system is what an instance gets of WASI: clock, randomness, sleep and output. No files, arguments, environment or
// network. wazero's own defaults are fakes: a clock that stands still, the same random bytes for everybody.
func (in *instance) system() wazero.ModuleConfig {
	return wazero.NewModuleConfig().
		WithName(""). // so that there may be several
		WithStartFunctions().
		WithStdout(&in.stdout).
		WithStderr(&in.stderr).
		WithSysWalltime().
		WithSysNanotime().
		WithNanosleep(func(ns int64) { in.clock.Sleep(time.Duration(ns)) }).
		WithRandSource(randomBytes{in})
}

// randomBytes counts what it makes as the guest's work.
type randomBytes struct{ in *instance }

func (r randomBytes) Read(p []byte) (int, error) {
	p = p[:min(len(p), 64<<10)]
	r.in.clock.Charge(8 * len(p)) // as dear as other work on eight times as much
	return rand.Read(p)
}

// wasiCharges counts WASI calls as the guest's work: wazero's functions do not know the clock. What they read and write
// in bulk is counted where it arrives, in lineLog and randomBytes.
type wasiCharges struct{}

func (wasiCharges) NewFunctionListener(f api.FunctionDefinition) experimental.FunctionListener {
	c := &wasiCharge{}
	for _, name := range f.ExportNames() {
		switch name {
		case "fd_fdstat_get":
			return &terminalStat{}
		case "poll_oneoff":
			c.lists = []listParam{{at: 2, size: 48}}
		case "fd_write", "fd_read", "fd_pread", "fd_pwrite":
			c.lists = []listParam{{at: 2, size: 8}}
		case "path_create_directory", "path_remove_directory", "path_unlink_file", "path_readlink":
			c.lists = []listParam{{at: 2, size: 1}}
		case "path_filestat_get", "path_filestat_set_times", "path_open":
			c.lists = []listParam{{at: 3, size: 1}}
		case "path_link":
			c.lists = []listParam{{at: 3, size: 1}, {at: 6, size: 1}}
		case "path_rename":
			c.lists = []listParam{{at: 2, size: 1}, {at: 5, size: 1}}
		case "path_symlink":
			c.lists = []listParam{{at: 1, size: 1}, {at: 4, size: 1}}
		case "fd_filestat_set_times", "fd_renumber":
			c.file = true
		}
	}
	return c
}

// listParam is a parameter that says how many things of some size the call works on.
type listParam struct{ at, size int }

type wasiCharge struct {
	lists []listParam
	file  bool // the first parameter must not be a standard stream: wazero finds no file system behind one, and panics
}

// mostList bounds the bytes of a list or path given to WASI: wazero walks through all of it before anybody looks at
// the clock.
const mostList = 64 << 10

func (c *wasiCharge) Before(ctx context.Context, _ api.Module, f api.FunctionDefinition, params []uint64, _ experimental.StackIterator) {
	in := ctx.(*instance)
	if in.program.memory == 0 {
		panic(&guestFault{f.Name() + " was called by a guest without memory"})
	}
	in.wasiCalls++
	n := uint64(0)
	for _, l := range c.lists {
		n += uint64(uint32(params[l.at])) * uint64(l.size)
	}
	if n > mostList {
		panic(&guestFault{fmt.Sprintf("%s was given %d bytes to work on, at most %d are allowed", f.Name(), n, mostList)})
	}
	if c.file && uint32(params[0]) <= 2 {
		panic(&guestFault{f.Name() + " was given a standard stream"})
	}
	in.clock.Charge(16 * int(n))
}

func (c *wasiCharge) After(context.Context, api.Module, api.FunctionDefinition, []uint64) {}
func (c *wasiCharge) Abort(context.Context, api.Module, api.FunctionDefinition, error)    {}
