package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/wasmhost"
)

// manual returns the pages of the manual, and those beside examples and filters inside weir.
func manual(t *testing.T) (pages []string) {
	t.Helper()
	for _, dir := range []string{"docs", "examples", "filters", "README.md"} {
		err := filepath.WalkDir(filepath.Join("../..", dir), func(path string, d fs.DirEntry, err error) error {
			if d != nil && d.IsDir() && (d.Name() == "node_modules" || d.Name() == "templates" || d.Name() == "testdata") {
				return fs.SkipDir
			}
			if err == nil && filepath.Ext(path) == ".md" {
				pages = append(pages, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return pages
}

var (
	yamlFence = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")
	titled    = regexp.MustCompile(`^# (\S+\.ya?ml)\b`) // a block that is another file begins with its name
)

// What the manual shows as a configuration is one: whole files as they are, parts of one with what they lack beside them.
func TestConfigurationsInTheManualAreRead(t *testing.T) {
	t.Setenv("WEIR_PASSWORD", "secret")
	seen := 0
	for _, path := range manual(t) {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range yamlFence.FindAllSubmatchIndex(page, -1) {
			name := fmt.Sprintf("%s:%d", strings.TrimPrefix(filepath.ToSlash(path), "../../"), 1+bytes.Count(page[:m[2]], []byte("\n")))
			seen++
			t.Run(name, func(t *testing.T) { readBlock(t, string(page[m[2]:m[3]])) })
		}
	}
	if seen < 40 {
		t.Errorf("%d blocks were found", seen)
	}
}

func readBlock(t *testing.T, block string) {
	if m := titled.FindStringSubmatch(block); m != nil {
		if strings.HasPrefix(m[1], "deploy/") { // see TestDeployedConfigurationsAreFine
			deployed, err := os.ReadFile(filepath.Join("../..", m[1]))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(deployed), block); diff != "" {
				t.Errorf("%s is another one: %s", m[1], diff)
			}
			return
		}
		switch filepath.Base(m[1]) {
		case wasmhost.ManifestName:
			if err := config.Parse(&wasmhost.Manifest{}, config.Options{Verbatim: true}, m[1], []byte(block)).Err(); err != nil {
				t.Error(err)
			}
			return
		case "weir.yaml":
		default:
			if err := yaml.Unmarshal([]byte(block), &map[string]any{}); err != nil {
				t.Error(err)
			}
			return // of another program
		}
	}
	text, err := complete(block)
	if err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile(`\$\{file:/run/secrets/\w+\}`).ReplaceAllLiteralString(text, "${file:"+secret+"}")
	s := newSettings()
	doc := config.Parse(s, config.Options{NotYet: notYet}, "the block", []byte(text))
	if doc.Readable() {
		s.wire(doc)
	}
	if err := doc.Err(); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}

// complete makes a configuration of a part of one: a section, or the settings of a single filter, source or destination.
func complete(block string) (string, error) {
	var top map[string]yaml.Node
	if err := yaml.Unmarshal([]byte(block), &top); err != nil {
		return "", err
	}
	sections := []string{"memory", "state_dir", "drain_timeout", "admin", "sources", "filters", "destinations", "routes", "dead_letters"}
	inside := ""
	for key := range top {
		if slices.Contains(sections, key) || strings.HasPrefix(key, "x-") {
			continue
		}
		switch {
		case has(top, "module"):
			inside = "filters"
		case has(top, "listen"):
			inside = "sources"
		default:
			inside = "destinations"
		}
	}
	if inside != "" {
		block = inside + ":\n  it:\n    " + strings.ReplaceAll(strings.TrimSpace(block), "\n", "\n    ") + "\n"
		if err := yaml.Unmarshal([]byte(block), &top); err != nil {
			return "", err
		}
	}
	var r struct {
		Sources, Filters, Destinations map[string]yaml.Node
		Routes                         map[string]struct{ From, Filters, To []string }
	}
	if err := yaml.Unmarshal([]byte(block), &r); err != nil {
		return "", err
	}
	from, filters, to := keys(r.Sources), keys(r.Filters), keys(r.Destinations)
	for _, route := range r.Routes {
		from, filters, to = append(from, route.From...), append(filters, route.Filters...), append(to, route.To...)
	}
	if len(from) == 0 {
		from = []string{"edge"}
	}
	if len(to) == 0 {
		to = []string{"archive"}
	}
	if !has(top, "sources") {
		block += "sources:\n" + entries(from, "{ listen: [tcp://127.0.0.1:5514] }")
	}
	if !has(top, "filters") && len(filters) > 0 {
		block += "filters:\n" + entries(filters, "{ module: stock:severity }")
	}
	if !has(top, "destinations") {
		block += "destinations:\n" + entries(to, "{ discard: {} }")
	}
	if !has(top, "routes") {
		block += fmt.Sprintf("routes: { main: { from: [%s], filters: [%s], to: [%s] } }\n",
			strings.Join(from, ", "), strings.Join(filters, ", "), strings.Join(to, ", "))
	}
	return block, nil
}

func has(m map[string]yaml.Node, key string) bool { _, ok := m[key]; return ok }

func keys(m map[string]yaml.Node) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func entries(names []string, value string) (text string) {
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		text += "  " + name + ": " + value + "\n"
	}
	return text
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// What the manual points to is there, the heading too.
func TestLinksInTheManualLeadSomewhere(t *testing.T) {
	pages := append(manual(t), "../../ARCHITECTURE.md", "../../RATIONALE.md", "../../CHANGELOG.md", "../../bench/README.md")
	for _, path := range pages {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllSubmatch(page, -1) {
			target, anchor, _ := strings.Cut(string(m[1]), "#")
			if strings.Contains(target, "://") {
				continue
			}
			to := path
			if target != "" {
				to = filepath.Join(filepath.Dir(path), filepath.FromSlash(target))
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: %s is not there", path, m[1])
			} else if anchor != "" && filepath.Ext(to) == ".md" && !slices.Contains(anchors(t, to), anchor) {
				t.Errorf("%s: %s has no heading for #%s", path, to, anchor)
			}
		}
	}
}

// anchors are the headings of a page as GitHub names them.
func anchors(t *testing.T, path string) (all []string) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(page), -1) {
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', r >= '0' && r <= '9', r >= 'a' && r <= 'z', r > 127:
				return r
			case r >= 'A' && r <= 'Z':
				return r + 'a' - 'A'
			}
			return -1
		}, m[1])
		all = append(all, name)
	}
	return all
}
