package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
)

// A member of a JSON object, as it stands in the text.
type member struct {
	name       string
	start      int // of the name
	value, end int
}

// members returns the members of a JSON object in the order of the text.
func members(object []byte) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	var all []member
	for d.More() {
		before := int(d.InputOffset())
		start := before + bytes.IndexByte(object[before:], '"')
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		end := int(d.InputOffset())
		all = append(all, member{name.(string), start, end - len(value), end})
	}
	return all, nil
}

// valueOf returns the value of the member with this name; nil: there is none.
func valueOf(object json.RawMessage, name string) json.RawMessage {
	all, _ := members(object) // what is none has none
	for _, m := range all {
		if m.name == name {
			return object[m.value:m.end]
		}
	}
	return nil
}

func has(object json.RawMessage, name string) bool { return valueOf(object, name) != nil }

// splice puts value in place of the member with this name, or behind the last member, in the manner of the others.
func splice(object []byte, name string, value []byte) ([]byte, error) {
	all, err := members(object)
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		if m.name == name {
			return concat(object[:m.value], value, object[m.end:]), nil
		}
	}
	if len(all) == 0 {
		return concat([]byte(`{"`+name+`":`), value, []byte("}")), nil
	}
	last := all[len(all)-1]
	comma, colon := ",", object[last.start:last.value]
	if len(all) > 1 {
		comma = string(object[all[len(all)-2].end:last.start])
	}
	colon = colon[bytes.LastIndexByte(colon, '"')+1:]
	return concat(object[:last.end], []byte(comma+`"`+name+`"`), colon, value, object[last.end:]), nil
}

// cut removes the member with this name.
func cut(object []byte, name string) []byte {
	all, err := members(object)
	if err != nil {
		return object
	}
	for i, m := range all {
		switch {
		case m.name != name:
		case i+1 < len(all):
			return concat(object[:m.start], object[all[i+1].start:])
		case i > 0:
			return concat(object[:all[i-1].end], object[m.end:])
		default:
			return concat(object[:m.start], object[m.end:])
		}
	}
	return object
}

func concat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
