package wasmhost

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/wasmhost/meter"
)

// extism is the ABI of Extism plug-ins (docs/filters/extism.md): exported functions () -> i32 that take their input from,
// and leave their output in, a memory of the host's, which they reach by functions of extism:host/env.
var extism = abi{
	settings: []string{"function"},
	name:     "extism",
	is:       func(m *meter.Module) bool { return importsFrom(m, extismEnv) },
	modules: []hostModule{
		{name: extismEnv, functions: extismFunctions, hint: "a plug-in development kit older or newer than this weir knows"},
		{name: "extism:host/user", hint: "it is a function of the program that this plug-in was written for; a filter has none of those"},
	},
	refuse: refuseExtism,
	system: systemOfExtism,
	start:  startExtism,
}

const extismEnv = "extism:host/env"

// extismStarts are exports that Extism calls before the first call of a plug-in's own, with their types.
var extismStarts = []hostFunction{
	{name: "_initialize"},
	{name: "__wasm_call_ctors"},
	{name: "hs_init", params: "ii"},
}

func refuseExtism(m *meter.Module, c *Config) (why []string) {
	for _, f := range extismStarts {
		for _, ex := range m.Exports {
			if ex.Name != f.name || ex.Kind != meter.Func {
				continue
			}
			if w := wrongType(ex.Name, ex.Type, f.funcType()); w != "" {
				why = append(why, w)
			}
		}
	}
	if _, w := extismFunction(m, c); w != "" {
		why = append(why, w)
	}
	if _, err := extismConfig(c.Config); err != nil {
		why = append(why, err.Error())
	}
	return why
}

// extismFunction finds the export that is called for each message, or says why there is none.
func extismFunction(m *meter.Module, c *Config) (name, why string) {
	var fit, silent []string // the latter return nothing, as those in Haskell may
	for _, ex := range m.Exports {
		if ex.Kind != meter.Func {
			continue
		}
		callable := len(ex.Type.Params) == 0 && len(ex.Type.Results) <= 1 && ex.Name != "_start"
		if ex.Name == c.Function && callable {
			return ex.Name, ""
		}
		if ex.Name == c.Function {
			return "", fmt.Sprintf("%s %s cannot be called for each message: that must be a function () -> i32", printable(ex.Name), signature(ex.Type))
		}
		own := slices.ContainsFunc(extismOwn, func(prefix string) bool { return strings.HasPrefix(ex.Name, prefix) })
		switch t := signature(ex.Type); {
		case !callable || own:
		case t == "() -> i32":
			fit = append(fit, ex.Name)
		case t == "() -> ()":
			silent = append(silent, ex.Name)
		}
	}
	if len(fit) == 0 {
		fit = silent
	}
	switch {
	case c.Function != "":
		return "", fmt.Sprintf("exports no function %s (there %s)", printable(c.Function), listed(fit))
	case len(fit) == 0 && hasExport(m, "_start"):
		return "", "exports no function to call for each message, only _start: built as a program; export a function () -> i32 (Go: //go:wasmexport and -buildmode=c-shared)"
	case len(fit) == 0:
		return "", "exports no function () -> i32, which would be called for each message"
	case len(fit) > 1:
		return "", fmt.Sprintf("exports several functions that may be called for each message, so function: must say which one: there %s", listed(fit))
	}
	return fit[0], ""
}

// extismOwn are how names of exports begin that a compiler adds.
var extismOwn = []string{"_initialize", "__", "hs_", "asyncify_"}

