package config

import (
	"reflect"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
)

// wordsOf asks the Check of a value, which is addressable, for the words that its
// text settings take: it is told a word that is none. keys are settings that have
// to be there for that. The answer is by path.
func wordsOf(v reflect.Value, keys ...string) map[string][]string {
	if !reflect.PointerTo(v.Type()).Implements(checkerType) {
		return nil
	}
	all := map[string][]string{}
	whole := reflect.New(v.Type()).Elem()
	whole.Set(v)
	for _, f := range fieldsOf(whole, nil) {
		if len(keys) == 0 || f.name != keys[0] {
			continue
		}
		switch {
		case f.value.Type() == secretType:
			f.value.Set(reflect.ValueOf(PlainSecret(noWord)))
		case f.value.Kind() == reflect.String:
			f.value.SetString(noWord)
		}
	}
	var ask func(v reflect.Value, path string)
	ask = func(v reflect.Value, path string) {
		for _, f := range fieldsOf(v, nil) {
			path := path + f.name
			switch one := f.value; {
			case one.Kind() == reflect.Pointer && one.Type().Elem().Kind() == reflect.Struct && one.IsNil():
				one.Set(reflect.New(one.Type().Elem()))
				defaults(one.Elem())
				ask(one.Elem(), path+".")
				one.SetZero()
			case one.Kind() == reflect.Struct && one.Type() != secretType:
				ask(one, path+".")
			case one.Kind() == reflect.String:
				before := one.String()
				one.SetString(noWord)
				for _, p := range whole.Addr().Interface().(Checker).Check() {
					if p.Path == path && p.Words != nil {
						all[path] = p.Words
					}
				}
				one.SetString(before)
			}
		}
	}
	ask(whole, "")
	return all
}

// noWord is a text that is none of any words.
const noWord = "none-of-them"

// defaultOf is what a setting is when it is not written, as Show has it; nil: nothing that can be said.
func defaultOf(v reflect.Value, opt options) any {
	s := &shower{doc: &Document{opts: Options{Verbatim: true}, places: map[string]spot{}}}
	n := s.show(v, "", opt)
	if n == nil || n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode && len(n.Content) == 0 || n.Value == hidden {
		return nil
	}
	var value any
	if n.Decode(&value) != nil || value == "" {
		return nil
	}
	return value
}

// docs are the comments of a file with all settings.
type docs []doc

// A doc is the comment behind a key.
type doc struct {
	path []*yaml.Node // keys
	in   []*yaml.Node // the mapping that each key leads to, if it is one
	text string
}

var (
	outOfUse   = regexp.MustCompile(`(?m)^(\s*)# (\s*(?:- )?[a-z_0-9]+:(?:\s.*)?)$`)
	lineEnding = regexp.MustCompile(`^(?:[^"'#]|"[^"]*"|'[^']*'|[^\s"']#)*\s#\s+(.*)$`)
)

// readDocs reads the comments of an example. A setting that is commented out counts as one.
func readDocs(example string) (all docs) {
	text := outOfUse.ReplaceAllString(example, "$1$2")
	var top yaml.Node
	if yaml.Unmarshal([]byte(text), &top) != nil || len(top.Content) == 0 {
		return nil
	}
	lines := strings.Split(text, "\n")
	taken := map[int]bool{}
	var walk func(n *yaml.Node, path, in []*yaml.Node)
	walk = func(n *yaml.Node, path, in []*yaml.Node) {
		for i := 0; i+1 < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
			key, val := n.Content[i], n.Content[i+1]
			path, in := append(path[:len(path):len(path)], key), append(in[:len(in):len(in)], val)
			if m := lineEnding.FindStringSubmatch(lines[key.Line-1]); m != nil && !taken[key.Line] {
				all = append(all, doc{path, in, m[1]})
			}
			taken[key.Line] = true
			walk(val, path, in)
		}
		for i := 0; i < len(n.Content) && n.Kind == yaml.SequenceNode; i++ {
			item := n.Content[i]
			walk(item, append(path[:len(path):len(path)], item), append(in[:len(in):len(in)], item))
		}
	}
	walk(top.Content[0], nil, nil)
	return all
}

// find is the comment of a setting: the first one whose path fits, * being any name. One in a
// mapping that has the key kind goes before.
func (d docs) find(path []string, kind string) (otherwise string) {
	for _, one := range d {
		if len(one.path) != len(path) {
			continue
		}
		fits, ofKind := true, kind == ""
		for i, want := range path {
			fits = fits && (want == "*" || one.path[i].Value == want || strings.HasSuffix(want, "-") && strings.HasPrefix(one.path[i].Value, want))
			if want == "*" && !ofKind {
				for k := 0; k+1 < len(one.in[i].Content); k += 2 {
					ofKind = ofKind || one.in[i].Content[k].Value == kind
				}
			}
		}
		switch {
		case fits && ofKind:
			return one.text
		case fits && otherwise == "":
			otherwise = one.text
		}
	}
	return otherwise
}
