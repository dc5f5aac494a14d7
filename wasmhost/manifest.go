package wasmhost

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weirlog/weir/router/config"
)

// ManifestName is the file that tells what a directory with a module is.
const ManifestName = "weir.manifest.yaml"

// A Manifest is what the author of a module says of it, in a file beside it (docs/filters/manifest.md). It grants
// nothing: what it wants, the configuration has to give.
type Manifest struct {
	Name    string `yaml:"name"`
	Version string `yaml:"version"`
	// Description says in a sentence what it does.
	Description string `yaml:"description"`
	// Module is the file's name; "": the only .wasm file of the directory.
	Module string `yaml:"module"`
	// ABI and Function hold where the configuration says nothing.
	ABI      string `yaml:"abi"`
	Function string `yaml:"function"`
	// Defaults are for `config:`, member by member.
	Defaults json.RawMessage `yaml:"defaults"`
	Wants    Wants           `yaml:"wants"`
}

// Wants is what a module cannot do without.
type Wants struct {
	FS         []Want   `yaml:"fs"`
	Env        []string `yaml:"env"`
	Exceptions bool     `yaml:"exceptions"`
}

// A Want is a place in the guest's file system.
type Want struct {
	As    string `yaml:"as,required"`
	Write bool   `yaml:"write"`
}

const mostManifest = 64 << 10 // bytes

// readManifest reads the manifest of a directory, and finds the module.
func readManifest(dir string) (m Manifest, text []byte, module string, err error) {
	path := filepath.Join(dir, ManifestName)
	text, err = readMost(path, mostManifest+1)
	switch {
	case os.IsNotExist(err):
		return m, nil, "", fmt.Errorf("%s is a directory without a %s: give the .wasm file itself, or write one", dir, ManifestName)
	case err != nil:
		return m, nil, "", err
	case len(text) > mostManifest:
		return m, nil, "", fmt.Errorf("%s is over %d KiB", path, mostManifest>>10)
	}
	if doc := config.Parse(&m, config.Options{Verbatim: true}, path, text); doc.Err() != nil {
		first := doc.Mistakes()[0]
		return m, nil, "", &SettingError{"module", fmt.Errorf("%s: %s", first.Place, first.What), first.Hint}
	}
	if len(m.Defaults) > 0 && m.Defaults[0] != '{' && string(m.Defaults) != "null" {
		return m, nil, "", fmt.Errorf("%s: defaults: must be a mapping, for they are joined with the filter's config", path)
	}
	if m.ABI != "" && !slices.Contains(abiNames(), m.ABI) {
		return m, nil, "", fmt.Errorf("%s: abi: %s is none of %s", path, printable(m.ABI), strings.Join(abiNames(), ", "))
	}
	if m.Module == "" {
		all := modulesIn(dir)
		if len(all) != 1 {
			return m, nil, "", fmt.Errorf("%s: there are %d .wasm files beside it: say module: NAME.wasm", path, len(all))
		}
		m.Module = filepath.Base(all[0])
	}
	if filepath.Base(m.Module) != m.Module {
		return m, nil, "", fmt.Errorf("%s: module: %s is not the name of a file beside it", path, printable(m.Module))
	}
	return m, text, filepath.Join(dir, m.Module), nil
}

// modulesIn lists the .wasm files of a directory.
func modulesIn(dir string) (all []string) {
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		if filepath.Ext(f.Name()) == ".wasm" {
			all = append(all, filepath.Join(dir, f.Name()))
		}
	}
	return all
}

// under fills in what the configuration leaves to the manifest.
func (m *Manifest) under(c Config) (Config, error) {
	if c.ABI == "" {
		c.ABI = m.ABI
	}
	if c.Function == "" {
		c.Function = m.Function
	}
	if len(m.Defaults) == 0 || string(m.Defaults) == "null" {
		return c, nil
	}
	if len(c.Config) == 0 || string(c.Config) == "null" {
		c.Config = m.Defaults
		return c, nil
	}
	if c.Config[0] != '{' {
		return c, nil // what the module makes of it is its own
	}
	var theirs, ours map[string]json.RawMessage
	if err := json.Unmarshal(m.Defaults, &theirs); err != nil {
		return c, fmt.Errorf("read defaults: %w", err)
	}
	if err := json.Unmarshal(c.Config, &ours); err != nil {
		return c, fmt.Errorf("read config: %w", err)
	}
	maps.Copy(theirs, ours)
	joined, err := json.Marshal(theirs)
	c.Config = joined
	return c, err
}

// refuse says what the module wants and is not granted.
func (m *Manifest) refuse(c *Config) (why []string) {
	for _, w := range m.Wants.FS {
		i := slices.IndexFunc(c.FS, func(g Grant) bool { return g.as() == cleanGuestPath(w.As) })
		switch {
		case i < 0:
			why = append(why, fmt.Sprintf("wants the directory or file %s, which is not granted (fs: [{path: …, as: %s}])", printable(w.As), printable(w.As)))
		case w.Write && !c.FS[i].Write:
			why = append(why, fmt.Sprintf("wants to write to %s, which is granted for reading only (write: true)", printable(w.As)))
		}
	}
	if m.Wants.Exceptions && !c.Exceptions {
		why = append(why, "wants exceptions, which are not granted (exceptions: true)")
	}
	for _, name := range m.Wants.Env {
		if c.Env.Get(name) == nil {
			why = append(why, fmt.Sprintf("wants the environment variable %s, which is not granted (env: {%s: …})", printable(name), printable(name)))
		}
	}
	return why
}

// describe is the wants in words, for reports.
func (w Wants) describe() (all []string) {
	for _, f := range w.FS {
		as := printable(f.As)
		if f.Write {
			as += " (to write)"
		}
		all = append(all, "fs "+as)
	}
	for _, name := range w.Env {
		all = append(all, "env "+printable(name))
	}
	if w.Exceptions {
		all = append(all, "exceptions")
	}
	return all
}

func cleanGuestPath(p string) string {
	return "/" + strings.Trim(filepath.ToSlash(filepath.Clean(p)), "/")
}
