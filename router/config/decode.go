package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// sep stands behind each key of a path. YAML cannot write it.
const sep = "\x00"

// words is a path as a person reads it.
func words(path string) string {
	return strings.ReplaceAll(strings.TrimSuffix(path, sep), sep, ".")
}

// A spot is where a value of the whole is written.
type spot struct {
	file *file
	node *yaml.Node
}

func (s spot) place() Place { return s.file.at(s.node) }

// Aliases may write one value in many places, and a value in itself: the work
// is bounded by what any real file needs.
const (
	mostValues = 100_000
	deepest    = 64
)

// A decoder puts the nodes of files into Go values.
type decoder struct {
	doc      *Document
	values   int
	depth    int
	stopped  bool
	open     []*yaml.Node        // what is being decoded, from the top: an alias to one of them has no end
	homes    []home              // mappings that were decoded into structs
	elems    []home              // Maps, and a value of each
	sections []string            // keys of the whole
	strays   []stray             // keys that are none where they stand, to be told when all homes are known
	strange  map[*yaml.Node]bool // mappings with keys that are none or values that are not what they should be
	refused  map[*yaml.Node]bool // values that their Unmarshaler complained about
}

// decode lays all files into one value.
func (d *Document) decode(into any) {
	out := reflect.ValueOf(into)
	if out.Kind() != reflect.Pointer || out.Elem().Kind() != reflect.Struct {
		panic("BUG: config.Load wants a pointer to a struct")
	}
	dec := &decoder{doc: d, strange: map[*yaml.Node]bool{}, refused: map[*yaml.Node]bool{}}
	for _, k := range fieldsOf(out.Elem(), nil) {
		dec.sections = append(dec.sections, k.name)
	}
	seen := map[string]Place{}
	ok, strange := true, false
	for _, f := range d.files {
		if f.root != nil {
			ok = dec.fields(f, f.root, "", out.Elem(), seen) && ok
			strange = strange || dec.strange[f.root]
		}
	}
	dec.tellStrays()
	if ok && !strange && d.Readable() {
		dec.required(d.top(), "", out.Elem())
		for _, f := range d.files {
			if f.root != nil {
				dec.check(f, f.root, out.Elem())
				break
			}
		}
	}
}

// into decodes an Unmarshaler's value further.
func (d *decoder) into(v *Value, into any) bool {
	out := reflect.ValueOf(into)
	if out.Kind() != reflect.Pointer || out.IsNil() {
		panic("BUG: Value.Decode wants a pointer")
	}
	return d.value(v.file, v.node, v.path, out.Elem(), options{word: v.word})
}

var (
	unmarshalerType = reflect.TypeFor[Unmarshaler]()
	checkerType     = reflect.TypeFor[Checker]()
	defaulterType   = reflect.TypeFor[Defaulter]()
	durationType    = reflect.TypeFor[time.Duration]()
	rawType         = reflect.TypeFor[json.RawMessage]()
	secretType      = reflect.TypeFor[Secret]()
	templateType    = reflect.TypeFor[Template]()
	sizeType        = reflect.TypeFor[Size]()
	namedType       = reflect.TypeFor[interface{ isMap() }]()
)

func (Map[T]) isMap() {}

// enter goes into a node: it bounds what the file unfolds to, and follows
// aliases. The caller leaves it again, also when it returns false.
func (d *decoder) enter(f *file, n *yaml.Node) (*yaml.Node, bool) {
	d.depth++
	if d.stopped {
		return n, false
	}
	if d.values++; d.values > mostValues || d.depth > deepest {
		d.stopped, f.broken = true, true // what is missing may be in what was not read
		hint := ""
		if d.aliased() {
			hint = "the values themselves in place of aliases to aliases"
		}
		return n, d.fail(f, n, hint, "the file unfolds to too much: aliases in aliases, or too deep")
	}
	n, ok := d.follow(f, n)
	d.open = append(d.open, n)
	return n, ok
}

func (d *decoder) leave() {
	d.depth--
	if !d.stopped {
		d.open = d.open[:len(d.open)-1]
	}
}

// value decodes one node and reports whether the value is as written, but for
// unknown keys.
func (d *decoder) value(f *file, n *yaml.Node, path string, out reflect.Value, opt options) bool {
	d.doc.places[path] = spot{f, n} // it is there, whatever it is
	n, ok := d.enter(f, n)
	defer d.leave()
	if !ok {
		return false
	}
	d.doc.places[path] = spot{f, n}
	ok = d.decodeAs(f, n, path, out, opt)
	if ok || d.strange[n] && !d.refused[n] {
		d.check(f, n, out)
		d.together(f, n, path, out)
	}
	return ok
}

