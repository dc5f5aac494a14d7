package router

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"
)

// memory is what the bytes of a batch live in: right-sized pieces, so that a
// batch of one small message holds a kilobyte and not a read buffer.
type memory struct {
	refs     atomic.Int32 // batches that share it
	pieces   []piece
	fields   slab[Field]
	elements slab[Element]
	params   slab[Param]
}

type piece struct {
	data []byte // cap is a power of two from minPiece on
	used int
}

const minPiece = 1 << 10

// bytes cuts n bytes off the last piece, or off a new one.
func (mem *memory) bytes(b *Batch, n int) []byte {
	if n == 0 {
		return []byte{}
	}
	if i := len(mem.pieces) - 1; i >= 0 {
		if p := &mem.pieces[i]; len(p.data)-p.used >= n {
			d := p.data[p.used : p.used+n : p.used+n]
			p.used += n
			return d
		}
	}
	size := pieceSize(n)
	if !b.charge(size) {
		return nil
	}
	mem.pieces = append(mem.pieces, piece{takePiece(size), n})
	return mem.pieces[len(mem.pieces)-1].data[:n:n]
}

// pieceSize is the power of two that holds n bytes, at least minPiece.
func pieceSize(n int) int {
	if n <= minPiece {
		return minPiece
	}
	return 1 << bits.Len(uint(n-1))
}

// piecePools are indexed by the logarithm of the size; pieces over 1 MiB are left to the collector.
var piecePools [21]sync.Pool

func takePiece(size int) []byte {
	if class := bits.Len(uint(size)) - 1; class < len(piecePools) {
		if p, ok := piecePools[class].Get().(*byte); ok {
			return unsafe.Slice(p, size)
		}
	}
	return make([]byte, size)
}

func givePiece(p []byte) {
	if class := bits.Len(uint(len(p))) - 1; class < len(piecePools) {
		piecePools[class].Put(unsafe.SliceData(p))
	}
}

// release gives the memory back when its last batch has gone.
func (mem *memory) release() {
	if mem.refs.Add(-1) > 0 {
		return
	}
	for i := range mem.pieces {
		givePiece(mem.pieces[i].data)
		mem.pieces[i] = piece{}
	}
	mem.pieces = mem.pieces[:0]
	mem.fields.reset()
	mem.elements.reset()
	mem.params.reset()
	memories.Put(mem)
}

var memories = sync.Pool{New: func() any { return new(memory) }}

// A slab hands out slices of T that live as long as the batch. Its chunks double
// in size, so that a batch of one message is charged for a few; the next batch
// uses them again, the small ones first.
type slab[T any] struct {
	free  []T   // of the newest chunk, what is not handed out
	kept  [][]T // chunks that are handed out, in order
	spare [][]T // empty chunks from the batch before, in reverse order
}

const (
	firstChunk = 16
	mostChunk  = 1024
	mostSpare  = 12 // chunks
)

// take returns an empty slice with room for n, or nil when the batch may not grow.
func (s *slab[T]) take(b *Batch, n int) []T {
	if len(s.free) < n {
		var zero T
		size := firstChunk
		if last := len(s.kept) - 1; last >= 0 {
			size = min(2*len(s.kept[last]), mostChunk)
		}
		size = max(size, n)
		last := len(s.spare) - 1
		again := last >= 0 && len(s.spare[last]) >= n
		if again {
			size = len(s.spare[last])
		}
		if !b.charge(size * int(unsafe.Sizeof(zero))) {
			return nil
		}
		if again {
			s.free = s.spare[last]
			s.spare[last] = nil
			s.spare = s.spare[:last]
		} else {
			s.free = make([]T, size)
		}
		s.kept = append(s.kept, s.free)
	}
	out := s.free[:0:n]
	s.free = s.free[n:]
	return out
}

// reset keeps the chunks for the next batch.
func (s *slab[T]) reset() {
	for i := len(s.kept) - 1; i >= 0; i-- {
		if c := s.kept[i]; len(c) <= mostChunk && len(s.spare) < mostSpare {
			clear(c)
			s.spare = append(s.spare, c)
		}
	}
	clear(s.kept)
	s.kept, s.free = s.kept[:0], nil
}
