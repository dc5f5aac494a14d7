package socket

import (
	"context"
	"runtime"

	"github.com/weirlog/weir/router"
)

// A kit is what reading takes: a large buffer and scratch space. It is borrowed
// for a read, so that idle connections need none.
//
// A stream borrows its kit before it takes memory from the router, and keeps it
// while it waits there, because one read may bring more messages than one
// batch may hold. There are so few kits that this is bounded, and nobody
// waits for one while holding memory.
type kit struct {
	buf   []byte
	head  []byte // the frame that began in an earlier read
	spans []span
	*Decoder
}

// A span is one frame: a part of buf, or of head.
type span struct {
	from, to int
	head     bool
	sender   *sender // of a datagram
	received int64   // of a datagram
}

// A sender is where messages come from.
type sender struct {
	origin *router.Origin
	host   []byte // what it is called when a message does not tell; nil: not known
}

const keepHead = 256 << 10 // a larger head is not kept

// kits lends kits to streams.
type kits struct {
	free chan *kit // nil ones are not made yet
	make func(bytes int) (*kit, error)
}

func newKits(c *Config) *kits {
	k := &kits{free: make(chan *kit, max(4, 2*runtime.GOMAXPROCS(0))), make: func(bytes int) (*kit, error) {
		d, err := NewDecoder(c)
		return &kit{buf: make([]byte, bytes), Decoder: d}, err
	}}
	for range cap(k.free) {
		k.free <- nil
	}
	return k
}

// borrow waits for a kit with a buffer of so many bytes.
func (k *kits) borrow(ctx context.Context, bytes int) (*kit, error) {
	var got *kit
	select {
	case got = <-k.free:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if got == nil {
		var err error
		if got, err = k.make(bytes); err != nil {
			k.free <- nil
			return nil, err
		}
	}
	return got, nil
}

func (k *kits) giveBack(got *kit) {
	if cap(got.head) > keepHead {
		got.head = nil
	}
	got.head, got.spans = got.head[:0], got.spans[:0]
	k.free <- got
}

// cut finds up to limit frames in buf[from:to] and returns where the next one
// begins, and how many of them were cut off at the longest allowed.
func (k *kit) cut(f *Framer, from, to, limit int) (next, truncated int) {
	k.spans, k.head = k.spans[:0], k.head[:0]
	for len(k.spans) < limit {
		frame, cut, n := f.Next(k.buf[from:to])
		from += n
		if frame == nil {
			return to, truncated
		}
		if cut {
			truncated++
		}
		if f.kept {
			k.addHead(frame)
		} else { // in buf, and its capacity tells where
			at := cap(k.buf) - cap(frame)
			k.spans = append(k.spans, span{from: at, to: at + len(frame)})
		}
	}
	return from, truncated
}

// addHead notes a frame that does not lie in buf.
func (k *kit) addHead(frame []byte) {
	at := len(k.head)
	k.head = append(k.head, frame...)
	k.spans = append(k.spans, span{from: at, to: at + len(frame), head: true})
}

// fill copies the frames into one piece of the batch's memory and decodes them.
// Frames that say who sent them need no s.
func (k *kit) fill(b *router.Batch, s *sender, received int64) {
	total := 0
	for i := range k.spans {
		total += k.spans[i].to - k.spans[i].from
	}
	if total == 0 {
		return
	}
	mem := b.Bytes(total)
	if mem == nil {
		panic("BUG: no room for what was read into a batch that was taken for it")
	}
	for i := range k.spans {
		p := &k.spans[i]
		src := k.buf
		if p.head {
			src = k.head
		}
		n := copy(mem, src[p.from:p.to])
		raw := mem[:n:n]
		mem = mem[n:]
		if p.sender != nil {
			s, received = p.sender, p.received
		}
		m := b.Add(s.origin)
		if m == nil {
			panic("BUG: more messages than the batch was taken for")
		}
		if !k.Decode(m, raw, received, s.host, b) {
			b.Unadd()
		}
	}
	k.spans = k.spans[:0]
}
