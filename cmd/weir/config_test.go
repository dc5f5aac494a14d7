package main

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/sqlstore"
)

// exampleFile is the file that shows every setting.
const exampleFile = "../../weir.example.yaml"

func TestExampleIsAConfiguration(t *testing.T) {
	s := newSettings()
	doc := config.Load(s, config.Options{NotYet: notYet}, exampleFile)
	if doc.Readable() {
		s.wire(doc)
		s.warn(doc)
		s.tryMemory(doc)
	}
	if err := doc.Err(); err != nil {
		t.Fatal(err)
	}
	for _, w := range doc.Warnings() {
		if !strings.HasPrefix(w.What, "source ") {
			t.Error(w)
		}
	}
}

func TestExampleHasEverySetting(t *testing.T) {
	text, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	var walk func(t reflect.Type, seen func(key string))
	walk = func(typ reflect.Type, seen func(key string)) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct {
			return
		}
		for i := range typ.NumField() {
			f := typ.Field(i)
			if f.Name == "Value" && typ.NumField() == 3 && typ.Field(0).Name == "Name" { // an Entry of a Map
				walk(f.Type, seen)
				continue
			}
			tag, ok := f.Tag.Lookup("yaml")
			if !ok {
				continue
			}
			if key, _, _ := strings.Cut(tag, ","); key != "" {
				seen(key)
			}
			walk(f.Type, seen)
		}
	}
	check := func(typ reflect.Type) {
		walk(typ, func(key string) {
			if !regexp.MustCompile(`(?m)[\s{#,]` + key + `:`).Match(text) {
				t.Errorf("%s does not show %s (%s)", exampleFile, key, typ)
			}
		})
	}
	check(reflect.TypeFor[settings]())
	check(reflect.TypeFor[sqlstore.Column]())
	for _, k := range destinationKinds {
		check(reflect.TypeOf(k.settings()))
	}
}

func TestBuiltInIsWhatWelcomeSays(t *testing.T) {
	s := newSettings()
	doc := config.Parse(s, config.Options{}, builtinName, []byte(builtin))
	if err := doc.Err(); err != nil {
		t.Fatal(err)
	}
	s.warn(doc)
	if w := doc.Warnings(); len(w) > 0 {
		t.Error(w)
	}
	for _, l := range s.Sources[0].Value.Listen {
		if !strings.Contains(welcome, "  "+l) {
			t.Errorf("welcome does not name %s", l)
		}
	}
	if !strings.Contains(welcome, "http://"+s.Admin.Listen+"/metrics") || !strings.Contains(welcome, s.StateDir+"/logs.db") {
		t.Error("welcome names another admin address or database")
	}
}