// listed is "is a", "are a and b" or "are a, b and 7 more".
func listed(names []string) string {
	const most = 10
	var parts []string
	for _, n := range names[:min(len(names), most)] {
		parts = append(parts, printable(n))
	}
	switch n := len(names); {
	case n == 0:
		return "is none that fits"
	case n == 1:
		return "is " + parts[0]
	case n > most:
		return fmt.Sprintf("are %s and %d more", strings.Join(parts, ", "), n-most)
	default:
		return "are " + strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
}

// extismConfig is a filter's settings as Extism has them: text by name. Others than text are their JSON, null is absent.
func extismConfig(config json.RawMessage) (map[string]string, error) {
	if len(config) == 0 {
		return nil, nil
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(config, &values); err != nil {
		return nil, fmt.Errorf("config: an Extism plug-in takes a map of names to values")
	}
	texts := make(map[string]string, len(values))
	for name, v := range values {
		var text string
		if json.Unmarshal(v, &text) != nil {
			text = string(v)
		} else if string(v) == "null" {
			continue
		}
		texts[name] = text
	}
	return texts, nil
}

// systemOfExtism makes what host functions need from the very first: a start function may call them.
func systemOfExtism(in *instance, c wazero.ModuleConfig) wazero.ModuleConfig {
	s := &in.program.settings
	config, _ := extismConfig(s.Config) // refuseExtism has told
	in.talk = &extismTalk{memory: extismMemory{limit: uint64(s.Memory)}, config: config, vars: map[string][]byte{}}
	return c
}

// startExtism brings up the guest's language as Extism does: Haskell's runtime, or constructors. Extism does so before
// the first call.
func startExtism(in *instance) (talker, error) {
	t := in.talk.(*extismTalk)
	hsInit := in.mod.ExportedFunction("hs_init")
	start := "_initialize"
	if hsInit == nil && in.mod.ExportedFunction(start) == nil {
		start = "__wasm_call_ctors"
	}
	if err := in.run(start); err != nil {
		return nil, err
	}
	if hsInit != nil {
		if err := hsInit.CallWithStack(in, make([]uint64, 2)); err != nil {
			return nil, startError("hs_init", err)
		}
	}
	function, _ := extismFunction(&meter.Module{Exports: functionsOf(in.mod)}, &in.program.settings) // refuseExtism has told
	t.function = in.exported(function)
	return t, nil
}

// functionsOf are the functions that a module exports, by name.
func functionsOf(mod api.Module) (all []meter.Export) {
	for name, f := range mod.ExportedFunctionDefinitions() {
		all = append(all, meter.Export{Name: name, Kind: meter.Func, Type: meter.FuncType{Params: f.ParamTypes(), Results: f.ResultTypes()}})
	}
	slices.SortFunc(all, func(a, b meter.Export) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// extismTalk is what weir keeps of one plug-in.
type extismTalk struct {
	function api.Function
	memory   extismMemory
	config   map[string]string
	vars     map[string][]byte
	varBytes int // of vars, as Extism counts them

	input, inputLength   uint64 // in memory; of the call in hand
	output, outputLength uint64
	failure              uint64 // the block given to error_set; its text is in the instance's reason
}

// process gives a plug-in the message as record JSON, and makes of its output and code what becomes of the message.
func (t *extismTalk) process(in *instance) (int32, error) {
	in.scratch = router.AppendRecord(in.scratch[:0], in.m)
	in.chargeLong(2 * len(in.scratch))
	t.reset()
	var ok bool
	if t.input, ok = t.memory.put(in.scratch); !ok {
		return in.failing("the message is %d bytes of JSON, which do not fit into the %d that memory: allows", len(in.scratch), t.memory.limit), nil
	}
	t.inputLength = uint64(len(in.scratch))
	in.result[0] = 0
	if err := t.function.CallWithStack(in, in.result[:]); err != nil {
		return failed, err
	}
	code := api.DecodeI32(in.result[0])
	switch {
	case code == 1 && t.failure == 0:
		return drop, nil
	case t.failure != 0:
		return failed, nil
	case code != 0:
		return in.failing("the plug-in returned %d and gave no reason", code), nil
	}
	return in.takeOutput(t.memory.mem[t.output : t.output+t.outputLength]), nil
}

// reset forgets the last call.
func (t *extismTalk) reset() {
	t.memory.reset()
	t.input, t.inputLength, t.output, t.outputLength, t.failure = 0, 0, 0, 0, 0
}

// tick gives back memory that a big message has left behind. The guest has no part in it.
func (t *extismTalk) tick(*instance) error {
	t.memory.shrink()
	return nil
}

func (t *extismTalk) end(*instance) error { return nil }
