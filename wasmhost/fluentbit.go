package wasmhost

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/weirlog/weir/wasmhost/meter"
)

// fluentbit is the ABI of Fluent Bit's filter_wasm: a function of any name that gets a tag, a time and a record, and
// returns the address of another record. docs/filters/fluentbit.md says what differs from Fluent Bit.
var fluentbit = abi{
	settings: []string{"function", "event_format"},
	name:     "fluentbit",
	is:       isFluentbit,
	modules:  fluentModules,
	refuse:   refuseFluentbit,
	start:    startFluentbit,
}

// The forms of a record between weir and a filter of this ABI.
const (
	formatJSON    = "json"
	formatMsgpack = "msgpack"
)

var fluentFilter = hostFunction{name: "filter", params: "iiiiii", results: "i"}.funcType()

// fluentFilters are the exports that can be called for each message.
func fluentFilters(m *meter.Module) (names []string) {
	for _, ex := range m.Exports {
		if ex.Kind == meter.Func && wrongType("", ex.Type, fluentFilter) == "" {
			names = append(names, printable(ex.Name))
		}
	}
	return names
}

// isFluentbit recognises the type of an export, which is the weakest sign of all: modules of systems that leave clearer
// ones are theirs. What Emscripten imports of C's library, Fluent Bit has.
func isFluentbit(m *meter.Module) bool {
	if len(fluentFilters(m)) == 0 {
		return false
	}
	return foreignABI(m).name == "" || importsFrom(m, "env") && slices.ContainsFunc(fluentModules, func(hm hostModule) bool {
		return !slices.ContainsFunc(m.Imports, func(im meter.Import) bool {
			return im.Module != wasiModule && (im.Module != hm.name || hm.lacks(im) != "")
		})
	})
}

// The functions by which the host gets memory for a record from a guest, as in WAMR, and those that start an instance.
var (
	mallocType  = hostFunction{params: "i", results: "i"}.funcType()
	freeType    = hostFunction{params: "i"}.funcType()
	newType     = hostFunction{params: "ii", results: "i"}.funcType()
	fluentStart = []string{"_initialize", "__wasm_call_ctors", "__post_instantiate"}
)

func refuseFluentbit(m *meter.Module, c *Config) (why []string) {
	fitting := fluentFilters(m)
	i := slices.IndexFunc(m.Exports, func(e meter.Export) bool { return c.Function != "" && e.Name == c.Function })
	switch {
	case c.Function == "" && len(fitting) == 0:
		why = append(why, "exports no function of the type "+signature(fluentFilter)+", which Fluent Bit filters have")
	case c.Function == "" && len(fitting) > 1:
		why = append(why, fmt.Sprintf("exports %s, which all have the type of a Fluent Bit filter: name one with function:", strings.Join(fitting, ", ")))
	case c.Function != "" && i < 0:
		why = append(why, fmt.Sprintf("exports no %s, which function: names (%s)", printable(c.Function), thereAre(fitting)))
	case c.Function != "" && m.Exports[i].Kind != meter.Func:
		why = append(why, fmt.Sprintf("exports %s, which function: names, as a %s (%s)", printable(c.Function), m.Exports[i].Kind, thereAre(fitting)))
	case c.Function != "":
		if w := wrongType(printable(c.Function), m.Exports[i].Type, fluentFilter); w != "" {
			why = append(why, w+" ("+thereAre(fitting)+")")
		}
	}
	for _, ex := range m.Exports {
		if ex.Kind == meter.Func && slices.Contains(fluentStart, ex.Name) {
			if w := wrongType(ex.Name, ex.Type, meter.FuncType{}); w != "" {
				why = append(why, w)
			}
		}
	}
	return append(why, refuseFluentMemory(m)...)
}

func thereAre(fitting []string) string {
	if len(fitting) == 0 {
		return "nothing that it exports has the type " + signature(fluentFilter)
	}
	return "there is " + strings.Join(fitting, ", ")
}

const exportMalloc = "export malloc and free (clang: -Wl,--export=malloc,--export=free; AssemblyScript: --exportRuntime; Go: //go:wasmexport)"

// refuseFluentMemory says why records cannot be handed to a guest.
func refuseFluentMemory(m *meter.Module) []string {
	exports := func(name string, t meter.FuncType) bool {
		return slices.ContainsFunc(m.Exports, func(e meter.Export) bool {
			return e.Kind == meter.Func && e.Name == name && wrongType("", e.Type, t) == ""
		})
	}
	switch {
	case m.Memory == nil:
		return []string{"has no memory, so it cannot be handed a record"}
	case exports("malloc", mallocType) && exports("free", freeType):
		return nil
	case exports("__new", newType) && (exports("__pin", mallocType) && exports("__unpin", freeType) || exports("__retain", mallocType) && exports("__release", freeType)):
		return nil
	case bytes.Contains(m.Bytes, []byte("\x0eGo cmd/compile")): // in the custom section producers
		// Go's runtime believes that its memory goes on where it ended the last time, whoever let it grow.
		return []string{"was built by Go and exports no malloc and free, which is where records are to be put: " + exportMalloc}
	case m.Memory.Min >= m.Memory.Max:
		return []string{fmt.Sprintf("exports no malloc and free, and its memory of %d pages of 64 KiB may not grow, so there is no place for records: %s, or raise memory: (linker: leave out --max-memory)", m.Memory.Min, exportMalloc)}
	}
	return nil
}

// startFluentbit runs what prepares a guest. Programs' _start is not among that, although many export one.
func startFluentbit(in *instance) (talker, error) {
	t := fluentOf(in)
	t.msgpack = in.program.settings.EventFormat == formatMsgpack
	t.filter = in.typed(in.program.settings.Function, fluentFilter)
	for name := range in.program.compiled.ExportedFunctions() {
		if f := in.typed(name, fluentFilter); t.filter == nil && f != nil {
			t.filter = f
		}
	}
	t.lender.start(in)
	begin := "__wasm_call_ctors"
	if in.mod.ExportedFunction("_initialize") != nil {
		begin = "_initialize"
	}
	for _, name := range []string{begin, "__post_instantiate"} {
		if err := in.run(name); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// typed is a function that the guest exports under that name with that type, or nil.
func (in *instance) typed(name string, t meter.FuncType) api.Function {
	f := in.exported(name)
	if f == nil || wrongType("", meter.FuncType{Params: f.Definition().ParamTypes(), Results: f.Definition().ResultTypes()}, t) != "" {
		return nil
	}
	return f
}

// fluentOf is what an instance of this ABI has on the host's side. Host functions may need it before there is a talker.
func fluentOf(in *instance) *fluentTalk {
	if in.talk == nil {
		in.talk = &fluentTalk{}
	}
	return in.talk.(*fluentTalk)
}
