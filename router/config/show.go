package config

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// Show writes what the files and the defaults come to, as YAML that means the
// same: from is the value that was decoded. References stay as they are
// written, passwords are hidden, and what is off by being absent is left out.
func (d *Document) Show(w io.Writer, from any) error {
	top := d.showFields(reflect.Indirect(reflect.ValueOf(from)), "")
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	if err := e.Encode(top); err != nil {
		return err
	}
	return e.Close()
}

func (d *Document) showFields(v reflect.Value, path string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range fieldsOf(v, nil) {
		if f.empty && f.value.IsZero() {
			continue
		}
		if val := d.show(f.value, path+f.name+sep, f.options); val != nil {
			n.Content = append(n.Content, scalarNode("!!str", f.name), val)
		}
	}
	return n
}

var stringerType = reflect.TypeFor[fmt.Stringer]()

// show is the node for a value; nil when there is nothing to show.
func (d *Document) show(v reflect.Value, path string, opt options) *yaml.Node {
	written := d.places[path].node
	key := path[strings.LastIndex(strings.TrimSuffix(path, sep), sep)+1:]
	key = strings.TrimSuffix(key, sep)
	t := v.Type()
	switch {
	case t == secretType:
		if v.Interface().(Secret).Empty() {
			return nil
		}
		return scalarNode("!!str", hideSecret(key, v.Interface().(Secret).text))
	case t == rawType:
		if written != nil {
			return hideNode(written, key, 0)
		}
		if v.Len() == 0 {
			return nil
		}
		var n yaml.Node
		if json.Valid(v.Bytes()) && yaml.Unmarshal(v.Bytes(), &n) == nil && len(n.Content) == 1 {
			return hideNode(n.Content[0], key, 0)
		}
		return nil
	case reflect.PointerTo(t).Implements(unmarshalerType) && written != nil && written.Kind == yaml.ScalarNode && written.Tag != "!!null":
		return hideNode(written, key, 0)
	case reflect.PointerTo(t).Implements(unmarshalerType) && t.Implements(stringerType):
		return scalarNode("!!str", v.Interface().(fmt.Stringer).String())
	case t == durationType:
		switch {
		case v.Int() == 0 && opt.off:
			return scalarNode("!!str", "off")
		case v.Int() == 0:
			return nil
		}
		return scalarNode("!!str", durationText(time.Duration(v.Int())))
	case t == sizeType:
		switch {
		case v.Int() == 0 && opt.off:
			return scalarNode("!!str", "off")
		case v.Int() == 0:
			return nil
		}
		return scalarNode("!!str", Size(v.Int()).String())
	case t.Implements(namedType):
		return d.showMap(v, path)
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		if n := d.show(v.Elem(), path, opt); n != nil || v.Elem().Kind() != reflect.String {
			return n
		}
		return scalarNode("!!str", "") // set, which is not the same as absent
	case reflect.Struct:
		return d.showFields(v, path)
	case reflect.Slice:
		if v.IsNil() {
			return nil
		}
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			if c := d.show(v.Index(i), path+strconv.Itoa(i)+sep, options{}); c != nil {
				n.Content = append(n.Content, c)
			}
		}
		return n
	case reflect.String:
		switch {
		case written != nil && written.Kind == yaml.ScalarNode && strings.Contains(written.Value, "$"):
			return hideNode(written, key, 0)
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

func (d *Document) showMap(v reflect.Value, path string) *yaml.Node {
	if v.Len() == 0 {
		return nil
	}
	n := &yaml.Node{Kind: yaml.MappingNode}
	for i := range v.Len() {
		name := v.Index(i).FieldByName("Name").String()
		val := d.show(v.Index(i).FieldByName("Value"), path+name+sep, options{})
		if val == nil {
			val = scalarNode("!!null", "")
		}
		n.Content = append(n.Content, scalarNode("!!str", name), val)
	}
	return n
}

// scalarNode leaves the quotes to the encoder.
func scalarNode(tag, value string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
	if tag == "!!str" && strings.Contains(value, "\n") {
		n.Style = yaml.LiteralStyle
	}
	return n
}

// hideNode copies what is written, aliases unfolded, without its secrets.
func hideNode(n *yaml.Node, key string, depth int) *yaml.Node {
	for n.Kind == yaml.AliasNode && depth < deepest {
		n = n.Alias
		depth++
	}
	if depth >= deepest {
		return scalarNode("!!null", "")
	}
	c := &yaml.Node{Kind: n.Kind, Tag: n.Tag, Value: n.Value, Style: n.Style &^ yaml.TaggedStyle}
	switch n.Kind {
	case yaml.ScalarNode:
		if secretKey.MatchString(key) {
			c.Value = hideSecret(key, n.Value)
		} else {
			c.Value = redact(n.Value)
		}
		if c.Value == hidden {
			c.Tag = "!!str"
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i].Value
			c.Content = append(c.Content, scalarNode("!!str", k), hideNode(n.Content[i+1], k, depth+1))
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			c.Content = append(c.Content, hideNode(item, key, depth+1))
		}
	}
	return c
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
