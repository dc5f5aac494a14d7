package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// Show writes what the files and the defaults come to, as YAML that means the
// same: from is the value that was decoded. References stay as they are
// written, but that relative paths of ${file:…} are made relative to where weir
// runs, passwords are hidden, and what is off by being absent is left out.
func (d *Document) Show(w io.Writer, from any) error {
	text, _, err := (&shower{doc: d}).text(from)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// A shower makes YAML of values.
type shower struct {
	doc     *Document
	from    map[*yaml.Node]string // where values come from; nil: nobody asks
	builtin string                // the name of the file that is inside of weir
}

// text is the YAML of a value and the tree that it was made of.
func (s *shower) text(from any) ([]byte, *yaml.Node, error) {
	top := s.fields(reflect.Indirect(reflect.ValueOf(from)), "")
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(top); err != nil {
		return nil, nil, err
	}
	return b.Bytes(), top, e.Close()
}

func (s *shower) fields(v reflect.Value, path string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	list := fieldsOf(v, nil)
	for _, f := range list {
		if f.empty && f.value.IsZero() || idle(f, list) {
			continue
		}
		if val := s.show(f.value, path+f.name+sep, f.options); val != nil {
			s.note(val, path+f.name+sep)
			n.Content = append(n.Content, scalarNode("!!str", f.name), val)
		}
	}
	return n
}

var stringerType = reflect.TypeFor[fmt.Stringer]()

// show is the node for a value; nil when there is nothing to show.
func (s *shower) show(v reflect.Value, path string, opt options) *yaml.Node {
	at := s.doc.places[path]
	written := at.node
	for written != nil && written.Kind == yaml.AliasNode {
		written = written.Alias
	}
	key := path[strings.LastIndex(strings.TrimSuffix(path, sep), sep)+1:]
	key = strings.TrimSuffix(key, sep)
	t := v.Type()
	switch {
	case t == secretType:
		if v.Interface().(Secret).Empty() {
			return nil
		}
		return scalarNode("!!str", hideSecret(key, at.file.moveReferences(v.Interface().(Secret).text)))
	case t == rawType:
		if written != nil {
			return s.copy(at.file, written, key, 0)
		}
		if v.Len() == 0 {
			return nil
		}
		var n yaml.Node
		if json.Valid(v.Bytes()) && yaml.Unmarshal(v.Bytes(), &n) == nil && len(n.Content) == 1 {
			return s.copy(nil, n.Content[0], key, 0)
		}
		return nil
	case reflect.PointerTo(t).Implements(unmarshalerType) && written != nil && written.Kind == yaml.ScalarNode && written.Tag != "!!null":
		n := s.copy(at.file, written, key, 0)
		n.Value = s.moved(at.file, n.Value, written.Value, v)
		return n
	case reflect.PointerTo(t).Implements(unmarshalerType) && t.Implements(stringerType):
		return scalarNode("!!str", v.Interface().(fmt.Stringer).String())
	case t == durationType:
		switch {
		case v.Int() == 0 && opt.off:
			return scalarNode("!!str", "off")
		case v.Int() == 0:
			return nil
		}
		return scalarNode("!!str", TimeText(time.Duration(v.Int())))
	case t == sizeType:
		switch {
		case v.Int() == 0 && opt.off:
			return scalarNode("!!str", "off")
		case v.Int() == 0:
			return nil
		}
		return scalarNode("!!str", Size(v.Int()).String())
	case t.Implements(namedType):
		return s.named(v, path)
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		if n := s.show(v.Elem(), path, opt); n != nil || v.Elem().Kind() != reflect.String {
			return n
		}
		return scalarNode("!!str", "") // set, which is not the same as absent
	case reflect.Struct:
		return s.fields(v, path)
	case reflect.Slice:
		if v.IsNil() {
			return nil
		}
		if written != nil && written.Kind == yaml.MappingNode && v.Len() == 1 { // one that stands for a list
			return s.show(v.Index(0), path, opt)
		}
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			if c := s.show(v.Index(i), path+strconv.Itoa(i)+sep, options{}); c != nil {
				s.note(c, path+strconv.Itoa(i)+sep)
				n.Content = append(n.Content, c)
			}
		}
		return n
	case reflect.String:
		switch {
		case written != nil && written.Kind == yaml.ScalarNode && strings.Contains(written.Value, "$"):
			n := s.copy(at.file, written, key, 0)
			n.Value = s.moved(at.file, n.Value, written.Value, v)
			return n
		case v.String() == "":
			return nil
		case secretKey.MatchString(key):
			return scalarNode("!!str", hideSecret(key, v.String()))
		case t == templateType:
			return scalarNode("!!str", redact(v.String()))
		}
		return scalarNode("!!str", strings.ReplaceAll(redact(v.String()), "$", "$$"))
	case reflect.Bool:
		return scalarNode("!!bool", strconv.FormatBool(v.Bool()))
	case reflect.Float64, reflect.Float32:
		text := strconv.FormatFloat(v.Float(), 'g', -1, 64)
		if !strings.ContainsAny(text, ".e") {
			return scalarNode("!!int", text)
		}
		return scalarNode("!!float", text)
	}
	if opt.some && v.IsZero() {
		return nil
	}
	if v.CanUint() {
		return scalarNode("!!int", strconv.FormatUint(v.Uint(), 10))
	}
	return scalarNode("!!int", strconv.FormatInt(v.Int(), 10))
}

