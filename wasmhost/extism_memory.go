package wasmhost

import (
	"fmt"
	"slices"
)

// An extismMemory is what a plug-in shares with its host: blocks, found by offsets that mean nothing in the guest's own
// memory. It lies here and not in a module of its own, so that a byte read is not two calls. Blocks are laid end on end;
// all are forgotten before the next call. Those that are freed last are used again.
//
// Any place in it may be read and written, in a block or not, as in Extism. Extism reads zeros elsewhere and forgets
// what is written there; here that is a fault, as it is for every other address outside of memory: else a filter that
// asks for too much would let messages pass unseen.
type extismMemory struct {
	mem    []byte // whole pages; its length is how far a guest may read and write
	blocks []extismBlock
	top    uint64 // where the last block ends
	used   uint64 // how far this call may have written
	limit  uint64 // of mem, in bytes
}

type extismBlock struct {
	at, length uint64
	freed      bool
}

const (
	// extismFirst is before every block: 0 and what is near it stands for nothing.
	extismFirst = 64
	// extismGap is between blocks. It also pays for what is kept of a block here.
	extismGap = 24
)

// alloc makes a block of length bytes; false: there is no room. A block of 0 bytes is 0.
func (x *extismMemory) alloc(length uint64) (at uint64, ok bool) {
	if length == 0 {
		return 0, true
	}
	at = max(x.top, extismFirst) + extismGap
	if length > x.limit || at+length > x.limit {
		return 0, false
	}
	top := (at + length + 7) &^ 7
	x.grow(top)
	x.blocks = append(x.blocks, extismBlock{at: at, length: length})
	x.top, x.used = top, max(x.used, top)
	return at, true
}

// grow makes mem reach to top. It may pass the limit by less than a page.
func (x *extismMemory) grow(top uint64) {
	if top <= uint64(len(x.mem)) {
		return
	}
	want := max(top, min(2*uint64(len(x.mem)), x.limit))
	mem := make([]byte, (want+page-1)/page*page)
	copy(mem, x.mem)
	x.mem = mem
}

// put makes a block that holds data.
func (x *extismMemory) put(data []byte) (at uint64, ok bool) {
	at, ok = x.alloc(uint64(len(data)))
	if ok && at != 0 {
		copy(x.mem[at:], data)
	}
	return at, ok
}

// find is the place among blocks of the one that begins at at; -1: there is none.
func (x *extismMemory) find(at uint64) int {
	i, ok := slices.BinarySearchFunc(x.blocks, at, func(b extismBlock, at uint64) int {
		switch {
		case b.at < at:
			return -1
		case b.at > at:
			return 1
		}
		return 0
	})
	if !ok || x.blocks[i].freed {
		return -1
	}
	return i
}

// length is how long the block is that begins at at; 0: there is none.
func (x *extismMemory) length(at uint64) uint64 {
	if i := x.find(at); i >= 0 {
		return x.blocks[i].length
	}
	return 0
}

// block is what is in the block that begins at at. It holds until the next alloc. What is no block is a bug of the guest.
func (x *extismMemory) block(function string, at uint64) []byte {
	i := x.find(at)
	if i < 0 {
		panic(&guestFault{fmt.Sprintf("%s was given %#x, which is no block of Extism's memory", function, at)})
	}
	return x.mem[at : at+x.blocks[i].length]
}

// free lets go of the block that begins at at, if there is one.
func (x *extismMemory) free(at uint64) {
	i := x.find(at)
	if i < 0 {
		return
	}
	x.blocks[i].freed = true
	n := len(x.blocks)
	for n > 0 && x.blocks[n-1].freed {
		n--
	}
	if n == len(x.blocks) {
		return
	}
	x.blocks, x.top = x.blocks[:n], 0
	if n > 0 {
		last := x.blocks[n-1]
		x.top = (last.at + last.length + 7) &^ 7
	}
}

// view is n bytes at at, which must lie in memory.
func (x *extismMemory) view(function string, at, n uint64) []byte {
	if size := uint64(len(x.mem)); at < extismFirst || at > size || n > size-at {
		panic(&guestFault{fmt.Sprintf("%s was given %d bytes at %#x, outside of Extism's memory, which has %d", function, n, at, size)})
	}
	return x.mem[at : at+n]
}

// place is view for what is to be written there.
func (x *extismMemory) place(function string, at, n uint64) []byte {
	b := x.view(function, at, n)
	x.used = max(x.used, at+n)
	return b
}

// reset forgets all blocks and what was written.
func (x *extismMemory) reset() {
	clear(x.mem[:x.used])
	x.blocks, x.top, x.used = x.blocks[:0], 0, 0
}

// shrink gives back what a usual message does not need.
func (x *extismMemory) shrink() {
	if len(x.mem) > page || cap(x.blocks) > 1024 {
		*x = extismMemory{limit: x.limit}
	}
}
