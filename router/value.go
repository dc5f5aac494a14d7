package router

import "math"

// A Kind is the type of a Value. The numbers are those of field_type in the
// guest ABI (filters/ABI.md), where 0 means that there is no such field.
type Kind uint8

const (
	Absent Kind = iota
	Null
	Bool
	Int    // 64 bits, signed
	Float  // 64 bits; never NaN or infinite
	String // UTF-8
	Bytes  // anything else
	Array  // compact JSON text
	Object // compact JSON text, order of keys kept
)

// A Value is the typed value of a field. Num holds Bool (0 or 1), Int (two's
// complement) and Float (IEEE 754 bits); Bytes holds the rest.
type Value struct {
	Kind  Kind
	Num   uint64
	Bytes []byte
}

func BoolValue(v bool) Value {
	if v {
		return Value{Kind: Bool, Num: 1}
	}
	return Value{Kind: Bool}
}

func IntValue(v int64) Value     { return Value{Kind: Int, Num: uint64(v)} }
func FloatValue(v float64) Value { return Value{Kind: Float, Num: math.Float64bits(v)} }

func (v Value) Bool() bool     { return v.Num != 0 }
func (v Value) Int() int64     { return int64(v.Num) }
func (v Value) Float() float64 { return math.Float64frombits(v.Num) }
