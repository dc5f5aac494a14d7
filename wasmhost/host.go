// Package wasmhost runs a WebAssembly module as a router.Filter: it loads it, contains it, and replaces it when it fails.
//
// A [Host] holds what all filters share: the runtime, the compile cache and the functions that guests import. A [Guest]
// is one filter of the configuration; it gives a router.Filter to each lane. Behind that, an instance is a guest's
// memory and state, used by one goroutine at a time.
//
// No guest can harm the host. The meter (package wasmhost/meter) stops one that runs too long; memory and tables are
// bounded; addresses are checked before anything else; what a failed call edited is undone. There is no way to run a
// guest without all that. The contract with guests is filters/ABI.md, one file here for each part of it.
package wasmhost

import (
	"context"
	"log/slog"
	"os"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/weirlog/weir/router"
)

// Options is what all filters of a host share. The zero value works.
type Options struct {
	CacheDir   string       // compiled modules; made when missing; "": nothing is kept beyond the host
	CacheSize  int64        // bytes in CacheDir; what was not used for longest is removed; 0: 256 MiB
	Compiler   []string     // a program, with arguments, that calls [Compile]; nil: modules are compiled in this process, without limits
	Log        *slog.Logger // nil: nothing is logged
	MaxMessage int          // the longest message of any source, in bytes; values may be as long, at least 1 MiB
	TellAll    bool         // every line of a guest and every fault is logged, for tools; else there are bounds
	Profile    bool         // guests say where their units are spent; slower, for tools: see [Guest.TakeProfile]
	Interpret  bool         // do not compile, even where that is possible; 30 to 50 times slower
}

// A Host runs guests. It is safe for concurrent use.
type Host struct {
	log       *slog.Logger
	tellAll   bool
	profile   bool
	runtime   wazero.Runtime
	cache     *compileCache // nil: nothing is kept
	interpret bool
	provided  provided
	patience  int    // times are multiplied by it: 1 compiled, 20 interpreted
	mostValue int    // bytes of one value
	hostname  []byte // of this machine; may be empty

	mu     sync.Mutex
	guests []*Guest          // loaded, not closed
	own    map[string]*shelf // what filters keep, by filter; it outlives them
}

// Open makes the runtime that all filters share. The compile cache is refused when others could have written to it,
// because its content is executed.
func Open(ctx context.Context, o Options) (*Host, error) {
	h := &Host{log: o.Log, tellAll: o.TellAll, profile: o.Profile, patience: 1, mostValue: max(1<<20, o.MaxMessage), own: map[string]*shelf{}}
	if name, err := os.Hostname(); err == nil {
		h.hostname = []byte(name)
	}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	h.interpret = o.Interpret || !compilerWorks(ctx)
	if h.interpret {
		h.patience = interpreterPatience
	}
	config := runtimeConfig(h.interpret)
	if o.CacheDir != "" || o.Compiler != nil {
		cache, err := openCache(o, h.interpret, h.log)
		if err != nil {
			return nil, err
		}
		h.cache = cache
		config = config.WithCompilationCache(cache.wazero)
	}
	h.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	if err := h.provideMeter(ctx); err != nil {
		h.Close(ctx)
		return nil, err
	}
	return h, nil
}

// interpreterPatience is how much longer guests may take where they are interpreted.
const interpreterPatience = 20

// tick is the meter's call out of every guest.
var tick api.GoModuleFunc = func(ctx context.Context, _ api.Module, stack []uint64) {
	stack[0] = api.EncodeI32(ctx.(*instance).clock.Tick(api.DecodeI32(stack[0])))
}

// keepException is the meter's other one, of guests that catch exceptions.
var keepException api.GoModuleFunc = func(ctx context.Context, _ api.Module, stack []uint64) {
	ctx.(*instance).clock.Keep(stack)
}

// Close releases the runtime. All guests must be closed before.
func (h *Host) Close(ctx context.Context) error {
	err := h.runtime.Close(ctx)
	if h.cache != nil {
		if cerr := h.cache.close(ctx); err == nil {
			err = cerr
		}
	}
	return err
}

// Parts tells the state of each filter, for /readyz.
func (h *Host) Parts() []router.Part {
	h.mu.Lock()
	defer h.mu.Unlock()
	parts := make([]router.Part, len(h.guests))
	for i, g := range h.guests {
		parts[i] = g.part()
	}
	return parts
}

// compilerWorks tries the compiler: it is not there on every processor, and machine code that was just written cannot
// be run under every security policy.
func compilerWorks(ctx context.Context) (works bool) {
	if !compilerRuns() {
		return false
	}
	defer func() {
		if recover() != nil {
			works = false
		}
	}()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler())
	defer r.Close(ctx)
	_, err := r.Instantiate(ctx, []byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x0a\x04\x01\x02\x00\x0b"))
	return err == nil
}
