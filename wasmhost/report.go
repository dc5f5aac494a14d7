package wasmhost

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/weirlog/weir/wasmhost/meter"
)

// A Report tells what a module is, and why it would be refused.
type Report struct {
	ABI     string // weir_v1, or that of another system by its name; "": none that is known
	Size    int    // bytes of the file
	SHA256  string // of the file, in hexadecimal
	Imports []string
	Exports []string
	Memory  string   // pages of 64 KiB
	Refused []string // why; empty when it may be loaded. Whether it starts is not looked at
}

// inspect judges a module by what it imports and exports.
func (h *Host) inspect(m *meter.Module, r *Report) {
	for _, im := range m.Imports {
		r.Imports = append(r.Imports, fmt.Sprintf("%s %s", importName(im), describe(im.Kind, im.Type)))
	}
	for _, ex := range m.Exports {
		r.Exports = append(r.Exports, fmt.Sprintf("%s %s", printable(ex.Name), describe(ex.Kind, ex.Type)))
	}
	if m.Memory != nil {
		r.Memory = fmt.Sprintf("%d to %d pages of 64 KiB", m.Memory.Min, m.Memory.Max)
	}
	if !isNative(m) {
		f := foreignABI(m)
		r.ABI = f.name
		r.Refused = append(r.Refused, f.refusal(m))
		return
	}
	r.ABI = abiModule
	for _, im := range m.Imports {
		if why := h.refuseImport(im); why != "" {
			r.Refused = append(r.Refused, why)
		}
	}
	r.Refused = append(r.Refused, refuseExports(m)...)
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

func isNative(m *meter.Module) bool {
	return hasExport(m, abiProcess) || importsFrom(m, abiModule)
}

func hasExport(m *meter.Module, name string) bool {
	return slices.ContainsFunc(m.Exports, func(e meter.Export) bool { return e.Name == name })
}

func importsFrom(m *meter.Module, module string) bool {
	return slices.ContainsFunc(m.Imports, func(i meter.Import) bool { return i.Module == module })
}

// refuseImport says why the host cannot give what a module imports; "": it can.
func (h *Host) refuseImport(im meter.Import) string {
	name := importName(im)
	if im.Kind != meter.Func {
		return fmt.Sprintf("imports the %s %s, but a filter must bring its own (linker: leave out --import-memory, --import-table and -shared)", im.Kind, name)
	}
	var known []hostFunction
	switch im.Module {
	case abiModule:
		if slices.Contains(abiLater, im.Name) {
			return fmt.Sprintf("imports %s, which is not in this version of weir", name)
		}
		known = abiFunctions
	case assemblyScriptModule:
		known = assemblyScriptFunctions
	case "wasi_snapshot_preview1":
		f, ok := h.wasi[im.Name]
		if !ok {
			return fmt.Sprintf("imports %s, which WASI preview 1 does not have", name)
		}
		return wrongType(name, im.Type, meter.FuncType{Params: f.ParamTypes(), Results: f.ResultTypes()})
	default:
		return fmt.Sprintf("imports %s %s, and there is no module %s for filters (there are %s, wasi_snapshot_preview1 and, for AssemblyScript, env)",
			name, describe(im.Kind, im.Type), printable(im.Module), abiModule)
	}
	i := slices.IndexFunc(known, func(f hostFunction) bool { return f.name == im.Name })
	if i < 0 {
		why := fmt.Sprintf("imports %s %s, which this version of weir does not have", name, describe(im.Kind, im.Type))
		if im.Module == assemblyScriptModule {
			why += " (declare imports with import_module(\"" + abiModule + "\"); a function without a body ends up in env)"
		}
		return why
	}
	return wrongType(name, im.Type, known[i].funcType())
}

func (f hostFunction) funcType() meter.FuncType {
	return meter.FuncType{Params: valueTypes(f.params), Results: valueTypes(f.results)}
}

func wrongType(name string, is, should meter.FuncType) string {
	if string(is.Params) == string(should.Params) && string(is.Results) == string(should.Results) {
		return ""
	}
	return fmt.Sprintf("%s has the type %s, but must have %s", name, signature(is), signature(should))
}

// refuseExports says what is wrong with the exports of a module for weir_v1.
func refuseExports(m *meter.Module) (why []string) {
	if hasExport(m, "_start") {
		why = append(why, "exports _start beside "+abiProcess+": built as a program; Go: add -buildmode=c-shared; clang: -mexec-model=reactor; Rust: --crate-type cdylib")
	}
	if !slices.ContainsFunc(m.Exports, func(e meter.Export) bool { return e.Name == "memory" && e.Kind == meter.Memory }) {
		why = append(why, "exports no memory named \"memory\" (wat: (memory (export \"memory\") 1); clang: leave out --no-export-memory)")
	}
	for _, ex := range m.Exports {
		if ex.Name == "_initialize" && ex.Kind == meter.Func {
			if w := wrongType(ex.Name, ex.Type, meter.FuncType{}); w != "" {
				why = append(why, w)
			}
		}
		if !strings.HasPrefix(ex.Name, abiPrefix) {
			continue
		}
		i := slices.IndexFunc(abiExports, func(f hostFunction) bool { return f.name == ex.Name })
		switch {
		case slices.Contains(abiLater, ex.Name):
			why = append(why, fmt.Sprintf("exports %s, which is not in this version of weir", ex.Name))
		case i < 0:
			why = append(why, fmt.Sprintf("exports %s, which is not in %s (names that begin with %s are kept for it)", printable(ex.Name), abiModule, abiPrefix))
		case ex.Kind != meter.Func:
			why = append(why, fmt.Sprintf("exports %s as a %s, but it must be a function", ex.Name, ex.Kind))
		default:
			if w := wrongType(ex.Name, ex.Type, abiExports[i].funcType()); w != "" {
				why = append(why, w)
			}
		}
	}
	if !hasExport(m, abiProcess) {
		why = append(why, "exports no "+abiProcess+" () -> i32, which is called for each message")
	}
	return why
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