func (d *decoder) decodeAs(f *file, n *yaml.Node, path string, out reflect.Value, opt options) bool {
	t := out.Type()
	if out.CanAddr() && reflect.PointerTo(t).Implements(unmarshalerType) {
		defaults(out)
		v := &Value{d: d, file: f, node: n, path: path}
		if s, ok := out.Interface().(fmt.Stringer); ok {
			v.word = s.String()
		}
		out.Addr().Interface().(Unmarshaler).UnmarshalConfig(v)
		return !v.bad
	}
	switch t {
	case rawType:
		return d.json(f, n, out)
	case secretType:
		return d.secret(f, n, path, out)
	}
	if t.Implements(namedType) {
		return d.named(f, n, path, out)
	}
	switch t.Kind() {
	case reflect.Pointer:
		if !out.IsNil() {
			return d.value(f, n, path, out.Elem(), opt)
		}
		out.Set(reflect.New(t.Elem()))
		defaults(out.Elem())
		ok := d.value(f, n, path, out.Elem(), opt)
		if !ok && t.Elem().Kind() != reflect.Struct {
			out.SetZero() // as if it were not there: it means nothing
		}
		return ok
	case reflect.Struct:
		if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
			n = &yaml.Node{Kind: yaml.MappingNode, Line: n.Line, Column: n.Column}
		}
		if n.Kind != yaml.MappingNode {
			return d.fail(f, n, structHint(n, path, out), "%s: want keys and values, got %s", words(path), describe(n))
		}
		ok := d.fields(f, n, path, out, map[string]Place{})
		if !d.strange[n] {
			ok = d.required(f.at(n), path, out) && ok
		}
		if !ok {
			d.strange[n] = true
		}
		return ok
	case reflect.Slice:
		return d.list(f, n, path, out)
	}
	return d.scalar(f, n, path, out, opt)
}

// follow resolves an alias and refuses tags.
func (d *decoder) follow(f *file, n *yaml.Node) (*yaml.Node, bool) {
	for range deepest {
		if n.Style&yaml.TaggedStyle != 0 {
			return n, d.fail(f, n, "write the value without "+n.Tag, "tags are not used here")
		}
		if n.Kind != yaml.AliasNode {
			return n, true
		}
		if slices.Contains(d.open, n.Alias) {
			return n, d.fail(f, n, "", "this alias means a value that it is itself a part of")
		}
		n = n.Alias
	}
	return n, d.fail(f, n, "", "this alias leads to itself")
}

// fields decodes a mapping into a struct. seen are the keys that are there
// already, from this mapping or from files before.
func (d *decoder) fields(f *file, n *yaml.Node, path string, out reflect.Value, seen map[string]Place) bool {
	known := fieldsOf(out, nil)
	d.homes = append(d.homes, home{path, out})
	ok, empty := true, ""
	plain := d.pairs(f, n, func(key, val *yaml.Node) {
		name := key.Value
		i := slices.IndexFunc(known, func(k field) bool { return k.name == name })
		switch {
		case i < 0 && path == "" && strings.HasPrefix(name, "x-"):
			return
		case i < 0:
			d.unknown(stray{f: f, key: key, val: val, path: path, known: known, flow: n.Style&yaml.FlowStyle != 0, behind: empty})
			d.strange[n] = true
			return
		}
		if empty = ""; val.Tag == "!!null" && known[i].value.Type().Implements(namedType) {
			empty = name
		}
		first, twice := seen[name]
		if twice && !(first.file != f && known[i].value.Type().Implements(namedType)) {
			d.doc.add(Mistake{Place: f.at(key), What: fmt.Sprintf("%s is there twice", words(path+name)), Other: first, Hint: "remove one of them"})
			d.doc.stray = d.doc.stray || path == "" && val.Kind == yaml.MappingNode
			ok = false
			return
		}
		seen[name] = f.at(key)
		ok = d.value(f, val, path+name+sep, known[i].value, known[i].options) && ok
	})
	if !plain {
		d.strange[n] = true
	}
	return ok
}

// pairs calls each with the key and value nodes of a mapping and reports whether
// its keys are plain.
func (d *decoder) pairs(f *file, n *yaml.Node, each func(key, val *yaml.Node)) (ok bool) {
	ok = true
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case key.Tag == "!!merge":
			ok = d.fail(f, key, "write the keys out, or give the whole value an anchor", "merge keys are not used here")
			continue
		case key.Style&yaml.TaggedStyle != 0:
			ok = d.fail(f, key, "write the key without "+key.Tag, "tags are not used here")
			continue
		case key.Kind != yaml.ScalarNode:
			ok = d.fail(f, key, "", "a key must be a plain word")
			continue
		case strings.TrimFunc(key.Value, oddSpace) != key.Value:
			ok = d.fail(f, key, "an ordinary space", "beside this key is a space that is none to YAML, as word processors and web pages have it")
			continue
		}
		each(key, n.Content[i+1])
	}
	return ok
}

