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
	"fmt"
	"log/slog"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/wasmhost/meter"
)

// Options is what all filters of a host share. The zero value works.
type Options struct {
	CacheDir   string       // compiled modules; made when missing; "": nothing is kept
	Log        *slog.Logger // nil: nothing is logged
	MaxMessage int          // the longest message of any source, in bytes; values may be as long, at least 1 MiB
	Interpret  bool         // do not compile, even where that is possible; 30 to 50 times slower
}

// A Host runs guests. It is safe for concurrent use.
type Host struct {
	log       *slog.Logger
	runtime   wazero.Runtime
	cache     wazero.CompilationCache
	cacheDir  string
	wasi      map[string]api.FunctionDefinition // what guests may import from WASI, by name
	patience  int                               // times are multiplied by it: 1 compiled, 20 interpreted
	mostValue int                               // bytes of one value

	mu     sync.Mutex
	guests []*Guest // loaded, not closed
}

// Open makes the runtime that all filters share. The compile cache is refused when others could have written to it,
// because its content is executed.
func Open(ctx context.Context, o Options) (*Host, error) {
	h := &Host{log: o.Log, patience: 1, mostValue: max(1<<20, o.MaxMessage)}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	config := wazero.NewRuntimeConfigCompiler()
	if o.Interpret || !compilerWorks(ctx) {
		config = wazero.NewRuntimeConfigInterpreter()
		h.patience = interpreterPatience
	}
	if o.CacheDir != "" {
		if err := ownDirectory(o.CacheDir); err != nil {
			return nil, fmt.Errorf("open compile cache: %w", err)
		}
		cache, err := wazero.NewCompilationCacheWithDir(o.CacheDir)
		if err != nil {
			return nil, fmt.Errorf("open compile cache: %w", err)
		}
		h.cache, h.cacheDir = cache, o.CacheDir
		config = config.WithCompilationCache(cache)
	}
	// DWARF sections do not survive the meter, and the memory's limit is in each module.
	h.runtime = wazero.NewRuntimeWithConfig(ctx, config.WithCoreFeatures(api.CoreFeaturesV2).WithDebugInfoEnabled(false))
	if err := h.provide(ctx); err != nil {
		h.Close(ctx)
		return nil, err
	}
	return h, nil
}

// interpreterPatience is how much longer guests may take where they are interpreted.
const interpreterPatience = 20

// provide makes the modules that guests import from.
func (h *Host) provide(ctx context.Context) error {
	for _, module := range []struct {
		name      string
		functions []hostFunction
	}{
		{abiModule, abiFunctions},
		{assemblyScriptModule, assemblyScriptFunctions},
		{meter.TickModule, []hostFunction{{meter.TickName, "i", "i", tick}}},
	} {
		b := h.runtime.NewHostModuleBuilder(module.name)
		for _, f := range module.functions {
			b.NewFunctionBuilder().WithGoModuleFunction(f.call, valueTypes(f.params), valueTypes(f.results)).Export(f.name)
		}
		if _, err := b.Instantiate(ctx); err != nil {
			return fmt.Errorf("provide %s: %w", module.name, err)
		}
	}
	ctx = experimental.WithFunctionListenerFactory(ctx, wasiCharges{})
	wasi, err := wasi_snapshot_preview1.NewBuilder(h.runtime).Compile(ctx)
	if err == nil {
		h.wasi = wasi.ExportedFunctions()
		_, err = h.runtime.InstantiateModule(ctx, wasi, wazero.NewModuleConfig())
	}
	if err != nil {
		return fmt.Errorf("provide WASI: %w", err)
	}
	return nil
}

// tick is the meter's call out of every guest.
var tick api.GoModuleFunc = func(ctx context.Context, _ api.Module, stack []uint64) {
	stack[0] = api.EncodeI32(ctx.(*instance).clock.Tick(api.DecodeI32(stack[0])))
}

// Close releases the runtime. All guests must be closed before.
func (h *Host) Close(ctx context.Context) error {
	err := h.runtime.Close(ctx)
	if h.cache != nil {
		if cerr := h.cache.Close(ctx); err == nil {
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
