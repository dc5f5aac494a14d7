package wasmhost

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestDamagedCacheIsMadeAgain(t *testing.T) {
	dir := cacheDir(t)
	keeps(t, compiling(t, dir))
	entries, code, _ := filesIn(t, dir)
	check := func(name, path string, damage func([]byte) []byte) {
		t.Helper()
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		bad := damage(append([]byte{}, whole...))
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		keeps(t, compiling(t, dir))
		if again, err := os.ReadFile(path); err != nil || string(again) == string(bad) {
			t.Errorf("%s: it is still there, %v", name, err)
		}
	}
	flip := func(at func(size int) int) func([]byte) []byte {
		return func(b []byte) []byte { b[at(len(b))] ^= 0x40; return b }
	}
	check("an offset of a function", code[0], flip(func(int) int { return 24 }))
	check("machine code", code[0], flip(func(size int) int { return size / 2 }))
	check("the end", code[0], flip(func(size int) int { return size - 1 }))
	check("cut", code[0], func(b []byte) []byte { return b[:len(b)-1] })
	check("more", code[0], func(b []byte) []byte { return append(b, 0) })
	check("empty", code[0], func([]byte) []byte { return nil })
	check("empty entry", entries[0], func([]byte) []byte { return nil })
	check("an entry's text", entries[0], flip(func(int) int { return 0 }))
	check("an entry for a file elsewhere", entries[0], func(b []byte) []byte {
		return []byte(strings.Replace(string(b), `"wazero`, `"../wazero`, 1))
	})
	for _, path := range []string{code[0], entries[0]} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		keeps(t, compiling(t, dir))
	}
}

// What is well by its entry, and wazero cannot read nevertheless.
func TestUnreadableCacheIsMadeAgain(t *testing.T) {
	dir := cacheDir(t)
	keeps(t, compiling(t, dir))
	entries, code, _ := filesIn(t, dir)
	if err := os.WriteFile(code[0], []byte("no machine code"), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := sumFile(code[0])
	if err != nil {
		t.Fatal(err)
	}
	if e.file, err = filepath.Rel(filepath.Dir(entries[0]), code[0]); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(entries[0], []byte(e.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	keeps(t, compiling(t, dir))
}

func TestCacheIsBounded(t *testing.T) {
	dir := cacheDir(t)
	keeps(t, compiling(t, dir))
	entries, code, _ := filesIn(t, dir)
	old := time.Now().Add(-time.Hour)
	for _, path := range append(entries, code...) {
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	stranger := filepath.Join(dir, "notes")
	left := filepath.Join(filepath.Dir(entries[0]), workPrefix+"1")
	busy := filepath.Join(filepath.Dir(entries[0]), workPrefix+"2")
	if err := os.WriteFile(stranger, make([]byte, 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{left, busy} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{stranger, left} {
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	exists := func(path string) bool {
		_, err := os.Lstat(path)
		return err == nil
	}

	// Using a module makes it the youngest, whatever it is that must go.
	h := compiling(t, dir, func(o *Options) { o.CacheSize = 1 })
	keeps(t, h)
	if !exists(entries[0]) || !exists(code[0]) {
		t.Error("what was used last is gone")
	}
	load(t, h, settings(wasmOf(t, "testdata/state.wat"))).Close(t.Context())
	if exists(entries[0]) || exists(code[0]) {
		t.Error("what was used longest ago is still there")
	}
	if exists(left) || !exists(busy) || !exists(stranger) {
		t.Error("what an old process left is there, or what is another's is gone")
	}
	keeps(t, h)
}

func TestCacheThatCannotBeWrittenIsToldAndStillRead(t *testing.T) {
	dir := cacheDir(t)
	keeps(t, compiling(t, dir))
	h := compiling(t, dir)
	entries, _, _ := filesIn(t, dir)
	root := filepath.Dir(entries[0])
	if err := os.Rename(root, root+"-away"); err != nil { // a mode would not stop root
		t.Fatal(err)
	}
	if err := os.WriteFile(root, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := h.Load(t.Context(), "f", settings(wasmOf(t, "testdata/mask.c")))
	if err == nil {
		t.Fatal("it was loaded")
	}
	contains(t, err.Error(), "the compile cache cannot be written", root)
}

func TestTemporaryCacheGoesWithItsHost(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	caches := func() int {
		left, err := filepath.Glob(filepath.Join(os.TempDir(), temporaryPrefix+"*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(left)
	}
	// As of a process that was killed.
	if err := os.MkdirAll(filepath.Join(os.TempDir(), temporaryPrefix+"1", "modules-1"), 0o700); err != nil {
		t.Fatal(err)
	}
	h := compiling(t, "")
	if n := caches(); n != 1 {
		t.Errorf("%d caches", n)
	}
	other := compiling(t, "")
	if n := caches(); n != 2 {
		t.Errorf("%d caches", n)
	}
	keeps(t, h)
	for _, h := range []*Host{h, other} {
		if err := h.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if n := caches(); n != 0 {
		t.Errorf("%d caches are left", n)
	}
}

func TestOneModuleIsLoadedByManyAtOnce(t *testing.T) {
	dir := cacheDir(t)
	path := wasmOf(t, "testdata/mask.c")
	for range 20 { // the first time it is compiled, then it is read
		h := compiling(t, dir)
		done := make(chan error)
		for range 8 {
			go func() {
				g, err := h.Load(t.Context(), "f", settings(path))
				if err == nil {
					err = g.Close(t.Context())
				}
				done <- err
			}()
		}
		for range 8 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if n := len(h.cache.busy) + len(h.cache.slots); n != 0 {
			t.Fatalf("%d are still at work", n)
		}
	}
}
