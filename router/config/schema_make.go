package config

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// A schemaMaker makes a schema of types.
type schemaMaker struct {
	opts  SchemaOptions
	docs  docs
	defs  map[string]*schema
	types map[string]reflect.Type // whose definition it is
}

// A spotInSchema is where a value stands: its keys from the top, * for a name or
// an item; the key of the form that it is a part of; and the words that settings
// below it take, by their paths.
type spotInSchema struct {
	path  []string
	kind  string
	words map[string][]string
}

// below is the spot of one setting.
func (at spotInSchema) below(name string) spotInSchema {
	in := spotInSchema{append(slices.Clone(at.path), name), at.kind, map[string][]string{}}
	for path, words := range at.words {
		if rest, ok := strings.CutPrefix(path, name); ok && (rest == "" || rest[0] == '.') {
			in.words[strings.TrimPrefix(rest, ".")] = words
		}
	}
	return in
}

// structure is the schema of a mapping with known keys. keys are those by which
// forms of it are known, at.kind the one of this form, if there are.
func (g *schemaMaker) structure(v reflect.Value, at spotInSchema, keys []string) *schema {
	if len(at.words) == 0 {
		at.words = wordsOf(v)
	}
	s := &schema{Type: []string{"object", "null"}, AdditionalProperties: false, Properties: properties{}}
	for _, f := range fieldsOf(v, nil) {
		other := func(key string) bool { return key != at.kind && slices.Contains(keys, key) }
		if other(f.name) || other(f.with) {
			continue
		}
		needed := f.required || len(keys) > 0 && f.name == at.kind
		if needed {
			s.Required = append(s.Required, f.name)
		}
		in := at.below(f.name)
		one := g.value(f.value, in, f.options)
		one.Description = g.docs.find(in.path, in.kind)
		if !needed {
			one.Default = defaultOf(f.value, f.options)
		}
		s.Properties = append(s.Properties, property{f.name, one})
	}
	if len(s.Required) > 0 {
		s.Type = "object"
	}
	return s
}

// value is the schema of one value. It is always a new one.
func (g *schemaMaker) value(v reflect.Value, at spotInSchema, opt options) *schema {
	t := v.Type()
	if p := reflect.PointerTo(t); p.Implements(unmarshalerType) {
		if !p.Implements(formerType) {
			panic(fmt.Sprintf("BUG: %s reads itself and does not say what: Forms", t))
		}
		return g.former(t, at)
	}
	switch {
	case t == rawType:
		return &schema{}
	case t == secretType: // which takes true for a text
		return &schema{Type: []string{"string", "number", "boolean"}}
	case t == templateType:
		return g.scalar("text")
	case t == sizeType && opt.off:
		return g.scalar("size_or_off")
	case t == sizeType:
		return g.scalar("size")
	case t == durationType && opt.off:
		return g.scalar("time_or_off")
	case t == durationType:
		return g.scalar("time")
	case t.Implements(namedType):
		s := &schema{Type: []string{"object", "null"}}
		entry := reflect.New(t.Elem().Field(1).Type).Elem()
		defaults(entry)
		s.AdditionalProperties = g.value(entry, at.below("*"), options{})
		if len(at.path) == 1 && g.opts.Names != "" {
			s.PropertyNames = &schema{Pattern: g.opts.Names}
		}
		return s
	}
	switch t.Kind() {
	case reflect.Pointer:
		to := v
		if v.IsNil() {
			to = reflect.New(t.Elem())
			defaults(to.Elem())
		}
		return g.value(to.Elem(), at, opt)
	case reflect.Struct:
		return g.structure(v, at, nil)
	case reflect.Slice:
		item := reflect.New(t.Elem()).Elem()
		defaults(item)
		return &schema{Type: "array", Items: g.value(item, at.below("*"), options{})}
	case reflect.String:
		if words := at.words[""]; words != nil {
			return &schema{AnyOf: []*schema{{Enum: words}, g.scalar("reference")}}
		}
		return g.scalar("text")
	case reflect.Bool:
		return g.scalar("switch")
	case reflect.Float32, reflect.Float64:
		return g.scalar("number")
	}
	return g.whole(v, opt)
}

// whole is a whole number of the type's bounds.
func (g *schemaMaker) whole(v reflect.Value, opt options) *schema {
	n := &schema{Type: "integer"}
	switch {
	case opt.some:
		one := int64(1)
		n.Minimum = &one
	case v.CanUint():
		least, most := int64(0), uint64(math.MaxUint64)>>(64-v.Type().Bits())
		n.Minimum, n.Maximum = &least, &most
	}
	return &schema{AnyOf: []*schema{n, g.scalar("whole_text"), g.scalar("reference")}}
}

var formerType = reflect.TypeFor[Former]()

