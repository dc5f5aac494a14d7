package meter

import "fmt"

// Refused says what a module holds that a filter may not, or where it is malformed. [Rewrite] returns no other error.
type Refused struct {
	Offset   int    // of the byte where it was seen, from the beginning of the module
	Function string // `function 12 "main.process"`; empty outside of function bodies
	What     string // the instruction, section or declaration: `return_call (opcode 0x12)`
	Reason   string // `tail calls are not supported`
	Remedy   string // the way out, such as compiler flags; may be empty
}

func (r *Refused) Error() string {
	s := fmt.Sprintf("byte %#x", r.Offset)
	if r.Function != "" {
		s += ", " + r.Function
	}
	if r.What != "" {
		s += ": " + r.What
	}
	s += ": " + r.Reason
	if r.Remedy != "" {
		s += " (" + r.Remedy + ")"
	}
	return s
}

// proposal is an extension of WebAssembly that the meter does not know, and how to build without it.
type proposal struct {
	name, remedy string
	off          bool // it is known, and not allowed to this filter
}

func (p proposal) reason() string {
	if p.off {
		return p.name + " off for this filter"
	}
	return p.name + " not supported in filters"
}

var (
	exceptions   = proposal{"exceptions are", "set `exceptions: true`, or build without them: clang: -fno-exceptions and no setjmp; Rust: -C panic=abort", true}
	legacyEH     = proposal{"exceptions in the legacy encoding are", "recompile with clang 22 or newer: -mllvm -wasm-use-legacy-eh=false; or translate the module: wasm-opt --translate-to-exnref", false}
	threads      = proposal{"threads and atomics are", "clang: leave out -pthread and -matomics; Rust: -C target-feature=-atomics", false}
	gc           = proposal{"garbage-collected types are", "languages that need them cannot be used; build for WebAssembly 2.0", false}
	relaxedSIMD  = proposal{"relaxed SIMD is", "clang: -mno-relaxed-simd; Rust: -C target-feature=-relaxed-simd", false}
	memory64     = proposal{"64-bit memories are", "build for wasm32, not wasm64", false}
	multiMemory  = proposal{"several memories are", "clang: -mno-multimemory; wasm-opt: --disable-multimemory", false}
	pageSizes    = proposal{"custom page sizes are", "build with pages of 64 KiB", false}
	stackSwitch  = proposal{"stack switching is", "build for WebAssembly 2.0", false}
	wideArith    = proposal{"wide arithmetic is", "clang: -mno-wide-arithmetic; Rust: -C target-feature=-wide-arithmetic", false}
	memControl   = proposal{"memory control is", "build for WebAssembly 2.0", false}
	compactNames = proposal{"compact import sections are", "build for WebAssembly 2.0", false}
)

// later names the instructions of known proposals; what is neither here nor in the tables is not an instruction.
func later(opcode byte) (string, *proposal) {
	switch opcode {
	case 0x06, 0x07, 0x09, 0x18, 0x19:
		name := map[byte]string{0x06: "try", 0x07: "catch", 0x09: "rethrow", 0x18: "delegate", 0x19: "catch_all"}[opcode]
		return name, &legacyEH
	case 0xd3:
		return "ref.eq", &gc
	case 0xe0, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6:
		return "stack switching", &stackSwitch
	case 0xfb:
		return "garbage collection", &gc
	case 0xfe:
		return "atomic", &threads
	}
	return "", nil
}

// laterMisc is later for the instructions behind 0xfc.
func laterMisc(n uint32) (string, *proposal) {
	switch {
	case n == 0x12:
		return "memory.discard", &memControl
	case n >= 0x13 && n <= 0x16:
		return "wide arithmetic", &wideArith
	}
	return "", nil
}

// laterType is later for value types.
func laterType(t byte) *proposal {
	switch t {
	case 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x71, 0x72, 0x73, 0x74, 0x78, 0x77, 0x5e, 0x5f, 0x50, 0x4f, 0x4e:
		return &gc
	}
	return nil
}
