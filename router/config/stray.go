package config

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// A stray is a key that is none of those of the mapping in which it stands.
type stray struct {
	f        *file
	key, val *yaml.Node
	path     string  // of the mapping
	known    []field // its keys
	flow     bool    // it is written in braces
	behind   string  // the section without anything in it right before the key; "": none
}

// A home is a mapping, or one that could be there, and the struct that has its keys.
type home struct {
	path string
	at   reflect.Value
}

// A Keyed is a value of a Map that has more keys than its fields say, because
// there are several kinds of it. It is implemented on the pointer.
type Keyed interface {
	// Keys are those by which a kind is known.
	Keys() []string
	// KindsWith are the kinds that have a key, by their own.
	KindsWith(key string) []string
}

// HasKey reports whether settings, given as a pointer to a struct, have that key.
func HasKey(settings any, key string) bool {
	return slices.ContainsFunc(fieldsOf(reflect.ValueOf(settings).Elem(), nil), func(k field) bool { return k.name == key })
}

// A Renamer is a value whose keys have other names elsewhere: of each such name,
// what to write instead. It is implemented on the pointer.
type Renamer interface {
	OtherNames() map[string]string
}

// mostHinted is how many keys a hint may list.
const mostHinted = 16

// unknown notes a key that is none.
func (d *decoder) unknown(s stray) {
	if secret := secretKey.MatchString(Nearest(s.key.Value, s.names())); secret && s.val.Kind == yaml.AliasNode {
		s.f.hideLines(s.val.Alias)
	} else if secret {
		s.f.hide(s.val.Value)
	}
	if s.path == "" && s.val.Kind == yaml.MappingNode {
		d.doc.stray = true
	}
	d.strays = append(d.strays, s)
}

func (s *stray) names() []string {
	names := make([]string, len(s.known))
	for i, k := range s.known {
		names[i] = k.name
	}
	return names
}

// tellStrays tells of all keys that are none, and where they belong.
func (d *decoder) tellStrays() {
	for i := range d.strays {
		s := &d.strays[i]
		if d.doc.mistaken(s.f.at(s.key)) {
			continue
		}
		what, hint := d.explainStray(s)
		d.doc.add(Mistake{Place: s.f.at(s.key), What: what, Hint: hint})
	}
}

func (d *decoder) explainStray(s *stray) (what, hint string) {
	name, full := s.key.Value, words(s.path+s.key.Value)
	for _, pattern := range d.doc.opts.NotYet {
		if matches(strings.Split(pattern, "."), strings.Split(s.path+name, sep)) {
			return full + " is not in this version of weir", "remove it"
		}
	}
	where := " in " + words(s.path)
	if s.path == "" {
		where = ""
	}
	if s.behind != "" && s.val.Kind == yaml.MappingNode {
		return fmt.Sprintf("%s: has nothing below it, and %s: stands beside it", s.behind, name), "two spaces before " + name + ": and what is below it"
	}
	what = fmt.Sprintf("unknown key %q%s", name, where)
	if s.flow && s.val.Tag == "!!null" && !plainKey.MatchString(name) {
		return what, "quotes around the value before it: in braces, a comma ends a value"
	}
	if s.flow && s.val.Tag == "!!null" && s.val.Value == "" {
		return what, "brackets around a list, as in [a, " + name + "]: in braces, a comma ends a value"
	}
	for _, h := range d.elems {
		if rest, ok := strings.CutPrefix(s.path, h.path); !ok || strings.Count(rest, sep) != 1 {
			continue
		}
		if k, ok := reflect.New(h.at.Type()).Interface().(Keyed); ok {
			if kinds := k.KindsWith(name); len(kinds) > 0 {
				return fmt.Sprintf("key %q is one of %s, and %s is neither", name, listed(kinds, 4), words(s.path)), "leave it out"
			}
		}
	}
	for _, h := range d.homes {
		if r, ok := h.at.Addr().Interface().(Renamer); ok && h.path == s.path && r.OtherNames()[fold(name)] != "" {
			return what, r.OtherNames()[fold(name)]
		}
	}
	typo := Typo(name, s.names())
	if near, far := d.homesOf(s); near != "" || far != "" && (typo == "" || distance(fold(typo), fold(name)) > 1) {
		if where = " does not belong in " + words(s.path); s.path == "" {
			where = " does not belong at the top of the file"
		}
		return fmt.Sprintf("key %q%s", name, where), near + far
	}
	if hint = Nearest(name, s.names()); hint == "" {
		if len(s.known) > mostHinted {
			return what, fmt.Sprintf("remove it, or one of the %d keys that weir.example.yaml shows there", len(s.known))
		}
		hint = Suggest(name, s.names())
	}
	return what, hint
}

var plainKey = regexp.MustCompile(`^[A-Za-z_][\w-]*$`)