func (s *shower) named(v reflect.Value, path string) *yaml.Node {
	if v.Len() == 0 {
		return nil
	}
	n := &yaml.Node{Kind: yaml.MappingNode}
	for i := range v.Len() {
		name := v.Index(i).FieldByName("Name").String()
		val := s.show(v.Index(i).FieldByName("Value"), path+name+sep, options{})
		if val == nil {
			val = scalarNode("!!null", "")
		}
		s.note(val, path+name+sep)
		n.Content = append(n.Content, scalarNode("!!str", name), val)
	}
	return n
}

// scalarNode leaves the quotes to the encoder.
func scalarNode(tag, value string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
	if tag == "!!str" && strings.Contains(value, "\n") {
		n.Style = lines(value)
	}
	return n
}

// lines is how a text of several lines is shown: so that its first line is one of its own, behind which a comment may
// stand, and so that it is read again as it is.
func lines(value string) yaml.Style {
	if text := strings.TrimSpace(value); text != "" && (value == text || value == text+"\n") {
		return yaml.LiteralStyle
	}
	return yaml.DoubleQuotedStyle
}

// copy copies what is written, aliases unfolded, without its secrets.
func (s *shower) copy(f *file, n *yaml.Node, key string, depth int) *yaml.Node {
	for n.Kind == yaml.AliasNode && depth < deepest {
		n = n.Alias
		depth++
	}
	if depth >= deepest {
		return scalarNode("!!null", "")
	}
	c := &yaml.Node{Kind: n.Kind, Tag: n.Tag, Value: n.Value, Style: n.Style &^ yaml.TaggedStyle}
	if strings.Contains(c.Value, "\n") {
		c.Style = lines(c.Value)
	}
	switch n.Kind {
	case yaml.ScalarNode:
		if secretKey.MatchString(key) && n.Tag != "!!bool" && n.Tag != "!!null" {
			c.Value = hideSecret(key, f.moveReferences(n.Value))
		} else {
			c.Value = f.moveReferences(redact(n.Value))
		}
		if c.Value == hidden {
			c.Tag = "!!str"
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := n.Content[i].Value
			of := name
			if secretKey.MatchString(key) { // all that is in a secret is one
				of = key
			}
			c.Content = append(c.Content, scalarNode("!!str", name), s.copy(f, n.Content[i+1], of, depth+1))
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			c.Content = append(c.Content, s.copy(f, item, key, depth+1))
		}
	}
	return c
}

// moved is the shown form of a text with references, or of a path, which its owner has made relative to where weir
// runs (Place.Resolve): with the directory of its file before it.
func (s *shower) moved(f *file, shown, written string, v reflect.Value) string {
	now, ok := textOf(v)
	if f == nil || !ok {
		return shown
	}
	value := written
	if !s.doc.opts.Verbatim {
		value = expandRefs(written, false, func(ref string) (string, error) { return s.doc.lookup(f, ref) }, func(string, error) {})
	}
	scheme, path, _ := strings.Cut(value, "://")
	switch at := (Place{file: f}); now {
	case value:
	case at.Resolve(value):
		return filepath.Dir(f.name) + "/" + shown
	case scheme + "://" + at.Resolve(path):
		return strings.Replace(shown, "://", "://"+filepath.Dir(f.name)+"/", 1)
	}
	return shown
}

// textOf is the text that a value is made of (a fmt.Stringer's has its dollars doubled), or the only item of a list.
func textOf(v reflect.Value) (string, bool) {
	if v.Kind() == reflect.Slice && v.Len() == 1 {
		v = v.Index(0)
	}
	if v.Kind() == reflect.String {
		return v.String(), true
	}
	text, ok := v.Interface().(fmt.Stringer)
	if !ok {
		return "", false
	}
	return strings.ReplaceAll(text.String(), "$$", "$"), true
}

var fileReference = regexp.MustCompile(`\$\$|\$\{file:([^}]*)\}`)

// moveReferences makes the paths of references relative to where weir runs.
func (f *file) moveReferences(text string) string {
	if f == nil {
		return text
	}
	return fileReference.ReplaceAllStringFunc(text, func(ref string) string {
		path, ok := strings.CutPrefix(ref, "${file:")
		if !ok {
			return ref
		}
		return "${file:" + Place{file: f}.Resolve(strings.TrimSuffix(path, "}")) + "}"
	})
}

// hideSecret shows of a secret what is none: that it is a reference, or a
// connection string without its password.
func hideSecret(key, text string) string {
	switch {
	case isReference(text):
		return text
	case !secretKey.MatchString(key) && strings.ContainsAny(text, "=/"):
		return redact(text)
	}
	return hidden
}
