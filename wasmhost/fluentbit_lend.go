package wasmhost

import (
	"fmt"

	"github.com/tetratelabs/wazero/api"
)

// A lender puts records into a guest's memory, in one of the ways in which WAMR finds a place there: the guest's malloc,
// AssemblyScript's objects, or memory that the host lets grow and deals out itself.
type lender struct {
	malloc, free api.Function // nil: the heap is used
	hold, letGo  api.Function // of AssemblyScript's collector; free is nil then
	heap         heap
	guarded      bool // the heap is for records alone, and the guest may have an allocator of its own that takes it

	stack [2]uint64
}

// arrayBuffer is AssemblyScript's number for objects without pointers.
const arrayBuffer = 1

func (l *lender) start(in *instance) {
	if l.malloc, l.free = in.typed("malloc", mallocType), in.typed("free", freeType); l.malloc != nil && l.free != nil {
		return
	}
	l.malloc, l.free = in.typed("__new", newType), nil
	for _, pair := range [][2]string{{"__pin", "__unpin"}, {"__retain", "__release"}} {
		l.hold, l.letGo = in.typed(pair[0], mallocType), in.typed(pair[1], freeType)
		if l.malloc != nil && l.hold != nil && l.letGo != nil {
			return
		}
	}
	l.malloc, l.hold, l.letGo = nil, nil, nil
	l.guarded = true
}

// lend puts a record and behind it a tag into the guest's memory, each with a NUL behind it. An error costs the
// instance.
func (l *lender) lend(in *instance, record []byte, tag string) (at uint32, err error) {
	n := loan(record, tag)
	if at, err = l.place(in, n); err != nil {
		return 0, err
	}
	if at == 0 {
		return 0, &guestFault{fmt.Sprintf("no memory for a record of %d bytes: the guest's allocator gave none", n)}
	}
	to := in.bytes(in.mod, uint64(at), uint64(n))
	copy(to, record)
	to[len(record)] = 0
	copy(to[len(record)+1:], tag)
	to[n-1] = 0
	in.chargeLong(n)
	return at, nil
}

func loan(record []byte, tag string) int { return len(record) + 1 + len(tag) + 1 }

func (l *lender) place(in *instance, n int) (uint32, error) {
	if l.malloc == nil {
		if l.guarded && l.heap.end == 0 {
			l.heap.guard(in)
		}
		return l.heap.alloc(in, uint64(n)), nil
	}
	l.stack = [2]uint64{uint64(n), arrayBuffer}
	if err := l.malloc.CallWithStack(in, l.stack[:]); err != nil || l.hold == nil || uint32(l.stack[0]) == 0 {
		return uint32(l.stack[0]), err
	}
	at := l.stack[0]
	err := l.hold.CallWithStack(in, l.stack[:])
	return uint32(at), err
}

// giveBack ends a loan.
func (l *lender) giveBack(in *instance, at uint32) error {
	l.stack[0] = uint64(at)
	switch {
	case l.free != nil:
		return l.free.CallWithStack(in, l.stack[:])
	case l.letGo != nil:
		return l.letGo.CallWithStack(in, l.stack[:])
	}
	if l.heap.holds(at) {
		l.heap.release(in, at)
	}
	return nil
}

// lost reports, after a call with a loan of n bytes, whether the guest's own allocator has taken the heap, and then gives it up for another one.
//
// Some allocators take all memory behind the program's data as theirs when they are first used, and so what the host
// let grow before: those of AssemblyScript, and of WASI's libc until 2022. They mark its end; later they take what they
// let grow themselves and no more. Others go on through whatever memory there is, from its beginning. Both are seen where
// the heap leaves memory alone, which for the most part is before they come to the records.
func (l *lender) lost(in *instance, at uint32, n int) bool {
	if !l.guarded || !l.heap.taken(in) && l.heap.state(in, at, classOf(uint64(n))) == blockUsed {
		return false
	}
	l.heap = heap{}
	return true
}
