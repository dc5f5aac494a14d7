package wasmhost

import (
	"bytes"
	"fmt"

	"github.com/tetratelabs/wazero/sys"
)

// stdioStream is a program that goes on from message to message.
type stdioStream struct {
	quiet
	in      *instance
	program coroutine
	input   []byte // not yet read
	call    uint32 // of WASI, in which it read last
	out     stdioOutput
	answer  answers
	ending  bool
	id      int64 // of the message in hand

	asked  bool   // fd_fdstat_get was asked for standard output; see terminalStat
	fdstat uint32 // where it answers
}

// start runs the program up to where it reads.
func (t *stdioStream) start() error {
	t.out = stdioOutput{in: t.in, most: t.in.mostOutput(0)}
	t.program.start(t.in)
	err := t.program.run()
	switch {
	case err == errReturned || err != nil && ended(err):
		return startError("_start", &badAnswer{"the program ended before it read its standard input"})
	case err != nil:
		return startError("_start", err)
	case len(t.out.text) > 0:
		return startError("_start", &badAnswer{fmt.Sprintf("the program wrote to its standard output before it read a record: %.100q", t.out.text)})
	}
	return nil
}

// Read gives the program its input. When there is no more it waits for the next message, but never within a call that has
// read already: that one has what it can get.
func (t *stdioStream) Read(p []byte) (int, error) {
	t.in.clock.Charge(0)
	if len(t.input) == 0 && !t.ending {
		if t.call == t.in.wasiCalls {
			return 0, nil
		}
		t.program.wait()
	}
	t.call = t.in.wasiCalls
	n := copy(p, t.input)
	t.input = t.input[n:]
	t.in.chargeLong(n)
	return n, nil
}

func (t *stdioStream) process(in *instance) (int32, error) {
	t.id++
	a := &t.answer
	defer a.reset()
	a.ask(in, append(a.one[:0], in.m), t.id)
	in.chargeLong(len(a.input))
	t.input = a.input
	t.out.text, t.out.most = a.output[:0], in.mostOutput(len(a.input))
	err := t.program.run()
	a.output, t.out.text = t.out.text, nil
	switch {
	case err == errReturned:
		return 0, sys.NewExitError(0)
	case err != nil:
		return 0, err
	case len(t.input) > 0:
		return 0, &badAnswer{"BUG: the program waits for input that is there"}
	case len(a.output) > 0 && a.output[len(a.output)-1] != '\n':
		return 0, &badAnswer{fmt.Sprintf("the program read on and had written an unfinished line: it must write and flush whole lines (or mode: batch): %.100q", a.output)}
	}
	if err := a.take(in, in.batch, a.output); err != nil {
		return 0, err
	}
	return keep, nil // what is dropped is marked
}

// end tells the program that its input has ended. What it writes then are new messages.
func (t *stdioStream) end(in *instance) error {
	t.ending = true
	t.out.text, t.out.most = nil, in.mostOutput(0)
	if err := lastWords(t.program.run()); err != nil {
		return err
	}
	for line := range bytes.Lines(t.out.text) {
		if line = trimJSON(line); len(line) == 0 {
			continue
		}
		if in.emit(line) != 0 {
			return &badAnswer{fmt.Sprintf("at its end the program wrote a line that is no JSON object: %.100q", line)}
		}
	}
	return nil
}
