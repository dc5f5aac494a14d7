package config

import (
	"fmt"
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"
)

// check asks a decoded value for its problems. When parts of it did not decode,
// only what it says about others counts.
func (d *decoder) check(f *file, n *yaml.Node, out reflect.Value) {
	var c Checker
	switch {
	case out.Kind() == reflect.Pointer:
		return // its element was asked
	case out.Type().Implements(checkerType):
		c = out.Interface().(Checker)
	case out.CanAddr() && reflect.PointerTo(out.Type()).Implements(checkerType):
		c = out.Addr().Interface().(Checker)
	default:
		return
	}
	for _, p := range c.Check() {
		at, there := d.find(f, n, p.Path)
		if d.strange[n] && (!there || p.Path == "" || d.refused[at] || d.doc.mistaken(f.at(at))) {
			continue
		}
		place := f.at(at)
		if p.Part != "" {
			place = f.within(at, p.Part)
		}
		d.doc.add(Mistake{Place: place, What: p.What, Hint: p.Hint})
	}
}

// find is the node that a problem's path leads to; if it is not there, the deepest
// on the way. What is behind an alias that is a mistake is not there.
func (d *decoder) find(f *file, n *yaml.Node, path string) (at *yaml.Node, there bool) {
	for range deepest {
		if n.Kind == yaml.AliasNode {
			if d.doc.mistaken(f.at(n)) {
				return n, false
			}
			n = n.Alias
			continue
		}
		if path == "" {
			return n, true
		}
		next, rest := step(n, path)
		if next == nil {
			return n, false
		}
		n, path = next, rest
	}
	return n, false
}

// step goes one key down. Keys may have dots in them: the longest that fits wins.
func step(n *yaml.Node, path string) (next *yaml.Node, rest string) {
	longest := -1
	try := func(key string, val *yaml.Node) {
		if r, ok := strings.CutPrefix(path, key); ok && len(key) > longest && (r == "" || r[0] == '.') {
			next, rest, longest = val, strings.TrimPrefix(r, "."), len(key)
		}
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			try(n.Content[i].Value, n.Content[i+1])
		}
	case yaml.SequenceNode:
		for i, c := range n.Content {
			try(fmt.Sprint(i), c)
		}
	}
	return next, rest
}
