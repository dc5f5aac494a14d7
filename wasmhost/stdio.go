package wasmhost

import (
	"fmt"
	"slices"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/wasmhost/meter"
)

// stdio is no ABI at all: a program that reads records as lines of JSON from its standard input and writes such lines to
// its standard output. With mode batch it is run anew for each batch, and what it has written is looked at when it has
// ended; with mode stream it goes on, and is to answer each line before it reads the next (docs/filters/stdio.md).
var stdio = abi{
	settings: []string{"mode"},
	name:     "stdio",
	is: func(m *meter.Module) bool {
		return hasExport(m, "_start") && !slices.ContainsFunc(m.Imports, func(im meter.Import) bool { return im.Module != wasiModule })
	},
	refuse: refuseProgram,
	system: stdioSystem,
	start:  startStdio,
}

// The values of [Config.Mode].
const (
	ModeBatch  = "batch"
	ModeStream = "stream"
)

// stdioSystem connects the streams of a program.
func stdioSystem(in *instance, c wazero.ModuleConfig) wazero.ModuleConfig {
	if in.program.settings.Mode == ModeStream {
		t := &stdioStream{in: in}
		in.talk = t
		return c.WithStdin(t).WithStdout(&t.out).WithStderr(complaints{in})
	}
	t := &stdioBatch{in: in}
	in.talk = t
	return c.WithStdin(t).WithStdout(&t.out)
}

func startStdio(in *instance) (talker, error) {
	if t, ok := in.talk.(*stdioStream); ok {
		return t, t.start()
	}
	return in.talk, nil // it runs when there is a batch
}

// stdioOutput gathers what a program writes.
type stdioOutput struct {
	in   *instance
	text []byte
	most int // bytes
}

// Write takes what the guest writes, and traps it when that is too much.
func (o *stdioOutput) Write(p []byte) (int, error) {
	o.in.chargeLong(len(p))
	if len(o.text)+len(p) > o.most {
		panic(&guestFault{fmt.Sprintf("it wrote more than %d bytes of output", o.most)})
	}
	o.text = append(o.text, p...)
	return len(p), nil
}

// mostOutput is how much a program may write for so many bytes of records.
func (in *instance) mostOutput(input int) int { return 8*input + in.guest.host.mostValue }

// stdioBatch is one run of a program, for one batch.
type stdioBatch struct {
	quiet
	in    *instance
	input []byte // not yet read
	out   stdioOutput
}

// process is not called: filter.whole is.
func (t *stdioBatch) process(*instance) (int32, error) { panic("BUG: a batch is given as a whole") }

// leastBatch is the least time for a batch.
const leastBatch = time.Second

func (t *stdioBatch) batch(in *instance, b *router.Batch, msgs []*router.Message) (err error) {
	defer caught(&err)
	a := takeAnswers()
	defer a.give()
	a.ask(in, msgs, 1)
	in.clock.Begin(max(in.guest.time*time.Duration(len(msgs)), leastBatch*time.Duration(in.guest.host.patience)))
	in.chargeLong(len(a.input))
	t.input = a.input
	t.out = stdioOutput{in: in, text: a.output[:0], most: in.mostOutput(len(a.input))}
	err = in.mod.ExportedFunction("_start").CallWithStack(in, nil)
	a.output = t.out.text
	if err != nil && !ended(err) {
		return err
	}
	if len(t.input) > 0 {
		return &badAnswer{fmt.Sprintf("the program ended and has left %d of %d bytes of its input unread", len(t.input), len(a.input))}
	}
	return a.take(in, b, a.output)
}

// Read gives the program its input.
func (t *stdioBatch) Read(p []byte) (int, error) {
	n := copy(p, t.input)
	t.input = t.input[n:]
	t.in.chargeLong(n)
	return n, nil // 0 is the end
}
