package wasmhost

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/tetratelabs/wazero/api"
)

// extismFunctions are all functions of extism:host/env. An offset is an i64 into Extism's memory, and a block is the
// offset where it begins. load_u32 and store_u32 are only in AssemblyScript's kit.
var extismFunctions = []hostFunction{
	{"alloc", "I", "I", extismAlloc},
	{"free", "I", "", extismFree},
	{"length", "I", "I", extismLength},
	{"length_unsafe", "I", "I", extismLength},
	{"memory_bytes", "", "I", extismMemoryBytes},
	{"reset", "", "", extismReset},
	{"load_u8", "I", "i", extismLoadU8},
	{"load_u32", "I", "i", extismLoadU32},
	{"load_u64", "I", "I", extismLoadU64},
	{"store_u8", "Ii", "", extismStoreU8},
	{"store_u32", "Ii", "", extismStoreU32},
	{"store_u64", "II", "", extismStoreU64},
	{"input_set", "II", "", extismInputSet},
	{"input_offset", "", "I", extismInputOffset},
	{"input_length", "", "I", extismInputLength},
	{"input_load_u8", "I", "i", extismInputLoadU8},
	{"input_load_u64", "I", "I", extismInputLoadU64},
	{"output_set", "II", "", extismOutputSet},
	{"output_offset", "", "I", extismOutputOffset},
	{"output_length", "", "I", extismOutputLength},
	{"error_set", "I", "", extismErrorSet},
	{"error_get", "", "I", extismErrorGet},
	{"config_get", "I", "I", extismConfigGet},
	{"var_get", "I", "I", extismVarGet},
	{"var_set", "II", "", extismVarSet},
	{"http_request", "II", "I", extismHTTPRequest},
	{"http_status_code", "", "i", extismHTTPNone},
	{"http_headers", "", "I", extismHTTPNone},
	{"log_trace", "I", "", extismLog(0)},
	{"log_debug", "I", "", extismLog(1)},
	{"log_info", "I", "", extismLog(2)},
	{"log_warn", "I", "", extismLog(3)},
	{"log_error", "I", "", extismLog(4)},
	{"get_log_level", "", "i", extismLogLevel},
}

// extismCall is the plug-in that calls, and counts the call.
func extismCall(ctx context.Context) (*instance, *extismTalk) {
	in := ctx.(*instance)
	in.clock.Charge(0)
	return in, in.talk.(*extismTalk)
}

func extismAlloc(ctx context.Context, _ api.Module, stack []uint64) {
	in, t := extismCall(ctx)
	stack[0] = t.room(in, stack[0])
}

// room makes a block; one too many is a fault.
func (t *extismTalk) room(in *instance, length uint64) uint64 {
	if before := len(t.memory.mem); length > uint64(before) {
		in.chargeLong(int(min(length, t.memory.limit)))
	}
	at, ok := t.memory.alloc(length)
	if !ok {
		panic(&guestFault{"the plug-in allocates more of Extism's memory than memory: allows"})
	}
	return at
}

// give makes a block that holds data.
func (t *extismTalk) give(in *instance, data []byte) uint64 {
	at := t.room(in, uint64(len(data)))
	in.chargeLong(len(data))
	if at != 0 {
		copy(t.memory.mem[at:], data)
	}
	return at
}

func extismFree(ctx context.Context, _ api.Module, stack []uint64) {
	_, t := extismCall(ctx)
	if stack[0] == t.input {
		t.inputLength = 0
	}
	t.memory.free(stack[0])
}

func extismLength(ctx context.Context, _ api.Module, stack []uint64) {
	_, t := extismCall(ctx)
	stack[0] = t.memory.length(stack[0])
}

func extismMemoryBytes(ctx context.Context, _ api.Module, stack []uint64) {
	_, t := extismCall(ctx)
	stack[0] = uint64(len(t.memory.mem))
}

func extismReset(ctx context.Context, _ api.Module, _ []uint64) {
	in, t := extismCall(ctx)
	in.chargeLong(int(t.memory.used))
	t.reset()
}

func extismLoadU8(ctx context.Context, _ api.Module, stack []uint64) {
	_, t := extismCall(ctx)
	stack[0] = uint64(t.memory.view("load_u8", stack[0], 1)[0])
}

func extismLoadU32(ctx context.Context, _ api.Module, stack []uint64) {
	_, t := extismCall(ctx)
	stack[0] = uint64(binary.LittleEndian.Uint32(t.memory.view("load_u32", stack[0], 4)))
}

func extismLoadU64(ctx context.Context, _ api.Module, stack []uint64) {
	_, t := extismCall(ctx)
	stack[0] = binary.LittleEndian.Uint64(t.memory.view("load_u64", stack[0], 8))
}

func extismStoreU8(ctx context.Context, _ api.Module, stack []uint64) {
	_, t := extismCall(ctx)
	t.memory.place("store_u8", stack[0], 1)[0] = byte(stack[1])
}

func extismStoreU32(ctx context.Context, _ api.Module, stack []uint64) {
	_, t := extismCall(ctx)
	binary.LittleEndian.PutUint32(t.memory.place("store_u32", stack[0], 4), uint32(stack[1]))
}

func extismStoreU64(ctx context.Context, _ api.Module, stack []uint64) {
	_, t := extismCall(ctx)
	binary.LittleEndian.PutUint64(t.memory.place("store_u64", stack[0], 8), stack[1])
}

