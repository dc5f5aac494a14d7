package wasmhost

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirlog/weir/wasmhost/meter"
)

// Load makes a filter of the configuration ready: its module is read, put on the leash, compiled, and one instance is
// started, so that a broken one is an error at start. Relative paths are the process's. ctx ends a start that takes
// long; it is not kept.
func (h *Host) Load(ctx context.Context, name string, cfg Config) (*Guest, error) {
	g, err := h.load(ctx, name, cfg)
	if err != nil {
		return nil, fmt.Errorf("load filter %s: %w", name, err)
	}
	h.mu.Lock()
	h.guests = append(h.guests, g)
	slices.SortStableFunc(h.guests, func(a, b *Guest) int { return strings.Compare(a.name, b.name) }) // they are loaded side by side
	h.mu.Unlock()
	return g, nil
}

func (h *Host) load(ctx context.Context, name string, cfg Config) (*Guest, error) {
	src, err := cfg.open()
	if err != nil {
		return nil, err
	}
	p, err := h.build(ctx, cfg, src)
	if err != nil {
		return nil, err
	}
	g := &Guest{
		host: h, name: name, settings: cfg, onError: cfg.OnError, one: cfg.Instances == One,
		time: cfg.Time * time.Duration(h.patience), initTime: cfg.InitTime * time.Duration(h.patience),
		shelf: h.shelfOf(name), appName: []byte(name), log: h.log.With("filter", name),
	}
	g.program.Store(p)
	g.swap.loaded = time.Now()
	g.nursery.ctx, g.nursery.stop = context.WithCancel(context.WithoutCancel(ctx))
	in, err := g.newInstance(ctx, p)
	if err != nil {
		g.nursery.stop()
		p.release()
		return nil, fmt.Errorf("%s: %w", cfg.Module, err)
	}
	p.measure(in)
	g.lanes = []*lane{{guest: g, in: in}}
	return g, nil
}

// build reads a module, judges it, puts it on the leash and compiles it.
func (h *Host) build(ctx context.Context, cfg Config, src source) (*program, error) {
	cfg, err := src.manifest.under(cfg)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.Module, err)
	}
	file, about := src.module, src.about()
	if cfg.SHA256 != "" && !strings.EqualFold(cfg.SHA256, about.SHA256) {
		return nil, &SettingError{"sha256", fmt.Errorf("%s is not the file that sha256 asks for: it has %s", cfg.Module, about.SHA256), ""}
	}
	module, err := meter.Rewrite(file, cfg.limits())
	if r, ok := errors.AsType[*meter.Refused](err); ok {
		return nil, refusedModule(cfg.Module, file, r)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.Module, err)
	}
	a := h.judge(module, &cfg, &src, &about)
	if a != nil && len(about.Refused) > 0 && len(a.idle(&cfg)) == len(about.Refused) {
		return nil, errors.Join(a.idle(&cfg)...)
	}
	if len(about.Refused) > 0 {
		return nil, fmt.Errorf("%s: %s", cfg.Module, about.why())
	}
	env, err := cfg.reveal()
	if err != nil {
		return nil, &SettingError{"env", err, ""}
	}
	grants, err := openGrants(cfg.FS)
	if err != nil {
		return nil, &SettingError{"fs", err, ""}
	}
	compiled, err := h.compile(ctx, module.Bytes)
	if err != nil {
		grants.close()
		return nil, fmt.Errorf("%s: %w", cfg.Module, err)
	}
	p, err := h.program(ctx, a, cfg, module, compiled, about)
	if err != nil {
		grants.close()
		compiled.Close(ctx)
		return nil, err
	}
	p.sum, p.granted, p.env = src.sum(), grants, env
	return p, nil
}

// judge says in about what a module is, and all that refuses it. The ABI is nil when it has none.
func (h *Host) judge(m *meter.Module, c *Config, src *source, about *Report) *abi {
	a := h.inspect(m, c, about)
	about.Refused = append(about.Refused, src.manifest.refuse(c)...)
	if m.Catches && h.interpret {
		// wazero's interpreter keeps a caught exception alive a moment too late.
		about.Refused = append(about.Refused, "catches exceptions, which need the compiler, and there is none for this processor or under this system's policy")
	}
	return a
}

// limits are what the meter is to hold the module to.
func (c *Config) limits() meter.Limits {
	return meter.Limits{MemoryPages: uint32(c.Memory / page), Exceptions: c.Exceptions}
}

// Inspect tells what a module is without running it. What refuses it is in the report; an error says that it could not
// be read.
func (h *Host) Inspect(cfg Config) (Report, error) {
	src, err := cfg.open()
	if err != nil {
		return Report{}, err
	}
	if cfg, err = src.manifest.under(cfg); err != nil {
		return Report{}, fmt.Errorf("%s: %w", cfg.Module, err)
	}
	file, about := src.module, src.about()
	module, err := meter.Rewrite(file, cfg.limits())
	if err != nil {
		if r, ok := errors.AsType[*meter.Refused](err); ok && r.Offset == 0 && len(file) > meter.MaxModuleBytes {
			about.SHA256 = ""
		}
		about.Refused = []string{err.Error()}
		// What a larger limit would let by is described all the same.
		if module, err = meter.Rewrite(file, meter.Limits{MemoryPages: mostMemory / page, Exceptions: true}); err == nil {
			h.judge(module, &cfg, &src, &about)
		}
		return about, nil
	}
	h.judge(module, &cfg, &src, &about)
	if len(about.Refused) > 0 {
		return about, nil
	}
	c, err := h.compile(context.Background(), module.Bytes)
	if err != nil {
		about.Refused = []string{err.Error()}
		return about, nil
	}
	return about, c.Close(context.Background())
}
