package config

import (
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Options say how files are read.
type Options struct {
	// NotYet are keys that are refused as not in this version, rather than as
	// unknown: paths of keys joined by dots, * is any one key ("routes.*.match").
	NotYet []string
	// Env looks up a variable; nil: os.LookupEnv.
	Env func(name string) (string, bool)
	// Verbatim leaves ${…} as text: for files of strangers, who shall see neither the environment nor other files.
	Verbatim bool
	// Stdin is what the path "-" reads; nil: it is refused.
	Stdin io.Reader
	// Width is how many columns there are for lines that mistakes quote; 0: as many as they take.
	Width int
}

// A Document is what was read from all files, with the mistakes found so far.
// It is not safe for concurrent use.
type Document struct {
	opts     Options
	files    []*file
	places   map[string]spot
	mistakes []Mistake
	told     map[told]bool
	tops     []string  // keys at the top, to know files of other programs by
	stray    bool      // there are keys at the top, or sections, that are out of place
	idle     []Mistake // of settings without the one that they go with
	revealed []string  // pairs: what a ${file:…} gave, and what to show for it
}

// told is what keeps a mistake from being told twice: an alias is decoded more
// than once, and parts are checked by the whole, too.
type told struct {
	place Place
	what  string
}

// Parse reads one text as if it were in a file of that name.
func Parse(into any, opts Options, name string, text []byte) *Document {
	d := newDocument(into, opts)
	f := d.open(name)
	f.split(text)
	d.parse(f, text)
	d.decode(into)
	d.tellIdle()
	return d
}

func newDocument(into any, opts Options) *Document {
	if opts.Env == nil {
		opts.Env = os.LookupEnv
	}
	d := &Document{opts: opts, places: map[string]spot{}, told: map[told]bool{}}
	if opts.Verbatim { // some other kind of file
		return d
	}
	for _, k := range fieldsOf(reflect.ValueOf(into).Elem(), nil) {
		d.tops = append(d.tops, k.name)
	}
	return d
}

func (d *Document) open(name string) *file {
	f := &file{name: name, width: d.opts.Width}
	d.files = append(d.files, f)
	return f
}

// Readable reports whether all files are YAML, so that what is missing in the
// value is missing in them.
func (d *Document) Readable() bool {
	for _, f := range d.files {
		if f.broken {
			return false
		}
	}
	return len(d.files) > 0
}

// Stray reports whether sections, or what may be meant as such, are out of place:
// what seems to be missing may be in them.
func (d *Document) Stray() bool { return d.stray }

// Empty reports whether no file holds a setting.
func (d *Document) Empty() bool {
	return !slices.ContainsFunc(d.files, func(f *file) bool { return f.root != nil })
}

// Files are the names of the files that were read.
func (d *Document) Files() []string {
	names := make([]string, len(d.files))
	for i, f := range d.files {
		names[i] = f.name
	}
	return names
}

// Errorf adds a mistake that a look at the whole found. hint may be empty.
func (d *Document) Errorf(p Place, hint, format string, args ...any) {
	d.add(Mistake{Place: p, What: fmt.Sprintf(format, args...), Hint: hint})
}

// Clash adds a mistake that has two halves, other being where the first one is. hint may be empty.
func (d *Document) Clash(p, other Place, hint, format string, args ...any) {
	d.add(Mistake{Place: p, What: fmt.Sprintf(format, args...), Hint: hint, Other: other})
}

// Warnf adds a warning. hint may be empty.
func (d *Document) Warnf(p Place, hint, format string, args ...any) {
	d.add(Mistake{Place: p, What: fmt.Sprintf(format, args...), Hint: hint, Warning: true})
}

// Unknown adds the mistake of a name that is not one of known, and suggests the nearest.
func (d *Document) Unknown(p Place, what, name string, known []string) {
	hint := Suggest(name, known)
	if hint == "" {
		hint = "there is none; add it"
	}
	d.Errorf(p, hint, "no %s is named %q", what, name)
}

// At is the place of the value that the given keys lead to ("routes", "main",
// "to", "0"), or of the deepest that the files have, or the first file as a whole.
func (d *Document) At(keys ...string) Place {
	path, found := "", d.top()
	for _, k := range keys {
		path += k + sep
		if s, ok := d.places[path]; ok {
			found = s.place()
		}
	}
	return found
}

// top is the first file as a whole.
func (d *Document) top() Place {
	if len(d.files) == 0 {
		return Place{}
	}
	return Place{file: d.files[0]}
}

// Has reports whether the files have a value there, and not just a key.
func (d *Document) Has(keys ...string) bool {
	s, ok := d.places[strings.Join(keys, sep)+sep]
	return ok && s.node.Tag != "!!null"
}

// Wrong reports whether there is a mistake in what the given keys lead to, in any
// of the files. The keys of lists are numbers.
func (d *Document) Wrong(keys ...string) bool {
	return slices.ContainsFunc(d.files, func(f *file) bool { return f.root != nil && d.wrongIn(f, f.root, keys) })
}

func (d *Document) wrongIn(f *file, n *yaml.Node, keys []string) bool {
	if len(keys) == 0 {
		return d.wrongAt(f, n, 0)
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == keys[0] && (d.mistaken(f.at(n.Content[i])) || d.wrongIn(f, n.Content[i+1], keys[1:])) {
			return true
		}
	}
	if i, err := strconv.Atoi(keys[0]); err == nil && n.Kind == yaml.SequenceNode && i >= 0 && i < len(n.Content) {
		return d.mistaken(f.at(n)) || d.wrongIn(f, n.Content[i], keys[1:])
	}
	return n.Kind == yaml.ScalarNode && d.mistaken(f.at(n)) // it stands for a list of one, or for nothing that has keys
}

// wrongAt reports whether there is a mistake at a node or in it.
func (d *Document) wrongAt(f *file, n *yaml.Node, deep int) bool {
	if deep > deepest {
		return true
	}
	if n.Kind == yaml.AliasNode {
		return d.wrongAt(f, n.Alias, deep+1)
	}
	return d.mistaken(f.at(n)) || slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return d.wrongAt(f, c, deep+1) })
}

