package wasmhost

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// A caller is a guest that calls, each time it is called itself, one function that guests import, with arguments that
// stand as data in its memory: which function, and all that it is given, is the test's choice.
type caller struct {
	name      string // of the ABI, and what sets it apart
	functions []calledFunction
	module    []byte
}

// A calledFunction is one that a caller can call.
type calledFunction struct{ module, name, params, results string }

// Where a caller finds what to do: the function's number as an i32, then the arguments, each as eight bytes.
const (
	callerScript = 256
	callerMark   = "which function, and with what"
	mostParams   = 12
)

// script is what a caller has to find to call a function.
func (c *caller) script(function int, args []uint64) []byte {
	s := binary.LittleEndian.AppendUint64(nil, uint64(function))
	for i := range mostParams {
		v := uint64(0)
		if i < len(args) {
			v = args[i]
		}
		s = binary.LittleEndian.AppendUint64(s, v)
	}
	return s
}

// that is the module of a caller that calls this function with these arguments.
func (c *caller) that(function int, args []uint64) []byte {
	m := bytes.Clone(c.module)
	copy(m[bytes.Index(m, []byte(callerMark)):], c.script(function, args))
	return m
}

// callers are guests of every ABI, which have all functions that their ABI and WASI give.
func callers(t testing.TB) (all []*caller) {
	t.Helper()
	r := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter())
	defer r.Close(t.Context())
	host, err := wasi_snapshot_preview1.NewBuilder(r).Compile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var wasi []calledFunction
	for name, f := range host.ExportedFunctions() {
		wasi = append(wasi, calledFunction{wasiModule, name, spelled(f.ParamTypes()), spelled(f.ResultTypes())})
	}
	slices.SortFunc(wasi, func(a, b calledFunction) int { return strings.Compare(a.name, b.name) })
	add := func(a *abi, what, more string, modules ...int) {
		c := &caller{name: strings.Trim(a.name+" "+what, " "), functions: slices.Clone(wasi)}
		for _, i := range modules {
			for _, f := range a.modules[i].functions {
				c.functions = append(c.functions, calledFunction{a.modules[i].name, f.name, f.params, f.results})
			}
		}
		path := wat(t, c.text(more))
		var err error
		if c.module, err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	const ready = `(func (export "weir_process") (result i32) (i32.const 0))`
	add(&weirV1, "", `(func (export "weir_process") (result i32) (call $one) (i32.const 0))`, 0, 1)
	add(&weirV1, "tick", ready+`(func (export "weir_tick") (call $one))`, 0, 1)
	add(&weirV1, "close", ready+`(func (export "weir_close") (call $one))`, 0, 1)
	add(&weirV1, "init", ready+`(func (export "weir_init") (result i32) (call $one) (i32.const 0))`, 0, 1)
	add(&weirV1, "start", ready+`(start $one)`, 0, 1)
	add(&extism, "", `(func (export "f") (result i32) (call $one) (i32.const 0))`, 0)
	add(&redpanda, "", `(func (export "_start") (loop $l
		(drop (call $redpanda_transform/read_batch_header (i32.const 512) (i32.const 520) (i32.const 528) (i32.const 536)
			(i32.const 544) (i32.const 552) (i32.const 560) (i32.const 568) (i32.const 576) (i32.const 584)))
		(drop (call $redpanda_transform/read_next_record (i32.const 512) (i32.const 520) (i32.const 528) (i32.const 1024) (i32.const 60000)))
		(call $one) (br $l)))`, 0)
	add(&benthos, "", `(func (export "malloc") (param i32) (result i32) (i32.load (i32.const 352)))
		(func (export "free") (param i32)) (func (export "process") (call $one))`, 0)
	const filter = `(func (export "filter") (param i32 i32 i32 i32 i32 i32) (result i32) (call $one) (local.get 4))`
	for i := range fluentModules {
		add(&fluentbit, fluentModules[i].functions[0].name+fluentModules[i].functions[0].params, filter, i)
	}
	add(&stdio, "", `(func (export "_start") (call $one))`)
	return all
}

func spelled(types []api.ValueType) (s string) {
	for _, t := range types {
		s += map[api.ValueType]string{api.ValueTypeI32: "i", api.ValueTypeI64: "I", api.ValueTypeF64: "f"}[t]
	}
	return s
}

// text is the caller in WebAssembly text: $one calls a function, more is the rest.
func (c *caller) text(more string) string {
	var b strings.Builder
	types := map[rune]string{'i': "i32", 'I': "i64", 'f': "f64"}
	b.WriteString("(module\n")
	for _, f := range c.functions {
		fmt.Fprintf(&b, "(import %q %q (func $%s/%s", f.module, f.name, f.module, f.name)
		for _, p := range f.params {
			fmt.Fprintf(&b, " (param %s)", types[p])
		}
		for _, r := range f.results {
			fmt.Fprintf(&b, " (result %s)", types[r])
		}
		b.WriteString("))\n")
	}
	fmt.Fprintf(&b, "(memory (export \"memory\") 1 4)\n(data (i32.const %d) \"%-104s\")\n(func $one (block $none\n", callerScript, callerMark)
	for i := range c.functions {
		fmt.Fprintf(&b, "(block $%d ", len(c.functions)-1-i)
	}
	b.WriteString("(br_table")
	for i := range c.functions {
		fmt.Fprintf(&b, " $%d", i)
	}
	fmt.Fprintf(&b, " $none (i32.load (i32.const %d)))\n", callerScript)
	for _, f := range c.functions {
		fmt.Fprintf(&b, ") (call $%s/%s", f.module, f.name)
		for i, p := range f.params {
			fmt.Fprintf(&b, " (%s.load (i32.const %d))", types[p], callerScript+8+8*i)
		}
		fmt.Fprintf(&b, ")%s (br $none)\n", strings.Repeat(" drop", len(f.results)))
	}
	b.WriteString("))\n" + more + ")")
	return b.String()
}
