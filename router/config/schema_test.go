package config

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// kinded is a value of two kinds, each with settings of its own.
type kinded struct {
	One   string        `yaml:"one"`
	Two   Secret        `yaml:"two"`
	Ours  bool          `yaml:"ours,with=two"`
	Disk  Size          `yaml:"disk"`
	Sync  time.Duration `yaml:"sync,off,with=disk"`
	Level string        `yaml:"level"`
	In    *inner        `yaml:"in"`
}

type inner struct {
	By string `yaml:"by,required"`
}

func (k *kinded) Check() []Problem {
	bad := OneOf("level", k.Level, "low", "high")
	if !k.Two.Empty() && k.In != nil {
		bad = append(bad, OneOf("in.by", k.In.By, "day", "week")...)
	}
	return bad
}

func (k *kinded) Defaults() { k.Level = "low" }

func (k *kinded) UnmarshalConfig(v *Value) {
	type plain kinded
	v.Decode((*plain)(k))
}

func (k *kinded) Forms() []Form {
	type plain kinded
	return []Form{{Value: &plain{Level: "low"}, Key: "one"}, {Value: &plain{Level: "high"}, Key: "two"}}
}

type kinds struct {
	All Map[kinded] `yaml:"all"`
}

func TestSettingsThatMeanNothingByThemselvesAreRefused(t *testing.T) {
	check := func(text string, want ...string) {
		t.Helper()
		var got []string
		for _, m := range Parse(&kinds{}, Options{}, "weir.yaml", []byte("all: {x: {one: a, level: low, "+text+"}}")).Mistakes() {
			got = append(got, m.What)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	check("disk: 1MiB, sync: 1s")
	check("ours: false", "ours has no effect without two")
	check("sync: off", "sync has no effect without disk")
	check("disk: 0B, sync: 1s") // it is there
	var shown strings.Builder
	k := &kinds{}
	d := Parse(k, Options{}, "weir.yaml", []byte("all: {x: {one: a}, y: {two: a, disk: 1MiB}}"))
	if err := d.Show(&shown, k); err != nil || strings.Count(shown.String(), "ours: false") != 1 || strings.Count(shown.String(), "sync: off") != 1 {
		t.Errorf("%v\n%s", err, shown.String())
	}
}

func TestSchemaHasTheFormsOfEachKind(t *testing.T) {
	text := Schema(&kinds{}, SchemaOptions{Names: "^[a-z]+$", Example: `
x-y: 1                  # yours
all:                    # all "#" of them # here
  n:
    one: "#"            # the first
    level: low          # of the first
  m:
    two: x              # the second
    level: high         # of the second
    # ours: false       # of the second alone
    # in:               # deeper
    #   by: day         # deepest
`})
	type node struct {
		Description, Pattern string
		Default              any
		Enum                 []string
		Properties           map[string]*node
		AdditionalProperties any
		PropertyNames        *node
		PatternProperties    map[string]*node
		AnyOf                []*node
		If, Then, Else       *node
		Required             []string
		Definitions          map[string]*node
	}
	var top node
	if err := json.Unmarshal(text, &top); err != nil {
		t.Fatal(err)
	}
	first := top.Definitions["kinded"]
	second := first.Else
	for name, c := range map[string]struct{ got, want any }{
		"the key of a kind":         {first.If.Required[0] + second.If.Required[0], "onetwo"},
		"keys of the first":         {len(first.Then.Properties), 5},
		"keys of the second":        {len(second.Then.Properties), 6},
		"none of both":              {len(second.Else.AnyOf), 2},
		"other keys":                {first.Then.AdditionalProperties, false},
		"a default":                 {first.Then.Properties["level"].Default, "low"},
		"another default":           {second.Then.Properties["level"].Default, "high"},
		"words":                     {strings.Join(first.Then.Properties["level"].AnyOf[0].Enum, " "), "low high"},
		"words of the second alone": {strings.Join(second.Then.Properties["in"].Properties["by"].AnyOf[0].Enum, " "), "day week"},
		"a comment":                 {first.Then.Properties["level"].Description, "of the first"},
		"a comment of a kind":       {second.Then.Properties["level"].Description, "of the second"},
		"a comment out of use":      {second.Then.Properties["in"].Properties["by"].Description, "deepest"},
		"a comment with a #":        {top.Properties["all"].Description, `all "#" of them # here`},
		"a # in quotes":             {first.Then.Properties["one"].Description, "the first"},
		"keys for anchors":          {top.PatternProperties["^x-"].Description, "yours"},
		"names":                     {top.Properties["all"].PropertyNames.Pattern, "^[a-z]+$"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %v, want %v", name, c.got, c.want)
		}
	}
}

func TestWhatReadsItselfHasToSayWhat(t *testing.T) {
	defer func() {
		if r, _ := recover().(string); !strings.Contains(r, "wordy reads itself and does not say what") {
			t.Errorf("%v", r)
		}
	}()
	Schema(&struct {
		Sync wordy `yaml:"sync"`
	}{}, SchemaOptions{})
}
