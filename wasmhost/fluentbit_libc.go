package wasmhost

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"
)

// fluentModules are what a Fluent Bit filter may import besides WASI: the functions of C's library that WAMR has built
// in, which filters that were linked without a libc use. abort has another type in WAMR, in C and in AssemblyScript.
var fluentModules = []hostModule{
	{name: "env", functions: append([]hostFunction{{"abort", "i", "", libcAbort}}, libc...), hint: libcHint},
	{name: "env", functions: append([]hostFunction{{"abort", "", "", libcAbort}}, libc...), hint: libcHint},
	{name: "env", functions: slices.Concat(assemblyScript.functions, libc), hint: libcHint},
}

const libcHint = "as in Fluent Bit, there is a part of C's library in env; link the rest into the module: clang --target=wasm32-wasi without -nostdlib"

// libc are the functions themselves. Addresses and lengths are checked before anything else, as everywhere; a text goes
// up to its NUL, and one that has none traps. Work goes on in pieces, and after each the clock is looked at.
var libc = []hostFunction{
	{"malloc", "i", "i", libcMalloc},
	{"calloc", "ii", "i", libcCalloc},
	{"realloc", "ii", "i", libcRealloc},
	{"free", "i", "", libcFree},
	{"__cxa_allocate_exception", "i", "i", libcMalloc},

	{"memcpy", "iii", "i", libcMemmove},
	{"memmove", "iii", "i", libcMemmove},
	{"emscripten_memcpy_big", "iii", "i", libcMemmove},
	{"memset", "iii", "i", libcMemset},
	{"memcmp", "iii", "i", libcMemcmp},
	{"memchr", "iii", "i", libcMemchr},
	{"strlen", "i", "i", libcStrlen},
	{"strcpy", "ii", "i", libcStrcpy},
	{"strncpy", "iii", "i", libcStrncpy},
	{"strdup", "i", "i", libcStrdup},
	{"_strdup", "i", "i", libcStrdup},
	{"__strdup", "i", "i", libcStrdup},
	{"strcmp", "ii", "i", libcStrcmp},
	{"strncmp", "iii", "i", libcStrncmp},
	{"strncasecmp", "iii", "i", libcStrncasecmp},
	{"strchr", "ii", "i", libcStrchr},
	{"strstr", "ii", "i", libcStrstr},
	{"strspn", "ii", "i", libcStrspn},
	{"strcspn", "ii", "i", libcStrcspn},
	{"atoi", "i", "i", libcAtoi},
	{"strtol", "iii", "i", libcStrtol},
	{"strtoul", "iii", "i", libcStrtoul},

	{"printf", "ii", "i", libcPrintf},
	{"vprintf", "ii", "i", libcPrintf},
	{"sprintf", "iii", "i", libcSprintf},
	{"vsprintf", "iii", "i", libcSprintf},
	{"snprintf", "iiii", "i", libcSnprintf},
	{"vsnprintf", "iiii", "i", libcSnprintf},
	{"puts", "i", "i", libcPuts},
	{"putchar", "i", "i", libcPutchar},

	{"isupper", "i", "i", ctype(isUpper)},
	{"isalpha", "i", "i", ctype(func(c uint32) bool { return isUpper(c) || isLower(c) })},
	{"isspace", "i", "i", ctype(func(c uint32) bool { return c == ' ' || c-'\t' < 5 })},
	{"isgraph", "i", "i", ctype(func(c uint32) bool { return c-0x21 < 0x5e })},
	{"isprint", "i", "i", ctype(func(c uint32) bool { return c-0x20 < 0x5f })},
	{"isdigit", "i", "i", ctype(isDigit)},
	{"isxdigit", "i", "i", ctype(func(c uint32) bool { return isDigit(c) || c|0x20-'a' < 6 })},
	{"isalnum", "i", "i", ctype(func(c uint32) bool { return isUpper(c) || isLower(c) || isDigit(c) })},
	{"tolower", "i", "i", libcTolower},
	{"toupper", "i", "i", libcToupper},

	{"clock_gettime", "ii", "i", libcClockGettime},
	{"clock", "", "I", libcClock},
	{"exit", "i", "", libcExit},
	{"abortStackOverflow", "i", "", libcAbort},
	{"nullFunc_X", "i", "", libcAbort},
	{"__cxa_begin_catch", "i", "", func(ctx context.Context, _ api.Module, _ []uint64) { ctx.(*instance).clock.Charge(0) }},
	{"__cxa_throw", "iii", "", libcThrow},
}

func isUpper(c uint32) bool { return c-'A' < 26 }
func isLower(c uint32) bool { return c-'a' < 26 }
func isDigit(c uint32) bool { return c-'0' < 10 }

