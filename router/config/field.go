package config

import (
	"fmt"
	"reflect"
	"strings"
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
