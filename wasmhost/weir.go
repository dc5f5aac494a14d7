package wasmhost

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/weirlog/weir/wasmhost/meter"
)

// weirV1 is weir's own ABI (filters/ABI.md).
var weirV1 = abi{
	name: "weir",
	is: func(m *meter.Module) bool {
		return hasExport(m, weirProcess) || importsFrom(m, weirModule)
	},
	modules: []hostModule{{name: weirModule, functions: weirFunctions}, assemblyScript},
	refuse:  refuseWeir,
	start:   startWeir,
}

const (
	weirModule  = "weir_v1"
	weirProcess = "weir_process"
	weirPrefix  = "weir_"
)

// weirFunctions are all functions of weir_v1.
var weirFunctions = []hostFunction{
	{"field_get", "iiii", "i", fieldGet},
	{"field_type", "ii", "i", fieldType},
	{"field_get_i64", "iii", "i", fieldGetI64},
	{"field_get_f64", "iii", "i", fieldGetF64},
	{"field_set", "iiii", "i", fieldSet},
	{"field_set_json", "iiii", "i", fieldSetJSON},
	{"field_set_i64", "iiI", "i", fieldSetI64},
	{"field_set_f64", "iif", "i", fieldSetF64},
	{"field_unset", "ii", "i", fieldUnset},
	{"field_count", "", "i", fieldCount},
	{"field_name", "iii", "i", fieldName},
	{"sd_get", "iiiiii", "i", sdGet},
	{"sd_set", "iiiiii", "i", sdSet},
	{"sd_unset", "iiii", "i", sdUnset},
	{"record_get", "ii", "i", recordGet},
	{"record_set", "ii", "i", recordSet},
	{"emit", "ii", "i", emit},
	{"route", "ii", "i", route},
	{"config_get", "ii", "i", configGet},
	{"log", "iii", "", logLine},
	{"log_enabled", "i", "i", logEnabled},
	{"metric_add", "iif", "", metricAdd},
	{"metric_set", "iif", "", metricSet},
	{"kv_get", "iiii", "i", kvGet},
	{"kv_set", "iiiiI", "i", kvSet},
	{"kv_del", "ii", "i", kvDel},
	{"kv_add", "iiIi", "i", kvAdd},
	{"time_now", "", "I", timeNow},
	{"random", "", "I", random},
	{"fail", "ii", "", fail},
}

// weirExports are what a module may export for weir_v1.
var weirExports = []hostFunction{
	{name: weirProcess, results: "i"},
	{name: "weir_init", results: "i"},
	{name: "weir_tick"},
	{name: "weir_close"},
}

// refuseWeir says what is wrong with the exports of a module for weir_v1.
func refuseWeir(m *meter.Module, _ *Config) (why []string) {
	if hasExport(m, "_start") {
		why = append(why, "exports _start beside "+weirProcess+": built as a program; Go: add -buildmode=c-shared; clang: -mexec-model=reactor; Rust: --crate-type cdylib")
	}
	if !exportsMemory(m) {
		why = append(why, "exports no memory named \"memory\" (wat: (memory (export \"memory\") 1); clang: leave out --no-export-memory)")
	}
	for _, ex := range m.Exports {
		if ex.Name == "_initialize" && ex.Kind == meter.Func {
			if w := wrongType(ex.Name, ex.Type, meter.FuncType{}); w != "" {
				why = append(why, w)
			}
		}
		if !strings.HasPrefix(ex.Name, weirPrefix) {
			continue
		}
		i := slices.IndexFunc(weirExports, func(f hostFunction) bool { return f.name == ex.Name })
		switch {
		case i < 0:
			why = append(why, fmt.Sprintf("exports %s, which is not in %s (names that begin with %s are kept for it)", printable(ex.Name), weirModule, weirPrefix))
		case ex.Kind != meter.Func:
			why = append(why, fmt.Sprintf("exports %s as a %s, but it must be a function", ex.Name, ex.Kind))
		default:
			if w := wrongType(ex.Name, ex.Type, weirExports[i].funcType()); w != "" {
				why = append(why, w)
			}
		}
	}
	if !hasExport(m, weirProcess) {
		why = append(why, "exports no "+weirProcess+" () -> i32, which is called for each message")
	}
	return why
}

// startWeir runs _initialize and weir_init.
func startWeir(in *instance) (talker, error) {
	if err := in.run("_initialize"); err != nil {
		return nil, err
	}
	if init := in.mod.ExportedFunction("weir_init"); init != nil {
		in.phase = initializing
		if err := init.CallWithStack(in, in.result[:]); err != nil {
			return nil, startError("weir_init", err)
		}
		if code := api.DecodeI32(in.result[0]); code != 0 {
			if len(in.reason) > 0 {
				return nil, &SettingError{"config", fmt.Errorf("weir_init refused: %s", in.reason), ""}
			}
			return nil, fmt.Errorf("weir_init refused with %d and gave no reason", code)
		}
	}
	return &weirTalk{
		weirProcess: in.exported(weirProcess),
		weirTick:    in.exported("weir_tick"),
		weirClose:   in.exported("weir_close"),
	}, nil
}

// weirTalk calls what a guest exports for weir_v1; weirTick and weirClose may be nil.
type weirTalk struct {
	weirProcess, weirTick, weirClose api.Function
}

func (t *weirTalk) process(in *instance) (int32, error) {
	err := t.weirProcess.CallWithStack(in, in.result[:])
	return api.DecodeI32(in.result[0]), err
}

func (t *weirTalk) tick(in *instance) error {
	if t.weirTick == nil {
		return nil
	}
	return t.weirTick.CallWithStack(in, nil)
}

func (t *weirTalk) end(in *instance) error {
	if t.weirClose == nil {
		return nil
	}
	return t.weirClose.CallWithStack(in, nil)
}

// What host functions of weir_v1 answer when they cannot do it.
const (
	errAbsent       int32 = -1
	errWrongType    int32 = -2
	errTooLong      int32 = -3
	errNotPermitted int32 = -4
	errInvalid      int32 = -5
	errTooMany      int32 = -6
	errNotHere      int32 = -7
)

func code(c int32) uint64 { return uint64(uint32(c)) }
