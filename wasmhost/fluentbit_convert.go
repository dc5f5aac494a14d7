package wasmhost

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
	"unicode/utf8"
)

// convert writes one argument of printf; false: there is no such conversion.
func (p *printer) convert(c *conversion) bool {
	switch c.verb {
	case '%':
		p.write([]byte{'%'})
	case 'd', 'i':
		n := p.signed(c)
		magnitude := uint64(n)
		if n < 0 {
			magnitude = -magnitude
		}
		p.integer(c, magnitude, c.sign(n < 0))
	case 'u', 'x', 'X', 'o':
		p.integer(c, uint64(p.signed(c))&c.mask(), "")
	case 'p':
		p.field(c, "0x", strconv.AppendUint(nil, 1<<32|uint64(p.word()), 16)[1:], 0, nil, false)
	case 'c':
		p.char(c)
	case 's':
		p.string(c)
	case 'f', 'F', 'e', 'E', 'g', 'G', 'a', 'A':
		if c.size == 'L' {
			return false // 128 bits
		}
		p.float(c, math.Float64frombits(p.long()))
	case 'n':
		binary.LittleEndian.PutUint32(p.in.bytes(p.mod, uint64(p.word()), 4), uint32(p.length()))
	default:
		return false
	}
	return true
}

// signed reads an integer of the conversion's size.
func (p *printer) signed(c *conversion) int64 {
	switch c.size {
	case 'L':
		return int64(p.long())
	case 'h':
		return int64(int16(p.word()))
	case 'H':
		return int64(int8(p.word()))
	}
	return int64(int32(p.word()))
}

func (c *conversion) mask() uint64 {
	switch c.size {
	case 'L':
		return math.MaxUint64
	case 'h':
		return math.MaxUint16
	case 'H':
		return math.MaxUint8
	}
	return math.MaxUint32
}

func (c *conversion) sign(minus bool) string {
	switch {
	case minus:
		return "-"
	case c.plus:
		return "+"
	case c.space:
		return " "
	}
	return ""
}

func (p *printer) integer(c *conversion, n uint64, prefix string) {
	base := 10
	switch c.verb {
	case 'x', 'X':
		base = 16
	case 'o':
		base = 8
	}
	var room [24]byte
	text := strconv.AppendUint(room[:0], n, base)
	if n == 0 && c.precision == 0 {
		text = text[:0]
	}
	if c.verb == 'X' {
		text = bytes.ToUpper(text)
	}
	more := max(0, c.precision-len(text))
	switch {
	case c.sharp && base == 8 && more == 0 && (len(text) == 0 || text[0] != '0'):
		more = 1
	case c.sharp && base == 16 && n != 0:
		prefix = "0" + string(c.verb)
	}
	p.field(c, prefix, nil, more, text, c.zero && c.precision < 0)
}

// field writes a prefix, text, zeros and more text, in the width that was asked for; zero: with zeros behind the prefix.
func (p *printer) field(c *conversion, prefix string, text []byte, more int, tail []byte, zero bool) {
	fill := c.width - len(prefix) - len(text) - more - len(tail)
	if !c.minus && !zero {
		p.pad(blanks, fill)
	}
	p.write([]byte(prefix))
	if !c.minus && zero {
		p.pad(zeros, fill)
	}
	p.write(text)
	p.pad(zeros, more)
	p.write(tail)
	if c.minus {
		p.pad(blanks, fill)
	}
}

func (p *printer) char(c *conversion) {
	n := p.word()
	var room [utf8.UTFMax]byte
	text := append(room[:0], byte(n))
	if c.size == 'l' {
		text = utf8.AppendRune(room[:0], rune(n))
	}
	p.field(c, "", text, 0, nil, false)
}

func (p *printer) string(c *conversion) {
	at := uint64(p.word())
	var text []byte
	switch {
	case at == 0:
		text = []byte("(null)")
		if c.precision >= 0 {
			text = text[:min(len(text), c.precision)]
		}
	case c.precision >= 0:
		text = p.in.cstringN(p.mod, at, uint64(c.precision))
	default:
		text = p.in.cstring(p.mod, at)
	}
	p.field(c, "", text, 0, nil, false)
}

// mostDigits is more than any float has behind its point; what is asked for beyond are zeros.
const mostDigits = 1100

func (p *printer) float(c *conversion, f float64) {
	prefix := c.sign(math.Signbit(f))
	f = math.Abs(f)
	upper := isUpper(uint32(c.verb))
	if math.IsInf(f, 0) || math.IsNaN(f) {
		text := strconv.AppendFloat(nil, f, 'f', -1, 64)
		if text = bytes.TrimLeft(bytes.ToLower(text), "+"); upper {
			text = bytes.ToUpper(text)
		}
		p.field(c, prefix, text, 0, nil, false)
		return
	}
	precision := c.precision
	if precision < 0 {
		precision = 6
	}
	digits := min(precision, mostDigits)
	var text []byte
	switch verb := lower(c.verb); verb {
	case 'f', 'e':
		text = strconv.AppendFloat(nil, f, verb, digits, 64)
	case 'g':
		text = general(f, max(1, digits), c.sharp)
		precision = digits
	case 'a':
		prefix += "0x"
		text = hexFloat(f, min(c.precision, mostDigits))
		precision = max(c.precision, digits)
		if c.precision < 0 {
			precision = digits
		}
	}
	if c.sharp && bytes.IndexByte(text, '.') < 0 {
		text = point(text)
	}
	// Exponents are behind what zeros are added to.
	end := len(text)
	if i := bytes.IndexAny(text, "ep"); i >= 0 && lower(c.verb) != 'a' || i >= 0 && text[i] == 'p' {
		end = i
	}
	tail := text[end:]
	if upper {
		text, tail, prefix = bytes.ToUpper(text), bytes.ToUpper(tail), string(bytes.ToUpper([]byte(prefix)))
	}
	p.field(c, prefix, text[:end], precision-digits, tail, c.zero)
}

// general formats as %g does: with an exponent or without, whichever is shorter, and without zeros at the end.
func general(f float64, digits int, zeros bool) []byte {
	text := strconv.AppendFloat(nil, f, 'e', digits-1, 64)
	mantissa, exponent, _ := bytes.Cut(text, []byte{'e'})
	if x, _ := strconv.Atoi(string(exponent)); x >= -4 && x < digits {
		mantissa, exponent = strconv.AppendFloat(nil, f, 'f', digits-1-x, 64), nil
	}
	if !zeros && bytes.IndexByte(mantissa, '.') >= 0 {
		mantissa = bytes.TrimRight(bytes.TrimRight(mantissa, "0"), ".")
	}
	if exponent == nil {
		return mantissa
	}
	return append(append(mantissa[:len(mantissa):len(mantissa)], 'e'), exponent...)
}

// hexFloat formats as %a does, without 0x.
func hexFloat(f float64, digits int) []byte {
	text := strconv.AppendFloat(nil, f, 'x', digits, 64)[2:]
	i := bytes.IndexByte(text, 'p')
	if text[i+2] == '0' && len(text) == i+4 { // Go writes at least two digits
		text = append(text[:i+2], text[i+3])
	}
	return text
}

// point puts a point behind the digits.
func point(text []byte) []byte {
	i := bytes.IndexAny(text, "ep")
	if i < 0 {
		return append(text, '.')
	}
	return append(append(bytes.Clone(text[:i]), '.'), text[i:]...)
}