func extismInputSet(ctx context.Context, _ api.Module, stack []uint64) {
	_, t := extismCall(ctx)
	if stack[1] > 0 {
		t.memory.view("input_set", stack[0], stack[1])
	}
	t.input, t.inputLength = stack[0], stack[1]
}

func extismInputOffset(ctx context.Context, _ api.Module, stack []uint64) {
	_, t := extismCall(ctx)
	stack[0] = t.input
}

func extismInputLength(ctx context.Context, _ api.Module, stack []uint64) {
	_, t := extismCall(ctx)
	stack[0] = t.inputLength
}

// Behind the input there are zeros: some kits ask for the last bytes as if there were eight.
func extismInputLoadU8(ctx context.Context, _ api.Module, stack []uint64) {
	_, t := extismCall(ctx)
	at := stack[0]
	if stack[0] = 0; at < t.inputLength {
		stack[0] = uint64(t.memory.mem[t.input+at])
	}
}

func extismInputLoadU64(ctx context.Context, _ api.Module, stack []uint64) {
	_, t := extismCall(ctx)
	at := stack[0]
	if stack[0] = 0; t.inputLength >= 8 && at <= t.inputLength-8 {
		stack[0] = binary.LittleEndian.Uint64(t.memory.mem[t.input+at:])
	}
}

func extismOutputSet(ctx context.Context, _ api.Module, stack []uint64) {
	_, t := extismCall(ctx)
	t.output, t.outputLength = 0, 0
	if stack[1] > 0 {
		t.memory.view("output_set", stack[0], stack[1])
		t.output, t.outputLength = stack[0], stack[1]
	}
}

func extismOutputOffset(ctx context.Context, _ api.Module, stack []uint64) {
	_, t := extismCall(ctx)
	stack[0] = t.output
}

func extismOutputLength(ctx context.Context, _ api.Module, stack []uint64) {
	_, t := extismCall(ctx)
	stack[0] = t.outputLength
}

// The text is taken at once, because some kits free it. 0 takes the error back.
func extismErrorSet(ctx context.Context, _ api.Module, stack []uint64) {
	in, t := extismCall(ctx)
	in.reason = in.reason[:0]
	if t.failure = stack[0]; t.failure != 0 {
		text := t.memory.block("error_set", t.failure)
		in.reason = append(in.reason, text[:min(len(text), mostReason)]...)
		in.clock.Charge(len(in.reason))
	}
}

func extismErrorGet(ctx context.Context, _ api.Module, stack []uint64) {
	_, t := extismCall(ctx)
	stack[0] = t.failure
}

func extismConfigGet(ctx context.Context, _ api.Module, stack []uint64) {
	in, t := extismCall(ctx)
	key := t.memory.block("config_get", stack[0])
	in.chargeLong(len(key))
	stack[0] = 0
	if value, ok := t.config[string(key)]; ok {
		stack[0] = t.give(in, view(value))
	}
}

func extismVarGet(ctx context.Context, _ api.Module, stack []uint64) {
	in, t := extismCall(ctx)
	key := t.memory.block("var_get", stack[0])
	in.chargeLong(len(key))
	stack[0] = 0
	if value, ok := t.vars[string(key)]; ok {
		stack[0] = t.give(in, value)
	}
}

const (
	mostVarBytes = 1 << 20 // as Extism's default
	varCost      = 48      // of one, beside its name and value
)

// extismVarSet keeps a value for as long as the instance lives. The value 0 removes it.
func extismVarSet(ctx context.Context, _ api.Module, stack []uint64) {
	in, t := extismCall(ctx)
	key := t.memory.block("var_set", stack[0])
	in.chargeLong(len(key))
	old, known := t.vars[string(key)]
	bytes := t.varBytes
	if known {
		bytes -= len(key) + len(old) + varCost
	}
	if stack[1] == 0 {
		delete(t.vars, string(key))
		t.varBytes = bytes
		return
	}
	value := t.memory.block("var_set", stack[1])
	in.chargeLong(len(value))
	if bytes += len(key) + len(value) + varCost; bytes > mostVarBytes {
		panic(&guestFault{"var_set: the plug-in's variables would take more than 1 MiB"})
	}
	if known && cap(old) < 2*len(value) {
		old = old[:0]
	} else {
		old = nil // much smaller than what was there, which then is not counted: let it go
	}
	t.vars[string(key)] = append(old, value...)
	t.varBytes = bytes
}

func extismHTTPRequest(context.Context, api.Module, []uint64) {
	panic(&guestFault{"http_request: filters have no network (a plug-in may import it, but not call it)"})
}

// There never was a response.
func extismHTTPNone(ctx context.Context, _ api.Module, stack []uint64) {
	extismCall(ctx)
	stack[0] = 0
}

// extismLog writes a block into the log, at one of the levels of weir's own log function.
func extismLog(level int) api.GoModuleFunc {
	return func(ctx context.Context, _ api.Module, stack []uint64) {
		in, t := extismCall(ctx)
		if !in.guest.log.Enabled(ctx, levels[level]) {
			return
		}
		text := t.memory.block("log", stack[0])
		text = text[:min(len(text), mostLine)]
		in.clock.Charge(len(text))
		in.guest.say(levels[level], text)
	}
}

// extismLogLevel is the lowest level that is logged: 0 trace to 4 error.
func extismLogLevel(ctx context.Context, _ api.Module, stack []uint64) {
	in, _ := extismCall(ctx)
	for i, l := range levels {
		if in.guest.log.Enabled(ctx, l) {
			stack[0] = uint64(i)
			return
		}
	}
	stack[0] = math.MaxInt32
}
