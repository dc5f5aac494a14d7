package main

import (
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/sqlstore"
)

// exampleFile is the file that shows every setting.
const exampleFile = "weir.example.yaml"

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
	known := map[reflect.Type]bool{} // a match may be in a match
	var walk func(t reflect.Type, seen func(key string))
	walk = func(typ reflect.Type, seen func(key string)) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || known[typ] {
			return
		}
		known[typ] = true
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

// loadText does with a text what check does with a file, short of filters and disks.
func loadText(text string) (*settings, *config.Document) {
	s := newSettings()
	doc := config.Parse(s, config.Options{NotYet: notYet, Env: func(string) (string, bool) { return "", false }}, "weir.yaml", []byte(text))
	if doc.Readable() {
		s.wire(doc)
		s.warn(doc)
	}
	if doc.Err() == nil {
		s.tryMemory(doc)
	}
	return s, doc
}

// Each line of the example is taken away, and each of its values replaced by
// what it is not: that must end in a mistake with a place, or in nothing.
func TestOneBadLineIsNoPanic(t *testing.T) {
	text, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	value := regexp.MustCompile(`^(\s*(?:- )?[\w-]+:)(.*)$`)
	try := func(i int, line string) {
		t.Helper()
		changed := append(append(append([]string{}, lines[:i]...), line), lines[i+1:]...)
		s, doc := loadText(strings.Join(changed, "\n"))
		for _, m := range doc.Mistakes() {
			if m.Place.File() != "weir.yaml" || m.What == "" {
				t.Errorf("line %d as %q: a mistake without its place: %s", i+1, line, m)
			}
		}
		if doc.Err() == nil {
			if err := doc.Show(io.Discard, s); err != nil {
				t.Errorf("line %d as %q: show: %v", i+1, line, err)
			}
		}
	}
	for i, line := range lines {
		try(i, "")
		if m := value.FindStringSubmatch(line); m != nil {
			for _, bad := range []string{" [a]", " {x: y}", " ~", " -1", " 0", " 1e99", ` ""`, " ${env:NOPE}", " *nope", " |\n    a", " off"} {
				try(i, m[1]+bad)
			}
		}
	}
}

// FuzzSettings feeds anything to what the kinds make of it: no mistake in a file
// may be a panic or a hang.
func FuzzSettings(f *testing.F) {
	text, err := os.ReadFile(exampleFile)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add(builtin)
	scripts, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, script := range scripts {
		a, err := txtar.ParseFile(script)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range a.Files {
			if strings.HasSuffix(file.Name, ".yaml") {
				f.Add(string(file.Data))
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, doc := loadText(text)
		if doc.Err() != nil {
			return
		}
		if err := doc.Show(io.Discard, s); err != nil {
			t.Error(err)
		}
	})
}
