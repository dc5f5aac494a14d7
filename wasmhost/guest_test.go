package wasmhost

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/routertest"
)

// wat assembles WebAssembly text.
func wat(t testing.TB, text string) string {
	t.Helper()
	in := filepath.Join(t.TempDir(), "guest.wat")
	if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return wasmOf(t, in)
}

// built are the guests that wasmOf has built, by source; they lie in the folder of TestMain.
var built struct {
	mu   sync.Mutex
	dir  string
	path map[string]string
}

func TestMain(m *testing.M) {
	if childOfTest() {
		return
	}
	dir, err := os.MkdirTemp("", "guests")
	if err != nil {
		panic(err)
	}
	built.dir, built.path = dir, map[string]string{}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// wasmOf builds a guest from its source with the tool for it: .wat, .c, or a folder with a Go program.
func wasmOf(t testing.TB, source string) string {
	t.Helper()
	built.mu.Lock()
	defer built.mu.Unlock()
	if path, ok := built.path[source]; ok {
		return path
	}
	out := filepath.Join(built.dir, strconv.Itoa(len(built.path))+".wasm")
	var cmd *exec.Cmd
	switch filepath.Ext(source) {
	case ".wat":
		cmd = exec.Command("wat2wasm", source, "-o", out)
	case ".c":
		cmd = exec.Command("clang-14", "--target=wasm32-wasi", "-mexec-model=reactor", "-O2", "-s", "-Wall", "-Werror",
			"-Wl,-z,stack-size=65536,--stack-first", "-I../filters/sdk/c", "-o", out, source)
	default:
		cmd = exec.Command("go", "build", "-buildmode=c-shared", "-o", out, "./"+filepath.ToSlash(source))
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	}
	if _, err := exec.LookPath(cmd.Args[0]); err != nil {
		t.Skipf("%s is not installed", cmd.Args[0])
	}
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", source, err, msg)
	}
	built.path[source] = out
	return out
}

// open makes a host that logs into a text.
func open(t testing.TB) (*Host, *routertest.Transcript) {
	t.Helper()
	text := &routertest.Transcript{}
	h, err := Open(t.Context(), Options{Log: slog.New(slog.NewTextHandler(text, &slog.HandlerOptions{Level: slog.LevelDebug - 4}))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close(context.Background()) })
	return h, text
}

// settings are the defaults but for what edit changes.
func settings(module string, edit ...func(*Config)) Config {
	var c Config
	c.Defaults()
	c.Module = module
	for _, e := range edit {
		e(&c)
	}
	return c
}

// load loads a filter named "f" and closes it when the test ends.
func load(t testing.TB, h *Host, c Config) *Guest {
	t.Helper()
	if p := c.Check(); len(p) > 0 {
		t.Fatalf("configuration: %v", p)
	}
	g, err := h.Load(t.Context(), "f", c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close(context.Background()) })
	return g
}

// loadFile builds and loads a guest of testdata on a host of its own.
func loadFile(t testing.TB, name string, edit ...func(*Config)) (*Guest, *routertest.Transcript) {
	t.Helper()
	h, log := open(t)
	return load(t, h, settings(wasmOf(t, filepath.Join("testdata", name)), edit...)), log
}

// refused loads a filter that must not load, and returns why not.
func refused(t *testing.T, module string) string {
	t.Helper()
	h, _ := open(t)
	g, err := h.Load(t.Context(), "f", settings(module))
	if err == nil {
		g.Close(t.Context())
		t.Fatal("the module was loaded")
	}
	return err.Error()
}

// batch makes a batch of messages with these texts.
func batch(t testing.TB, texts ...string) *router.Batch {
	t.Helper()
	b := router.NewBatch(1<<20, max(1, len(texts)))
	for _, text := range texts {
		m := b.Add(&router.Origin{Source: "s", Listener: "udp://127.0.0.1:514", Peer: "192.0.2.7"})
		m.Text, m.AppName, m.Received = b.Copy([]byte(text)), []byte("app"), 1_700_000_000_000_000_000
	}
	return b
}

// apply runs a filter over a batch until all of it is done, and returns "verdict text" of each message.
func apply(t testing.TB, f router.Filter, texts ...string) []string {
	t.Helper()
	b := batch(t, texts...)
	defer b.Discard()
	if held := f.Apply(t.Context(), b); held != nil {
		t.Fatalf("held after %d messages: %v", held.Done, held.Cause)
	}
	return outcomes(b)
}

func outcomes(b *router.Batch) (all []string) {
	for _, m := range b.Messages() {
		o := b.Outcome(m)
		word := o.Verdict
		if o.Verdict == "reject" {
			word += "(" + o.Code + ")"
		}
		all = append(all, word+" "+string(m.Text))
	}
	return all
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is not in:\n%s", p, text)
		}
	}
}