func (d *Document) add(m Mistake) {
	m.What = strings.Join(strings.FieldsFunc(m.What, func(r rune) bool { return r == '\n' || r == '\t' }), " ") // servers' words may have several lines
	if len(d.revealed) > 0 {
		hide := strings.NewReplacer(d.revealed...)
		m.What, m.Hint = hide.Replace(m.What), hide.Replace(m.Hint)
	}
	m.What, m.Hint = redact(m.What), redact(m.Hint)
	k := told{m.Place, m.What}
	if d.told[k] {
		return
	}
	d.told[k] = true
	d.mistakes = append(d.mistakes, m)
}

// mistaken reports whether there is a mistake at a place already.
func (d *Document) mistaken(p Place) bool {
	return slices.ContainsFunc(d.mistakes, func(m Mistake) bool { return m.Place == p && !m.Warning })
}

// Mistakes are all mistakes and warnings in the order of files and lines.
func (d *Document) Mistakes() []Mistake {
	order := func(m Mistake) int { return slices.Index(d.files, m.Place.file) }
	out := slices.Clone(d.mistakes)
	slices.SortStableFunc(out, func(a, b Mistake) int {
		if c := order(a) - order(b); c != 0 {
			return c
		}
		if c := a.Place.Line - b.Place.Line; c != 0 {
			return c
		}
		return a.Place.Column - b.Place.Column
	})
	return out
}

// Warnings are those of Mistakes for which nothing is refused.
func (d *Document) Warnings() []Mistake {
	return slices.DeleteFunc(d.Mistakes(), func(m Mistake) bool { return !m.Warning })
}

// Err is an error whose text shows all mistakes that are not warnings, or nil
// when there is none.
func (d *Document) Err() error {
	all := slices.DeleteFunc(d.Mistakes(), func(m Mistake) bool { return m.Warning })
	if len(all) == 0 {
		return nil
	}
	return mistakes(all)
}

type mistakes []Mistake

func (m mistakes) Error() string {
	var b strings.Builder
	for i, one := range m {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(one.String())
	}
	return b.String()
}
