package wasmhost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero/experimental"
)

// What the test binary does instead of tests when this is its first argument, see childOfTest.
const (
	asCompiler = "compile-module"
	asHanging  = "compile-and-hang"
	asCrashing = "compile-and-crash"
	asSpinning = "compile-and-spin"
)

// childOfTest plays the process that compiles, for TestMain.
func childOfTest() bool {
	if len(os.Args) != 2 {
		return false
	}
	switch os.Args[1] {
	case asCompiler:
		if err := Compile(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case asHanging:
		os.Stdout.Close() // the test sees that it runs
		select {}
	case asCrashing:
		panic("BUG: of the compiler\x1b[2J")
	case asSpinning:
		limits{Memory: 1 << 30, CPUSeconds: 1}.set(func() {
			json.NewEncoder(os.Stdout).Encode(childAnswer{Limit: childTime})
			os.Exit(0)
		})
		for {
		}
	default:
		return false
	}
	return true
}

// compiling opens a host that leaves compiling to a process of its own.
func compiling(t testing.TB, dir string, edit ...func(*Options)) *Host {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := Options{CacheDir: dir, Compiler: []string{self, asCompiler}}
	for _, e := range edit {
		e(&o)
	}
	h, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close(t.Context()) })
	return h
}

func child(mode string) func(*Options) { return func(o *Options) { o.Compiler[1] = mode } }

// filesIn lists the files of a cache.
func filesIn(t testing.TB, dir string) (entries, code, rest []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(d.Name(), workPrefix):
			rest = append(rest, path)
		case d.IsDir():
		case strings.HasSuffix(path, entrySuffix):
			entries = append(entries, path)
		default:
			code = append(code, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return entries, code, rest
}

// keeps checks that a host filters with the module of mask.c.
func keeps(t *testing.T, h *Host) {
	t.Helper()
	g := load(t, h, settings(wasmOf(t, "testdata/mask.c")))
	if got := apply(t, g.Filter(0), "1"); got[0] != "keep #" {
		t.Error(got)
	}
	if err := g.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestModulesAreCompiledByAnotherProcessOnce(t *testing.T) {
	dir := cacheDir(t)
	keeps(t, compiling(t, dir))
	entries, code, rest := filesIn(t, dir)
	if len(entries) != 1 || len(code) != 1 || len(rest) > 0 {
		t.Fatalf("the cache holds %q, %q, %q", entries, code, rest)
	}
	keeps(t, compiling(t, dir, func(o *Options) { o.Compiler = []string{"/nonexistent"} }))

	// The interpreter's are tried by another process, and not again.
	keeps(t, compiling(t, dir, func(o *Options) { o.Interpret = true }))
	keeps(t, compiling(t, dir, func(o *Options) { o.Interpret, o.Compiler = true, []string{"/nonexistent"} }))
}

func TestWhatTheCallerListensToIsNoOtherModule(t *testing.T) {
	dir := cacheDir(t)
	keeps(t, compiling(t, dir))
	h := compiling(t, dir, func(o *Options) { o.Compiler = []string{"/nonexistent"} })
	ctx := experimental.WithFunctionListenerFactory(t.Context(), wasiCharges{})
	g, err := h.Load(ctx, "f", settings(wasmOf(t, "testdata/mask.c")))
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestHostNeverCompilesWhatAnotherProcessIsFor(t *testing.T) {
	h := compiling(t, cacheDir(t), func(o *Options) { o.Compiler = []string{"/nonexistent"} })
	_, err := h.Load(t.Context(), "f", settings(wasmOf(t, "testdata/mask.c")))
	if err == nil || !strings.Contains(err.Error(), "start the compiler") || !strings.Contains(err.Error(), "/nonexistent") {
		t.Error(err)
	}
	module, err := os.ReadFile(wasmOf(t, "testdata/state.wat"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.fromCache(module); !errors.Is(err, errNotCached) {
		t.Errorf("a module that the cache does not have: %v", err)
	}
}

func TestCompilerThatDiesIsARefusedModule(t *testing.T) {
	check := func(mode string, parts ...string) {
		t.Helper()
		dir := cacheDir(t)
		path := wasmOf(t, "testdata/mask.c")
		_, err := compiling(t, dir, child(mode)).Load(t.Context(), "f", settings(path))
		if err == nil {
			t.Fatal("it was loaded")
		}
		contains(t, err.Error(), append(parts, path)...)
		if entries, code, rest := filesIn(t, dir); len(entries)+len(code)+len(rest) > 0 {
			t.Errorf("%s left %q, %q, %q", mode, entries, code, rest)
		}
	}
	check(asCrashing, `the compiler failed on it: "panic: BUG: of the compiler\x1b[2J`)
	check(asSpinning, "the compiler took more than 60 s of processor time")
}

func TestEndOfLoadEndsTheCompiler(t *testing.T) {
	dir := cacheDir(t)
	h := compiling(t, dir, child(asHanging))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := h.Load(ctx, "f", settings(wasmOf(t, "testdata/mask.c"))); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Error(err)
	}
	if _, _, rest := filesIn(t, dir); len(rest) > 0 {
		t.Errorf("it left %q", rest)
	}
}

func TestCompilerEndsWithItsHost(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	work := filepath.Join(root, workPrefix+"1")
	cmd := exec.Command(self, asCompiler)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	module := manyBranches(2000, 2000) // far longer to compile than to see the end of a pipe
	o := compileOrder{Root: root, Work: work, Key: cacheKey(module), Size: len(module), Limits: compileLimits()}
	line, _ := json.Marshal(&o)
	in.Write(append(line, '\n'))
	in.Write(module)
	in.Close() // as a host that is killed
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("it ended with %v", err)
	}
	if _, err := os.Stat(work); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its folder is still there: %v", err)
	}
}

// cacheDir is a directory that is not there yet.
func cacheDir(t testing.TB) string { return filepath.Join(t.TempDir(), "modules") }
