package sqlstore

import (
	"math"
	"strconv"

	"github.com/weirlog/weir/router"
)

// A cell is one value on its way into a column, before the column's type is known.
type cell struct {
	kind cellKind
	num  uint64 // cellBool, cellInt, cellFloat (as router.Value); cellTime: Unix ns
	data []byte // the others; lent by the message or by scratch
}

type cellKind uint8

const (
	cellNull cellKind = iota
	cellBool
	cellInt
	cellFloat
	cellTime
	cellText   // any bytes; in a JSON column it is JSON text
	cellString // any bytes, of a typed field; in a JSON column it is a JSON string
	cellJSON   // JSON text
)

func intCell(n int64) cell { return cell{kind: cellInt, num: uint64(n)} }

// textCell is NULL for nil.
func textCell(b []byte) cell {
	if b == nil {
		return cell{}
	}
	return cell{kind: cellText, data: b}
}

func (c cell) int() int64     { return int64(c.num) }
func (c cell) float() float64 { return math.Float64frombits(c.num) }

// text is the cell as text. What is not text already is written into s.
func (c cell) text(s *scratch) []byte {
	switch c.kind {
	case cellText, cellString, cellJSON:
		return c.data
	case cellNull:
		return nil
	}
	from := len(s.buf)
	switch c.kind {
	case cellBool:
		s.buf = strconv.AppendBool(s.buf, c.num != 0)
	case cellInt:
		s.buf = strconv.AppendInt(s.buf, c.int(), 10)
	case cellFloat:
		s.buf = router.AppendText(s.buf, router.Value{Kind: router.Float, Num: c.num})
	case cellTime:
		s.buf = router.AppendTimeMicro(s.buf, c.int())
	}
	return s.buf[from:]
}

// scratch is where values are put together. Slices into it stay good until
// reset, also when it grows meanwhile.
type scratch struct {
	buf      []byte
	repaired int // values that were changed to be storable, since it was last read
}

func (s *scratch) reset() {
	if cap(s.buf) > 1<<20 {
		s.buf = nil // one huge message does not stay with us for ever
	}
	s.buf = s.buf[:0]
}

// cellOf makes a cell of a field's value.
func cellOf(v router.Value) cell {
	switch v.Kind {
	case router.Bool:
		return cell{kind: cellBool, num: v.Num}
	case router.Int:
		return cell{kind: cellInt, num: v.Num}
	case router.Float:
		return cell{kind: cellFloat, num: v.Num}
	case router.String, router.Bytes:
		return cell{kind: cellString, data: v.Bytes}
	case router.Array, router.Object:
		return cell{kind: cellJSON, data: v.Bytes}
	}
	return cell{}
}
