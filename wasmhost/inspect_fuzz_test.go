package wasmhost

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzDetection judges whatever might stand in a module file. Whatever it is, there is a report: either words that say
// why it is refused, or it can be compiled and begun, and what stops it then is told as the guest's.
func FuzzDetection(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, source := range victims {
		module := contents(f, filepath.Join("testdata", source))
		a, err := anatomyOf(module)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(module)
		for range 3 {
			f.Add(mutations[r.IntN(len(mutations))].make(r, module, a))
		}
	}
	for _, m := range bombs() {
		f.Add(m.bytes)
	}
	for _, text := range []string{"", "(module)", "\x00aot\x00\x00\x00\x00", "\x00asm\x0d\x00\x01\x00", "\x00asm\x01\x00\x00\x00", "\x7fELF"} {
		f.Add([]byte(text))
	}
	h, err := Open(f.Context(), Options{Interpret: true}) // which compiles nothing
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { h.Close(f.Context()) })
	f.Fuzz(func(t *testing.T, module []byte) {
		c := settings(bombFile(t, module), func(c *Config) { c.Exceptions, c.InitTime = true, shortestTime })
		about, err := h.Inspect(c)
		words := err != nil
		for _, why := range about.Refused {
			if words = true; strings.TrimSpace(why) == "" || strings.Contains(why, "BUG:") {
				t.Errorf("refused for %q", why)
			}
		}
		for _, line := range append(about.Imports, about.Exports...) {
			if strings.ContainsAny(line, "\x1b\n\r\x00") {
				t.Errorf("not to be printed: %q", line)
			}
		}
		g, err := h.Load(t.Context(), "f", c)
		if err == nil {
			g.Close(t.Context())
		}
		switch {
		case err == nil && words:
			t.Errorf("inspect refuses what loads: %q", about.Refused)
		case err == nil:
			if about.ABI == "" {
				t.Error("it loads, and has no ABI")
			}
		case strings.Contains(err.Error(), "BUG:"):
			t.Error(err)
		case !words && !strings.Contains(err.Error(), "failed: ") && !strings.Contains(err.Error(), "refused"):
			t.Errorf("inspect has nothing against it, and it does not load: %v", err)
		}
	})
}
