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

// A slab hands out slices of T that live as long as the batch.
type slab[T any] struct {
	free  []T   // of the newest chunk, what is not handed out
	kept  [][]T // chunks that are handed out
	spare []T   // an empty chunk from the batch before
}

// take returns an empty slice with room for n, or nil when the batch may not grow.
func (s *slab[T]) take(b *Batch, n int) []T {
	if len(s.free) < n {
		var zero T
		size := max(n, 16)
		if len(s.kept) > 0 {
			size = max(n, 128)
		}
		if len(s.spare) >= n {
			size = len(s.spare)
		}
		if !b.charge(size * int(unsafe.Sizeof(zero))) {
			return nil
		}
		if s.free, s.spare = s.spare, nil; len(s.free) < n {
			s.free = make([]T, size)
		}
		s.kept = append(s.kept, s.free)
	}
	out := s.free[:0:n]
	s.free = s.free[n:]
	return out
}

// reset keeps the largest chunk for the next batch.
func (s *slab[T]) reset() {
	for _, c := range s.kept {
		if len(c) > len(s.spare) && len(c) <= 1024 {
			s.spare = c
		}
	}
	clear(s.spare)
	clear(s.kept)
	s.kept, s.free = s.kept[:0], nil
}
