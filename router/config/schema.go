package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// SchemaOptions say what a schema holds beside the shape of the settings.
type SchemaOptions struct {
	Example string // a file with every setting: the comment behind a key is its description
	Names   string // a regular expression for names at the top; "": any
}

// A Former tells in which forms its UnmarshalConfig reads a value, for schemas.
// It is implemented on the pointer, and does not look at what it is called on.
// Whatever implements Unmarshaler and is part of settings that a schema is made
// of has to implement it.
type Former interface {
	Forms() []Form
}

// A Form is one way to write a value: a Value, or one of Words, or a text of a Pattern.
type Form struct {
	Value   any // what UnmarshalConfig gives to Decode, by pointer; what it holds is the default
	Words   []string
	Most    uint64 // of a Value that is a whole number: the largest
	Pattern string // a regular expression that JavaScript has, too
	Key     string // of a mapping: the key by which this form is known; it has to be there
}

// Schema is a JSON Schema (draft 7, which editors complete best from) of a value
// as Load reads it, given by pointer; what it holds is the default. It is made of
// the types alone: words come from what Check says of a text that is none of them.
// The value is as strict as Load about names, forms and words; bounds of numbers,
// and what depends on something else, only Load knows. It panics when a type
// does not say what it reads.
func Schema(from any, opts SchemaOptions) []byte {
	g := &schemaMaker{opts: opts, docs: readDocs(opts.Example), defs: map[string]*schema{}, types: map[string]reflect.Type{}}
	top := g.structure(reflect.ValueOf(from).Elem(), spotInSchema{}, nil)
	top.Schema = "http://json-schema.org/draft-07/schema#"
	top.Type = "object"
	top.PatternProperties = map[string]*schema{"^x-": {Description: g.docs.find([]string{"x-"}, "")}}
	top.Definitions = g.defs
	text, err := json.MarshalIndent(top, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("BUG: a schema that is no JSON: %v", err))
	}
	return append(text, '\n')
}

// A schema is one JSON Schema: the keywords that are used here, in the order of reading.
type schema struct {
	Schema               string             `json:"$schema,omitempty"`
	Ref                  string             `json:"$ref,omitempty"`
	Description          string             `json:"description,omitempty"`
	Type                 any                `json:"type,omitempty"`
	Enum                 []string           `json:"enum,omitempty"`
	Pattern              string             `json:"pattern,omitempty"`
	Minimum              *int64             `json:"minimum,omitempty"`
	Maximum              *uint64            `json:"maximum,omitempty"`
	Default              any                `json:"default,omitempty"`
	Required             []string           `json:"required,omitempty"`
	Properties           properties         `json:"properties,omitempty"`
	PatternProperties    map[string]*schema `json:"patternProperties,omitempty"`
	AdditionalProperties any                `json:"additionalProperties,omitempty"`
	PropertyNames        *schema            `json:"propertyNames,omitempty"`
	Items                *schema            `json:"items,omitempty"`
	AnyOf                []*schema          `json:"anyOf,omitempty"`
	If                   *schema            `json:"if,omitempty"`
	Then                 *schema            `json:"then,omitempty"`
	Else                 *schema            `json:"else,omitempty"`
	Definitions          map[string]*schema `json:"definitions,omitempty"`
}

// properties are in the order of the settings.
type properties []property

type property struct {
	name string
	of   *schema
}

func (p properties) MarshalJSON() ([]byte, error) {
	var b strings.Builder
	b.WriteByte('{')
	for i, one := range p {
		name, _ := json.Marshal(one.name) // a string: cannot fail
		of, err := json.Marshal(one.of)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s:%s", name, of)
	}
	b.WriteByte('}')
	return []byte(b.String()), nil
}
