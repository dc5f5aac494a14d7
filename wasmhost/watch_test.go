package wasmhost

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// until waits for something to become true; how long that takes is the machine's affair.
func until(t testing.TB, what string, true func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !true(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

func TestChangedFilesAreTaken(t *testing.T) {
	h, _ := open(t)
	dir := t.TempDir()
	a, b := version(t, "A"), version(t, "B")
	plain, manifest := filepath.Join(dir, "m.wasm"), filepath.Join(dir, "bundle")
	put(t, plain, a)
	// As Kubernetes lays out a volume: m.wasm -> ..data/m.wasm, ..data -> the newest directory.
	volume := filepath.Join(dir, "volume")
	for _, d := range []string{"1", "2"} {
		if err := os.MkdirAll(filepath.Join(volume, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(volume, "1/m.wasm"), a)
	put(t, filepath.Join(volume, "2/m.wasm"), b)
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(to, name+".new"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+".new", name); err != nil {
			t.Fatal(err)
		}
	}
	link("1", filepath.Join(volume, "..data"))
	link("..data/m.wasm", filepath.Join(volume, "m.wasm"))
	if err := os.Mkdir(manifest, 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(manifest, "one.wasm"), a)
	put(t, filepath.Join(manifest, "two.wasm"), b)
	describe := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(manifest, ManifestName), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	describe("module: one.wasm\n")

	guests := map[string]*Guest{"plain": load(t, h, settings(plain)), "link": load(t, h, settings(filepath.Join(volume, "m.wasm"))), "manifest": load(t, h, settings(manifest))}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); h.Watch(ctx) }()
	defer func() { stop(); <-done }()
	becomes := func(name, want string) {
		t.Helper()
		until(t, name+" is "+want, func() bool { return versionOf(t, guests[name].Filter(0)) == want })
	}
	put(t, plain, b)
	becomes("plain", "B")
	link("2", filepath.Join(volume, "..data"))
	becomes("link", "B")
	describe("module: two.wasm\n")
	becomes("manifest", "B")

	// What is written in place is taken when it rests.
	text, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(plain)
	if err != nil {
		t.Fatal(err)
	}
	for len(text) > 0 {
		n := min(len(text), 100)
		f.Write(text[:n])
		text = text[n:]
		time.Sleep(10 * time.Millisecond)
	}
	f.Close()
	becomes("plain", "A")

	// A file that goes leaves the module at work, and is told; it may come back.
	if err := os.Remove(plain); err != nil {
		t.Fatal(err)
	}
	until(t, "the missing file is told", func() bool { return strings.Contains(guests["plain"].part().Reason, "no such file") })
	becomes("plain", "A")
	put(t, plain, b)
	becomes("plain", "B")
	until(t, "all is well", func() bool { return guests["plain"].part().Reason == "" })
}

// A database beside the module is written to all the time.
func TestABusyDirectoryHidesNoChange(t *testing.T) {
	h, _ := open(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "m.wasm")
	put(t, path, version(t, "A"))
	g := load(t, h, settings(path))
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { h.Watch(ctx) })
	all.Go(func() {
		for ctx.Err() == nil {
			os.WriteFile(filepath.Join(dir, "weir.db"), nil, 0o600)
			time.Sleep(5 * time.Millisecond)
		}
	})
	defer func() { stop(); all.Wait() }()
	put(t, path, version(t, "B"))
	until(t, "the change is taken", func() bool { return versionOf(t, g.Filter(0)) == "B" })
}
