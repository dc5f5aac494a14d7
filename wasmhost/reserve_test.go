package wasmhost

import (
	"fmt"
	"os"
	"testing"
)

// addresses is how many bytes of addresses this process has.
func addresses(t *testing.T) int {
	t.Helper()
	var pages int
	b, err := os.ReadFile("/proc/self/statm")
	if err == nil {
		_, err = fmt.Sscan(string(b), &pages)
	}
	if err != nil {
		t.Skipf("nobody tells how much memory is mapped: %v", err)
	}
	return pages * os.Getpagesize()
}

// A filter of which no instance can be made is tried again and again.
func TestMemoryOfAGuestThatDoesNotStartIsGivenBack(t *testing.T) {
	h, _ := open(t)
	for _, module := range []string{
		wat(t, `(module (memory (export "memory") 1) (func $s unreachable) (start $s) (func (export "weir_process") (result i32) i32.const 0))`),
		wat(t, `(module (memory (export "memory") 1) (data (i32.const 65535) "too long") (func (export "weir_process") (result i32) i32.const 0))`),
	} {
		fail := func() {
			t.Helper()
			if g, err := h.Load(t.Context(), "f", settings(module)); err == nil {
				g.Close(t.Context())
				t.Fatal("it was loaded")
			}
		}
		fail()
		before := addresses(t)
		const times = 64 // of 16 MiB
		for range times {
			fail()
		}
		if grown := addresses(t) - before; grown > times<<20*16/2 {
			t.Errorf("%d MiB more are mapped", grown>>20)
		}
	}
}
