package wasmhost

import (
	"context"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/wasmhost/meter"
)

// An instance is one running guest: its memory, its leash, and the message it looks at. One goroutine at a time uses it.
//
// It is the context of every call into the guest, so that host functions find it without a map: wazero hands it through
// unwrapped. It never ends and holds no values.
type instance struct {
	guest   *Guest
	mod     api.Module
	mem     api.Memory // nil until the first host call or the end of instantiation
	process api.Function
	clock   meter.Clock
	result  [1]uint64
	phase   phase

	call // of the message in hand

	scratch        []byte // text made for a get
	parser         router.RecordParser
	stdout, stderr lineLog
	units          uint64 // of clock, as far as they are in the guest's counts
	memory         int64  // bytes of linear memory, as far as they are in the guest's counts
}

// A call is what one weir_process works on.
type call struct {
	batch *router.Batch
	m     *router.Message

	edited bool           // saved is set
	saved  router.Message // the message as it came
	own    ownership      // of what m points to; valid while edited
	reason []byte         // what the guest gave to fail
}

// A phase tells what a guest may do at the moment.
type phase uint8

const (
	starting     phase = iota // start function, _initialize: nothing but config_get, log, time_now, random
	initializing              // weir_init: fail too
	processing                // weir_process: everything
	closing                   // weir_close: fail too
)

// Deadline, Done, Err and Value make an instance the context of its own calls.
func (in *instance) Deadline() (time.Time, bool) { return time.Time{}, false }
func (in *instance) Done() <-chan struct{}       { return nil }
func (in *instance) Err() error                  { return nil }
func (in *instance) Value(any) any               { return nil }

// newInstance makes an instance and starts it, on the leash: start function, _initialize, weir_init.
func (g *Guest) newInstance(ctx context.Context) (*instance, error) {
	in := &instance{guest: g}
	in.stdout.in, in.stderr.in = in, in
	in.stdout.level, in.stderr.level = levels[2], levels[3]
	in.clock.Begin(g.initTime)
	stop := context.AfterFunc(ctx, in.clock.Cancel)
	err := in.start()
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	in.flushOutput()
	if err != nil {
		if in.mod != nil {
			in.mod.Close(in)
		}
		return nil, err
	}
	g.counts.instances.Add(1)
	in.count()
	in.phase = processing
	return in, nil
}

func (in *instance) start() error {
	mod, err := in.guest.host.runtime.InstantiateModule(in, in.guest.compiled, in.system())
	if err != nil {
		return startError("start", err)
	}
	in.mod, in.mem = mod, mod.Memory()
	if initialize := mod.ExportedFunction("_initialize"); initialize != nil {
		if err := initialize.CallWithStack(in, nil); err != nil {
			return startError("_initialize", err)
		}
	}
	if init := mod.ExportedFunction("weir_init"); init != nil {
		in.phase = initializing
		if err := init.CallWithStack(in, in.result[:]); err != nil {
			return startError("weir_init", err)
		}
		if code := api.DecodeI32(in.result[0]); code != 0 {
			if len(in.reason) > 0 {
				return fmt.Errorf("weir_init refused: %s", in.reason)
			}
			return fmt.Errorf("weir_init refused with %d and gave no reason", code)
		}
	}
	in.process = mod.ExportedFunction("weir_process")
	return nil
}

func startError(function string, err error) error {
	cause, text, trace := explain(err)
	if cause == causeCancelled {
		return fmt.Errorf("%s: interrupted", function)
	}
	if trace != "" {
		text += "\n" + trace
	}
	return fmt.Errorf("%s failed: %s: %s", function, cause, text)
}

// run gives m to the guest. On an error, which is a trap or a limit, the instance is not to be used again. What the
// call edited is in m, and undo takes it back.
func (in *instance) run(b *router.Batch, m *router.Message) (verdict int32, err error) {
	in.batch, in.m, in.edited = b, m, false
	in.reason = in.reason[:0]
	in.clock.Begin(in.guest.time)
	err = in.process.CallWithStack(in, in.result[:])
	if in.stdout.used > 0 || in.stderr.used > 0 {
		in.flushOutput()
	}
	return api.DecodeI32(in.result[0]), err
}

// undo takes back what the call has edited.
func (in *instance) undo() {
	if in.edited {
		*in.m = in.saved
		in.edited = false
	}
}

// rest lets go of the batch that was in hand.
func (in *instance) rest() {
	in.batch, in.m = nil, nil
	in.saved = router.Message{}
	in.edited = false
	if cap(in.scratch) > 64<<10 {
		in.scratch = nil
	}
	in.count()
}

// count adds to the guest's counts what has changed since it was last called.
func (in *instance) count() {
	units, memory := in.clock.Units(), int64(in.mem.Size())
	in.guest.counts.units.Add(units - in.units)
	in.guest.counts.memory.Add(memory - in.memory)
	in.units, in.memory = units, memory
}

// discard releases an instance that failed.
func (in *instance) discard() {
	in.rest()
	in.mod.Close(in)
	in.guest.counts.instances.Add(-1)
	in.guest.counts.memory.Add(-in.memory)
}

// close ends an instance that is well.
func (in *instance) close() {
	if f := in.mod.ExportedFunction("weir_close"); f != nil {
		in.phase = closing
		in.clock.Begin(in.guest.time)
		if err := f.CallWithStack(in, nil); err != nil {
			cause, text, trace := explain(err)
			in.guest.faulted(cause, "weir_close: "+text, trace)
		}
		in.flushOutput()
	}
	in.discard()
}
