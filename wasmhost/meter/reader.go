package meter

import (
	"fmt"
	"unicode/utf8"
)

// reader reads a module's bytes as wazero does. It fails once: from then on it is empty, every read gives zero, and
// err tells the first failure. Loops over declared counts therefore end when the bytes do.
type reader struct {
	b   []byte // the module up to the end of what is being read, so that pos is an offset in the module
	pos int
	err *Refused
}

func (r *reader) fail(offset int, what, reason, remedy string) {
	if r.err == nil {
		r.err = &Refused{Offset: offset, What: what, Reason: reason, Remedy: remedy}
	}
	r.pos = len(r.b)
}

func (r *reader) malformed(what string) {
	r.fail(r.pos, what, "malformed: the bytes end too early or hold what no tool writes there", "")
}

func (r *reader) empty() bool { return r.pos >= len(r.b) }

func (r *reader) byte() byte {
	if r.pos >= len(r.b) {
		r.malformed("")
		return 0
	}
	c := r.b[r.pos]
	r.pos++
	return c
}

// take returns the next n bytes of the module itself.
func (r *reader) take(n uint32) []byte {
	if uint64(n) > uint64(len(r.b)-r.pos) {
		r.malformed("")
		return nil
	}
	s := r.b[r.pos : r.pos+int(n)]
	r.pos += int(n)
	return s
}

// u32 reads an unsigned LEB of at most 5 bytes whose unused bits are zero.
func (r *reader) u32() uint32 {
	if r.pos < len(r.b) && r.b[r.pos] < 0x80 {
		r.pos++
		return uint32(r.b[r.pos-1])
	}
	var v uint32
	for i := range 5 {
		c := r.byte()
		if i == 4 && c > 0x0f {
			r.malformed("")
			return 0
		}
		v |= uint32(c&0x7f) << (7 * i)
		if c < 0x80 {
			break
		}
	}
	return v
}

// signed reads a signed LEB of a number of bits: 32, 33 or 64. The unused bits of the longest form repeat the sign.
func (r *reader) signed(bits uint) int64 {
	var v int64
	for shift := uint(0); ; shift += 7 {
		c := r.byte()
		v |= int64(c&0x7f) << shift
		if left := bits - shift; left < 7 { // the last byte that may be
			sign := int8(c<<1) >> (left) // bit left-1 and all above it
			if c >= 0x80 || sign != 0 && sign != -1 {
				r.malformed("")
				return 0
			}
		}
		if c < 0x80 {
			if shift += 7; shift < 64 {
				v = v << (64 - shift) >> (64 - shift)
			}
			return v
		}
	}
}

// name reads a vector of bytes that must be UTF-8, and copies it.
func (r *reader) name(what string) string {
	at := r.pos
	s := r.take(r.u32())
	if r.err == nil && !utf8.Valid(s) {
		r.fail(at, what, "malformed: the name is not UTF-8", "")
	}
	return string(s)
}

// refuseType fails over a byte that is no value type.
func (r *reader) refuseType(offset int, t byte) {
	what := fmt.Sprintf("value type %#x", t)
	if p := laterType(t); p != nil {
		r.fail(offset, what, p.reason(), p.remedy)
		return
	}
	r.fail(offset, what, "malformed: there is no such type", "")
}

// appendU32 writes an unsigned LEB in its shortest form.
func appendU32(w []byte, v uint32) []byte {
	for v >= 0x80 {
		w = append(w, byte(v)|0x80)
		v >>= 7
	}
	return append(w, byte(v))
}

// appendSigned writes a signed LEB in its shortest form.
func appendSigned(w []byte, v int64) []byte {
	for v < -64 || v > 63 {
		w = append(w, byte(v)|0x80)
		v >>= 7
	}
	return append(w, byte(v)&0x7f)
}

// appendBytes writes a vector of bytes or a name.
func appendBytes[T string | []byte](w []byte, s T) []byte {
	return append(appendU32(w, uint32(len(s))), s...)
}
