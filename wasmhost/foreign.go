package wasmhost

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirlog/weir/wasmhost/meter"
)

// A foreign ABI is one of another system, which is recognised to be refused with a helpful word.
type foreign struct {
	name   string
	is     func(m *meter.Module) bool
	wayOut string
}

const rebuild = "write it against weir_v1 (filters/ABI.md, filters/sdk)"

// foreignABIs are looked at in order: the first that fits is it.
var foreignABIs = []foreign{
	{"Extism before 1.0", func(m *meter.Module) bool {
		return importsFrom(m, "extism:env") || slices.ContainsFunc(m.Imports, func(i meter.Import) bool {
			return i.Module == "env" && strings.HasPrefix(i.Name, "extism_")
		})
	}, "an Extism plug-in for a version before 1.0: build it with a current plug-in development kit, which imports from extism:host/env"},
	{"proxy-wasm", func(m *meter.Module) bool {
		return slices.ContainsFunc(m.Exports, func(e meter.Export) bool { return strings.HasPrefix(e.Name, "proxy_abi_version_") })
	}, "a proxy-wasm filter, which looks at HTTP streams and not at log messages: " + rebuild},
	{"http-wasm", from("http_handler"), "an http-wasm handler, which looks at HTTP requests and not at log messages: " + rebuild},
	{"Fluvio SmartModule", func(m *meter.Module) bool {
		return slices.ContainsFunc(m.Imports, func(i meter.Import) bool { return i.Name == "copy_records" })
	}, "a Fluvio SmartModule, whose records have a form of their own: " + rebuild},
	{"wasm-bindgen", func(m *meter.Module) bool {
		return importsFrom(m, "__wbindgen_placeholder__") || importsFrom(m, "wbg")
	}, "built with wasm-bindgen for a JavaScript host: build without it, for wasm32-wasip1 or wasm32-unknown-unknown, against weir_v1"},
	{"Go for JavaScript", func(m *meter.Module) bool { return importsFrom(m, "gojs") || importsFrom(m, "go") },
		"built with GOOS=js: build with GOOS=wasip1 GOARCH=wasm and -buildmode=c-shared, against weir_v1"},
	{"Emscripten", func(m *meter.Module) bool {
		return importsFrom(m, "a") || slices.ContainsFunc(m.Imports, func(i meter.Import) bool {
			return i.Module == "env" && (strings.HasPrefix(i.Name, "invoke_") || strings.HasPrefix(i.Name, "emscripten_"))
		})
	}, "built with Emscripten for a JavaScript host: build with clang --target=wasm32-wasi -mexec-model=reactor, against weir_v1"},
	{"ruby.wasm", from("rb-js-abi-host"), "a Ruby interpreter for a JavaScript host: " + rebuild},
	{"Javy (dynamic)", func(m *meter.Module) bool {
		return slices.ContainsFunc(m.Imports, func(i meter.Import) bool { return strings.HasPrefix(i.Module, "javy") })
	}, "a dynamically linked Javy module, which needs a second module beside it: " + rebuild},
}

func from(module string) func(*meter.Module) bool {
	return func(m *meter.Module) bool { return importsFrom(m, module) }
}

func foreignABI(m *meter.Module) foreign {
	for _, f := range foreignABIs {
		if f.is(m) {
			return f
		}
	}
	return foreign{}
}

func (f foreign) refusal(m *meter.Module) string {
	if f.name != "" {
		return f.wayOut
	}
	if importsFrom(m, "weir_v2") || slices.ContainsFunc(m.Imports, func(i meter.Import) bool { return strings.HasPrefix(i.Module, "weir") }) {
		return fmt.Sprintf("made for another version of weir: this one knows %s", weirModule)
	}
	return fmt.Sprintf("no filter: it exports no %s and imports nothing from %s (%s)", weirProcess, weirModule, rebuild)
}
