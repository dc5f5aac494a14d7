package config

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// programs are files that people give by mistake, and what gives them away. The
// first that fits is named.
var programs = []struct {
	what string
	text *regexp.Regexp
}{
	{"a WebAssembly module", regexp.MustCompile(`\A\x00asm`)},
	{"a SQLite database", regexp.MustCompile(`\ASQLite format 3\x00`)},
	{"a program", regexp.MustCompile(`\A\x7fELF`)},
	{"a compressed file", regexp.MustCompile(`\A(?:\x1f\x8b|\x28\xb5\x2f\xfd|PK\x03\x04|BZh|\xfd7zXZ)`)},
	{"a script", regexp.MustCompile(`\A#!`)},
	{"an HTML or XML page", regexp.MustCompile(`\A\s*<[!?a-zA-Z]`)},
	{"a key or a certificate", regexp.MustCompile(`(?m)^-----BEGIN `)},
	{"a configuration of syslog-ng", regexp.MustCompile(`(?m)^\s*(?:@version:|@include|(?:source|destination|filter|log|options|parser|template)\b[^\n:{]*\{[^\n]*(?:;|$))`)},
	{"a configuration of rsyslog", regexp.MustCompile(`(?m)^\s*(?:\$(?:ModLoad|IncludeConfig|WorkDirectory|Action\w+|File\w+|Input\w+|template)\b|(?:module|input|global|template|ruleset|action)\(|(?:\*|[a-z]+[0-7]?)(?:,[a-z]+[0-7]?)*\.[*=!]?(?:\*|[a-z]+)\b[;.,a-z0-9*=!]*\s+[-/@|:])`)},
	{"a configuration of Fluent Bit", regexp.MustCompile(`(?m)^\s*\[(?:SERVICE|INPUT|FILTER|OUTPUT|PARSER|MULTILINE_PARSER)\]`)},
	{"a configuration of Fluent Bit", regexp.MustCompile(`(?m)^pipeline:\s*$`)},
	{"a configuration of Fluentd", regexp.MustCompile(`(?m)^\s*<(?:source|match|filter|label|system)\b`)},
	{"a configuration of Vector", regexp.MustCompile(`(?m)^(?:\[(?:sources|transforms|sinks)\.|(?:sinks|transforms):\s*$)`)},
	{"a configuration of the OpenTelemetry collector", regexp.MustCompile(`(?m)^(?:receivers|exporters):\s*$`)},
	{"a configuration of Promtail", regexp.MustCompile(`(?m)^scrape_configs:\s*$`)},
	{"a configuration of Filebeat", regexp.MustCompile(`(?m)^filebeat\.`)},
	{"a configuration of Logstash", regexp.MustCompile(`(?m)^\s*(?:input|filter|output)\s*\{`)},
	{"a Kubernetes manifest", regexp.MustCompile(`(?m)^apiVersion:\s`)},
	{"a Compose file", regexp.MustCompile(`(?m)^services:\s*$`)},
	{"a unit of systemd", regexp.MustCompile(`(?m)^\[(?:Unit|Service|Install|Socket)\]\s*$`)},
	{"the manifest of a filter", regexp.MustCompile(`(?ms)\A.*^(?:wants|defaults|abi|module):.*\z`)},
	{"a TOML or INI file", regexp.MustCompile(`(?m)^\s*(?:\[[\w.:" -]+\]\s*$|[\w.-]+\s*=\s*\S)`)},
	{"a file of log lines", regexp.MustCompile(`\A\s*(?:<\d{1,3}>|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d |\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)`)},
	{"a JSON file", regexp.MustCompile(`\A\s*[\[{]`)},
}

// foreign is what a file seems to be that is no configuration of ours; "" when
// that cannot be told.
func foreign(text []byte) string {
	for _, p := range programs {
		if p.text.Match(text[:min(len(text), 64<<10)]) {
			return p.what
		}
	}
	return ""
}

// notOurs is the mistake of a file that is something else altogether: one that is
// no YAML, or has no keys and values at the top, and no line that begins with one
// of ours. tops are the keys of the whole.
func (d *Document) notOurs(f *file, text []byte, root *yaml.Node) (m Mistake, is bool) {
	if len(d.tops) == 0 {
		return m, false
	}
	what := foreign(text)
	m = Mistake{Place: Place{file: f}, Hint: fmt.Sprintf("a file with %s at its left edge", listed(d.tops, 12))}
	if what != "" {
		m.What = fmt.Sprintf("this is no configuration of weir: it looks like %s", what)
	}
	if root != nil && root.Kind == yaml.MappingNode {
		var keys []string
		for i := 0; i+1 < len(root.Content); i += 2 {
			key := root.Content[i].Value
			if slices.Contains(d.tops, Typo(key, d.tops)) || strings.HasPrefix(key, "x-") {
				if what == "" || !strings.Contains(what, "configuration of") {
					return m, false
				}
			}
			keys = append(keys, key)
		}
		if len(keys) < 2 && what == "" || d.partly(root) {
			return m, false
		}
		if what == "" {
			m.What = fmt.Sprintf("this is no configuration of weir: none of %s is a key of it", listed(keys, 5))
		}
		return m, true
	}
	for _, line := range f.lines {
		key, _, ok := strings.Cut(strings.TrimLeft(line, ` "'{`), ":")
		if ok && slices.Contains(d.tops, strings.Trim(key, ` "'`)) {
			return m, false
		}
		if word, _, _ := strings.Cut(strings.TrimSpace(line), " "); slices.Contains(d.tops, strings.TrimRight(word, "=:")) && indent(line) == 0 {
			return m, false
		}
	}
	return m, what != "" || !utf8.Valid(text) && bytes.IndexByte(text, 0) >= 0
}

// partly reports whether a file of another program, by its looks, is after all
// one of ours with a few keys out of place: most of what is at its top is ours.
func (d *Document) partly(root *yaml.Node) bool {
	ours, all := 0, 0
	for i := 0; i+1 < len(root.Content); i += 2 {
		all++
		if slices.Contains(d.tops, root.Content[i].Value) {
			ours++
		}
	}
	return ours*2 >= all || ours > 2
}

// listed puts names into a sentence, at most so many of them.
func listed(names []string, most int) string {
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
