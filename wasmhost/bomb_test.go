package wasmhost

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

// Modules that a compiler, or whoever reads them, pays dearly for. They are made here, not stored.

func uleb(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

func section(id byte, count int, items ...[]byte) []byte {
	body := uleb(count)
	for _, it := range items {
		body = append(body, it...)
	}
	return append(append([]byte{id}, uleb(len(body))...), body...)
}

// body is a function's code: declared locals, then instructions and their end.
func body(locals []byte, code []byte) []byte {
	b := append(append([]byte{}, locals...), code...)
	b = append(b, 0x0b)
	return append(uleb(len(b)), b...)
}

func repeat(n int, item []byte) []byte {
	b := make([]byte, 0, n*len(item))
	for range n {
		b = append(b, item...)
	}
	return b
}

// filterWith is a filter module with n more functions of type () -> (), all of the same code, and any other sections.
func filterWith(n int, code []byte, types int) []byte {
	m := []byte("\x00asm\x01\x00\x00\x00")
	m = append(m, section(1, 2+types, []byte{0x60, 0, 1, 0x7f}, []byte{0x60, 0, 0}, repeat(types, bigType))...)
	m = append(m, section(3, 1+n, []byte{0}, repeat(n, []byte{1}))...)
	m = append(m, section(5, 1, []byte{0, 1})...)
	m = append(m, section(7, 2, []byte("\x06memory\x02\x00"), []byte("\x0cweir_process\x00\x00"))...)
	return append(m, section(10, 1+n, body([]byte{0}, []byte{0x41, 0}), repeat(n, code))...)
}

// bigType is a function type of a thousand parameters.
var bigType = append(append([]byte{0x60}, append(uleb(1000), repeat(1000, []byte{0x7e})...)...), 0)

func i32Locals(n int) []byte { return append(append([]byte{1}, uleb(n)...), 0x7f) }

// manyBranches is a function in which every one of its locals may come from many places.
func manyBranches(locals, branches int) []byte {
	var code []byte
	for i := range branches {
		local := uleb(i % locals)
		code = append(code, 0x02, 0x40, 0x20)          // block; local.get
		code = append(append(code, local...), 0x0d, 0) // br_if 0
		code = append(code, 0x41)                      // i32.const
		code = append(code, byte(i&0x3f), 0x21)        // local.set
		code = append(append(code, local...), 0x0b)    // end
	}
	return filterWith(1, body(i32Locals(locals), code), 0)
}

func bombFile(t testing.TB, module []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bomb.wasm")
	if err := os.WriteFile(path, module, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBombsAreRefusedByName(t *testing.T) {
	h := compiling(t, cacheDir(t))
	check := func(module []byte, parts ...string) {
		t.Helper()
		_, err := h.Load(t.Context(), "f", settings(bombFile(t, module)))
		if err == nil {
			t.Fatalf("it was loaded, and ought to be refused: %q", parts)
		}
		contains(t, err.Error(), parts...)
	}
	check(manyBranches(1000, 20_000), "function 1", "1000 locals over", "blocks, the limit of their product is")
	check(filterWith(1_000_000, body([]byte{0}, nil), 0), "function section: 1000001 entries, the limit is")
	table := append([]byte{0x41, 0, 0x0e}, uleb(1_000_000)...)
	check(filterWith(1, body([]byte{0}, append(table, repeat(1_000_001, []byte{0})...)), 0), "function 1: body: 1000009 bytes, the limit is")
	check(filterWith(1, body([]byte{0}, repeat(6_000_000, []byte{0x41, 0, 0x1a})), 0), "bytes, the limit is")
	check(filterWith(1, body(i32Locals(1_000_000), nil), 0), "function 1: locals: 1000000 or more, the limit is")
	nested := append(repeat(60_000, []byte{0x02, 0x40}), repeat(60_000, []byte{0x0b})...)
	check(filterWith(1, body([]byte{0}, nested), 0), "function 1: body: 60001 blocks and branches", "the limit is")
	leaving := repeat(25_000, []byte{0x02, 0x40, 0x41, 0, 0x0d, 0, 0x0b})
	check(filterWith(1, body([]byte{0}, leaving), 0), "function 1: body: 50001 blocks and branches", "the limit is")
	check(filterWith(0, nil, 12_000), "type 2: 1000 parameters or results, the limit is")
	check(filterWith(40_000, body(i32Locals(10_000), nil), 0), "10000 locals, and with them the functions have 610000, the limit is")
}

// Forty thousand times the ten thousand locals that one function may have are 400 MB of whoever reads them, and 280 KB
// of a module.
func TestCompilerOutOfMemoryCostsTheHostNothing(t *testing.T) {
	module := filterWith(40_000, body(i32Locals(10_000), nil), 0)
	h := compiling(t, cacheDir(t))
	before := resident(t)
	_, err := h.compile(t.Context(), module) // not asking the meter
	if err == nil {
		t.Fatal("it was loaded")
	}
	contains(t, err.Error(), "MiB of memory")
	if grown := resident(t) - before; grown > 20<<20 {
		t.Errorf("the host has %d MiB more", grown>>20)
	}
}

// resident is the memory that this process has for itself, without what the collector could give back.
func resident(t *testing.T) int64 {
	t.Helper()
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip(err)
	}
	var total, pages, shared int64
	if _, err := fmt.Sscan(string(b), &total, &pages, &shared); err != nil {
		t.Fatal(err)
	}
	return (pages - shared) * int64(os.Getpagesize())
}