// matches compares a path with a pattern in which * is any one key.
func matches(pattern, path []string) bool {
	return slices.EqualFunc(pattern, path, func(p, k string) bool { return p == "*" || p == k })
}

// required complains about keys that must be there and are not.
func (d *decoder) required(at Place, path string, out reflect.Value) bool {
	ok := true
	for _, k := range fieldsOf(out, nil) {
		if _, there := d.doc.places[path+k.name+sep]; k.required && !there {
			what := fmt.Sprintf("%s is missing", k.name)
			if path != "" {
				what = fmt.Sprintf("%s: %s is missing", words(path), k.name)
			}
			if t := (told{at, k.name}); !d.doc.told[t] { // of an alias, once
				d.doc.told[t] = true
				d.doc.add(Mistake{Place: at, What: what, Hint: "add " + k.name + ":"})
			}
			ok = false
		}
	}
	return ok
}

// named decodes a mapping into a Map.
func (d *decoder) named(f *file, n *yaml.Node, path string, out reflect.Value) bool {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return true
	}
	if n.Kind != yaml.MappingNode {
		return d.fail(f, n, nameHint(n), "%s: want names and their values, got %s", words(path), describe(n))
	}
	d.elems = append(d.elems, home{path, elemOf(out.Type())})
	seen := map[string]Place{}
	for i := range out.Len() {
		e := out.Index(i)
		seen[e.FieldByName("Name").String()] = e.FieldByName("Place").Interface().(Place)
	}
	ok, before := true, ""
	plain := d.pairs(f, n, func(key, val *yaml.Node) {
		if d.misplaced(f, key, val, path, before, out) {
			ok = false
			return
		}
		before = key.Value
		if first, twice := seen[key.Value]; twice {
			d.doc.add(Mistake{Place: f.at(key), What: fmt.Sprintf("%s is there twice", words(path+key.Value)), Other: first, Hint: "rename or remove one of them"})
			ok = false
			return
		}
		seen[key.Value] = f.at(key)
		e := reflect.New(out.Type().Elem()).Elem()
		e.FieldByName("Name").SetString(key.Value)
		e.FieldByName("Place").Set(reflect.ValueOf(f.at(key)))
		defaults(e.FieldByName("Value"))
		ok = d.value(f, val, path+key.Value+sep, e.FieldByName("Value"), options{}) && ok
		out.Set(reflect.Append(out, e))
	})
	return ok && plain
}

func (d *decoder) list(f *file, n *yaml.Node, path string, out reflect.Value) bool {
	if n.Kind != yaml.SequenceNode {
		hint := otherHint(n, path)
		if n.Kind == yaml.ScalarNode && n.Tag != "!!null" && !strings.ContainsAny(n.Value, "\n,[]{}") {
			hint = "[" + n.Value + "]"
		} else if all := strings.FieldsFunc(n.Value, func(r rune) bool { return r == ',' || r == ' ' }); n.Kind == yaml.ScalarNode && len(all) > 1 && !strings.ContainsAny(n.Value, "\n[]{}") {
			hint = "[" + strings.Join(all, ", ") + "]"
		}
		return d.fail(f, n, hint, "%s: want a list, got %s", words(path), describe(n))
	}
	list := reflect.MakeSlice(out.Type(), len(n.Content), len(n.Content))
	ok := true
	for i, c := range n.Content {
		defaults(list.Index(i))
		ok = d.value(f, c, fmt.Sprintf("%s%d%s", path, i, sep), list.Index(i), options{}) && ok
	}
	out.Set(list)
	return ok
}

func defaults(out reflect.Value) {
	if out.CanAddr() && reflect.PointerTo(out.Type()).Implements(defaulterType) {
		out.Addr().Interface().(Defaulter).Defaults()
	}
}

func (d *decoder) fail(f *file, n *yaml.Node, hint, format string, args ...any) bool {
	if d.aliased() && d.doc.mistaken(f.at(n)) { // told already, of another place that means the same value
		return false
	}
	d.doc.add(Mistake{Place: f.at(n), What: fmt.Sprintf(format, args...), Hint: hint})
	return false
}

// describe says what a node is.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys and values"
	case yaml.SequenceNode:
		return "a list"
	}
	if n.Tag == "!!null" {
		return "nothing"
	}
	text := n.Value
	if len(text) > 60 || strings.Contains(text, "\n") {
		return "a text"
	}
	return text
}
