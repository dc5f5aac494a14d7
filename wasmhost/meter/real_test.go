package meter

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

const line = `{"timestamp":"2026-01-01T00:00:04.003Z","severity":5,"hostname":"web1.example.com","app_name":"shopd","message":"checkout done, card 1234-5678, member 7 at 10.0.0.1"}`

// built is a real guest, by what builds it; a missing tool skips.
func built(t testing.TB, kind string) []byte {
	t.Helper()
	if b := builds[kind]; b != nil {
		return b
	}
	out := filepath.Join(t.TempDir(), "guest.wasm")
	var cmd *exec.Cmd
	switch kind {
	case "go":
		if testing.Short() {
			t.Skip("building a Go guest takes seconds")
		}
		cmd = exec.Command("go", "build", "-buildmode=c-shared", "-o", out, "./testdata/goguest")
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	case "c":
		clang, err := exec.LookPath("clang-14")
		if err != nil {
			t.Skip("clang-14 is not installed (Debian: apt-get install clang-14 lld-14 wasi-libc libclang-rt-14-dev-wasm32)")
		}
		cmd = exec.Command(clang, "--target=wasm32-wasi", "-mexec-model=reactor", "-O2", "-mbulk-memory", "-Wl,-z,stack-size=65536,--stack-first", "testdata/guest.c", "-o", out)
	}
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, msg)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	builds[kind] = b
	return b
}

// builds keeps what was built: these tests do not run beside each other.
var builds = map[string][]byte{}

// guest is an instance of a real guest with its buffer.
type guest struct {
	ctx  context.Context
	mod  api.Module
	text uint32
}

func open(t testing.TB, engine string, module []byte) *guest {
	t.Helper()
	clock := &Clock{}
	clock.Begin(time.Hour)
	ctx := withClock(context.Background(), clock)
	rt := newRuntime(t, engine)
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	mod, err := rt.InstantiateWithConfig(ctx, module, wazero.NewModuleConfig().WithStartFunctions("_initialize"))
	if err != nil {
		t.Fatal(err)
	}
	at, err := mod.ExportedFunction("text").Call(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return &guest{ctx, mod, uint32(at[0])}
}

func (g *guest) call(t testing.TB, name, text string) string {
	t.Helper()
	g.mod.Memory().WriteString(g.text, text)
	n, err := g.mod.ExportedFunction(name).Call(g.ctx, uint64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := g.mod.Memory().Read(g.text, uint32(n[0]))
	return string(b)
}

func TestRealGuestsDoTheSame(t *testing.T) {
	for _, kind := range []string{"c", "go"} {
		t.Run(kind, func(t *testing.T) {
			module := built(t, kind)
			plain, metered := open(t, "compiler", module), open(t, "compiler", rewrite(t, module).Bytes)
			for _, f := range []string{"mask", "edit", "edit", "mask"} {
				for _, text := range []string{line, "", strings.Repeat(line, 3), "{", `{"message":"1234-5678 9999-0000"}`} {
					if diff := cmp.Diff(plain.call(t, f, text), metered.call(t, f, text)); diff != "" {
						t.Errorf("%s: plain (-) and metered (+):\n%s", f, diff)
					}
				}
			}
		})
	}
}

// TestReadsAsManyInstructionsAsObjdump compares with an independent reader, in modules as compilers make them.
func TestReadsAsManyInstructionsAsObjdump(t *testing.T) {
	objdump, err := exec.LookPath("wasm-objdump")
	if err != nil {
		t.Skip("wasm-objdump is not installed (Debian: apt-get install wabt)")
	}
	for _, kind := range []string{"c", "go"} {
		t.Run(kind, func(t *testing.T) {
			module := built(t, kind)
			file := filepath.Join(t.TempDir(), "m.wasm")
			if err := os.WriteFile(file, module, 0o600); err != nil {
				t.Fatal(err)
			}
			text, err := exec.Command(objdump, "-d", file).Output()
			if err != nil {
				t.Fatal(err)
			}
			want := 0
			for line := range bytes.Lines(text) { // " 00012f: 41 07                      |   i32.const 7"
				_, s, ok := bytes.Cut(line, []byte("|"))
				s = bytes.TrimSpace(s)
				if ok && len(s) > 0 && string(s) != "end" && string(s) != "else" && !bytes.HasPrefix(s, []byte("local[")) {
					want++
				}
			}
			rw := newRewriter(module, limits)
			rw.header()
			rw.split()
			rw.declarations()
			got := 0
			for _, b := range rw.walk().bodies {
				got += b.ops
			}
			if got != want {
				t.Errorf("%d instructions, wasm-objdump reads %d", got, want)
			}
		})
	}
}

// BenchmarkRewrite: a Go guest of several megabytes, in which starting weir must not be noticed.
func BenchmarkRewrite(b *testing.B) {
	for _, kind := range []string{"c", "go"} {
		b.Run("guest="+kind, func(b *testing.B) {
			module := built(b, kind)
			b.SetBytes(int64(len(module)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Rewrite(module, limits); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkGuest tells what the meter costs: plain and metered in turns, ns/msg of the fastest of many rounds, because
// a shared machine is only ever slower than itself.
func BenchmarkGuest(b *testing.B) {
	functions := map[string][]string{"c": {"mask", "words", "calls", "edit"}, "go": {"mask", "edit"}}
	for name := range 4 {
		engine, kind := []string{"compiler", "interpreter"}[name/2], []string{"c", "go"}[name%2]
		module := built(b, kind)
		metered := rewrite(b, module).Bytes
		for _, f := range functions[kind] {
			b.Run("engine="+engine+"/guest="+kind+"/call="+f, func(b *testing.B) {
				guests := []*guest{open(b, engine, module), open(b, engine, metered)}
				best := []float64{1e18, 1e18}
				for b.Loop() {
					for i, g := range guests {
						const calls = 50
						fn := g.mod.ExportedFunction(f)
						var took time.Duration
						for range calls {
							g.mod.Memory().WriteString(g.text, line)
							stack := [1]uint64{uint64(len(line))}
							start := time.Now()
							if err := fn.CallWithStack(g.ctx, stack[:]); err != nil {
								b.Fatal(err)
							}
							took += time.Since(start)
						}
						best[i] = min(best[i], float64(took)/calls)
					}
				}
				b.ReportMetric(best[0], "plain-ns/msg")
				b.ReportMetric(best[1], "metered-ns/msg")
				b.ReportMetric(best[1]/best[0], "ratio")
			})
		}
	}
}
