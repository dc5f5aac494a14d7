package wasmhost

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/wasmhost/meter"
)

// An instance is one running guest: its memory, its leash, and the message it looks at. One goroutine at a time uses it.
//
// It is the context of every call into the guest, so that host functions find it without a map: wazero hands it through
// unwrapped. It never ends, and holds values only while it is made.
type instance struct {
	guest   *Guest
	program *program
	mod     api.Module
	mem     api.Memory // nil until the first host call or the end of instantiation, and where the guest has none
	talk    talker
	clock   meter.Clock
	result  [1]uint64
	halt    func() // ends a guest that stands still; nil: there is none
	phase   phase
	values  context.Context           // nil once it is made
	room    experimental.LinearMemory // of mem

	call // of the message in hand

	scratch        []byte // text made for a get
	parser         router.RecordParser
	stdout, stderr lineLog
	served         uint64 // messages
	wasiCalls      uint32
	opened         int    // files
	units          uint64 // of clock, as far as they are in the guest's counts
	memory         int64  // bytes of linear memory, as far as they are in the guest's counts
}

// A call is what one weir_process works on.
type call struct {
	batch *router.Batch
	m     *router.Message

	edited bool            // saved is set
	saved  router.Message  // the message as it came
	own    ownership       // of what m points to; valid while edited
	shared bool            // with an emitted message: nothing of m is changed in place
	reason []byte          // what the guest gave to fail
	last   *router.Message // that was emitted
	emits  int
}

// A phase tells what a guest may do at the moment.
type phase uint8

const (
	starting     phase = iota // start function, _initialize: nothing but config_get, log, time_now, random
	initializing              // weir_init: fail, kv and metrics too
	processing                // a message is in hand: everything
	ticking                   // weir_tick and weir_close: as initializing, and emit
)

// Deadline, Done, Err and Value make an instance the context of its own calls.
func (in *instance) Deadline() (time.Time, bool) { return time.Time{}, false }
func (in *instance) Done() <-chan struct{}       { return nil }
func (in *instance) Err() error                  { return nil }

func (in *instance) Value(key any) any {
	if in.values == nil {
		return nil
	}
	return in.values.Value(key)
}

// newInstance makes an instance and starts it, on the leash: start function, _initialize, weir_init. It is one of the
// newest program when p was replaced meanwhile and nothing holds it any more.
func (g *Guest) newInstance(ctx context.Context, p *program) (*instance, error) {
	for !p.hold() {
		newest := g.program.Load()
		if newest == p {
			return nil, errors.New("the filter is closed")
		}
		p = newest
	}
	in := &instance{guest: g, program: p}
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
		in.release()
		p.release()
		return nil, err
	}
	g.counts.instances.Add(1)
	in.count()
	in.phase = processing
	return in, nil
}

func (in *instance) start() error {
	p := in.program
	config := in.mounts(in.system())
	if p.abi.system != nil {
		config = p.abi.system(in, config)
	}
	in.values = p.values(in)
	mod, err := in.guest.host.runtime.InstantiateModule(in, p.compiled, config)
	in.values = nil
	if err != nil {
		return startError("start", err)
	}
	in.mod, in.mem = mod, in.memoryOf(mod)
	in.talk, err = p.abi.start(in)
	return err
}

// run calls a function () -> () of the guest, if it exports one of that name.
func (in *instance) run(function string) error {
	f := in.mod.ExportedFunction(function)
	if f == nil {
		return nil
	}
	if err := f.CallWithStack(in, nil); err != nil {
		return startError(function, err)
	}
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

// begin gets ready for a call on m; nil: on no message.
func (in *instance) begin(b *router.Batch, m *router.Message) {
	in.batch, in.m, in.edited = b, m, false
	in.shared, in.last, in.emits = false, nil, 0
	in.reason = in.reason[:0]
	in.clock.Begin(in.guest.time)
}

// process gives m to the guest. On an error, which is a trap or a limit, the instance is not to be used again. What the
// call edited is in m, and undo takes it back.
func (in *instance) process(b *router.Batch, m *router.Message) (verdict int32, err error) {
	in.served++
	in.begin(b, m)
	verdict, err = in.given()
	if in.stdout.used > 0 || in.stderr.used > 0 {
		in.flushOutput()
	}
	return verdict, err
}

// undo takes back what the call has edited, emitted and routed.
func (in *instance) undo() {
	if in.edited {
		*in.m = in.saved
		in.edited = false
	}
	if in.emits > 0 && in.m != nil {
		in.batch.Unemit(in.m)
		in.last, in.emits = nil, 0
	}
}

// between calls f, which is the guest's weir_tick or weir_close. What it emits goes into b; on an error, nothing does.
func (in *instance) between(b *router.Batch, f func(*instance) error) error {
	in.begin(b, nil)
	in.phase = ticking
	before := b.Len()
	err := in.told(f)
	in.phase = processing
	in.flushOutput()
	if err != nil {
		for _, m := range b.Messages()[before:] {
			b.Drop(m)
		}
	}
	in.rest()
	return err
}

// rest lets go of the batch that was in hand.
func (in *instance) rest() {
	in.batch, in.m, in.last = nil, nil, nil
	in.saved = router.Message{}
	in.edited = false
	if cap(in.scratch) > 64<<10 {
		in.scratch = nil
	}
	in.count()
}

// size is the guest's linear memory in bytes.
func (in *instance) size() int64 {
	if in.mem == nil {
		return 0
	}
	return int64(in.mem.Size())
}

// count adds to the guest's counts what has changed since it was last called.
func (in *instance) count() {
	units, memory := in.clock.Units(), in.size()
	in.guest.counts.units.Add(units - in.units)
	in.guest.counts.memory.Add(memory - in.memory)
	in.units, in.memory = units, memory
}

// release frees what the guest has.
func (in *instance) release() {
	if in.halt != nil {
		in.halt()
	}
	if in.mod != nil {
		in.mod.Close(in)
	} else if in.room != nil {
		in.room.Free() // wazero does so only for what it could instantiate
	}
}

// discard releases an instance that failed.
func (in *instance) discard() {
	in.rest()
	in.release()
	in.guest.counts.instances.Add(-1)
	in.guest.counts.memory.Add(-in.memory)
	in.program.release()
}

// close ends an instance that is well: it is ticked once more, then told. What it emits goes into b.
func (in *instance) close(b *router.Batch) {
	if err := in.between(b, in.talk.tick); err != nil {
		in.guest.failedIn("weir_tick", err)
	} else if err := in.between(b, in.talk.end); err != nil {
		in.guest.failedIn("weir_close", err)
	}
	in.discard()
}

// leave ends an instance where no router listens: what it emits is gone.
func (in *instance) leave() {
	b := router.NewBatch(0, 0)
	defer b.Discard()
	in.close(b)
}

// aged reports whether the instance has served as long as `recycle:` lets it.
func (in *instance) aged() bool {
	r := in.program.settings.Recycle
	return r != nil && (r.Messages > 0 && in.served >= uint64(r.Messages) || r.Memory > 0 && in.size() >= int64(r.Memory))
}
