// Package config reads weir's YAML file strictly: every mistake of a file in
// one run, each with its place, the line, a caret and the way out. It decodes
// into values that its caller supplies and knows no kind of source, filter or
// destination.
//
// A kind describes its settings by a plain struct:
//
//	type Config struct {
//		Listen      []string           `yaml:"listen,required"`
//		MaxMessage  config.Size        `yaml:"max_message"`            // 64KiB
//		IdleTimeout time.Duration      `yaml:"idle_timeout,off"`       // 1s; the word off is 0
//		Held        *Held              `yaml:"when_held"`              // optional: nil when absent
//		Password    config.Secret      `yaml:"password"`
//		Line        config.Template    `yaml:"line"`                   // ${hostname} is the message's
//		Columns     config.Map[Column] `yaml:"columns"`                // order kept, positions known
//		Options     json.RawMessage    `yaml:"config"`                 // any YAML value, as JSON
//		Flush       Flush              `yaml:",inline"`                // its keys stand among these
//	}
//
// What the struct holds before decoding is the default. Values in a Map or a
// list start as their type's zero, or as its method Defaults leaves them (see
// Defaulter). A tag's options are: inline, required (the key must be there),
// off (the word `off` is allowed and means 0), with=KEY (it means nothing without
// that setting beside it), some (a whole number for which 0
// stands for absent and cannot be written), omitempty (Show leaves it out when it
// is nothing). Fields without a yaml tag are not for the file. Supported are string, bool, integers, float64,
// time.Duration, Size, Secret, Template, json.RawMessage, Map, slices, structs,
// pointers to those, and whatever implements Unmarshaler.
//
// Decoded values that implement Checker are asked for what is wrong in them; an
// inline struct is asked by the one that it is in.
package config

import "fmt"

// A Size is a number of bytes, written with a unit: 64KiB, 1MiB, 4MB, 512B.
type Size int64

// A Template is text with references to a message's values (${hostname}),
// which belong to whoever evaluates it: package config leaves them and $$ as
// they are and expands only the file's own, whose dollars it doubles. In a
// plain string, $$ is a dollar and an unknown reference is a mistake.
type Template string

// A Map is a YAML mapping of names to values, in the order of the file. Across
// several files the entries are laid together; a name that is there twice is a
// mistake that shows both places.
type Map[T any] []Entry[T]

// An Entry is one named value of a Map.
type Entry[T any] struct {
	Name  string
	Value T
	Place Place // of the name
}

// Get returns the value of that name, or nil.
func (m Map[T]) Get(name string) *T {
	for i := range m {
		if m[i].Name == name {
			return &m[i].Value
		}
	}
	return nil
}

// Names lists the names in order.
func (m Map[T]) Names() []string {
	names := make([]string, len(m))
	for i := range m {
		names[i] = m[i].Name
	}
	return names
}

// A Defaulter sets its own defaults before it is decoded: for values in a Map,
// a list or behind a pointer, which no caller can fill beforehand. It is
// implemented on the pointer.
type Defaulter interface {
	Defaults()
}

// An Unmarshaler reads its own YAML value, for what may be written in more than
// one form. It is implemented on the pointer.
//
//	// A Column is a name (`host: hostname`) or a mapping (`host: {from: hostname}`).
//	func (c *Column) UnmarshalConfig(v *config.Value) {
//		if v.IsScalar() {
//			v.Decode(&c.From)
//			return
//		}
//		type plain Column // without this method
//		v.Decode((*plain)(c))
//	}
//
// Mistakes are told to v (Decode does by itself); Check is called afterwards if
// there were none.
type Unmarshaler interface {
	UnmarshalConfig(v *Value)
}

// A Problem is a mistake in a value that decoded well.
type Problem struct {
	Path string // keys below the checked value, joined by dots: "columns.ts.type", "listen.0"; "" is the value itself
	Part string // a text in the value at which the caret is to stand; may be empty
	What string // the fact, in lower case: "0 rows make no transaction"
	Hint string // the way out, may be empty: "at least 1"

	Words []string // where only certain words are right: all of them
}

// A Checker looks at a decoded value and tells what is wrong in it. Kinds'
// configurations implement it. Where a part of the value did not decode it holds
// its default, and problems of that part, and of the value itself, are not told.
type Checker interface {
	Check() []Problem
}

// OneOf checks that value is one of words and suggests the nearest.
func OneOf(path, value string, words ...string) []Problem {
	for _, w := range words {
		if value == w {
			return nil
		}
	}
	return []Problem{{Path: path, What: fmt.Sprintf("unknown word %q", value), Hint: Suggest(value, words), Words: words}}
}
