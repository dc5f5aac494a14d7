package wasmhost

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A hostileModule is what somebody might give weir to run.
type hostileModule struct {
	name  string
	bytes []byte
}

// victims are guests that work, in every ABI: mutants are made of them.
var victims = []string{
	"mask.c", "state.wat", "script.c", "config.c", "phases.c", "hostile/mixed.wat", "assemblyscript.wat",
	"fluentbit/filters.c", "fluentbit/libc_env.c", "extism.c", "redpanda.c", "benthos.c", "stdio.c",
}

// goVictims take the compiler long.
var goVictims = []string{"maskgo", "stdiogo"}

// hostileCorpus is modules made to hurt: those that were thought of, a call of each function that guests import with
// pointers into nowhere, and mutants of guests that work. The same seed makes the same ones.
func hostileCorpus(t *testing.T, seed uint64, mutants int) (all []hostileModule) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	sources, err := filepath.Glob("testdata/hostile/*.wat")
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range sources {
		all = append(all, hostileModule{strings.TrimSuffix(filepath.Base(source), ".wat"), contents(t, source)})
	}
	all = append(all, bombs()...)
	for _, c := range callers(t) {
		for i, f := range c.functions {
			if f.module == wasiModule && c.name != "weir" && r.IntN(8) > 0 {
				continue // they are the same everywhere
			}
			all = append(all, hostileModule{fmt.Sprintf("%s calls %s", c.name, f.name), c.that(i, nowhere(r, f.params))})
		}
	}
	all = append(all, mutantsOf(t, r, victims, mutants)...)
	if mutants >= len(victims) {
		all = append(all, mutantsOf(t, r, goVictims, mutants/16)...)
	}
	return all
}

// bombs are modules that are dear to read or to compile, and some that the assembler has no words for.
func bombs() []hostileModule {
	table := append(append([]byte{0x41, 0, 0x0e}, uleb(200_000)...), repeat(200_001, []byte{0})...)
	// loop; block; try_table (catch_all 0); throw 0; end; end; br 0; end
	throws := []byte{0x03, 0x40, 0x02, 0x40, 0x1f, 0x40, 1, 2, 0, 0x08, 0, 0x0b, 0x0b, 0x0c, 0, 0x0b, 0x41, 0}
	// block; try_table (catch_all 0); call 0; drop; end; end; throw 0
	rethrows := []byte{0x02, 0x40, 0x1f, 0x40, 1, 2, 0, 0x10, 0, 0x1a, 0x0b, 0x0b, 0x08, 0}
	return []hostileModule{
		{"branches", manyBranches(1000, 20_000)},
		{"functions", filterWith(1_000_000, body([]byte{0}, nil), 0)},
		{"br_table", filterWith(1, body([]byte{0}, table), 0)},
		{"locals", filterWith(1, body(i32Locals(1_000_000), nil), 0)},
		{"types", filterWith(1, body([]byte{0}, nil), 1000)},
		{"tail calls", oneFunction([]byte{0x12, 0})},
		{"throws", oneFunction(throws)},
		{"rethrows", oneFunction(rethrows)},
	}
}

// oneFunction is a filter whose weir_process is this code. It has a tag to throw.
func oneFunction(code []byte) []byte {
	m := []byte("\x00asm\x01\x00\x00\x00")
	m = append(m, section(1, 2, []byte{0x60, 0, 1, 0x7f}, []byte{0x60, 0, 0})...)
	m = append(m, section(3, 1, []byte{0})...)
	m = append(m, section(5, 1, []byte{0, 1})...)
	m = append(m, section(13, 1, []byte{0, 1})...)
	m = append(m, section(7, 2, []byte("\x06memory\x02\x00"), []byte("\x0cweir_process\x00\x00"))...)
	return append(m, section(10, 1, body([]byte{0}, code))...)
}

// nowhere is arguments of which most are no addresses in a guest's memory.
func nowhere(r *rand.Rand, params string) (args []uint64) {
	for range params {
		args = append(args, uint64(extreme(r)))
	}
	return args
}

func mutantsOf(t *testing.T, r *rand.Rand, sources []string, n int) (all []hostileModule) {
	t.Helper()
	for i := range n {
		source := sources[i%len(sources)]
		module := contents(t, filepath.Join("testdata", source))
		a, err := anatomyOf(module)
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		m := mutations[r.IntN(len(mutations))]
		all = append(all, hostileModule{fmt.Sprintf("%s %s %d", source, m.name, i), m.make(r, module, a)})
	}
	return all
}

// contents builds a guest and returns its module.
func contents(t testing.TB, source string) []byte {
	t.Helper()
	b, err := os.ReadFile(wasmOf(t, source))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
