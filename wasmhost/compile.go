package wasmhost

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// Compiling is where a module hurts most: one of 44 KB took 367 MB, one of 146 KB 1.5 GB and 7.6 seconds. Therefore a
// host that is given a Compiler never compiles: a process of its own does, within its limits, and leaves the machine
// code in the compile cache, where the host reads it. If that process dies, the module is refused.

// runtimeConfig is how modules are compiled and run. Whatever is changed here has to show in cacheSettings. DWARF
// sections do not survive the meter, and the memory's limit is in each module.
func runtimeConfig(interpret bool) wazero.RuntimeConfig {
	config := wazero.NewRuntimeConfigCompiler()
	if interpret {
		config = wazero.NewRuntimeConfigInterpreter()
	}
	return config.WithCoreFeatures(coreFeatures).WithDebugInfoEnabled(false)
}

const coreFeatures = api.CoreFeaturesV2 | experimental.CoreFeaturesExtendedConst | experimental.CoreFeaturesTailCall |
	experimental.CoreFeaturesTypedFunctionReferences | experimental.CoreFeaturesExceptionHandling

// compile returns the module ready to be instantiated. What it logs and returns names no file: the caller knows it.
func (h *Host) compile(ctx context.Context, module []byte) (wazero.CompiledModule, error) {
	if h.cache == nil {
		return compileModule(ctx, h.runtime, module)
	}
	key := cacheKey(module)
	leave, err := h.cache.alone(ctx, key)
	if err != nil {
		return nil, err
	}
	defer leave()
	// Another weir may empty the cache, and a file may be damaged, right behind us.
	for range 3 {
		if h.cache.has(key) {
			c, err := h.fromCache(module)
			if !errors.Is(err, errNotCached) {
				return c, err
			}
		}
		if err := h.cache.make(ctx, key, module); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("the compile cache %s does not keep what is written to it", h.cache.dir)
}

// errNotCached is wazero's answer of fromCache for a module that it would have to compile.
var errNotCached = context.Canceled

// fromCache reads a module's machine code and never makes it: with workers, wazero looks whether its context has ended
// before it compiles a function, not before it looks into its cache. What the caller's context holds may ask for another
// code (listeners), so it is not used. An interpreter has no machine code: what it makes of the module was tried by the
// child.
func (h *Host) fromCache(module []byte) (wazero.CompiledModule, error) {
	if h.interpret {
		return compileModule(context.Background(), h.runtime, module)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	c, err := compileModule(experimental.WithCompilationWorkers(ended, 2), h.runtime, module)
	if err != nil && !errors.Is(err, errNotCached) && isCacheError(err) {
		h.log.Warn("a file of the compile cache cannot be used and is made again", "dir", h.cache.dir, "error", err)
		h.cache.forget(cacheKey(module))
		err = errNotCached
	}
	return c, err
}

// compileModule keeps the compiler's panics from the process: the module is a stranger's.
func compileModule(ctx context.Context, r wazero.Runtime, module []byte) (c wazero.CompiledModule, err error) {
	defer func() {
		if p := recover(); p != nil {
			c = nil
			if err, _ = p.(error); err == nil || !isOutOfMemory(err) {
				err = fmt.Errorf("the compiler failed on it: %v", p)
			}
		}
	}()
	c, err = r.CompileModule(ctx, module)
	if err != nil && !errors.Is(err, context.Canceled) && !isCacheError(err) && !isOutOfMemory(err) {
		err = fmt.Errorf("not a valid module: %w", err)
	}
	return c, err
}
