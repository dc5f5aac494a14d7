package config

import (
	"fmt"
	"reflect"

	"gopkg.in/yaml.v3"
)

// A Value is one YAML value in its place, for an Unmarshaler to read. It is
// valid until UnmarshalConfig returns.
type Value struct {
	d    *decoder
	file *file
	node *yaml.Node // aliases followed
	path string     // keys from the top, each followed by a dot
	word string     // a word that it takes: its default's, if that has one
	bad  bool
}

// IsScalar reports whether it is a single value and not null.
func (v *Value) IsScalar() bool { return v.node.Kind == yaml.ScalarNode && v.node.Tag != "!!null" }

// IsNull reports whether nothing is written there.
func (v *Value) IsNull() bool { return v.node.Kind == yaml.ScalarNode && v.node.Tag == "!!null" }

// IsList reports whether it is a sequence.
func (v *Value) IsList() bool { return v.node.Kind == yaml.SequenceNode }

// IsMap reports whether it is a mapping.
func (v *Value) IsMap() bool { return v.node.Kind == yaml.MappingNode }

// Type is what a scalar looks like: "string", "int", "float", "bool"; "" for
// anything else. What is quoted is a string.
func (v *Value) Type() string {
	if !v.IsScalar() {
		return ""
	}
	switch v.node.Tag {
	case "!!int", "!!float", "!!bool":
		return v.node.Tag[2:]
	}
	return "string"
}

// Keys lists the keys of a mapping in order; nil for anything else.
func (v *Value) Keys() []string {
	if !v.IsMap() {
		return nil
	}
	var keys []string
	for i := 0; i+1 < len(v.node.Content); i += 2 {
		keys = append(keys, v.node.Content[i].Value)
	}
	return keys
}

// Place is where it stands.
func (v *Value) Place() Place { return v.file.at(v.node) }

// Decode reads it into a value, given by pointer, in the same strict way as
// everything else, and reports whether there was no mistake.
func (v *Value) Decode(into any) bool {
	if !v.d.into(v, into) {
		v.bad = true
	}
	return !v.bad
}

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

// Errorf tells a mistake in it. hint is the way out and may be empty.
func (v *Value) Errorf(hint, format string, args ...any) { v.ErrorfIn("", hint, format, args...) }

// ErrorfIn is Errorf with the caret at a part of its text, where that can be seen.
func (v *Value) ErrorfIn(part, hint, format string, args ...any) {
	v.bad, v.d.refused[v.node] = true, true
	v.d.doc.add(Mistake{Place: v.file.within(v.node, part), What: fmt.Sprintf(format, args...), Hint: hint})
}
