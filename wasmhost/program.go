package wasmhost

import (
	"context"
	"sync/atomic"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/weirlog/weir/wasmhost/meter"
)

// A program is a module as it was loaded: judged, on the leash, and compiled. Instances are made of it. It does not
// change, and is closed when the guest has a newer one and the last of its instances has gone.
type program struct {
	abi      *abi
	settings Config
	config   []byte                // for the guest, as JSON
	modules  map[string]api.Module // what its imports resolve to, but for WASI and the meter
	memory   int64                 // bytes of linear memory, at most
	atLimit  bool                  // that is the limit of the configuration, not one of the module itself
	pages    uint32                // of 64 KiB, to begin with
	compiled wazero.CompiledModule
	granted  granted
	env      []variable
	about    Report
	sum      string       // of the files that it was made of
	refs     atomic.Int64 // of the guest that has it at work, and of each instance

	slow bool // instances take long to make: a spare is kept, and at most ten a second are made
}

// program makes one of what was found out about a module.
func (h *Host) program(ctx context.Context, a *abi, cfg Config, m *meter.Module, compiled wazero.CompiledModule, about Report) (*program, error) {
	p := &program{abi: a, settings: cfg, config: []byte(cfg.Config), modules: map[string]api.Module{}, compiled: compiled, about: about}
	if m.Memory != nil {
		p.memory, p.atLimit, p.pages = int64(m.Memory.Max)*page, m.Memory.Max == uint32(cfg.Memory/page), m.Memory.Min
	}
	if len(p.config) == 0 || string(p.config) == "null" {
		p.config = []byte("{}")
	}
	p.refs.Store(1)
	for _, im := range m.Imports {
		if hm := a.module(m, im.Module); hm != nil {
			given, err := h.provide(ctx, hm)
			if err != nil {
				return nil, err
			}
			p.modules[im.Module] = given
		}
	}
	return p, nil
}

// What an instance may cost to be made whenever one is needed: a fraction of a millisecond. C guests stay far below it,
// Go guests spend millions of instructions before their main.
const (
	quickStart  = 256 << 10 // units of work
	quickMemory = 64        // pages to begin with
)

// measure learns from the first instance what others will cost.
func (p *program) measure(in *instance) {
	p.slow = in.clock.Units() > quickStart || p.pages > quickMemory
}

// values are what wazero asks an instance's context for while it is made.
func (p *program) values(in *instance) context.Context {
	ctx := experimental.WithImportResolver(context.Background(), func(name string) api.Module { return p.modules[name] })
	return experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(func(_, most uint64) experimental.LinearMemory {
		in.room = reserve(most)
		return in.room
	}))
}

// hold keeps the program from being closed; false: it has been, there is a newer one.
func (p *program) hold() bool {
	for {
		n := p.refs.Load()
		if n == 0 {
			return false
		}
		if p.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release lets go of the program; the last one closes it.
func (p *program) release() error {
	if p.refs.Add(-1) > 0 {
		return nil
	}
	p.granted.close()
	return p.compiled.Close(context.Background())
}
