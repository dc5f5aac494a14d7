package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	wrong "github.com/santhosh-tekuri/jsonschema/v6/kind"
	"gopkg.in/yaml.v3"
)

// schemaJudge is the schema that config schema prints, in a validator.
func schemaJudge(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(configSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("weir.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("weir.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A complaint is what a schema has against one place of a file.
type complaint struct {
	lines []int // where an editor may show it
	what  string
}

// judge validates a text as an editor would. ok is false when it is no YAML that JSON can hold.
func judge(s *jsonschema.Schema, text []byte) (all []complaint, ok bool) {
	var node yaml.Node
	var value any
	if yaml.Unmarshal(text, &node) != nil || node.Decode(&value) != nil {
		return nil, false
	}
	data, err := json.Marshal(value)
	if err != nil {
		return nil, false
	}
	if value, err = jsonschema.UnmarshalJSON(bytes.NewReader(data)); err != nil {
		return nil, false
	}
	bad, is := errors.AsType[*jsonschema.ValidationError](s.Validate(value))
	if !is {
		return nil, true
	}
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		_, name := e.ErrorKind.(*wrong.PropertyNames)
		for _, cause := range e.Causes {
			if !name {
				walk(cause)
			}
		}
		if len(e.Causes) > 0 && !name {
			return
		}
		at := [][]string{e.InstanceLocation}
		switch k := e.ErrorKind.(type) {
		case *wrong.AdditionalProperties:
			at = nil
			for _, name := range k.Properties {
				at = append(at, append(slices.Clone(e.InstanceLocation), name))
			}
		case *wrong.PropertyNames: // the validator says another place
			all = append(all, complaint{linesNamed(&node, k.Property), fmt.Sprintf("the name %s", k.Property)})
			return
		}
		for _, path := range at {
			all = append(all, complaint{linesOf(&node, path), fmt.Sprintf("/%s: %v", strings.Join(path, "/"), e.ErrorKind)})
		}
	}
	walk(bad)
	return all, true
}

// linesNamed are the lines of keys with a name.
func linesNamed(n *yaml.Node, name string) (lines []int) {
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && c.Value == name {
			lines = append(lines, c.Line)
		}
		lines = append(lines, linesNamed(c, name)...)
	}
	return lines
}

// linesOf are the lines of the keys and values on a path, but for the top: below what weir refuses, all is wrong.
func linesOf(n *yaml.Node, path []string) (lines []int) {
	if n.Kind == yaml.DocumentNode {
		n = n.Content[0]
	}
	if len(path) == 0 {
		return []int{n.Line}
	}
	for _, name := range path {
		for n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		next := n
		for i, c := range n.Content {
			switch {
			case n.Kind == yaml.SequenceNode && name == fmt.Sprint(i):
				next, lines = c, append(lines, c.Line)
			case n.Kind == yaml.MappingNode && i%2 == 0 && c.Value == name:
				next, lines = n.Content[i+1], append(lines, c.Line, n.Content[i+1].Line)
				if a := n.Content[i+1].Alias; a != nil {
					lines = append(lines, a.Line)
				}
			}
		}
		n = next
	}
	return lines
}

func mustPass(t *testing.T, s *jsonschema.Schema, text string) {
	t.Helper()
	all, ok := judge(s, []byte(text))
	if !ok {
		t.Fatalf("no YAML:\n%s", text)
	}
	for _, c := range all {
		t.Errorf("%s\n%s", c.what, text)
	}
}

// What weir takes passes: the example, the built-in configuration, every block of the manual, and what config show makes of them.
func TestConfigurationsPassTheSchema(t *testing.T) {
	s := schemaJudge(t)
	t.Setenv("WEIR_PASSWORD", "secret")
	example, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	mustPass(t, s, string(example))
	mustPass(t, s, builtin)
	_, shown := shownAs(t, string(example))
	mustPass(t, s, shown)
	blocks := configurationsInTheManual(t)
	if len(blocks) < 55 {
		t.Errorf("%d blocks were found", len(blocks))
	}
	for name, text := range blocks {
		t.Run(name, func(t *testing.T) { mustPass(t, s, text) })
	}
}

// Each value of the example is replaced by others: what weir reads, the schema takes, and it refuses something of each.
func TestSchemaIsNeverStricterThanWeir(t *testing.T) {
	s := schemaJudge(t)
	text, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	value := regexp.MustCompile(`^(\s*(?:- )?[\w-]+:)\s+([^#\s].*)$`)
	refused, taken := 0, 0
	for i, line := range lines {
		m := value.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		for k, other := range []string{"a", "5", `"5"`, "-1", "0", "1.5", "true", `"true"`, "~", "[]", "[a]", "{}", "{x: y}", `""`, "off", "Off", "5s", "5 s", "1h30m", "5MiB", ".5 kB", "5.GiB", "5mib",
			"${env:NOPE:-5}", `"x ${env:NOPE:-5} y"`, "$$", "Warning", "panic", "7", "8", "<=err", `"> err"`, "err..WARN", "local0 .. 3", "ignore", "{key: [ts]}", "one", "10.0.0.0/8", "|\n      a\n", "{contains: x}"} {
			if (i+k)%4 != 0 { // enough: most settings have the form of a neighbour
				continue
			}
			changed := strings.Join(append(append(slices.Clone(lines[:i]), m[1]+" "+other), lines[i+1:]...), "\n")
			_, doc := loadText(changed)
			all, ok := judge(s, []byte(changed))
			switch {
			case !ok:
			case doc.Err() == nil && other == `""`: // as good as left out, which no editor should offer
			case doc.Err() == nil:
				taken++
				for _, c := range all {
					t.Errorf("line %d as %s %s: weir takes it, the schema does not: %s", i+1, strings.TrimSpace(m[1]), other, c.what)
				}
			case len(all) > 0:
				refused++
				if !slices.ContainsFunc(all, func(c complaint) bool {
					return slices.ContainsFunc(c.lines, func(n int) bool { return n == i+1 || n == i+2 })
				}) {
					t.Errorf("line %d as %s %s: the schema complains elsewhere: %+v", i+1, strings.TrimSpace(m[1]), other, all)
				}
			}
		}
	}
	if taken < 200 || refused < 580 {
		t.Errorf("%d were taken, %d refused", taken, refused)
	}
}

// Every setting is explained in an editor, by its comment in weir.example.yaml.
func TestEverySettingIsExplained(t *testing.T) {
	all := settingsOf(t)
	if len(all) < 130 {
		t.Errorf("%d settings", len(all))
	}
	for path, explained := range all {
		if !explained && !strings.HasSuffix(path, ".*") {
			t.Errorf("weir.example.yaml says nothing behind %s", path)
		}
	}
}

// settingsOf are all settings by their paths, with * for names and items, and whether they are explained: as the schema
// has them.
func settingsOf(t *testing.T) map[string]bool {
	t.Helper()
	type node struct {
		Ref                  string `json:"$ref"`
		Description          string
		Properties           map[string]*node
		AdditionalProperties json.RawMessage
		Items                *node
		AnyOf                []*node
		Then, Else           *node
		Definitions          map[string]*node
	}
	var top node
	if err := json.Unmarshal(configSchema(), &top); err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	var walk func(n *node, path string, inside []string)
	walk = func(n *node, path string, inside []string) {
		if n == nil {
			return
		}
		if name, ok := strings.CutPrefix(n.Ref, "#/definitions/"); ok && !slices.Contains(inside, name) {
			walk(top.Definitions[name], path, append(slices.Clone(inside), name))
		}
		below := func(name string) string { return strings.TrimPrefix(path+"."+name, ".") }
		for name, of := range n.Properties {
			all[below(name)] = all[below(name)] || of.Description != ""
			walk(of, below(name), inside)
		}
		var of node
		if json.Unmarshal(n.AdditionalProperties, &of) == nil && string(n.AdditionalProperties) != "false" {
			walk(&of, below("*"), inside)
		}
		walk(n.Items, below("*"), inside)
		for _, of := range append(slices.Clone(n.AnyOf), n.Then, n.Else) {
			walk(of, path, inside)
		}
	}
	walk(&top, "", nil)
	return all
}

// eachSetting visits the keys of a text by their paths, as settingsOf has them.
func eachSetting(t *testing.T, text []byte, visit func(path string, line int)) {
	t.Helper()
	all := settingsOf(t)
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	var walk func(n *yaml.Node, path string)
	walk = func(n *yaml.Node, path string) {
		for i, c := range n.Content {
			switch {
			case n.Kind == yaml.SequenceNode:
				walk(c, path+".*")
			case n.Kind == yaml.MappingNode && i%2 == 0:
				name := strings.TrimPrefix(path+"."+c.Value, ".")
				if _, known := all[name]; !known {
					name = path + ".*"
				}
				visit(name, c.Line)
				walk(n.Content[i+1], name)
			}
		}
	}
	walk(doc.Content[0], "")
}
