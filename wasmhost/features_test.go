package wasmhost

import (
	"os"
	"runtime"
	"strings"
	"testing"
)

func TestExceptionsAreForFiltersThatSaySo(t *testing.T) {
	// (tag) and (try_table (catch_all 0) throw 0), which wabt's assembler of Debian 12 does not know.
	module := "\x00asm\x01\x00\x00\x00" +
		"\x01\x08\x02\x60\x00\x01\x7f\x60\x00\x00\x03\x02\x01\x00\x05\x03\x01\x00\x01\x0d\x03\x01\x00\x01\x07\x19\x02\x06\x6d\x65" +
		"\x6d\x6f\x72\x79\x02\x00\x0c\x77\x65\x69\x72\x5f\x70\x72\x6f\x63\x65\x73\x73\x00\x00\x0a\x11\x01\x0f\x00\x02\x40\x1f\x40" +
		"\x01\x02\x00\x08\x00\x0b\x0b\x41\x01\x0b"
	path := t.TempDir() + "/m.wasm"
	if err := os.WriteFile(path, []byte(module), 0o600); err != nil {
		t.Fatal(err)
	}
	h, _ := open(t)
	if _, err := h.Load(t.Context(), "f", settings(path)); err == nil || !strings.Contains(err.Error(), "exceptions: true") {
		t.Errorf("without exceptions: %v", err)
	}
	g := load(t, h, settings(path, func(c *Config) { c.Exceptions = true }))
	if got := apply(t, g.Filter(0), "m")[0]; got != "drop m" {
		t.Errorf("with exceptions: %s", got)
	}
	slow, err := Open(t.Context(), Options{Interpret: true})
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close(t.Context())
	if _, err := slow.Load(t.Context(), "f", settings(path, func(c *Config) { c.Exceptions = true })); err == nil || !strings.Contains(err.Error(), "need the compiler") {
		t.Errorf("interpreted: %v", err)
	}

	// What is allocated for a message does not grow with those before it.
	thousand := func() uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 1000 {
			apply(t, g.Filter(0), "m")
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	first := thousand()
	for range 4 {
		thousand()
	}
	if last := thousand(); last > 2*first {
		t.Errorf("the first thousand messages allocate %d bytes, the sixth %d", first, last)
	}
}
