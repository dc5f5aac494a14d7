package wasmhost

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/wasmhost/meter"
)

// benthos is the ABI of the wasm processor of Redpanda Connect, once Benthos (docs/filters/benthos.md): an exported
// process () -> () that gets and sets the message by functions of benthos_wasm.
var benthos = abi{
	settings: []string{"function"},
	name:     "benthos",
	is:       func(m *meter.Module) bool { return importsFrom(m, benthosModule) },
	modules:  []hostModule{{name: benthosModule, functions: benthosFunctions}},
	refuse:   refuseBenthos,
	system:   systemOfBenthos,
	start:    startBenthos,
}

const (
	benthosModule  = "benthos_wasm"
	benthosProcess = "process"
)

// benthosExports are what a module may export beside its function. The host allocates in the guest by one of the first
// two, and lets go by the function behind it: of what malloc gave after the message; of what the guest handed over, with
// deallocate, at once. What allocate gave is the guest's.
var benthosExports = []hostFunction{
	{name: "malloc", params: "i", results: "i"},
	{name: "allocate", params: "i", results: "i"},
	{name: "free", params: "i"},
	{name: "deallocate", params: "ii"},
	{name: "_start"},
	{name: "_initialize"},
}

func (c *Config) benthosFunction() string {
	if c.Function != "" {
		return c.Function
	}
	return benthosProcess
}

func refuseBenthos(m *meter.Module, c *Config) (why []string) {
	function := c.benthosFunction()
	found := false
	for _, ex := range m.Exports {
		if ex.Kind != meter.Func {
			continue
		}
		if ex.Name == function {
			if found = true; len(ex.Type.Params) > 0 || len(ex.Type.Results) > 1 {
				why = append(why, fmt.Sprintf("%s has the type %s, but must have () -> ()", printable(function), signature(ex.Type)))
			}
			continue
		}
		for _, f := range benthosExports {
			if f.name != ex.Name {
				continue
			}
			if w := wrongType(ex.Name, ex.Type, f.funcType()); w != "" {
				why = append(why, w)
			}
		}
	}
	if !found {
		why = append(why, fmt.Sprintf("exports no function %s () -> (), which is called for each message (function: names another)", printable(function)))
	}
	if m.Memory == nil {
		why = append(why, "has no memory")
	}
	if !hasExport(m, "malloc") && !hasExport(m, "allocate") {
		why = append(why, "exports neither malloc nor allocate (i32) -> i32, by which it is given a message")
	}
	if len(c.Config) > 0 && string(c.Config) != "null" {
		why = append(why, "config: a module for Redpanda Connect has no way to read settings: leave it out")
	}
	return why
}

// systemOfBenthos makes what host functions need from the very first: a start function may call them.
func systemOfBenthos(in *instance, c wazero.ModuleConfig) wazero.ModuleConfig {
	in.talk = &benthosTalk{}
	return c
}

// startBenthos runs _start, as Redpanda Connect does, or else what a library has in its place.
func startBenthos(in *instance) (talker, error) {
	t := in.talk.(*benthosTalk)
	export := in.exported
	if start := export("_start"); start != nil {
		if err := start.CallWithStack(in, nil); err != nil {
			if e, ok := errors.AsType[*sys.ExitError](err); ok {
				return nil, fmt.Errorf("_start left with proc_exit(%d), after which nothing can be called: build a library (clang: -mexec-model=reactor; Go: -buildmode=c-shared; Rust: --crate-type cdylib)", e.ExitCode())
			}
			return nil, startError("_start", err)
		}
	} else if err := in.run("_initialize"); err != nil {
		return nil, err
	}
	t.function = export(in.program.settings.benthosFunction())
	t.allocator = "allocate"
	if t.allocate = export(t.allocator); t.allocate == nil {
		t.allocator = "malloc"
		t.allocate, t.free = export(t.allocator), export("free")
	}
	t.deallocate = export("deallocate")
	return t, nil
}

// benthosTalk is what weir keeps of one instance.
type benthosTalk struct {
	function, allocate api.Function
	allocator          string       // its name
	free, deallocate   api.Function // may be nil
	inside             string       // the export that a host function is calling at the moment: it may call none itself
	stack              [2]uint64    // of that call

	// Of the message in hand:
	bytes []byte // what the guest has set
	set   bool   // it has
	lent  []uint32
	meta  []benthosMeta
	text  []byte // of meta
	key   []byte
}

// A benthosMeta is metadata that the guest has set.
type benthosMeta struct{ key, value []byte }

// process gives the message to the guest.
func (t *benthosTalk) process(in *instance) (int32, error) {
	t.reset()
	if err := t.function.CallWithStack(in, in.result[:]); err != nil {
		return failed, err
	}
	return t.finish(in)
}

// reset forgets the last call.
func (t *benthosTalk) reset() {
	t.set, t.lent, t.meta, t.text = false, t.lent[:0], t.meta[:0], t.text[:0]
}

// finish makes of what the guest has set in this call what becomes of the message.
func (t *benthosTalk) finish(in *instance) (int32, error) {
	if t.free != nil {
		for _, p := range t.lent {
			t.stack[0] = uint64(p)
			if err := t.nested(in, "free", t.free); err != nil {
				return failed, err
			}
		}
	}
	if t.set {
		if len(bytes.TrimSpace(t.bytes)) == 0 {
			return in.failing("the message was set to nothing, which drops it no more than in Redpanda Connect"), nil
		}
		if v := in.whenRead(in.become(t.bytes)); v != keep {
			return v, nil
		}
	}
	for i := range t.meta {
		if c := in.setMeta(t.meta[i].key, t.meta[i].value); c != 0 {
			return in.failing("the metadata %.100q cannot be set: %s", t.meta[i].key, metaErrors[c]), nil
		}
	}
	return keep, nil
}

// metaErrors are what an error of weir_v1 means for metadata.
var metaErrors = map[int32]string{
	errTooLong: "its name or value is too long",
	errTooMany: "the message has too many fields, or its batch too many bytes",
	errInvalid: "its name is not UTF-8, or has a NUL",
}

// setMeta makes a field of metadata, or sets one of the message's own keys. What those cannot take becomes the field
// `<key>_`, as in records (filters/ABI.md, Record JSON).
func (in *instance) setMeta(key, value []byte) int32 {
	in.clock.Charge(len(key))
	in.chargeLong(len(value))
	v := router.Value{Kind: router.String, Bytes: value}
	if !utf8.Valid(value) {
		v.Kind = router.Bytes
	}
	c := in.set(key, v)
	if c != 0 && c != errTooMany && c != errTooLong && router.LookupKey(key) != router.KeyField {
		in.scratch = append(append(in.scratch[:0], key...), '_')
		c = in.setField(in.scratch, v)
	}
	return c
}

// nested calls an export of the guest's, which may call no host function of this ABI: a call is never inside of another
// that is inside of a third.
func (t *benthosTalk) nested(in *instance, name string, f api.Function) error {
	t.inside = name
	err := f.CallWithStack(in, t.stack[:])
	t.inside = ""
	return err
}

// tick gives back memory that a big message has left behind. The guest has no part in it.
func (t *benthosTalk) tick(*instance) error {
	if cap(t.bytes)+cap(t.text)+4*cap(t.lent) > 64<<10 {
		t.bytes, t.text, t.lent = nil, nil, nil
	}
	return nil
}

func (t *benthosTalk) end(*instance) error { return nil }
