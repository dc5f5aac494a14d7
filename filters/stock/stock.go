// Package stock holds the filters that ship inside weir: WebAssembly modules of the same ABI as anybody's
// (filters/ABI.md), written as `module: stock:NAME` in a configuration.
//
// One folder a filter: its source, the module that `make guests` builds from it, README.md with its settings, and
// cases.jsonl with what it does. `make guests-check` compares module and source.
package stock

import (
	"embed"
	"io/fs"
	"path"
	"strings"
)

//go:embed */*.wasm
var modules embed.FS

// Module returns the module of the filter with this name (without "stock:"). The bytes are the caller's.
func Module(name string) ([]byte, bool) {
	if name == "" || strings.ContainsAny(name, "/.") {
		return nil, false
	}
	b, err := modules.ReadFile(path.Join(name, name+".wasm"))
	return b, err == nil
}

// Names returns the names of all stock filters, sorted.
func Names() []string {
	found, err := fs.ReadDir(modules, ".")
	if err != nil {
		panic("BUG: embedded filters: " + err.Error())
	}
	names := make([]string, len(found))
	for i, f := range found {
		names[i] = f.Name()
	}
	return names
}
