package wasmhost

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// A packer makes MessagePack of record JSON, in the shortest forms. It holds scratch space.
type packer struct {
	counts []uint32 // of members or elements, of each object and array in the order in which they begin
	open   []int    // of them, while they are counted
	text   []byte   // without escapes

	json []byte
	at   int
}

// appendJSON appends a value to dst. json is valid and without spaces, as weir writes it.
func (p *packer) appendJSON(dst, json []byte) []byte {
	p.count(json)
	p.json, p.at = json, 0
	next := 0
	for p.at < len(json) {
		switch c := json[p.at]; c {
		case '{':
			dst = appendSize(dst, p.counts[next], 0x80, 15, 0, 0xde)
			next++
			p.at++
		case '[':
			dst = appendSize(dst, p.counts[next], 0x90, 15, 0, 0xdc)
			next++
			p.at++
		case '}', ']', ',', ':':
			p.at++
		case '"':
			text := p.string()
			dst = append(appendSize(dst, uint32(len(text)), 0xa0, 31, 0xd9, 0xda), text...)
		default:
			dst = p.word(dst)
		}
	}
	if cap(p.text) > 64<<10 || cap(p.counts) > 4<<10 {
		*p = packer{}
	}
	p.json = nil
	return dst
}

// count finds out how many members or elements each object and array has: MessagePack tells that before them.
func (p *packer) count(json []byte) {
	p.counts, p.open = p.counts[:0], p.open[:0]
	for i := 0; i < len(json); i++ {
		switch json[i] {
		case '{', '[':
			p.open = append(p.open, len(p.counts))
			n := uint32(1)
			if json[i+1] == json[i]+2 { // its end
				n = 0
			}
			p.counts = append(p.counts, n)
		case '}', ']':
			p.open = p.open[:len(p.open)-1]
		case ',':
			p.counts[p.open[len(p.open)-1]]++
		case '"':
			for i++; json[i] != '"'; i++ {
				if json[i] == '\\' {
					i++
				}
			}
		}
	}
}

// appendSize begins a value of n parts: short+n up to most, then with one byte, two or four behind a byte of its own;
// byte1 0: there is no such form.
func appendSize(dst []byte, n uint32, short byte, most uint32, byte1, byte2 byte) []byte {
	switch {
	case n <= most:
		return append(dst, short+byte(n))
	case n <= math.MaxUint8 && byte1 != 0:
		return append(dst, byte1, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, byte2), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, byte2+1), n)
}

// word packs a number, true, false or null.
func (p *packer) word(dst []byte) []byte {
	from := p.at
	whole := true
	for ; p.at < len(p.json); p.at++ {
		switch p.json[p.at] {
		case ',', '}', ']':
			return appendWord(dst, p.json[from:p.at], whole)
		case '.', 'e', 'E':
			whole = false
		}
	}
	return appendWord(dst, p.json[from:], whole)
}

func appendWord(dst, word []byte, whole bool) []byte {
	switch word[0] {
	case 'n':
		return append(dst, 0xc0)
	case 't':
		return append(dst, 0xc3)
	case 'f':
		return append(dst, 0xc2)
	}
	if whole {
		if n, err := strconv.ParseInt(string(word), 10, 64); err == nil {
			return appendInt(dst, n)
		}
		if n, err := strconv.ParseUint(string(word), 10, 64); err == nil {
			return binary.BigEndian.AppendUint64(append(dst, 0xcf), n)
		}
	}
	f, err := strconv.ParseFloat(string(word), 64)
	if err != nil { // beyond all floats
		return append(appendSize(dst, uint32(len(word)), 0xa0, 31, 0xd9, 0xda), word...)
	}
	return binary.BigEndian.AppendUint64(append(dst, 0xcb), math.Float64bits(f))
}

func appendInt(dst []byte, n int64) []byte {
	switch {
	case n >= -32 && n <= math.MaxInt8:
		return append(dst, byte(n))
	case n >= 0 && n <= math.MaxUint8:
		return append(dst, 0xcc, byte(n))
	case n >= 0 && n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, 0xcd), uint16(n))
	case n >= 0 && n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, 0xce), uint32(n))
	case n >= 0:
		return binary.BigEndian.AppendUint64(append(dst, 0xcf), uint64(n))
	case n >= math.MinInt8:
		return append(dst, 0xd0, byte(n))
	case n >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(dst, 0xd1), uint16(n))
	case n >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(dst, 0xd2), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, 0xd3), uint64(n))
}

// string reads a string without its escapes. It holds until the next one.
func (p *packer) string() []byte {
	p.at++
	from := p.at
	end := from + bytes.IndexByte(p.json[from:], '"')
	if i := bytes.IndexByte(p.json[from:end], '\\'); i < 0 {
		p.at = end + 1
		return p.json[from:end]
	}
	p.text = p.text[:0]
	for {
		c := p.json[p.at]
		p.at++
		switch c {
		case '"':
			return p.text
		case '\\':
			p.escape()
		default:
			p.text = append(p.text, c)
		}
	}
}

func (p *packer) escape() {
	c := p.json[p.at]
	p.at++
	switch c {
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		r := p.unit()
		if utf16.IsSurrogate(r) && bytes.HasPrefix(p.json[p.at:], []byte(`\u`)) {
			p.at += 2
			r = utf16.DecodeRune(r, p.unit())
		}
		p.text = utf8.AppendRune(p.text, r)
		return
	}
	p.text = append(p.text, c)
}

// unit reads four hexadecimal digits.
func (p *packer) unit() (r rune) {
	for _, c := range p.json[p.at : p.at+4] {
		r = r<<4 | rune(digit(c))
	}
	p.at += 4
	return r
}
