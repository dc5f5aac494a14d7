// Package config reads weir's YAML file strictly: every mistake of a file in
// one run, each with its place, the line, a caret and the way out. It decodes
// into values that its caller supplies and knows no kind of source, filter or
// destination.
package config

// A Size is a number of bytes, written with a unit: 64KiB, 1MiB, 4MB, 512B.
type Size int64

// A Problem is a mistake in a value that decoded well.
type Problem struct {
	Path string // keys below the checked value, joined by dots: "columns.ts.type"; "" is the value itself
	What string // the fact, in lower case: "0 rows make no transaction"
	Hint string // the way out, may be empty: "at least 1"
}

// A Checker looks at a decoded value and tells what is wrong in it. Kinds'
// configurations implement it; values that did not decode are not checked.
type Checker interface {
	Check() []Problem
}
