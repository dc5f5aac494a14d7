package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/weirlog/weir/wasmhost/meter"
)

// What does the meter cost, beside no leash at all, and beside wazero's own context option? Same guest, same host
// functions, which do next to nothing; guests/work is the same filter in each language. load=short is a message of 256
// bytes, of which two fields are read and one is set; load=loop hashes 4096 bytes sixteen times, a loop of 65536 rounds.
// Each round gives messages to all three in turn, and the medians of the rounds' processor times are compared.
func BenchmarkCost(b *testing.B) {
	for _, language := range []string{"c", "go", "rust", "assemblyscript"} {
		for _, load := range []string{"short", "loop"} {
			for _, engine := range []string{"compiled", "interpreted"} {
				b.Run(fmt.Sprintf("guest=%s/load=%s/engine=%s", language, load, engine), func(b *testing.B) {
					benchmarkCost(b, language, load, engine)
				})
			}
		}
	}
}

func benchmarkCost(b *testing.B, language, load, engine string) {
	module, err := os.ReadFile(guestFile(b, "work/"+language))
	if err != nil {
		b.Fatal(err)
	}
	metered, err := meter.Rewrite(module, meter.Limits{MemoryPages: 256})
	if err != nil {
		b.Fatal(err)
	}
	message, calls := line, 500
	if load == "loop" {
		message, calls = bytes.Repeat([]byte("0123456789abcdef"), 256), 1
	}
	config := wazero.NewRuntimeConfigCompiler()
	if engine == "interpreted" {
		config = wazero.NewRuntimeConfigInterpreter()
	} else if load == "loop" {
		calls = 20
	}
	config = config.WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall | experimental.CoreFeaturesExtendedConst).WithDebugInfoEnabled(false)
	// A context that can end is what the option is for.
	canEnd, end := context.WithCancel(b.Context())
	defer end()
	var names = []string{"none", "meter", "context"}
	var hosts [3]*costed
	var contexts [3]context.Context
	var guests [3]api.Function
	for i := range hosts {
		hosts[i] = &costed{message: message}
		contexts[i] = hosts[i]
	}
	contexts[2] = context.WithValue(canEnd, hostKey{}, hosts[2])
	guests[0] = hosts[0].start(b, contexts[0], config, module)
	guests[1] = hosts[1].start(b, contexts[1], config, metered.Bytes)
	guests[2] = hosts[2].start(b, contexts[2], config.WithCloseOnContextDone(true), module)
	var took [3][]float64
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for b.Loop() {
		for i, process := range guests {
			var result [1]uint64
			began := threadTime()
			for range calls {
				hosts[i].clock.Begin(10 * time.Second)
				if err := process.CallWithStack(contexts[i], result[:]); err != nil || result[0] != 0 {
					b.Fatal(int32(result[0]), err)
				}
			}
			took[i] = append(took[i], float64((threadTime()-began).Nanoseconds())/float64(calls))
		}
	}
	b.ReportMetric(0, "ns/op")
	for i, name := range names {
		slices.Sort(took[i])
		b.ReportMetric(took[i][len(took[i])/2], name+"-ns")
	}
	for i, name := range names[1:] {
		b.ReportMetric(took[i+1][len(took[i+1])/2]/took[0][len(took[0])/2], name+"/none")
	}
}

// A costed is one guest's host: a message, and the leash. It is the context of its own calls, as in wasmhost.
type costed struct {
	message []byte
	kind    [64]byte
	clock   meter.Clock
}

func (*costed) Deadline() (time.Time, bool) { return time.Time{}, false }
func (*costed) Done() <-chan struct{}       { return nil }
func (*costed) Err() error                  { return nil }
func (*costed) Value(any) any               { return nil }

type hostKey struct{}

// of is the host of a call, by whichever context it is made.
func of(ctx context.Context) *costed {
	if c, ok := ctx.(*costed); ok {
		return c
	}
	return ctx.Value(hostKey{}).(*costed)
}

