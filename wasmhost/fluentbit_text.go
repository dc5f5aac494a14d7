package wasmhost

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/tetratelabs/wazero/api"
)

// piece is how many bytes a function of libc works on between two looks at the clock.
const piece = 64 << 10

// terminated is where the first NUL is; -1: there is none.
func (in *instance) terminated(b []byte) int { return in.index(b, 0) }

// index is where the first c is in b; -1: there is none.
func (in *instance) index(b []byte, c byte) int {
	for at := 0; at < len(b); at += piece {
		part := b[at:min(at+piece, len(b))]
		i := bytes.IndexByte(part, c)
		if i >= 0 {
			in.clock.Charge(i)
			return at + i
		}
		in.clock.Charge(len(part))
	}
	return -1
}

// upTo is memory from ptr on, n bytes of it where there are so many; it is short when memory ends before.
func (in *instance) upTo(mod api.Module, ptr, n uint64) (b []byte, short bool) {
	in.bytes(mod, ptr, 0)
	left := uint64(in.mem.Size() - uint32(ptr))
	n = uint64(uint32(n))
	return in.bytes(mod, ptr, min(n, left)), n > left
}

// cstring is the text at ptr, without its NUL.
func (in *instance) cstring(mod api.Module, ptr uint64) []byte {
	b, _ := in.upTo(mod, ptr, math.MaxUint32)
	n := in.terminated(b)
	if n < 0 {
		panic(unterminated(ptr))
	}
	return b[:n]
}

func unterminated(ptr uint64) *guestFault {
	return &guestFault{fmt.Sprintf("there is no NUL between the address %#x of a text and the end of memory", uint32(ptr))}
}

// cstringN is the text at ptr, which is n bytes long or ends before with a NUL.
func (in *instance) cstringN(mod api.Module, ptr, n uint64) []byte {
	b, short := in.upTo(mod, ptr, n)
	if i := in.terminated(b); i >= 0 {
		return b[:i]
	}
	if short {
		panic(unterminated(ptr))
	}
	return b
}

// move copies n bytes as memmove does.
func (in *instance) move(mod api.Module, to, from, n uint64) {
	dst, src := in.bytes(mod, to, n), in.bytes(mod, from, n)
	in.clock.Charge(0)
	for done := 0; done < len(src); done += piece {
		k := min(piece, len(src)-done)
		at := done
		if uint32(to) > uint32(from) { // from the end, so that nothing is overwritten before it was read
			at = len(src) - done - k
		}
		copy(dst[at:at+k], src[at:at+k])
		in.clock.Charge(k)
	}
}

// fill sets all of b to c.
func (in *instance) fill(b []byte, c byte) {
	for at := 0; at < len(b); at += piece {
		part := b[at:min(at+piece, len(b))]
		for i := range part {
			part[i] = c
		}
		in.clock.Charge(len(part))
	}
}

// compare is as bytes.Compare.
func (in *instance) compare(a, b []byte) int {
	n := min(len(a), len(b))
	for at := 0; at < n; at += piece {
		end := min(at+piece, n)
		c := bytes.Compare(a[at:end], b[at:end])
		in.clock.Charge(end - at)
		if c != 0 {
			return c
		}
	}
	return len(a) - len(b)
}

func libcMemmove(ctx context.Context, mod api.Module, stack []uint64) {
	ctx.(*instance).move(mod, stack[0], stack[1], stack[2])
}

func libcMemset(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	in.fill(in.bytes(mod, stack[0], stack[2]), byte(stack[1]))
}

func libcMemcmp(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	order(stack, in.compare(in.bytes(mod, stack[0], stack[2]), in.bytes(mod, stack[1], stack[2])))
}

// order answers as memcmp does: below 0, 0 or above.
func order(stack []uint64, c int) { stack[0] = uint64(uint32(int32(cmp.Compare(c, 0)))) }

func libcMemchr(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	b, short := in.upTo(mod, stack[0], stack[2])
	i := in.index(b, byte(stack[1]))
	if i < 0 && short {
		in.bytes(mod, stack[0], stack[2]) // traps
	}
	found(stack, i)
}

// found answers with an address i bytes behind the one given; 0 when i is below 0.
func found(stack []uint64, i int) {
	if i < 0 {
		stack[0] = 0
		return
	}
	stack[0] = uint64(uint32(stack[0]) + uint32(i))
}

func libcStrlen(ctx context.Context, mod api.Module, stack []uint64) {
	stack[0] = uint64(len(ctx.(*instance).cstring(mod, stack[0])))
}

func libcStrcpy(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	in.bytes(mod, stack[0], 0)
	in.move(mod, stack[0], stack[1], uint64(len(in.cstring(mod, stack[1]))+1))
}

func libcStrncpy(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	to := in.bytes(mod, stack[0], stack[2])
	n := len(in.cstringN(mod, stack[1], stack[2]))
	in.move(mod, stack[0], stack[1], uint64(n))
	in.fill(to[n:], 0)
}

