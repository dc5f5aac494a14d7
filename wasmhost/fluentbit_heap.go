package wasmhost

import (
	"bytes"
	"fmt"
	"math/bits"
)

// A heap is memory of a guest that the host let grow and deals out: for records, and for malloc and free where the guest
// has them from the host. What it knows of a block stands before the block, in the guest's memory, and is doubted
// whenever it is read. Blocks have sizes of a few classes and are kept by class when they are free; they are never
// joined, so that what has fitted once fits again. The zero value is empty.
type heap struct {
	next, end uint32 // what was never dealt out
	begin     uint32 // the lowest block; 0: there was none
	front     uint32 // heapFront bytes that were never dealt out; 0: there are none
	free      [heapClasses]uint32
}

const (
	heapAlign   = 16 // of blocks, and what stands before each: class and state, 4 bytes each
	heapClasses = 112
	heapTail    = 128      // bytes at the end of what grew, never dealt out
	heapSkip    = 4 * page // never dealt out at the beginning, where that matters
	heapFront   = 1024     // the last of them

	blockUsed = 0x75736564
	blockFree = 0x66726565
)

// classOf is the smallest class with blocks of n bytes: 16, 32, 48 and 64, then four for each doubling.
func classOf(n uint64) int {
	if n <= 64 {
		return int((max(n, 1) - 1) / 16)
	}
	shift := bits.Len64(n-1) - 3
	return 4 + 4*(shift-4) + int((n-1)>>shift) - 4
}

func classSize(class int) uint64 {
	if class < 4 {
		return 16 * uint64(class+1)
	}
	return uint64(class%4+5) << (class/4 + 3)
}

// alloc returns the address of n bytes, aligned to 16, or 0 when the guest's memory may not grow so far. It may move the
// memory: views of it no longer hold.
func (h *heap) alloc(in *instance, n uint64) uint32 {
	in.clock.Charge(0)
	if n >= 1<<32-heapAlign {
		return 0
	}
	class := classOf(n)
	if at := h.free[class]; at != 0 {
		h.check(in, at, class, blockFree)
		next, _ := in.mem.ReadUint32Le(at)
		h.free[class] = next
		in.mem.WriteUint32Le(at-4, blockUsed)
		return at
	}
	need := heapAlign + classSize(class)
	if uint64(h.next)+need > uint64(h.end) && !h.grow(in, need) {
		return 0
	}
	at := h.next + heapAlign
	h.next += uint32(need)
	if h.begin == 0 {
		h.begin = at
	}
	in.mem.WriteUint32Le(at-8, uint32(class))
	in.mem.WriteUint32Le(at-4, blockUsed)
	return at
}

// grow makes room for need bytes more.
func (h *heap) grow(in *instance, need uint64) bool {
	pages := (need + heapTail + page - 1) / page
	before, ok := in.mem.Grow(uint32(max(pages, uint64(h.end-h.begin)/page/8)))
	if !ok {
		if before, ok = in.mem.Grow(uint32(pages)); !ok {
			return false
		}
	}
	from := uint64(before) * page
	if h.end == 0 || from != uint64(h.end)+heapTail {
		h.next = uint32(from)
	}
	h.end = in.mem.Size() - heapTail
	return uint64(h.next)+need <= uint64(h.end)
}

// guard begins with memory that is not dealt out, if there is enough.
func (h *heap) guard(in *instance) {
	if h.grow(in, heapSkip) {
		h.next += heapSkip - heapAlign
		h.front = h.next - heapFront
	}
}

var untouched [heapFront]byte

// taken reports whether somebody else has written to what is not dealt out.
func (h *heap) taken(in *instance) bool {
	if h.end == 0 {
		return false
	}
	if tail := in.bytes(in.mod, uint64(h.end), heapTail); !bytes.Equal(tail, untouched[:heapTail]) {
		return true
	}
	return h.front != 0 && !bytes.Equal(in.bytes(in.mod, uint64(h.front), heapFront), untouched[:])
}

// release takes a block back; 0 is none.
func (h *heap) release(in *instance, at uint32) {
	in.clock.Charge(0)
	if at == 0 {
		return
	}
	class := h.classAt(in, at)
	in.mem.WriteUint32Le(at, h.free[class])
	in.mem.WriteUint32Le(at-4, blockFree)
	h.free[class] = at
}

// size is how many bytes a block has.
func (h *heap) size(in *instance, at uint32) uint64 { return classSize(h.classAt(in, at)) }

func (h *heap) holds(at uint32) bool { return h.begin != 0 && at >= h.begin }

// classAt is the class of a block that is in use.
func (h *heap) classAt(in *instance, at uint32) int {
	class := uint32(heapClasses)
	if h.holds(at) && at%heapAlign == 0 {
		if c, ok := in.mem.ReadUint32Le(at - 8); ok {
			class = c
		}
	}
	if class >= heapClasses {
		panic(&guestFault{fmt.Sprintf("free or realloc of %#x, which malloc has not given out", at)})
	}
	h.check(in, at, int(class), blockUsed)
	return int(class)
}

// check stops a guest that has written over what stands before a block, or freed it twice.
func (h *heap) check(in *instance, at uint32, class int, want uint32) {
	switch state := h.state(in, at, class); {
	case state == want:
	case state == blockFree:
		panic(&guestFault{fmt.Sprintf("free or realloc of %#x, which is free already", at)})
	default:
		panic(&guestFault{fmt.Sprintf("the heap is damaged at %#x: something has written outside of its block", at)})
	}
}

// state is blockUsed or blockFree, or something else when there is no block of that class at that address.
func (h *heap) state(in *instance, at uint32, class int) uint32 {
	if !h.holds(at) || at%heapAlign != 0 || uint64(at)+classSize(class) > uint64(in.mem.Size()) {
		return 0
	}
	c, _ := in.mem.ReadUint32Le(at - 8)
	state, _ := in.mem.ReadUint32Le(at - 4)
	if c != uint32(class) {
		return 0
	}
	return state
}
