//go:build unix

package socket

import "syscall"

// A waiter waits until a socket has something to read, without a buffer: an
// idle connection costs no more than its own structs.
type waiter struct {
	raw   syscall.RawConn
	poll  bool // do not wait
	ready bool
	peek  func(fd uintptr) bool
	one   [1]byte
}

func newWaiter(c syscall.Conn) (*waiter, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	w := &waiter{raw: raw}
	w.peek = func(fd uintptr) bool {
		err := error(syscall.EINTR)
		for err == syscall.EINTR {
			_, _, err = syscall.Recvfrom(int(fd), w.one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		}
		w.ready = err != syscall.EAGAIN
		return w.ready || w.poll
	}
	return w, nil
}

// wait returns when there is something to read, be it the end or an error, or
// with the error that waiting met: the read deadline, or a closed socket.
func (w *waiter) wait() error {
	w.poll = false
	return w.raw.Read(w.peek)
}

// now reports whether there is something to read.
func (w *waiter) now() bool {
	w.poll, w.ready = true, false
	return w.raw.Read(w.peek) == nil && w.ready
}
