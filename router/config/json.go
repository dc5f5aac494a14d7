package config

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// json decodes any YAML value into compact JSON, the order of keys kept.
func (d *decoder) json(f *file, n *yaml.Node, out reflect.Value) bool {
	var b bytes.Buffer
	if !d.writeJSON(&b, f, n) {
		return false
	}
	out.SetBytes(b.Bytes())
	return true
}

func (d *decoder) writeJSON(b *bytes.Buffer, f *file, n *yaml.Node) bool {
	n, ok := d.enter(f, n)
	defer d.leave()
	if !ok {
		return false
	}
	switch n.Kind {
	case yaml.MappingNode:
		seen := map[string]Place{}
		b.WriteByte('{')
		plain := d.pairs(f, n, func(key, val *yaml.Node) {
			if first, twice := seen[key.Value]; twice {
				d.doc.add(Mistake{Place: f.at(key), What: key.Value + " is there twice", Other: first, Hint: "remove one of them"})
				ok = false
				return
			}
			if len(seen) > 0 {
				b.WriteByte(',')
			}
			seen[key.Value] = f.at(key)
			writeText(b, key.Value)
			b.WriteByte(':')
			ok = d.writeJSON(b, f, val) && ok
		})
		b.WriteByte('}')
		return ok && plain
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, c := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			ok = d.writeJSON(b, f, c) && ok
		}
		b.WriteByte(']')
		return ok
	}
	return d.writeScalar(b, f, n)
}

// writeScalar keeps numbers as they are written where JSON can read them.
func (d *decoder) writeScalar(b *bytes.Buffer, f *file, n *yaml.Node) bool {
	switch n.Tag {
	case "!!null":
		b.WriteString("null")
	case "!!bool":
		b.WriteString(strings.ToLower(n.Value))
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			b.WriteString(n.Value)
			return true
		}
		if i, err := strconv.ParseInt(n.Value, 0, 64); err == nil {
			b.WriteString(strconv.FormatInt(i, 10))
			return true
		}
		x, err := strconv.ParseFloat(n.Value, 64)
		if err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
			return d.fail(f, n, "\""+n.Value+"\" if it is text", "JSON has no number %s", n.Value)
		}
		text, _ := json.Marshal(x) // finite: cannot fail
		b.Write(text)
	default:
		text, ok := d.expand(f, n, false)
		writeText(b, text)
		return ok
	}
	return true
}

func writeText(b *bytes.Buffer, s string) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	e.Encode(s)             // a string: cannot fail
	b.Truncate(b.Len() - 1) // the newline
}
