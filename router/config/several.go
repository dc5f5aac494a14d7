package config

import (
	"fmt"
	"reflect"
)

// DecodeSeveral reads a list, or one value that stands for a list of one, into a
// slice, given by pointer, and reports whether there was no mistake.
func (v *Value) DecodeSeveral(into any) bool {
	if v.IsList() {
		return v.Decode(into)
	}
	list := reflect.ValueOf(into)
	if list.Kind() != reflect.Pointer || list.Elem().Kind() != reflect.Slice {
		panic("BUG: Value.DecodeSeveral wants a pointer to a slice")
	}
	one := reflect.MakeSlice(list.Type().Elem(), 1, 1)
	defaults(one.Index(0))
	list.Elem().Set(one)
	return v.Decode(one.Index(0).Addr().Interface())
}

// ErrorfIn is Errorf with the caret at a part of its text, where that can be seen.
func (v *Value) ErrorfIn(part, hint, format string, args ...any) {
	v.bad, v.d.refused[v.node] = true, true
	v.d.doc.add(Mistake{Place: v.file.within(v.node, part), What: fmt.Sprintf(format, args...), Hint: hint})
}

// Clash adds a mistake that has two halves, other being where the first one is. hint may be empty.
func (d *Document) Clash(p, other Place, hint, format string, args ...any) {
	d.add(Mistake{Place: p, What: fmt.Sprintf(format, args...), Hint: hint, Other: other})
}
