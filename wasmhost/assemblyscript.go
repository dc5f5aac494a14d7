package wasmhost

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
	"unicode/utf16"

	"github.com/tetratelabs/wazero/api"
)

// assemblyScript is what AssemblyScript's compiler imports for its standard library.
var assemblyScript = hostModule{
	name: "env",
	functions: []hostFunction{
		{"abort", "iiii", "", asAbort},
		{"seed", "", "f", asSeed},
		{"trace", "iifffff", "", asTrace},
		{"console.log", "i", "", asConsoleLog},
		{"Date.now", "", "f", asDateNow},
	},
	hint: "declare imports with import_module(\"" + weirModule + "\"); a function without a body ends up in env",
}

func asAbort(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	panic(&guestFault{fmt.Sprintf("abort: %s at %s:%d:%d", in.asString(mod, stack[0]), in.asString(mod, stack[1]), uint32(stack[2]), uint32(stack[3]))})
}

func asSeed(ctx context.Context, _ api.Module, stack []uint64) {
	ctx.(*instance).clock.Charge(0)
	stack[0] = api.EncodeF64(rand.Float64())
}

func asDateNow(ctx context.Context, _ api.Module, stack []uint64) {
	ctx.(*instance).clock.Charge(0)
	stack[0] = api.EncodeF64(float64(time.Now().UnixMilli()))
}

func asConsoleLog(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	in.guest.say(levels[2], []byte(in.asString(mod, stack[0])))
}

// asTrace logs a text and up to five numbers.
func asTrace(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	line := []byte(in.asString(mod, stack[0]))
	for i := range min(uint32(stack[1]), 5) {
		line = append(line, ' ')
		line = strconv.AppendFloat(line, api.DecodeF64(stack[2+i]), 'g', -1, 64)
	}
	in.guest.say(levels[2], line)
}

// asString reads an AssemblyScript string: UTF-16, its length in bytes in the four bytes before it; 0 is null.
func (in *instance) asString(mod api.Module, ptr uint64) string {
	if uint32(ptr) == 0 {
		return ""
	}
	n := binary.LittleEndian.Uint32(in.bytes(mod, ptr-4, 4))
	b := in.bytes(mod, ptr, uint64(n&^1))
	b = b[:min(len(b), mostLine)]
	in.clock.Charge(2 * len(b))
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return string(utf16.Decode(units))
}