// former refers to the definition of a type that reads itself.
func (g *schemaMaker) former(t reflect.Type, at spotInSchema) *schema {
	name := definitionName(t)
	if other, made := g.types[name]; made {
		if other != t {
			panic(fmt.Sprintf("BUG: %s and %s have one name in the schema", other, t))
		}
		return &schema{Ref: "#/definitions/" + name}
	}
	g.types[name] = t
	forms := reflect.New(t).Interface().(Former).Forms()
	var keys []string
	for _, f := range forms {
		if f.Key != "" {
			keys = append(keys, f.Key)
		}
	}
	def := &schema{}
	g.defs[name] = def
	for _, f := range forms {
		one := g.form(t, f, at, keys)
		if f.Key == "" {
			def.AnyOf = append(def.AnyOf, one)
			continue
		}
		def.If, def.Then, def.Else = &schema{Type: "object", Required: []string{f.Key}}, one, &schema{}
		def = def.Else
	}
	if len(keys) > 0 { // none of them is there: editors offer all
		def.Type = "object"
		for _, key := range keys {
			def.AnyOf = append(def.AnyOf, &schema{Required: []string{key}})
			def.Properties = append(def.Properties, property{key, &schema{Description: g.docs.find(at.below(key).path, key)}})
		}
	}
	return &schema{Ref: "#/definitions/" + name}
}

func (g *schemaMaker) form(t reflect.Type, f Form, at spotInSchema, keys []string) *schema {
	switch {
	case f.Words != nil:
		return &schema{AnyOf: []*schema{{Enum: f.Words}, g.scalar("reference")}}
	case f.Pattern != "":
		return &schema{AnyOf: []*schema{{Type: "string", Pattern: f.Pattern}, g.scalar("reference")}}
	}
	v := reflect.ValueOf(f.Value).Elem()
	if f.Most > 0 {
		least := int64(0)
		return &schema{Type: "integer", Minimum: &least, Maximum: &f.Most}
	}
	if f.Key != "" {
		at.kind = f.Key
	}
	if v.Kind() == reflect.Struct && !reflect.PointerTo(v.Type()).Implements(unmarshalerType) {
		at.words = nil
		if v.Type().ConvertibleTo(t) {
			whole := reflect.New(t).Elem()
			whole.Set(v.Convert(t))
			at.words = wordsOf(whole, f.Key)
		}
		return g.structure(v, at, keys)
	}
	return g.value(v, at, options{})
}

// definitionName is a type's name without its package; of list[item], item_list.
func definitionName(t reflect.Type) string {
	outer, inner, _ := strings.Cut(strings.TrimSuffix(t.Name(), "]"), "[")
	if inner == "" {
		return strings.ToLower(outer)
	}
	return strings.ToLower(inner[strings.LastIndexByte(inner, '.')+1:] + "_" + outer)
}

// AnyCase is a regular expression, in parentheses, for words in any letter case.
func AnyCase(words ...string) string {
	var b strings.Builder
	for i, word := range words {
		b.WriteString(map[bool]string{true: "(?:", false: "|"}[i == 0])
		for _, r := range word {
			if lower, upper := strings.ToLower(string(r)), strings.ToUpper(string(r)); lower != upper {
				b.WriteString("[" + lower + upper + "]")
			} else {
				b.WriteString(regexp.QuoteMeta(string(r)))
			}
		}
	}
	return b.String() + ")"
}

// scalars are the forms that many settings share, by their names.
var scalars = map[string]func(reference *schema) *schema{
	"reference": func(*schema) *schema {
		return &schema{Type: "string", Pattern: `\$\{(?:env|file):`} // with a variable or a file put in
	},
	"text": func(*schema) *schema { return &schema{Type: []string{"string", "number"}} },
	"switch": func(ref *schema) *schema {
		return &schema{AnyOf: []*schema{{Type: "boolean"}, {Enum: []string{"true", "false"}}, ref}}
	},
	"whole_text": func(*schema) *schema { return &schema{Type: "string", Pattern: `^[+-]?[0-9]+$`} },
	"number": func(ref *schema) *schema {
		return &schema{AnyOf: []*schema{{Type: "number"}, {Type: "string", Pattern: `^[+-]?[0-9.]+([eE][+-]?[0-9]+)?$`}, ref}}
	},
	"size": func(ref *schema) *schema {
		return &schema{AnyOf: []*schema{{Type: "string", Pattern: sizePattern}, ref}}
	},
	"size_or_off": func(ref *schema) *schema {
		return &schema{AnyOf: []*schema{{Type: "string", Pattern: sizePattern}, {Enum: []string{"off"}}, ref}}
	},
	"time": func(ref *schema) *schema {
		return &schema{AnyOf: []*schema{{Type: "string", Pattern: timePattern}, ref}}
	},
	"time_or_off": func(ref *schema) *schema {
		return &schema{AnyOf: []*schema{{Type: "string", Pattern: timePattern}, {Enum: []string{"off"}}, ref}}
	},
}

const numberPattern = `(?:[0-9]+\.?[0-9]*|\.[0-9]+) ?`

var (
	sizePattern = "^" + numberPattern + "(?:" + strings.Join(keysOf(sizeUnits), "|") + ")$"
	timePattern = "^(?:" + numberPattern + "(?:" + strings.Join(keysOf(timeUnits), "|") + "))+$"
)

func keysOf[T any](units map[string]T) (keys []string) {
	for key := range units {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// scalar refers to the definition of a form that many settings share.
func (g *schemaMaker) scalar(name string) *schema {
	if g.defs[name] == nil {
		g.types[name] = nil
		if name == "reference" {
			g.defs[name] = scalars[name](nil)
		} else {
			g.defs[name] = scalars[name](g.scalar("reference"))
		}
	}
	return &schema{Ref: "#/definitions/" + name}
}
