package config

import (
	"fmt"
	"path/filepath"
	"regexp"

	"gopkg.in/yaml.v3"
)

// A Place is a position in a file. The zero Place is nowhere.
type Place struct {
	file   *file
	Line   int // from 1; 0 is the file as a whole
	Column int // from 1, in characters
}

// File is the name of the file as the user gave it; "" for the zero Place.
func (p Place) File() string {
	if p.file == nil {
		return ""
	}
	return p.file.name
}

// Resolve makes a path that the file at this place mentions usable: relative
// ones are relative to the file that holds them.
func (p Place) Resolve(path string) string {
	if p.file == nil || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(p.file.name), path)
}

// A file is one YAML file.
type file struct {
	name    string
	width   int // Options.Width
	lines   []string
	root    *yaml.Node       // its top-level mapping; nil when it is empty or broken
	broken  bool             // could not be read
	secret  []bool           // by line: in a block that must not be shown
	secrets []*regexp.Regexp // texts that must not be shown, beside those that redact knows
}

func (f *file) at(n *yaml.Node) Place { return Place{f, n.Line, n.Column} }

// String is file:line:column, or as much of that as there is.
func (p Place) String() string {
	switch {
	case p.file == nil:
		return ""
	case p.Line == 0:
		return p.file.name
	}
	return fmt.Sprintf("%s:%d:%d", p.file.name, p.Line, p.Column)
}

// hide keeps a text out of what is shown of the file.
func (f *file) hide(text string) {
	if text != "" && !isReference(text) {
		f.secrets = append(f.secrets, regexp.MustCompile("("+regexp.QuoteMeta(text)+")"))
	}
}
