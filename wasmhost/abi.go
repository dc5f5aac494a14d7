package wasmhost

import (
	"github.com/tetratelabs/wazero/api"
)

// The native ABI (filters/ABI.md).
const (
	abiModule  = "weir_v1"
	abiProcess = "weir_process"
	abiPrefix  = "weir_"
)

// A hostFunction is one function that guests import. Params and results are spelled with a letter for each value: i is
// i32, I is i64, f is f64.
type hostFunction struct {
	name            string
	params, results string
	call            api.GoModuleFunc
}

// abiFunctions are all functions of weir_v1 that this version has.
var abiFunctions = []hostFunction{
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
	{"config_get", "ii", "i", configGet},
	{"log", "iii", "", logLine},
	{"log_enabled", "i", "i", logEnabled},
	{"time_now", "", "I", timeNow},
	{"random", "", "I", random},
	{"fail", "ii", "", fail},
}

// abiExports are what a module may export for weir_v1.
var abiExports = []hostFunction{
	{name: abiProcess, results: "i"},
	{name: "weir_init", results: "i"},
	{name: "weir_close"},
}

// abiLater are parts of weir_v1 that this version does not have.
var abiLater = []string{"emit", "route", "metric_add", "metric_set", "kv_get", "kv_set", "kv_del", "kv_add", "weir_tick"}

func valueTypes(letters string) []api.ValueType {
	types := make([]api.ValueType, len(letters))
	for i, c := range letters {
		types[i] = map[rune]api.ValueType{'i': api.ValueTypeI32, 'I': api.ValueTypeI64, 'f': api.ValueTypeF64}[c]
	}
	return types
}

// What host functions answer when they cannot do it.
const (
	errAbsent       int32 = -1
	errWrongType    int32 = -2
	errTooLong      int32 = -3
	errNotPermitted int32 = -4
	errInvalid      int32 = -5
	errTooMany      int32 = -6
	errNotHere      int32 = -7
)

// mostReason is how much of the text given to fail is kept.
const mostReason = 4096

// bytes is guest memory from ptr on, a view that holds until the guest runs again. One outside of memory traps: that is
// a bug in the guest and not a condition.
func (in *instance) bytes(mod api.Module, ptr, n uint64) []byte {
	if in.mem == nil {
		in.mem = mod.Memory()
	}
	b, ok := in.mem.Read(uint32(ptr), uint32(n))
	if !ok {
		panic(outside(uint32(ptr), uint32(n), in.mem.Size()))
	}
	return b
}

// answer puts value into buf if all of it fits, and returns its length.
func answer(buf, value []byte) uint64 {
	if len(value) <= len(buf) {
		copy(buf, value)
	}
	return uint64(uint32(len(value)))
}

func code(c int32) uint64 { return uint64(uint32(c)) }
