package wasmhost

import (
	"errors"
	"iter"

	"github.com/weirlog/weir/wasmhost/meter"
)

// A coroutine is a guest's _start that does not return: it asks for what it is to work on. It stands still in the host
// function where it asks, and goes on there when there is something, in turn with whoever gives it messages: a switch
// between the two is no more than a call, and needs no channel or lock.
//
// Whoever releases the instance calls stop first: a guest that stands still has its stack and its memory in use.
type coroutine struct {
	next  func() (struct{}, bool)
	end   func()
	yield func(struct{}) bool
	err   error // of _start, when it has ended
}

// errReturned says that a guest's _start came to its end like any program.
var errReturned = errors.New("_start returned")

// errStopped unwinds a guest that stands still and is not to go on.
var errStopped = &guestFault{"the instance is released"}

// start readies the guest's _start; it begins with the first call of run.
func (c *coroutine) start(in *instance) {
	main := in.mod.ExportedFunction("_start")
	c.next, c.end = iter.Pull(func(yield func(struct{}) bool) {
		c.yield = yield
		c.err = main.CallWithStack(in, nil)
		if c.err == nil {
			c.err = errReturned
		}
	})
	in.halt = c.end
}

// run lets the guest work until it waits. An error says that it does not any more: its _start has ended.
func (c *coroutine) run() error {
	if _, waits := c.next(); waits {
		return nil
	}
	return c.err
}

// wait lets the caller of run go on, until it calls run again. Host functions call it.
func (c *coroutine) wait() {
	if c.yield == nil {
		panic(&guestFault{"the module's start function asks for messages, before _start was called"})
	}
	if !c.yield(struct{}{}) {
		panic(errStopped)
	}
}

// lastWords says what of the error with which a program ended, after it was told that nothing more comes, is a fault:
// only that it would not end.
func lastWords(err error) error {
	if _, exceeded := errors.AsType[*meter.Exceeded](err); exceeded {
		return err
	}
	return nil
}