func libcStrdup(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	n := uint64(len(in.cstring(mod, stack[0]))) + 1
	at := in.malloc(mod, n)
	if at != 0 {
		in.move(mod, uint64(at), stack[0], n)
	}
	stack[0] = uint64(at)
}

func libcStrcmp(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	order(stack, in.compare(in.cstring(mod, stack[0]), in.cstring(mod, stack[1])))
}

func libcStrncmp(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	order(stack, in.compare(in.cstringN(mod, stack[0], stack[2]), in.cstringN(mod, stack[1], stack[2])))
}

func libcStrncasecmp(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	a, b := in.cstringN(mod, stack[0], stack[2]), in.cstringN(mod, stack[1], stack[2])
	n := min(len(a), len(b))
	for i := range n {
		if i%piece == piece-1 {
			in.clock.Charge(8 * piece)
		}
		if c := cmp.Compare(lower(a[i]), lower(b[i])); c != 0 {
			order(stack, c)
			return
		}
	}
	order(stack, len(a)-len(b))
}

func lower(c byte) byte {
	if isUpper(uint32(c)) {
		return c | 0x20
	}
	return c
}

func libcStrchr(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	text, c := in.cstring(mod, stack[0]), byte(stack[1])
	if c == 0 {
		found(stack, len(text))
		return
	}
	found(stack, in.index(text, c))
}

func libcStrstr(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	found(stack, in.find(in.cstring(mod, stack[0]), in.cstring(mod, stack[1])))
}

// find is where the first needle is in text; -1: there is none. However the two are made, it looks at the clock.
func (in *instance) find(text, needle []byte) int {
	const short = 64
	head := needle[:min(len(needle), short)]
	for at := 0; len(text)-at >= len(needle); {
		window := text[at:min(at+piece+len(head), len(text))]
		i := bytes.Index(window, head)
		if i < 0 {
			in.clock.Charge(len(window))
			if len(window) < piece {
				return -1
			}
			at += len(window) - len(head) + 1
			continue
		}
		in.clock.Charge(i)
		at += i
		if rest := needle[len(head):]; len(text)-at >= len(needle) {
			if len(rest) == 0 || in.compare(text[at+len(head):at+len(needle)], rest) == 0 {
				return at
			}
		}
		at++
	}
	return -1
}

func libcStrspn(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	text, set := in.cstring(mod, stack[0]), in.set256(in.cstring(mod, stack[1]))
	stack[0] = uint64(in.span(text, &set, true))
}

func libcStrcspn(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	text, set := in.cstring(mod, stack[0]), in.set256(in.cstring(mod, stack[1]))
	stack[0] = uint64(in.span(text, &set, false))
}

// set256 is the set of the bytes in b.
func (in *instance) set256(b []byte) (set [256]bool) {
	for i, c := range b {
		if i%piece == piece-1 {
			in.clock.Charge(8 * piece)
		}
		set[c] = true
	}
	return set
}

// span is how many bytes at the beginning of b are in the set, or are not.
func (in *instance) span(b []byte, set *[256]bool, are bool) int {
	for i, c := range b {
		if i%piece == piece-1 {
			in.clock.Charge(8 * piece)
		}
		if set[c] != are {
			return i
		}
	}
	return len(b)
}

var spaces = [256]bool{' ': true, '\t': true, '\n': true, '\v': true, '\f': true, '\r': true}

// readNumber reads an integer as strtol does; base 0 is told by the text. It stops at 2^40, far beyond what fits. length is
// how much of the text it is, 0 when there is none.
func (in *instance) readNumber(text []byte, base uint32) (n int64, length int) {
	in.clock.Charge(0)
	if base == 1 || base > 36 {
		return 0, 0
	}
	i := in.span(text, &spaces, true)
	minus := false
	if i < len(text) && (text[i] == '-' || text[i] == '+') {
		minus = text[i] == '-'
		i++
	}
	if (base == 0 || base == 16) && i+2 < len(text) && text[i] == '0' && lower(text[i+1]) == 'x' && digit(text[i+2]) < 16 {
		i += 2
		base = 16
	}
	if base == 0 && i < len(text) && text[i] == '0' {
		base = 8
	} else if base == 0 {
		base = 10
	}
	first := i
	for ; i < len(text) && digit(text[i]) < base; i++ {
		if (i-first)%piece == piece-1 {
			in.clock.Charge(8 * piece)
		}
		n = min(n*int64(base)+int64(digit(text[i])), 1<<40)
	}
	if i == first {
		return 0, 0
	}
	if minus {
		n = -n
	}
	return n, i
}

// digit is what a digit or letter is worth; 99: it is neither.
func digit(c byte) uint32 {
	switch {
	case isDigit(uint32(c)):
		return uint32(c - '0')
	case isLower(uint32(lower(c))):
		return uint32(lower(c)-'a') + 10
	}
	return 99
}