func (c *costed) start(b *testing.B, ctx context.Context, config wazero.RuntimeConfig, module []byte) api.Function {
	b.Helper()
	r := wazero.NewRuntimeWithConfig(ctx, config)
	b.Cleanup(func() { r.Close(context.Background()) })
	wasi_snapshot_preview1.MustInstantiate(ctx, r)
	host := r.NewHostModuleBuilder(meter.TickModule)
	host.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, _ api.Module, stack []uint64) {
		stack[0] = api.EncodeI32(of(ctx).clock.Tick(api.DecodeI32(stack[0])))
	}), []api.ValueType{api.ValueTypeI32}, []api.ValueType{api.ValueTypeI32}).Export(meter.TickName)
	if _, err := host.Instantiate(ctx); err != nil {
		b.Fatal(err)
	}
	compiled, err := r.CompileModule(ctx, module)
	if err != nil {
		b.Fatal(err)
	}
	own, env := r.NewHostModuleBuilder("weir_v1"), r.NewHostModuleBuilder("env")
	for _, f := range compiled.ImportedFunctions() {
		from, name, _ := f.Import()
		call := api.GoModuleFunc(nothing)
		switch name {
		case "field_get":
			call = get
		case "field_set":
			call = set
		}
		switch from {
		case "weir_v1":
			own.NewFunctionBuilder().WithGoModuleFunction(call, f.ParamTypes(), f.ResultTypes()).Export(name)
		case "env":
			env.NewFunctionBuilder().WithGoModuleFunction(call, f.ParamTypes(), f.ResultTypes()).Export(name)
		}
	}
	for _, host := range []wazero.HostModuleBuilder{own, env} {
		if _, err := host.Instantiate(ctx); err != nil {
			b.Fatal(err)
		}
	}
	c.clock.Begin(10 * time.Second)
	guest, err := r.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithStartFunctions("_initialize").WithSysWalltime().WithSysNanotime())
	if err != nil {
		b.Fatal(err)
	}
	if init := guest.ExportedFunction("weir_init"); init != nil {
		if code, err := init.Call(ctx); err != nil || code[0] != 0 {
			b.Fatal(code, err)
		}
	}
	return guest.ExportedFunction("weir_process")
}

// nothing answers 0 to everything.
func nothing(_ context.Context, _ api.Module, stack []uint64) {
	if len(stack) > 0 {
		stack[0] = 0
	}
}

func get(ctx context.Context, mod api.Module, stack []uint64) {
	c := of(ctx)
	key, _ := mod.Memory().Read(uint32(stack[0]), uint32(stack[1]))
	buf, ok := mod.Memory().Read(uint32(stack[2]), uint32(stack[3]))
	value := c.message
	if len(key) == len("app_name") {
		value = line[30:36]
	}
	if !ok {
		panic("a pointer into nowhere")
	}
	if len(value) <= len(buf) {
		copy(buf, value)
	}
	c.clock.Charge(len(key) + min(len(value), len(buf)))
	stack[0] = uint64(len(value))
}

func set(ctx context.Context, mod api.Module, stack []uint64) {
	c := of(ctx)
	value, _ := mod.Memory().Read(uint32(stack[2]), uint32(stack[3]))
	c.clock.Charge(copy(c.kind[:], value))
	stack[0] = 0
}

// guestFile is the path of a guest; those in Go are built first, for they are too large to be kept.
func guestFile(b *testing.B, name string) string {
	b.Helper()
	if filepath.Base(name) != "go" {
		return filepath.Join("guests", name+".wasm")
	}
	out := filepath.Join(b.TempDir(), "go.wasm")
	c := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", out, "./"+filepath.Join("guests", name))
	c.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if msg, err := c.CombinedOutput(); err != nil {
		b.Fatalf("build %s: %v\n%s", name, err, msg)
	}
	return out
}
