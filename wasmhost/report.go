package wasmhost

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/weirlog/weir/wasmhost/meter"
)

// A Report tells what a module is, and why it would be refused.
type Report struct {
	Name        string // of the manifest, as are Description, Version and Wants
	Description string
	Version     string
	Wants       []string
	ABI         string // as `abi:` in the configuration has it, or that of another system by its name; "": none that is known
	Size        int    // bytes of the file
	SHA256      string // of the file, in hexadecimal
	Imports     []string
	Exports     []string
	Memory      string   // pages of 64 KiB
	Keeps       bool     // keys and values on the host's side, up to [MostKept] bytes
	Refused     []string // why; empty when it may be loaded. Whether it starts is not looked at
}

// inspect judges a module by what it imports and exports. The ABI is nil when it has none.
func (h *Host) inspect(m *meter.Module, c *Config, r *Report) *abi {
	for _, im := range m.Imports {
		r.Imports = append(r.Imports, fmt.Sprintf("%s %s", importName(im), describe(im.Kind, im.Type)))
	}
	for _, ex := range m.Exports {
		r.Exports = append(r.Exports, fmt.Sprintf("%s %s", printable(ex.Name), describe(ex.Kind, ex.Type)))
	}
	if m.Memory != nil {
		r.Memory = fmt.Sprintf("%d to %d pages of 64 KiB", m.Memory.Min, m.Memory.Max)
	}
	a := abiOf(m, c)
	if a == nil {
		f := foreignABI(m)
		r.ABI = f.name
		r.Refused = append(r.Refused, f.refusal(m))
		return nil
	}
	r.ABI = a.name
	r.Keeps = slices.ContainsFunc(m.Imports, func(im meter.Import) bool {
		return im.Module == weirModule && (im.Name == "kv_set" || im.Name == "kv_add")
	})
	var strange []string // modules that the ABI has not, each told once
	for _, im := range m.Imports {
		why := h.refuseImport(a, m, im)
		if why == "" || slices.Contains(strange, im.Module) {
			continue
		}
		if im.Module != wasiModule && a.module(m, im.Module) == nil {
			strange = append(strange, im.Module)
		}
		r.Refused = append(r.Refused, why)
	}
	r.Refused = append(r.Refused, a.refuse(m, c)...)
	for _, idle := range a.idle(c) {
		r.Refused = append(r.Refused, idle.Error())
	}
	return a
}

// abiOf is the ABI that the configuration asks for, or else the one that the module looks like; nil: none.
func abiOf(m *meter.Module, c *Config) *abi {
	for _, a := range abis {
		if c.ABI == a.name || c.ABI == "" && a.is(m) {
			return a
		}
	}
	return nil
}

func importName(im meter.Import) string { return printable(im.Module) + "." + printable(im.Name) }

// printable is a name from a module as it may be shown on a terminal.
func printable(name string) string {
	const longest = 200
	if len(name) > longest {
		name = name[:longest] + "…"
	}
	if quoted := strconv.Quote(name); quoted != `"`+name+`"` {
		return quoted
	}
	return name
}

// why joins the first reasons of a refusal: a module may have many thousands of bad imports.
func (r *Report) why() string {
	const most = 10
	if n := len(r.Refused); n > most {
		return strings.Join(r.Refused[:most], "; ") + fmt.Sprintf("; and %d more", n-most)
	}
	return strings.Join(r.Refused, "; ")
}

func hasExport(m *meter.Module, name string) bool {
	return slices.ContainsFunc(m.Exports, func(e meter.Export) bool { return e.Name == name })
}

func importsFrom(m *meter.Module, module string) bool {
	return slices.ContainsFunc(m.Imports, func(i meter.Import) bool { return i.Module == module })
}

// refuseImport says why a guest of an ABI cannot have what it imports; "": it can.
func (h *Host) refuseImport(a *abi, m *meter.Module, im meter.Import) string {
	name := importName(im)
	if im.Kind != meter.Func {
		return fmt.Sprintf("imports the %s %s, but a filter must bring its own (linker: leave out --import-memory, --import-table and -shared)", im.Kind, name)
	}
	if im.Module == wasiModule {
		wasi, err := h.wasi(context.Background())
		if err != nil {
			return err.Error()
		}
		f, ok := wasi[im.Name]
		if !ok {
			return fmt.Sprintf("imports %s, which WASI preview 1 does not have", name)
		}
		return wrongType(name, im.Type, meter.FuncType{Params: f.ParamTypes(), Results: f.ResultTypes()})
	}
	if hm := a.module(m, im.Module); hm != nil {
		return hm.lacks(im)
	}
	var known []string
	for _, hm := range a.modules {
		if !slices.Contains(known, hm.name) {
			known = append(known, hm.name)
		}
	}
	return fmt.Sprintf("imports %s %s, and there is no module %s for filters of the ABI %s (there are %s and %s)",
		name, describe(im.Kind, im.Type), printable(im.Module), a.name, strings.Join(known, ", "), wasiModule)
}

const wasiModule = "wasi_snapshot_preview1"

func wrongType(name string, is, should meter.FuncType) string {
	if string(is.Params) == string(should.Params) && string(is.Results) == string(should.Results) {
		return ""
	}
	return fmt.Sprintf("%s has the type %s, but must have %s", name, signature(is), signature(should))
}

// exportsMemory reports whether a module exports its memory under the usual name.
func exportsMemory(m *meter.Module) bool {
	return slices.ContainsFunc(m.Exports, func(e meter.Export) bool { return e.Name == "memory" && e.Kind == meter.Memory })
}

func describe(k meter.Kind, t meter.FuncType) string {
	if k != meter.Func {
		return k.String()
	}
	return signature(t)
}

// signature is a function's type as in (i32, i64) -> i32.
func signature(t meter.FuncType) string {
	list := func(types []byte) string {
		names := make([]string, len(types))
		for i, t := range types {
			names[i] = api.ValueTypeName(t)
			if names[i] == "unknown" {
				names[i] = fmt.Sprintf("%#x", t)
			}
		}
		return strings.Join(names, ", ")
	}
	results := list(t.Results)
	if len(t.Results) != 1 {
		results = "(" + results + ")"
	}
	return "(" + list(t.Params) + ") -> " + results
}
