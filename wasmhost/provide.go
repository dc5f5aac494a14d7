package wasmhost

import (
	"context"
	"fmt"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/weirlog/weir/wasmhost/meter"
)

// provided are the modules that guests import from. Each is made when the first guest wants it: most filters need one or
// two of them.
type provided struct {
	mu      sync.Mutex
	modules map[*hostModule]api.Module
	wasi    map[string]api.FunctionDefinition // what WASI has, by name; nil: not made yet
}

// provideMeter makes the one that all guests import from.
func (h *Host) provideMeter(ctx context.Context) error {
	if h.profile {
		ctx = experimental.WithFunctionListenerFactory(ctx, profiler{})
	}
	_, err := h.instantiate(ctx, meter.TickModule, []hostFunction{{meter.TickName, "i", "i", tick}, {meter.KeepName, "xii", "x", keepException}})
	return err
}

// provide gives a module of an ABI.
func (h *Host) provide(ctx context.Context, hm *hostModule) (api.Module, error) {
	p := &h.provided
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.modules[hm]; m != nil {
		return m, nil
	}
	// Several ABIs have an env: what a guest gets is decided by program.modules.
	m, err := h.instantiate(ctx, fmt.Sprintf("%s/%d", hm.name, len(p.modules)), hm.functions)
	if err != nil {
		return nil, err
	}
	if p.modules == nil {
		p.modules = map[*hostModule]api.Module{}
	}
	p.modules[hm] = m
	return m, nil
}

func (h *Host) instantiate(ctx context.Context, name string, functions []hostFunction) (api.Module, error) {
	b := h.runtime.NewHostModuleBuilder(name)
	for _, f := range functions {
		b.NewFunctionBuilder().WithGoModuleFunction(f.call, valueTypes(f.params), valueTypes(f.results)).Export(f.name)
	}
	compiled, err := b.Compile(ctx)
	if err != nil {
		return nil, fmt.Errorf("provide %s: %w", name, err)
	}
	return h.runtime.InstantiateModule(ctx, compiled, wazero.NewModuleConfig()) // b.Instantiate's module cannot be a resolver's
}

// wasi gives the functions of WASI, by name.
func (h *Host) wasi(ctx context.Context) (map[string]api.FunctionDefinition, error) {
	p := &h.provided
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wasi != nil {
		return p.wasi, nil
	}
	ctx = experimental.WithFunctionListenerFactory(ctx, wasiCharges{})
	wasi, err := wasi_snapshot_preview1.NewBuilder(h.runtime).Compile(ctx)
	if err == nil {
		_, err = h.runtime.InstantiateModule(ctx, wasi, wazero.NewModuleConfig())
	}
	if err != nil {
		return nil, fmt.Errorf("provide WASI: %w", err)
	}
	p.wasi = wasi.ExportedFunctions()
	return p.wasi, nil
}
