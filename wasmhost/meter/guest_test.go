package meter

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// features are those that the meter knows.
const features = api.CoreFeaturesV2 | experimental.CoreFeaturesExtendedConst | experimental.CoreFeaturesTailCall |
	experimental.CoreFeaturesTypedFunctionReferences | experimental.CoreFeaturesExceptionHandling

// engines are wazero's two ways to run a guest.
var engines = map[string]func() wazero.RuntimeConfig{
	"compiler": func() wazero.RuntimeConfig {
		return wazero.NewRuntimeConfigCompiler().WithCoreFeatures(features)
	},
	"interpreter": func() wazero.RuntimeConfig {
		return wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features)
	},
}

// clockKey is under which these tests hand the Clock through the context.
type clockKey struct{}

func withClock(ctx context.Context, c *Clock) context.Context {
	return context.WithValue(ctx, clockKey{}, c)
}

// newRuntime has the meter's host module.
func newRuntime(t testing.TB, engine string) wazero.Runtime {
	t.Helper()
	ctx := t.Context()
	rt := wazero.NewRuntimeWithConfig(ctx, engines[engine]())
	t.Cleanup(func() { rt.Close(context.Background()) })
	tick := api.GoModuleFunc(func(ctx context.Context, _ api.Module, stack []uint64) {
		clock := ctx.Value(clockKey{}).(*Clock)
		stack[0] = api.EncodeI32(clock.Tick(api.DecodeI32(stack[0])))
	})
	keep := api.GoModuleFunc(func(ctx context.Context, _ api.Module, stack []uint64) {
		ctx.Value(clockKey{}).(*Clock).Keep(stack)
	})
	_, err := rt.NewHostModuleBuilder(TickModule).
		NewFunctionBuilder().WithGoModuleFunction(tick, []api.ValueType{i32}, []api.ValueType{i32}).Export(TickName).
		NewFunctionBuilder().WithGoModuleFunction(keep, []api.ValueType{Exnref, i32, i32}, []api.ValueType{Exnref}).Export(KeepName).
		Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

// limits are wide enough for every guest of these tests.
var limits = Limits{MemoryPages: 1024, Exceptions: true}

func rewrite(t testing.TB, module []byte) *Module {
	t.Helper()
	m, err := Rewrite(module, limits)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// wat assembles text with wabt's wat2wasm.
func wat(t testing.TB, text string, flags ...string) []byte {
	t.Helper()
	tool, err := exec.LookPath("wat2wasm")
	if err != nil {
		t.Skip("wat2wasm is not installed (Debian: apt-get install wabt)")
	}
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.wat"), filepath.Join(dir, "out.wasm")
	if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if msg, err := exec.Command(tool, append(flags, in, "-o", out)...).CombinedOutput(); err != nil {
		t.Fatalf("wat2wasm: %v\n%s", err, msg)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// watFile assembles testdata/name.wat.
func watFile(t testing.TB, name string) []byte {
	t.Helper()
	return wat(t, string(readTestdata(t, name+".wat")))
}

func readTestdata(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
