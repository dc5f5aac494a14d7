package meter

import (
	"fmt"
	"slices"
)

// A valueType is a value type in 32 bits: the kind in the lowest byte, as the binary format writes it, and two flags;
// of a reference to functions of one type, that type's index from bit 10 on. Types that can be written in two ways
// ((ref null func) is funcref) are one value here.
type valueType uint32

// Exnref is the type of a reference to an exception, as wazero's api.ValueType, which has no name for it.
const Exnref = exnref

const (
	i32       = 0x7f
	i64       = 0x7e
	f32       = 0x7d
	f64       = 0x7c
	v128      = 0x7b
	funcref   = 0x70
	externref = 0x6f
	exnref    = 0x69

	refNull = 0x63 // (ref null $t), in front of a heap type
	ref     = 0x64 // (ref $t)

	nonNull  valueType = 1 << 8
	concrete valueType = 1 << 9
)

func (v valueType) kind() byte     { return byte(v) }
func (v valueType) isRef() bool    { return isRefType(v.kind()) }
func (v valueType) index() uint32  { return uint32(v >> 10) }
func (v valueType) nullable() bool { return v&nonNull == 0 }

func refTo(index uint32) valueType { return funcref | concrete | valueType(index)<<10 }

// under reports whether a value of type v may stand where one of type t is wanted.
func (v valueType) under(t valueType) bool {
	if !v.nullable() && t.nullable() {
		v &^= nonNull
	}
	return v == t || v&concrete != 0 && t&concrete == 0 && t.kind() == funcref && v&nonNull == t&nonNull
}

func (v valueType) String() string {
	name := map[byte]string{i32: "i32", i64: "i64", f32: "f32", f64: "f64", v128: "v128", funcref: "func", externref: "extern", exnref: "exn"}[v.kind()]
	switch {
	case !v.isRef():
		return name
	case v&concrete != 0:
		name = fmt.Sprint(v.index())
	case v.nullable():
		return name + "ref"
	}
	if v.nullable() {
		return "(ref null " + name + ")"
	}
	return "(ref " + name + ")"
}

func isValueType(t byte) bool { return t >= v128 && t <= i32 || isRefType(t) }

func isRefType(t byte) bool { return t == funcref || t == externref || t == exnref }

// appendValueType writes a type in its shortest form.
func appendValueType(w []byte, v valueType) []byte {
	if v&(nonNull|concrete) == 0 {
		return append(w, v.kind())
	}
	if v.nullable() {
		w = append(w, refNull)
	} else {
		w = append(w, ref)
	}
	if v&concrete != 0 {
		return appendSigned(w, int64(v.index()))
	}
	return append(w, v.kind())
}

// funcType is a signature in full.
type funcType struct {
	params, results []valueType
}

// public is how the host sees a signature.
func (t funcType) public() FuncType {
	kinds := func(types []valueType) (all []byte) {
		for _, v := range types {
			switch {
			case v&(nonNull|concrete) == 0:
				all = append(all, v.kind())
			case v.nullable():
				all = append(all, refNull)
			default:
				all = append(all, ref)
			}
		}
		return all
	}
	return FuncType{Params: kinds(t.params), Results: kinds(t.results)}
}

func (t funcType) has(kind byte) bool {
	is := func(v valueType) bool { return v.kind() == kind }
	return slices.ContainsFunc(t.params, is) || slices.ContainsFunc(t.results, is)
}

// valueType reads a type from r. Those that it names by index are among the first known ones.
func (rw *rewriter) valueType(r *reader, known uint32) valueType {
	at := r.pos
	t := r.byte()
	switch {
	case r.err != nil:
		return 0
	case t == refNull:
		return rw.heapType(r, at, known)
	case t == ref:
		return rw.heapType(r, at, known) | nonNull
	case !isValueType(t):
		r.refuseType(at, t)
	case t == exnref:
		rw.needExceptions(r, at, "value type exnref")
	}
	return valueType(t)
}

// heapType reads what a reference refers to, behind refNull or ref.
func (rw *rewriter) heapType(r *reader, at int, known uint32) valueType {
	h := r.signed(33)
	switch {
	case r.err != nil:
		return 0
	case h >= int64(known):
		r.fail(at, "reference type", fmt.Sprintf("type %d, but there are %d in front of it", h, known), "")
		return 0
	case h >= 0:
		return refTo(uint32(h))
	case h < -64 || !isRefType(byte(h&0x7f)):
		r.refuseType(at, byte(h&0x7f))
		return 0
	case h == exnref-0x80:
		rw.needExceptions(r, at, "value type exnref")
	}
	return valueType(h & 0x7f)
}

// nullType reads the operand of ref.null: wazero takes a byte, or an unsigned index where the specification has a
// signed one, so an index in one byte of 0x40 to 0x7f would read two ways.
func (rw *rewriter) nullType(r *reader) valueType {
	at := r.pos
	if r.empty() || r.b[r.pos] < 0x40 || r.b[r.pos] > 0x7f {
		t := r.u32()
		if known := uint32(len(rw.types)); t >= known && r.err == nil {
			r.fail(at, "ref.null", fmt.Sprintf("type %d, but there are %d", t, known), "")
		}
		return refTo(t)
	}
	t := r.byte()
	switch {
	case !isRefType(t):
		r.refuseType(at, t)
	case t == exnref:
		rw.needExceptions(r, at, "value type exnref")
	}
	return valueType(t)
}

// appendNullType writes the operand of ref.null.
func appendNullType(w []byte, v valueType) []byte {
	if v&concrete != 0 {
		return appendSigned(w, int64(v.index())) // read as unsigned it is the same number
	}
	return append(w, v.kind())
}

// refType reads a type that must be a reference and not to an exception: these may leave no function (see keep.go).
func (rw *rewriter) refType(what string) valueType {
	r := &rw.r
	at := r.pos
	v := rw.valueType(r, uint32(len(rw.types)))
	if r.err != nil {
		return v
	}
	if !v.isRef() {
		r.fail(at, what, fmt.Sprintf("malformed: %v is not a reference type", v), "")
	}
	rw.confine(at, what, v)
	return v
}

// lists gives lists of types a number each, the same for equal ones: 0 for none, a plain type's kind for that one alone.
type lists struct {
	numbers map[string]uint32
	hasRef  []bool
}

func (l *lists) number(types []valueType) uint32 {
	if len(types) == 0 {
		return 0
	}
	if len(types) == 1 && types[0] < 256 {
		return uint32(types[0])
	}
	key := make([]byte, 0, 4*len(types))
	hasRef := false
	for _, v := range types {
		key = append(key, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
		hasRef = hasRef || v.isRef()
	}
	n, ok := l.numbers[string(key)]
	if !ok {
		if l.numbers == nil {
			l.numbers = map[string]uint32{}
		}
		n = 256 + uint32(len(l.hasRef))
		l.numbers[string(key)] = n
		l.hasRef = append(l.hasRef, hasRef)
	}
	return n
}

// refs reports whether there is a reference in a list.
func (l *lists) refs(n uint32) bool {
	if n < 256 {
		return isRefType(byte(n))
	}
	return l.hasRef[n-256]
}

// alone are the lists of one plain type each.
var alone = func() (all [256][1]valueType) {
	for i := range all {
		all[i][0] = valueType(i)
	}
	return all
}()

// size is what a value takes on a stack.
func size(v valueType) int {
	if v == v128 {
		return 2 * valueBytes
	}
	return valueBytes
}
