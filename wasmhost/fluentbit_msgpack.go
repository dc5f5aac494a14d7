package wasmhost

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/wasmhost/meter"
)

// mostDepth is how deep arrays and maps may lie in each other: as deep as record JSON.
const mostDepth = 512

// An unpacker makes JSON of MessagePack, in bounded depth and size.
type unpacker struct {
	clock *meter.Clock
	most  int // bytes of JSON

	data  []byte
	out   []byte
	paid  int // of out
	depth int
}

var (
	errShort = errors.New("it ends in the middle of a value")
	errDeep  = fmt.Errorf("it is more than %d levels deep", mostDepth)
	errBig   = errors.New("it is too large")
)

// appendMap appends the map that data begins with to dst, as a JSON object. What follows the map is nobody's.
func (u *unpacker) appendMap(dst, data []byte) ([]byte, error) {
	u.data, u.out, u.paid, u.depth = data, dst, len(dst), 0
	if c := data[0]; c>>4 != 0x8 && c != 0xde && c != 0xdf {
		return dst, fmt.Errorf("it begins with the byte %#02x", c)
	}
	err := u.value()
	return u.out, err
}

// take returns the next n bytes.
func (u *unpacker) take(n uint64) ([]byte, error) {
	if n > uint64(len(u.data)) {
		return nil, errShort
	}
	b := u.data[:n]
	u.data = u.data[n:]
	return b, nil
}

// number returns the next size bytes as an integer.
func (u *unpacker) number(size int) (n uint64, err error) {
	b, err := u.take(uint64(size))
	for _, c := range b {
		n = n<<8 | uint64(c)
	}
	return n, err
}

func (u *unpacker) value() error {
	if len(u.out)-u.paid >= piece {
		u.clock.Charge(len(u.out) - u.paid)
		u.paid = len(u.out)
	}
	if len(u.out) > u.most {
		return errBig
	}
	b, err := u.take(1)
	if err != nil {
		return err
	}
	c := b[0]
	switch {
	case c < 0x80:
		u.out = strconv.AppendUint(u.out, uint64(c), 10)
	case c < 0x90:
		return u.members(uint64(c & 15))
	case c < 0xa0:
		return u.elements(uint64(c & 15))
	case c < 0xc0:
		return u.text(uint64(c & 31))
	case c >= 0xe0:
		u.out = strconv.AppendInt(u.out, int64(int8(c)), 10)
	default:
		return u.sized(c)
	}
	return nil
}

// sizes are how many bytes of a number or length follow a first byte, from 0xc0 on.
var sizes = [32]uint8{
	0x04: 1, 2, 4, 1, 2, 4, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8,
	0x19: 1, 2, 4, 2, 4, 2, 4,
}

// sized reads what a byte of 0xc0 to 0xdf begins.
func (u *unpacker) sized(c byte) error {
	switch c {
	case 0xc0:
		u.out = append(u.out, "null"...)
		return nil
	case 0xc2, 0xc3:
		u.out = strconv.AppendBool(u.out, c == 0xc3)
		return nil
	case 0xd4, 0xd5, 0xd6, 0xd7, 0xd8:
		return u.extension(1 << (c - 0xd4))
	}
	size := int(sizes[c-0xc0])
	if size == 0 {
		return fmt.Errorf("there is no value that begins with the byte %#02x", c)
	}
	n, err := u.number(size)
	if err != nil {
		return err
	}
	switch c {
	case 0xc4, 0xc5, 0xc6, 0xd9, 0xda, 0xdb:
		return u.text(n)
	case 0xc7, 0xc8, 0xc9:
		return u.extension(n)
	case 0xca:
		return u.float(float64(math.Float32frombits(uint32(n))), 32)
	case 0xcb:
		return u.float(math.Float64frombits(n), 64)
	case 0xcc, 0xcd, 0xce, 0xcf:
		u.out = strconv.AppendUint(u.out, n, 10)
	case 0xd0, 0xd1, 0xd2, 0xd3:
		unused := 64 - 8*size
		u.out = strconv.AppendInt(u.out, int64(n<<unused)>>unused, 10)
	case 0xdc, 0xdd:
		return u.elements(n)
	case 0xde, 0xdf:
		return u.members(n)
	}
	return nil
}

// text reads a str or bin: they are the same to weir, which takes text for what it is.
func (u *unpacker) text(n uint64) error {
	b, err := u.take(n)
	if err != nil {
		return err
	}
	u.out = router.AppendString(u.out, b)
	return nil
}

func (u *unpacker) float(f float64, bits int) error {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return errors.New("it holds a float that is not a number, which records cannot hold")
	}
	from := len(u.out)
	u.out = strconv.AppendFloat(u.out, f, 'g', -1, bits)
	for _, c := range u.out[from:] {
		if c == '.' || c == 'e' {
			return nil
		}
	}
	u.out = append(u.out, ".0"...)
	return nil
}

func (u *unpacker) deeper() error {
	u.depth++
	if u.depth > mostDepth {
		return errDeep
	}
	return nil
}

func (u *unpacker) elements(n uint64) error {
	if err := u.deeper(); err != nil {
		return err
	}
	u.out = append(u.out, '[')
	for i := range n {
		if i > 0 {
			u.out = append(u.out, ',')
		}
		if err := u.value(); err != nil {
			return err
		}
	}
	u.out = append(u.out, ']')
	u.depth--
	return nil
}

func (u *unpacker) members(n uint64) error {
	if err := u.deeper(); err != nil {
		return err
	}
	u.out = append(u.out, '{')
	for i := range n {
		if i > 0 {
			u.out = append(u.out, ',')
		}
		from := len(u.out)
		if err := u.value(); err != nil {
			return err
		}
		if u.out[from] != '"' {
			return errors.New("a name in it is no text")
		}
		u.out = append(u.out, ':')
		if err := u.value(); err != nil {
			return err
		}
	}
	u.out = append(u.out, '}')
	u.depth--
	return nil
}

// extension reads an extension of n bytes: a time is RFC 3339 in JSON, there is no other.
func (u *unpacker) extension(n uint64) error {
	kind, err := u.number(1)
	if err != nil {
		return err
	}
	b, err := u.take(n)
	if err != nil {
		return err
	}
	if int8(kind) != -1 {
		return fmt.Errorf("it holds an extension of type %d; only times (-1) have a form in records", int8(kind))
	}
	var t time.Time
	switch n {
	case 4:
		t = time.Unix(int64(binary.BigEndian.Uint32(b)), 0)
	case 8:
		v := binary.BigEndian.Uint64(b)
		t = time.Unix(int64(v&(1<<34-1)), int64(v>>34))
	case 12:
		t = time.Unix(int64(binary.BigEndian.Uint64(b[4:])), int64(binary.BigEndian.Uint32(b)))
	default:
		return fmt.Errorf("it holds a time of %d bytes", n)
	}
	if t = t.UTC(); t.Year() < 1 || t.Year() > 9999 {
		return errors.New("it holds a time that is outside of the years 1 to 9999")
	}
	u.out = append(t.AppendFormat(append(u.out, '"'), time.RFC3339Nano), '"')
	return nil
}
