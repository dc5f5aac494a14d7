package config

import (
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
)

// Parts that must not be seen, each as the first group of a pattern: what stands
// behind a key that names a secret, and the password in SQL and in a URL.
var (
	inLines = []*regexp.Regexp{regexp.MustCompile(secretNames + `["']?[ \t]*[:=][ \t]*` + secretValue), inSQL, inURL}
	inTexts = []*regexp.Regexp{regexp.MustCompile(secretNames + `["']?[ \t]*=[ \t]*` + secretValue), inSQL, inURL}
	inSQL   = regexp.MustCompile(`(?i)password[ \t]+('[^']*'?)`)
	inURL   = regexp.MustCompile(`:/{1,2}[^/\s:@"']*:([^\s"']*)@`) // one slash is left of it in a path
)

const (
	secretNames = `(?i)(?:password|passwd|passphrase|pgpass|secret|token|api_?key)`
	secretValue = `(\$\{[^}]*\}|\{[^}]*\}?|"(?:[^"\\]|\\.)*"?|'[^']*'?|[^\s&,}#]+(?:[ \t]+[^\s&,}#=:]+)*)`
)

// secretKey tells by its name whether a setting holds a secret.
var secretKey = regexp.MustCompile(`(?i)password|passwd|passphrase|secret|token|api_?key`)

// redact hides the passwords in a text: in URLs and behind password=. References such as
// ${file:/run/secrets/pg} stay: they are no secret.
func redact(s string) string {
	out, _ := hideAll(inTexts, s, 0)
	return out
}

// hideIn hides the secrets of a line, or all of it, and says where the byte at
// has moved.
func hideIn(line string, at int, all bool, more []*regexp.Regexp) (string, int) {
	if all {
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		if indent == len(line) {
			return line, at
		}
		return line[:indent] + hidden, min(at, indent)
	}
	line, at = hideAll(inLines, line, at)
	return hideAll(more, line, at)
}

func hideAll(patterns []*regexp.Regexp, line string, at int) (string, int) {
	for _, re := range patterns {
		var b strings.Builder
		done, moved := 0, at
		for _, m := range re.FindAllStringSubmatchIndex(line, -1) {
			from, to := m[2], m[3]
			if text := strings.Trim(line[from:to], `"'`); text == "" || isReference(text) || text == hidden {
				continue
			}
			b.WriteString(line[done:from])
			if at > from {
				if at >= to {
					moved += len(hidden) - (to - from)
				} else {
					moved -= at - from
				}
			}
			b.WriteString(hidden)
			done = to
		}
		b.WriteString(line[done:])
		line, at = b.String(), moved
	}
	return line, at
}

// isReference reports whether text is nothing but a reference of the file's own
// that carries no secret itself.
func isReference(text string) bool {
	return strings.HasPrefix(text, "${") && strings.IndexByte(text, '}') == len(text)-1 && !strings.Contains(text, ":-")
}

// findSecretBlocks finds the lines of block scalars (`password: |`) whose key
// names a secret.
func (f *file) findSecretBlocks() {
	type level struct {
		indent int
		secret bool // lines deeper than this one are
	}
	var open []level
	f.secret = make([]bool, len(f.lines))
	for i, line := range f.lines {
		if strings.TrimSpace(line) == "" {
			continue
		}
		in := indent(line)
		for len(open) > 0 && open[len(open)-1].indent >= in {
			open = open[:len(open)-1]
		}
		f.secret[i] = len(open) > 0 && open[len(open)-1].secret
		key, value, ok := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		begins := ok && secretKey.MatchString(key) && (value == "" || value[0] == '|' || value[0] == '>')
		open = append(open, level{in, begins || f.secret[i]})
	}
}

// findSecretAnchors finds the lines of what keys that name a secret mean by an alias.
func (f *file) findSecretAnchors(n *yaml.Node) {
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && c.Kind == yaml.AliasNode && secretKey.MatchString(n.Content[i-1].Value) {
			f.hideLines(c.Alias)
		}
		f.findSecretAnchors(c)
	}
}

// hideLines keeps the lines of a value, from that on where it begins, out of what is shown of the file.
func (f *file) hideLines(n *yaml.Node) {
	first := n.Line - 1
	if first < 0 || first >= len(f.lines) {
		return
	}
	f.secret[first] = true
	for i := first + 1; i < len(f.lines) && (strings.TrimSpace(f.lines[i]) == "" || indent(f.lines[i]) > indent(f.lines[first])); i++ {
		f.secret[i] = true
	}
}