// homesOf says where a key belongs: near is a mapping around it or right below
// it, far are others that have such a key.
func (d *decoder) homesOf(s *stray) (near, far string) {
	var all []string
	for _, h := range d.everyHome() {
		if h.path == s.path || strings.Count(h.path, sep) > 3 || !slices.ContainsFunc(fieldsOf(h.at, nil), func(k field) bool { return k.name == s.key.Value }) {
			continue
		}
		inner, below := strings.CutPrefix(h.path, s.path)
		switch {
		case h.path == "":
			return "at the top of the file, not indented", ""
		case below && strings.Count(inner, sep) == 1 && s.path != "":
			return words(inner) + ": {" + s.key.Value + ": …}", ""
		case strings.HasPrefix(s.path, h.path):
			return "less indentation: it is a key of " + words(h.path), ""
		}
		section, _, _ := strings.Cut(h.path, sep)
		if i := slices.IndexFunc(all, func(path string) bool { return strings.HasPrefix(path, section+sep) }); i < 0 {
			all = append(all, h.path)
		} else if strings.Count(all[i], sep) == strings.Count(h.path, sep) {
			all[i] = section + sep + "NAME" + all[i][len(section+sep)+strings.Index(all[i][len(section+sep):], sep):] // any of them
		}
	}
	for i, path := range all {
		all[i] = words(path + s.key.Value)
	}
	if len(all) == 0 || len(all) > 3 {
		return "", ""
	}
	return "", strings.Join(all, " or ")
}

// everyHome lists the mappings of the files, and those that the files could have.
func (d *decoder) everyHome() (all []home) {
	is := map[string]bool{}
	for _, h := range d.homes {
		is[h.path] = true
	}
	var add func(h home, deep int)
	add = func(h home, deep int) {
		all = append(all, h)
		if deep == 3 {
			return
		}
		for _, k := range fieldsOf(h.at, nil) {
			path, t := h.path+k.name+sep, k.value.Type()
			if t.Kind() == reflect.Pointer {
				t = t.Elem()
			}
			switch {
			case t.Implements(namedType):
				if k.value.Len() == 0 {
					add(home{path + "NAME" + sep, elemOf(t)}, deep+1)
				}
			case t.Kind() == reflect.Struct && !is[path] && len(fieldsOf(reflect.New(t).Elem(), nil)) > 0:
				add(home{path, reflect.New(t).Elem()}, deep+1)
			}
		}
	}
	for _, h := range d.homes {
		add(h, 0)
	}
	return all
}

// elemOf is a value of a Map.
func elemOf(m reflect.Type) reflect.Value { return reflect.New(m.Elem()).Elem().FieldByName("Value") }

// misplaced tells of a key among the names of a Map that is no name: a key of
// one of its values, or of the whole. before is the name before it.
func (d *decoder) misplaced(f *file, key, val *yaml.Node, path, before string, m reflect.Value) bool {
	elem := elemOf(m.Type())
	if elem.Kind() != reflect.Struct {
		return false
	}
	var keys []string
	for _, k := range fieldsOf(elem, nil) {
		keys = append(keys, k.name)
	}
	_, short := elem.Addr().Interface().(Unmarshaler) // a value may be less than a mapping: type: hostname is a column named type
	if k, ok := elem.Addr().Interface().(Keyed); ok {
		keys, short = append(keys, k.Keys()...), false
	}
	section := words(path)
	switch {
	case !short && val.Kind != yaml.MappingNode && val.Kind != yaml.AliasNode && slices.Contains(keys, key.Value):
		hint := fmt.Sprintf("a name of yours between them, as in %s: {main: {%s: …}}", section, key.Value)
		if before != "" {
			hint = fmt.Sprintf("more indentation, as for the other keys of %s", before)
		}
		return !d.fail(f, key, hint, "%s stands in place of a name: it is a key of each of %s", key.Value, section)
	case val.Kind == yaml.MappingNode && path != "" && slices.Contains(d.sections, key.Value) && !likely(val, keys):
		d.doc.stray = true
		return !d.fail(f, key, "at the left edge, not indented", "%s stands inside %s", key.Value, section)
	}
	return false
}

// likely reports whether a mapping has one of the keys.
func likely(n *yaml.Node, keys []string) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if slices.Contains(keys, n.Content[i].Value) {
			return true
		}
	}
	return false
}

// aliased reports whether what is being decoded stands elsewhere in the file.
func (d *decoder) aliased() bool {
	for _, n := range d.open {
		if n.Anchor != "" {
			return true
		}
	}
	return false
}

// structHint is the way out where keys and values are wanted.
func structHint(n *yaml.Node, path string, out reflect.Value) string {
	switch n.Value {
	case "off", "no", "false", "none", "null":
		return "no " + last(path) + ": at all"
	case "on", "yes", "true":
		return "{}"
	}
	for _, k := range fieldsOf(out, nil) { // the first setting that could have such a value
		_, noSize := parseSize(n.Value)
		_, noTime := parseDuration(n.Value)
		if n.Kind == yaml.ScalarNode && (k.value.Type() == sizeType && noSize == "" || k.value.Type() == durationType && noTime == "") {
			return "{" + k.name + ": " + n.Value + "}"
		}
	}
	return ""
}

// nameHint is the way out where names are wanted.
func nameHint(n *yaml.Node) string {
	if n.Kind != yaml.SequenceNode {
		return "a name of your own, and its settings below that"
	}
	for _, item := range n.Content {
		for i := 0; i+1 < len(item.Content); i += 2 {
			if item.Kind == yaml.MappingNode && item.Content[i].Value == "name" && item.Content[i+1].Kind == yaml.ScalarNode {
				return item.Content[i+1].Value + ": in place of - name: " + item.Content[i+1].Value
			}
		}
	}
	return "a name in place of each -, such as main:"
}
