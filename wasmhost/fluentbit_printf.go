package wasmhost

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"

	"github.com/tetratelabs/wazero/api"
)

// A printer does what printf does: it writes into guest memory, or into weir's log. Arguments lie in guest memory one
// behind the other: 4 bytes each, or 8 at a multiple of 8.
type printer struct {
	in    *instance
	mod   api.Module
	args  uint64
	toLog bool
	to    []byte
	cut   bool   // what does not fit into to is left out; else it traps
	n     uint64 // bytes written or left out
}

func libcPrintf(ctx context.Context, mod api.Module, stack []uint64) {
	p := printer{in: ctx.(*instance), mod: mod, args: stack[1], toLog: true}
	p.format(p.in.cstring(mod, stack[0]))
	stack[0] = p.length()
}

func libcSprintf(ctx context.Context, mod api.Module, stack []uint64) {
	p := printer{in: ctx.(*instance), mod: mod, args: stack[2]}
	p.to, _ = p.in.upTo(mod, stack[0], math.MaxUint32)
	p.format(p.in.cstring(mod, stack[1]))
	p.end()
	stack[0] = p.length()
}

func libcSnprintf(ctx context.Context, mod api.Module, stack []uint64) {
	p := printer{in: ctx.(*instance), mod: mod, args: stack[3], cut: true}
	p.to = p.in.bytes(mod, stack[0], stack[1])
	p.format(p.in.cstring(mod, stack[2]))
	p.end()
	stack[0] = p.length()
}

func libcPuts(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	in.stdout.Write(in.cstring(mod, stack[0]))
	in.stdout.Write([]byte{'\n'})
	stack[0] = 1
}

func libcPutchar(ctx context.Context, _ api.Module, stack []uint64) {
	ctx.(*instance).stdout.Write([]byte{byte(stack[0])})
	stack[0] = uint64(byte(stack[0]))
}

// length is what printf returns: -1 when it is more than an int holds.
func (p *printer) length() uint64 {
	if p.n > math.MaxInt32 {
		return math.MaxUint32
	}
	return p.n
}

// end puts a NUL behind what was written.
func (p *printer) end() {
	if p.n < uint64(len(p.to)) {
		p.to[p.n] = 0
	} else if len(p.to) > 0 {
		p.to[len(p.to)-1] = 0
	}
}

func (p *printer) write(b []byte) {
	for len(b) > 0 {
		part := b[:min(len(b), piece)]
		b = b[len(part):]
		switch {
		case p.toLog:
			p.in.stdout.Write(part) // which counts them
		case p.cut:
			p.in.clock.Charge(len(part))
			copy(p.to[min(p.n, uint64(len(p.to))):], part)
		case p.n+uint64(len(part)) >= uint64(len(p.to)):
			panic(&guestFault{"sprintf would write beyond the end of memory"})
		default:
			p.in.clock.Charge(len(part))
			copy(p.to[p.n:], part)
		}
		p.n += uint64(len(part))
	}
}

var (
	blanks = bytes.Repeat([]byte{' '}, 4096)
	zeros  = bytes.Repeat([]byte{'0'}, 4096)
)

func (p *printer) pad(with []byte, n int) {
	for ; n > 0; n -= len(with) {
		p.write(with[:min(n, len(with))])
	}
}

func (p *printer) word() uint32 {
	b := p.in.bytes(p.mod, p.args, 4)
	p.args += 4
	return binary.LittleEndian.Uint32(b)
}

func (p *printer) long() uint64 {
	p.args = (p.args + 7) &^ 7
	b := p.in.bytes(p.mod, p.args, 8)
	p.args += 8
	return binary.LittleEndian.Uint64(b)
}

// A conversion is what stands between % and the letter, and the letter.
type conversion struct {
	minus, plus, space, zero, sharp bool

	width     int
	precision int  // -1: none was given
	size      byte // h, l; H and L when doubled; 0: none
	verb      byte
}

func (p *printer) format(f []byte) {
	p.in.clock.Charge(0)
	for len(f) > 0 {
		i := p.in.index(f, '%')
		if i < 0 {
			i = len(f)
		}
		p.write(f[:i])
		if f = f[i:]; len(f) == 0 {
			return
		}
		c, n := p.conversion(f[1:])
		if !p.convert(&c) { // as it stands
			p.write(f[:1+n])
		}
		f = f[1+n:]
	}
}

// conversion reads what follows a %; n is how many bytes that were. The verb is 0 when the text ends before it.
func (p *printer) conversion(f []byte) (c conversion, n int) {
	c.precision = -1
flags:
	for ; n < len(f); n++ {
		switch f[n] {
		case '-':
			c.minus = true
		case '+':
			c.plus = true
		case ' ':
			c.space = true
		case '0':
			c.zero = true
		case '#':
			c.sharp = true
		default:
			break flags
		}
	}
	c.width, n = p.amount(f, n)
	if c.width < 0 {
		c.minus, c.width = true, -c.width
	}
	if n < len(f) && f[n] == '.' {
		if c.precision, n = p.amount(f, n+1); c.precision < 0 {
			c.precision = -1
		}
	}
	for ; n < len(f); n++ {
		switch f[n] {
		case 'h', 'l':
			if c.size == f[n] {
				c.size &^= 0x20
			} else {
				c.size = f[n]
			}
		case 'j', 'q', 'L':
			c.size = 'L'
		case 'z', 't':
			c.size = 'l'
		default:
			c.verb = f[n]
			return c, n + 1
		}
	}
	return c, n
}

// amount reads a width or precision, which may be an argument.
func (p *printer) amount(f []byte, at int) (amount, next int) {
	if at < len(f) && f[at] == '*' {
		return int(int32(p.word())), at + 1
	}
	for ; at < len(f) && isDigit(uint32(f[at])); at++ {
		amount = min(10*amount+int(f[at]-'0'), math.MaxInt32)
	}
	return amount, at
}
