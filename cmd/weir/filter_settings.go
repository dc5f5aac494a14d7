package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/wasmhost"
)

// filterSettings are the flags by which a filter is configured where there is no weir.yaml.
type filterSettings struct {
	config   string            // as JSON
	settings string            // as YAML
	words    map[string]string // setting by flag, as YAML has it
}

// flags adds those that every command has.
func (s *filterSettings) flags(cmd *cobra.Command) {
	s.words = map[string]string{}
	cmd.Flags().StringVar(&s.settings, "settings", "", "further settings as a weir.yaml has them: 'abi: fluentbit, memory: 8MiB'")
	s.word(cmd, "memory", "of one instance (default 16MiB)")
}

// running adds those of commands that run it.
func (s *filterSettings) running(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.config, "config", "", "the filter's config, as JSON")
	s.word(cmd, "time", "of the guest's own work, for one message (default 50ms)")
	s.word(cmd, "on-error", "what becomes of a message on which the filter fails: reject, pass, drop (default reject)")
}

func (s *filterSettings) word(cmd *cobra.Command, flag, usage string) {
	cmd.Flags().Func(flag, usage, func(value string) error {
		s.words[strings.ReplaceAll(flag, "-", "_")] = value
		return nil
	})
}

// guest finds the module that an argument names, and how it is configured.
func (s *filterSettings) guest(arg string) (m guestModule, cfg wasmhost.Config, err error) {
	if m, err = moduleAt(arg); err == nil {
		cfg, err = s.filter(m)
	}
	return m, cfg, err
}

// filter returns the filter's configuration. module is what the user named.
func (s *filterSettings) filter(m guestModule) (wasmhost.Config, error) {
	values := map[string]any{}
	text := strings.TrimSpace(s.settings)
	if text != "" && !strings.HasPrefix(text, "{") && !strings.Contains(text, "\n") {
		text = "{" + text + "}"
	}
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		return wasmhost.Config{}, usagef("--settings: %v", err)
	}
	for name, value := range s.words {
		values[name] = value
	}
	values["module"] = "unknown" // what is typed is no YAML, in which $ is special
	y, err := yaml.Marshal(map[string]any{"filter": values})
	if err != nil {
		return wasmhost.Config{}, usagef("--settings: %v", err)
	}
	var all struct {
		Filter wasmhost.Config `yaml:"filter"`
	}
	all.Filter.Defaults()
	doc := config.Parse(&all, config.Options{}, "settings", y)
	if err := doc.Err(); err != nil {
		return wasmhost.Config{}, usageError{err}
	}
	cfg := all.Filter
	cfg.Module = m.name
	if s.config != "" {
		if cfg.Config = json.RawMessage(s.config); !json.Valid(cfg.Config) {
			return cfg, usagef("--config: not JSON")
		}
	}
	for _, p := range cfg.Check() {
		if p.Hint != "" {
			p.What += " (" + p.Hint + ")"
		}
		return cfg, usagef("%s: %s", p.Path, p.What)
	}
	return cfg, nil
}

// A guestModule is what an argument of a filter command leads to.
type guestModule struct {
	name   string // as `module:` takes it
	file   string // the .wasm file, as far as that is clear; else ""
	folder string // where it lies; "" for one of stock
}

// moduleAt finds the module that an argument means: a file, stock:NAME, or a folder with one module, or with a manifest.
func moduleAt(arg string) (guestModule, error) {
	if strings.HasPrefix(arg, "stock:") {
		return guestModule{name: arg}, nil
	}
	info, err := os.Stat(arg)
	if err != nil {
		return guestModule{}, usagef("no file or folder %s", arg)
	}
	if !info.IsDir() {
		return guestModule{arg, arg, filepath.Dir(arg)}, nil
	}
	m := guestModule{folder: arg}
	found, _ := filepath.Glob(filepath.Join(arg, "*.wasm"))
	for _, file := range found {
		if len(found) == 1 || filterName(file) == filterName(arg) {
			m.name, m.file = file, file
		}
	}
	_, err = os.Stat(filepath.Join(arg, wasmhost.ManifestName))
	switch {
	case len(found) == 0:
		return guestModule{}, usagef("no module in %s: weir filter build %s makes it", arg, arg)
	case err == nil:
		m.name = arg
	case m.name == "":
		return guestModule{}, usagef("%s has %d modules: which one? (%s)", arg, len(found), strings.Join(found, ", "))
	}
	return m, nil
}

// openHost makes the runtime for one filter at a terminal. Compiled modules are kept for the next time where that is
// possible.
func openHost(ctx context.Context, o wasmhost.Options) (*wasmhost.Host, error) {
	o.MaxMessage, o.CacheDir, o.Compiler = mostRecord, userCache(), compiler()
	host, err := wasmhost.Open(ctx, o)
	if err != nil && o.CacheDir != "" {
		o.CacheDir = ""
		host, err = wasmhost.Open(ctx, o)
	}
	return host, err
}

// userCache is where compiled modules are kept; "": nowhere.
func userCache() string {
	dir, err := os.UserCacheDir()
	if err != nil || os.MkdirAll(filepath.Join(dir, "weir"), 0o700) != nil {
		return ""
	}
	return filepath.Join(dir, "weir", "modules")
}

const forever = time.Minute // the most that a configuration may allow a message
