package wasmhost

import (
	"fmt"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/wasmhost/meter"
)

// An abi is one way in which a guest and weir talk. Each has a file of its own, and nothing of it is known elsewhere.
type abi struct {
	name string // as `abi:` in the configuration has it

	// is recognises a module of this ABI by what it imports and exports. The first in the list of abis is it.
	is func(m *meter.Module) bool

	// modules are what its guests may import, besides WASI. Of several with one name that one serves a guest which
	// has all that it imports from it.
	modules []hostModule

	// refuse says what is wrong with a module of this ABI, but for its imports; nothing: it may be loaded.
	refuse func(m *meter.Module, c *Config) []string

	// settings are those of the configuration that only some ABIs have, and this one has.
	settings []string

	// system changes what an instance gets of WASI; nil: it stays as it is for everybody.
	system func(in *instance, c wazero.ModuleConfig) wazero.ModuleConfig

	// start runs what a new instance has to run before its first message, and returns the one who talks to it.
	start func(in *instance) (talker, error)
}

// abis are all that this version runs, in the order in which they are recognised.
var abis = []*abi{&weirV1, &extism, &redpanda, &benthos, &fluentbit, &stdio}

// idle says which settings have no effect with modules of this ABI.
func (a *abi) idle(c *Config) (why []error) {
	for _, s := range []struct {
		name string
		set  bool
	}{{"function", c.Function != ""}, {"event_format", c.EventFormat == formatMsgpack}, {"mode", c.Mode == ModeStream}} {
		if s.set && !slices.Contains(a.settings, s.name) {
			why = append(why, &SettingError{s.name, fmt.Errorf("%s has no effect on a module of the ABI %s", s.name, a.name), "leave it out"})
		}
	}
	return why
}

func abiNames() (names []string) {
	for _, a := range abis {
		names = append(names, a.name)
	}
	return names
}

// A talker gives messages to one instance, in the instance's ABI. in.m is the message in hand. An error is a trap or a
// limit, and costs the instance.
type talker interface {
	// process returns a verdict of weir_process.
	process(in *instance) (verdict int32, err error)
	// tick is called about once a second, when the guest has nothing else to do.
	tick(in *instance) error
	// end is called before an instance that is well goes.
	end(in *instance) error
}

// A batcher is a talker that takes all messages of a batch at once: instances that serve one batch.
type batcher interface {
	talker
	// batch gives msgs to the guest and does with each what the guest says. On error none of them has changed. The
	// instance is not used again.
	batch(in *instance, b *router.Batch, msgs []*router.Message) error
}

// quiet is a part of the talkers of ABIs that know neither ticks nor an end.
type quiet struct{}

func (quiet) tick(*instance) error { return nil }
func (quiet) end(*instance) error  { return nil }

// A hostModule is functions that guests import, under the name by which they import them.
type hostModule struct {
	name      string
	functions []hostFunction
	hint      string // what to do about a function that is not there
}

// A hostFunction is one function that guests import. Params and results are spelled with a letter for each value: i is
// i32, I is i64, f is f64, x is exnref.
type hostFunction struct {
	name            string
	params, results string
	call            api.GoModuleFunc
}

func (f hostFunction) funcType() meter.FuncType {
	return meter.FuncType{Params: valueTypes(f.params), Results: valueTypes(f.results)}
}

func valueTypes(letters string) []api.ValueType {
	types := make([]api.ValueType, len(letters))
	for i, c := range letters {
		types[i] = map[rune]api.ValueType{'i': api.ValueTypeI32, 'I': api.ValueTypeI64, 'f': api.ValueTypeF64, 'x': meter.Exnref}[c]
	}
	return types
}

// module finds the one of the ABI's modules that serves a guest's imports from name; nil: there is none of that name.
// When none has all, it is the first.
func (a *abi) module(m *meter.Module, name string) *hostModule {
	var first *hostModule
	for i := range a.modules {
		hm := &a.modules[i]
		if hm.name != name {
			continue
		}
		if first == nil {
			first = hm
		}
		if !slices.ContainsFunc(m.Imports, func(im meter.Import) bool {
			return im.Module == name && hm.lacks(im) != ""
		}) {
			return hm
		}
	}
	return first
}

// lacks says what of an import the module cannot give; "": it can.
func (hm *hostModule) lacks(im meter.Import) string {
	i := slices.IndexFunc(hm.functions, func(f hostFunction) bool { return f.name == im.Name })
	if i < 0 {
		why := "imports " + importName(im) + " " + describe(im.Kind, im.Type) + ", which this version of weir does not have"
		if hm.hint != "" {
			why += " (" + hm.hint + ")"
		}
		return why
	}
	return wrongType(importName(im), im.Type, hm.functions[i].funcType())
}

// bytes is guest memory from ptr on, a view that holds until the guest runs again. One outside of memory traps: that is
// a bug in the guest and not a condition.
func (in *instance) bytes(mod api.Module, ptr, n uint64) []byte {
	if in.mem == nil {
		if in.mem = in.memoryOf(mod); in.mem == nil {
			panic(outside(uint32(ptr), uint32(n), 0))
		}
	}
	b, ok := in.mem.Read(uint32(ptr), uint32(n))
	if !ok {
		panic(outside(uint32(ptr), uint32(n), in.mem.Size()))
	}
	return b
}

// answer puts value into buf if all of it fits, and returns its length.
func answer(buf, value []byte) uint64 {
	if len(value) <= len(buf) {
		copy(buf, value)
	}
	return uint64(uint32(len(value)))
}
