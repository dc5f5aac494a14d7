package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/wasmhost"
)

// compiled is where all tests keep compiled modules: under the race detector a Go guest takes half a minute to compile.
var compiled string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "weir-conformance")
	if err != nil {
		panic(err)
	}
	compiled = filepath.Join(dir, "compiled")
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// options are a module's, with the time that slow test machines need.
func options(module string) Options {
	var c wasmhost.Config
	c.Defaults()
	c.Module, c.Time, c.InitTime = module, time.Minute, time.Minute
	return Options{Filter: c, CacheDir: compiled}
}

func newRunner(t testing.TB) *Runner { return newRunnerOf(t, options("")) }

func newRunnerOf(t testing.TB, o Options) *Runner {
	t.Helper()
	r, err := NewRunner(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(context.Background()) })
	return r
}

// open loads a module with a configuration.
func (r *Runner) open(ctx context.Context, module string, config json.RawMessage) (*wasmhost.Guest, error) {
	c := options(module).Filter
	c.Config = config
	return r.host.Load(ctx, "case", c)
}

func (r *Runner) load(t testing.TB, module string, config json.RawMessage) *wasmhost.Guest {
	t.Helper()
	g, err := r.open(t.Context(), module, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close(context.Background()) })
	return g
}

// outcome is what a message came to.
type outcome struct {
	verdict string
	out     string // record JSON, canonical; "" when the message does not go on
	fail    string
}

func (r *Runner) run(t *testing.T, g *wasmhost.Guest, in []byte) outcome {
	t.Helper()
	result := Result{Case: Case{In: in}}
	if err := r.try(t.Context(), g, &result); err != nil {
		t.Fatal(err)
	}
	for _, d := range result.Differences {
		t.Errorf("%+v", d)
	}
	return outcome{result.Got.Verdict, string(result.Got.Out), *result.Got.Fail}
}

// runCases gives every case of a file to the module.
func runCases(t *testing.T, module, file string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cases, err := ReadCases(bytes.NewReader(content))
	if err != nil {
		t.Fatalf("%s:%v", file, err)
	}
	r := newRunnerOf(t, options(module))
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			result, err := r.Run(t.Context(), &c)
			if err != nil {
				t.Fatalf("%s:%d: %v", file, c.Line, err)
			}
			for _, d := range result.Differences {
				t.Errorf("%s:%d: %s: want %s, got %s", file, c.Line, d.Member, d.Want, d.Got)
			}
			if t.Failed() {
				t.Log(strings.Join(result.Told, "\n"))
			}
		})
	}
}

// said is what the host had to say.
func (r *Runner) said() string {
	_, told := r.log.take()
	return strings.Join(told, "\n")
}
