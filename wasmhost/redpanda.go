package wasmhost

import (
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/sys"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/wasmhost/meter"
)

// redpanda is the ABI of Redpanda's data transforms, versions 1 to 3: a program whose _start reads batches of records for
// ever. A message is a batch of one record, so that what the guest writes belongs to it whatever the guest's loop looks
// like. docs/filters/redpanda.md says what differs from a broker.
var redpanda = abi{
	name: "redpanda",
	is:   from(redpandaModule),
	modules: []hostModule{
		{name: redpandaModule, functions: redpandaFunctions},
		{name: "redpanda_schema_registry", hint: "weir has no schema registry: bring the schema inside the module"},
	},
	refuse: refuseProgram,
	system: redpandaSystem,
	start:  startRedpanda,
}

const redpandaModule = "redpanda_transform"

// refuseProgram says what is wrong with the exports of a module that is run as a program.
func refuseProgram(m *meter.Module, _ *Config) (why []string) {
	for _, ex := range m.Exports {
		if ex.Name == "_start" && ex.Kind == meter.Func {
			if w := wrongType(ex.Name, ex.Type, meter.FuncType{}); w != "" {
				why = append(why, w)
			}
		}
	}
	if !hasExport(m, "_start") {
		why = append(why, "exports no _start: it must be built as a program (Go: without -buildmode=c-shared; clang: without -mexec-model=reactor; Rust: a binary crate for wasm32-wasip1)")
	}
	if !exportsMemory(m) {
		why = append(why, "exports no memory named \"memory\"")
	}
	return why
}

// redpandaSystem keeps what a guest complains of when it is told that no more batches come out of the log: a transform
// knows no end, and SDKs panic there. A start function may call host functions already.
func redpandaSystem(in *instance, c wazero.ModuleConfig) wazero.ModuleConfig {
	in.talk = &redpandaTalk{}
	return c.WithStderr(complaints{in})
}

type complaints struct{ in *instance }

func (c complaints) Write(p []byte) (int, error) {
	if t, ok := c.in.talk.(*redpandaTalk); ok && t.ending {
		c.in.chargeLong(len(p))
		return len(p), nil
	}
	return c.in.stderr.Write(p)
}

// startRedpanda runs the guest up to where it asks for its first batch.
func startRedpanda(in *instance) (talker, error) {
	t := in.talk.(*redpandaTalk)
	t.program.start(in)
	if err := t.program.run(); err == errReturned {
		return nil, startError("_start", &guestFault{"it returned without asking for a record (a transform calls read_batch_header again and again)"})
	} else if err != nil {
		return nil, startError("_start", err)
	}
	return t, nil
}

// redpandaTalk is the broker as the guest sees it.
type redpandaTalk struct {
	quiet
	program coroutine
	stage   redpandaStage
	ending  bool

	buf       []byte // holds body
	body      []byte // of the record in hand
	timestamp int64  // ms
	offset    int64  // how many records there were before
	wrote     int    // records
	wrong     string // with what the guest wrote; "": nothing
}

// redpandaStage is how far the guest is with the record in hand.
type redpandaStage uint8

const (
	noRecord redpandaStage = iota
	offered                // it may read the batch's header
	announced
	read
)

func (t *redpandaTalk) process(in *instance) (int32, error) {
	t.take(in.m)
	in.chargeLong(len(t.body))
	err := t.program.run()
	stage := t.stage
	t.stage = noRecord
	t.offset++
	if cap(t.buf) > 64<<10 {
		t.buf, t.body = nil, nil
	}
	switch {
	case err == errReturned:
		return 0, sys.NewExitError(0) // as a program that says so
	case err != nil:
		return 0, err
	case stage != read:
		t.wrong = "the guest asked for the next batch and has not read the record of this one"
	}
	switch {
	case t.wrong != "":
		in.reason = append(in.reason[:0], t.wrong...)
		return failed, nil
	case t.wrote == 0:
		return drop, nil
	}
	return keep, nil
}

// end tells the guest that no more batches come. What it makes of that is its own affair, but for the time it takes.
func (t *redpandaTalk) end(*instance) error {
	t.ending = true
	return lastWords(t.program.run())
}

// take makes the body of a record of a message.
func (t *redpandaTalk) take(m *router.Message) {
	t.buf, t.body = appendRecordBody(t.buf[:0], m)
	ns := m.Timestamp
	if ns == router.NoTime {
		ns = m.Received
	}
	t.timestamp = ns / 1e6
	t.stage, t.wrote, t.wrong = offered, 0, ""
}