// ctype makes a function of ctype.h, in the C locale.
func ctype(is func(c uint32) bool) api.GoModuleFunc {
	return func(ctx context.Context, _ api.Module, stack []uint64) {
		ctx.(*instance).clock.Charge(0)
		if c := uint32(stack[0]); is(c) {
			stack[0] = 1
		} else {
			stack[0] = 0
		}
	}
}

func libcTolower(ctx context.Context, _ api.Module, stack []uint64) {
	ctx.(*instance).clock.Charge(0)
	if isUpper(uint32(stack[0])) {
		stack[0] |= 0x20
	}
}

func libcToupper(ctx context.Context, _ api.Module, stack []uint64) {
	ctx.(*instance).clock.Charge(0)
	if isLower(uint32(stack[0])) {
		stack[0] &^= 0x20
	}
}

func libcMalloc(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	stack[0] = uint64(in.malloc(mod, uint64(uint32(stack[0]))))
}

// malloc takes n bytes from the heap that the host has for the guest; 0: there are none.
func (in *instance) malloc(mod api.Module, n uint64) uint32 {
	in.bytes(mod, 0, 0) // so that there is in.mem, in a start function too
	l := &fluentOf(in).lender
	l.guarded = false // a guest that asks here has no allocator of its own
	return l.heap.alloc(in, n)
}

func libcCalloc(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	n := uint64(uint32(stack[0])) * uint64(uint32(stack[1]))
	at := in.malloc(mod, n)
	if stack[0] = uint64(at); at != 0 {
		in.fill(in.bytes(mod, uint64(at), n), 0)
	}
}

func libcRealloc(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	old, n := uint32(stack[0]), uint64(uint32(stack[1]))
	if old == 0 {
		stack[0] = uint64(in.malloc(mod, n))
		return
	}
	in.bytes(mod, 0, 0)
	h := &fluentOf(in).lender.heap
	has := h.size(in, old)
	if n <= has && classOf(n) == classOf(has) {
		return
	}
	at := h.alloc(in, n)
	if stack[0] = uint64(at); at == 0 {
		return
	}
	n = min(n, has)
	in.move(mod, uint64(at), uint64(old), n)
	h.release(in, old)
}

func libcFree(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	in.bytes(mod, 0, 0)
	fluentOf(in).lender.heap.release(in, uint32(stack[0]))
}

func libcAtoi(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	n, _ := in.readNumber(in.cstring(mod, stack[0]), 10)
	stack[0] = uint64(uint32(clampLong(n)))
}

func libcStrtol(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	n := in.numberAt(mod, stack)
	stack[0] = uint64(uint32(clampLong(n)))
}

func clampLong(n int64) int32 { return int32(max(math.MinInt32, min(n, math.MaxInt32))) }

func libcStrtoul(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	n := in.numberAt(mod, stack)
	if n > math.MaxUint32 || n < -math.MaxUint32 {
		n = math.MaxUint32
	}
	stack[0] = uint64(uint32(n)) // a minus wraps
}

// numberAt reads the number for strtol and strtoul, and tells where it ends.
func (in *instance) numberAt(mod api.Module, stack []uint64) int64 {
	text, end := in.cstring(mod, stack[0]), stack[1]
	if uint32(end) != 0 {
		in.bytes(mod, end, 4)
	}
	n, length := in.readNumber(text, uint32(stack[2]))
	if uint32(end) != 0 {
		binary.LittleEndian.PutUint32(in.bytes(mod, end, 4), uint32(stack[0])+uint32(length))
	}
	return n
}

func libcClockGettime(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	to := in.bytes(mod, stack[1], 16)
	in.clock.Charge(0)
	now := time.Now()
	ns := now.UnixNano()
	if uint32(stack[0]) != 0 {
		ns = int64(now.Sub(processStart))
	}
	binary.LittleEndian.PutUint64(to, uint64(ns/1e9))
	binary.LittleEndian.PutUint64(to[8:], uint64(ns%1e9))
	stack[0] = 0
}

// processStart is where clocks begin that only run forward.
var processStart = time.Now()

func libcClock(ctx context.Context, _ api.Module, stack []uint64) {
	ctx.(*instance).clock.Charge(0)
	stack[0] = uint64(time.Since(processStart)) // CLOCKS_PER_SEC of WASI's libc is a billion
}

func libcExit(_ context.Context, _ api.Module, stack []uint64) {
	panic(sys.NewExitError(uint32(stack[0])))
}

func libcAbort(_ context.Context, _ api.Module, stack []uint64) {
	if len(stack) > 0 && uint32(stack[0]) != 0 {
		panic(&guestFault{fmt.Sprintf("abort(%d)", int32(stack[0]))})
	}
	panic(&guestFault{"abort"})
}

func libcThrow(context.Context, api.Module, []uint64) {
	panic(&guestFault{"a C++ exception was thrown, and nothing here can catch it"})
}
