package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// A field is one setting of a struct.
type field struct {
	name  string
	value reflect.Value
	options
}

// options are what a tag says beside the name.
type options struct {
	required bool
	off      bool   // 0 is written off
	some     bool   // 0 is not written: it is what is absent
	empty    bool   // shown only when it is something
	with     string // the setting beside it without which it means nothing
	word     string // what the Unmarshaler that reads on takes beside
}

// fieldsOf lists the settings of a struct, those of inline ones among them. What
// an inline interface or pointer holds counts; nil holds nothing.
func fieldsOf(out reflect.Value, list []field) []field {
	t := out.Type()
	for i := range t.NumField() {
		tag, ok := t.Field(i).Tag.Lookup("yaml")
		if !ok || tag == "-" {
			continue
		}
		name, rest, _ := strings.Cut(tag, ",")
		var opt options
		inline := false
		for o := range strings.SplitSeq(rest, ",") {
			switch o {
			case "required":
				opt.required = true
			case "off":
				opt.off = true
			case "some":
				opt.some = true
			case "omitempty":
				opt.empty = true
			case "inline":
				inline = true
			case "":
			default:
				if with, ok := strings.CutPrefix(o, "with="); ok {
					opt.with = with
					continue
				}
				panic(fmt.Sprintf("BUG: %s.%s: unknown tag option %q", t, t.Field(i).Name, o))
			}
		}
		v := out.Field(i)
		if !inline {
			for _, f := range list {
				if f.name == name {
					panic(fmt.Sprintf("BUG: %s: two settings are named %s", t, name))
				}
			}
			list = append(list, field{name, v, opt})
			continue
		}
		for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
			if v.IsNil() {
				break
			}
			v = v.Elem()
		}
		if v.Kind() == reflect.Struct {
			list = fieldsOf(v, list)
		}
	}
	return list
}

// idle reports whether f, one of list, is a setting that means nothing, because
// the one that it goes with is not there.
func idle(f field, list []field) bool {
	return f.with != "" && slices.ContainsFunc(list, func(o field) bool { return o.name == f.with && o.value.IsZero() })
}

// together refuses settings that are written without the one that they go with,
// where nothing is said of them in the end: the whole that they are part of may say it better.
func (d *decoder) together(f *file, n *yaml.Node, path string, out reflect.Value) {
	if out.Kind() != reflect.Struct || n.Kind != yaml.MappingNode {
		return
	}
	list := fieldsOf(out, nil)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := slices.IndexFunc(list, func(k field) bool { return k.name == n.Content[i].Value })
		if k < 0 || !idle(list[k], list) {
			continue
		}
		if _, written := d.doc.places[path+list[k].with+sep]; !written {
			what := fmt.Sprintf("%s has no effect without %s", list[k].name, list[k].with)
			d.doc.idle = append(d.doc.idle, Mistake{Place: f.at(n.Content[i+1]), What: what, Hint: "leave it out"})
		}
	}
}

// tellIdle tells what together found.
func (d *Document) tellIdle() {
	for _, m := range d.idle {
		if !d.mistaken(m.Place) {
			d.add(m)
		}
	}
}
