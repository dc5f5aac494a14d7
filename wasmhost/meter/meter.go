// Package meter puts a WebAssembly module on a leash before it is compiled.
//
// A compiled guest that loops never returns to Go: it cannot be stopped, and Go's collector, which stops the world,
// waits for it for ever, and with it the whole process. [Rewrite] therefore makes the guest count its own
// instructions, in a global that it cannot reach, and call back into Go each time a chunk of them is used up. A
// [Clock] answers that call: it looks at the time and at cancellation, and grants another chunk or stops the guest.
//
// What the meter cannot count is refused, by byte offset and opcode, with the way to build without it. It knows
// WebAssembly 2.0 (what wazero calls CoreFeaturesV2), extended constants, tail calls, typed function references, and,
// where [Limits].Exceptions is set, exceptions in their final encoding: with wazero's features of these names on. It
// refuses threads, 64-bit and several memories, garbage-collected types and all else.
//
// The module that it hands on is written anew, each instruction in its shortest form: wazero reads some bytes in
// another way than the specification, and with the newer features takes modules whose types do not fit, which would
// then reach its own memory. What is meant by that stands where it is prevented: constants ([Rewrite]'s type checks),
// br_table, select, ref.null, exnref.
//
// # The host's side
//
// The rewritten module imports one function more, [TickModule].[TickName], behind those that it imports itself,
// (i32) -> i32; where exceptions are allowed, [KeepName] follows. The host provides it once for all guests, finds the
// instance's Clock (through the call's context) and answers:
//
//	func(ctx context.Context, _ api.Module, stack []uint64) {
//		left := api.DecodeI32(stack[0])
//		stack[0] = api.EncodeI32(ctx.(*instance).clock.Tick(left))
//	}
//
// Before each call into the guest, instantiation included, the host calls [Clock.Begin]; each host function calls
// [Clock.Charge]. What the guest may import is the host's decision: memories, tables and globals keep their limits when
// they are imported.
//
// # What is counted
//
// A unit is one instruction. It is paid for before it runs, at the head of the innermost loop around it or at the
// function's entry, so code that is jumped over counts as well: Go, whose functions are one loop around everything,
// counts many more units than it runs instructions. Units order work by size; time decides.
//
// Functions that may call themselves, directly or through others, count their stack as well, up to [MaxStack]. A tail
// call gives back its caller's first. In a module that catches exceptions, all functions that call others count theirs,
// up to a quarter of that.
//
// # Names
//
// Traces show the author's functions: their names are kept and moved along, cut where they are long, and functions without
// a name get that of their export, or their own number. Of the name section nothing else is kept.
package meter

import "fmt"

// The function that a rewritten module imports. A module that imports anything from TickModule by itself is refused.
const (
	TickModule = "weir_meter"
	TickName   = "tick"
	KeepName   = "keep"
)

// FirstChunk is the number of units with which a fresh instance starts, so that its start function is counted too.
const FirstChunk = 64 << 10

// Limits is what one filter may have. The limits on a module's size and shape, which guard the compiler, are the
// same for all: the constants beside it.
type Limits struct {
	// MemoryPages is the largest linear memory in pages of 64 KiB, at most 65 536. It becomes the memory's maximum
	// where the module has none or a larger one; a module whose minimum is larger is refused.
	MemoryPages uint32
	// TableElements is the same for each table. 0 means 65 536.
	TableElements uint32
	// Exceptions allows the module to throw and catch (try_table, throw, throw_ref). The host provides [KeepName] then,
	// see [Clock.Keep]. wazero's compiler loses what the body of a try_table sets a local to when the same function
	// catches.
	Exceptions bool
}

// What a module may ask of the compiler. A module of 44 KB can make a compiler take 367 MB, so these are checked
// before it sees the module.
const (
	MaxModuleBytes = 16 << 20
	MaxFunctions   = 50_000 // defined and imported
	MaxLocals      = 10_000 // of one function, parameters included
	MaxBodyBytes   = 256 << 10
	MaxGoBodyBytes = 1 << 20   // in modules that Go built: its start-up code for large tables is one function
	MaxLocalBlocks = 1_000_000 // locals × blocks of one function
)

// Kind tells what an import or export is.
type Kind byte

// The kinds, numbered as in the binary format.
const (
	Func Kind = iota
	Table
	Memory
	Global
	Tag
)

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", byte(k))
}

var kindNames = [...]string{"function", "table", "memory", "global", "tag"}

// FuncType is a function's signature. Its value types are the bytes of the binary format, which are those of wazero's
// api.ValueType (an alias of byte) too: 0x7f i32, 0x7e i64, 0x7d f32, 0x7c f64, 0x7b v128, 0x70 funcref, 0x6f externref,
// 0x69 exnref. Of other references they have the first byte: 0x63 if they can be null, 0x64 if not.
type FuncType struct {
	Params, Results []byte
}

// Import is one import as the guest declared it. Type is set for functions only.
type Import struct {
	Module, Name string
	Kind         Kind
	Type         FuncType
}

// Export is one export. Type is set for functions only; Index is the guest's own numbering, before the meter's.
type Export struct {
	Name  string
	Kind  Kind
	Index uint32
	Type  FuncType
}

// Pages is a memory's size in pages of 64 KiB.
type Pages struct {
	Min, Max uint32
}

// Module is a module ready to be compiled, and what the guest declared in it. All of it is the caller's own: nothing
// points into the bytes given to [Rewrite].
type Module struct {
	Bytes     []byte   // the rewritten binary
	Imports   []Import // in order, without the meter's own
	Exports   []Export // in order
	Memory    *Pages   // nil when there is none; Max as lowered to the limits
	Functions int      // those with a body
	HasStart  bool     // a start function, which runs while the module is instantiated
	Catches   bool     // exceptions: take the function that you call anew each time, its stack grows with each one caught
}
