package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/weirlog/weir/router"
)

// expand puts the file's own references in: ${env:X}, ${env:X:-default},
// ${file:P}. What they give is never scanned again. In a template, other
// references stay and the dollars of what is put in are doubled; elsewhere $$
// is a dollar and other references are a mistake.
func (d *decoder) expand(f *file, n *yaml.Node, template bool) (string, bool) {
	if d.doc.opts.Verbatim {
		return n.Value, true
	}
	ok := true
	lookup := func(ref string) (string, error) {
		value, err := d.doc.lookup(f, ref)
		if len(value) >= 4 && strings.HasPrefix(ref, "file:") {
			d.doc.revealed = append(d.doc.revealed, value, hidden)
		}
		return value, err
	}
	out := expandRefs(n.Value, template, lookup,
		func(ref string, err error) {
			ok = false
			d.refused[n] = true
			hint := refHint(ref)
			if err == errNotClosed {
				hint = "} at the end of the reference"
			}
			d.doc.add(Mistake{Place: f.within(n, "${"+ref), What: err.Error(), Hint: hint})
		})
	return out, ok
}

// expandRefs is expand without a place. wrong is called for each bad reference.
func expandRefs(text string, template bool, lookup func(ref string) (string, error), wrong func(ref string, err error)) string {
	if !strings.Contains(text, "$") {
		return text
	}
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "$")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if strings.HasPrefix(rest, "$") {
			b.WriteByte('$')
			if template {
				b.WriteByte('$')
			}
			text = rest[1:]
			continue
		}
		ref, after, closed := strings.Cut(strings.TrimPrefix(rest, "{"), "}")
		own := strings.HasPrefix(rest, "{env:") || strings.HasPrefix(rest, "{file:")
		switch {
		case !strings.HasPrefix(rest, "{") || !own && template:
			b.WriteByte('$')
			text = rest
			continue
		case !closed:
			wrong(strings.TrimPrefix(rest, "{"), errNotClosed)
			return b.String()
		case !own && ofMessage(ref):
			wrong(ref, fmt.Errorf("${%s} is a value of the message, and this setting is fixed in this version of weir", ref))
		case !own:
			wrong(ref, fmt.Errorf("unknown reference ${%s}", ref))
		default:
			value, err := lookup(ref)
			if err != nil {
				wrong(ref, err)
			}
			if template {
				value = strings.ReplaceAll(value, "$", "$$")
			}
			b.WriteString(value)
		}
		text = after
	}
}

var errNotClosed = errors.New("this reference has no closing brace")

// ofMessage reports whether a template could have this reference: whoever writes
// it elsewhere means the message, not the environment.
func ofMessage(ref string) bool {
	name, _, _ := strings.Cut(ref, ":-")
	_, err := router.ParseRef(name)
	return err == nil
}

func refHint(ref string) string {
	name, value, found := strings.Cut(ref, ":")
	switch {
	case ofMessage(ref):
		return "a text that is the same for all messages; $$ is a dollar"
	case strings.ContainsAny(ref, "/ ") && name == "env":
		return ""
	case !strings.Contains(ref, ":") && ref != "":
		return "${env:" + ref + "} or ${file:PATH}; $$ is a dollar"
	case name == "env" && found && !strings.Contains(value, ":-"):
		return "set it, or ${env:" + value + ":-default}"
	}
	return ""
}

// lookup gives what env:X, env:X:-default or file:P stand for.
func (d *Document) lookup(f *file, ref string) (string, error) {
	kind, name, _ := strings.Cut(ref, ":")
	if kind == "env" {
		name, otherwise, has := strings.Cut(name, ":-")
		value, set := d.opts.Env(name)
		if has && value == "" {
			return otherwise, nil
		}
		if !set {
			return "", fmt.Errorf("environment variable %s is not set", name)
		}
		return value, nil
	}
	path := Place{file: f}.Resolve(name)
	r, err := os.Open(path)
	if err != nil {
		return "", unread(ref, path, err)
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, longestSecret+1))
	switch {
	case err != nil:
		return "", unread(ref, path, err)
	case len(text) > longestSecret:
		return "", fmt.Errorf("%s is over %d KiB: no value for a setting", name, longestSecret>>10)
	case !utf8.Valid(text) || strings.ContainsRune(string(text), 0):
		return "", fmt.Errorf("%s is not text", name)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), nil
}

// unread says why the file of a reference cannot be read.
func unread(ref, path string, err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		err = p.Err
	}
	if "file:"+path != ref {
		return fmt.Errorf("${%s}, which is %s: %w", ref, path, err)
	}
	return fmt.Errorf("${%s}: %w", ref, err)
}

const longestSecret = 64 << 10

var shellStyle = regexp.MustCompile(`^\$[A-Z][A-Z0-9_]+$`)

// noShell refuses $NAME, which whoever writes it means as a reference, and which is none.
func (d *decoder) noShell(f *file, n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode || !shellStyle.MatchString(n.Value) || d.doc.opts.Verbatim {
		return true
	}
	return d.fail(f, n, "${env:"+n.Value[1:]+"}; $"+n.Value+" is the text itself", "%s is no reference", n.Value)
}

// within is the place of a text inside a scalar, if it can be seen there.
func (f *file) within(n *yaml.Node, text string) Place {
	p := f.at(n)
	if p.Line < 1 || p.Line > len(f.lines) {
		return p
	}
	line := []rune(f.lines[p.Line-1])
	from := min(max(p.Column-1, 0), len(line))
	if i := strings.Index(string(line[from:]), text); i >= 0 {
		p.Column += utf8.RuneCountInString(string(line[from:])[:i])
	}
	return p
}

// secret decodes a Secret: checked now, expanded anew at each Reveal.
func (d *decoder) secret(f *file, n *yaml.Node, path string, out reflect.Value) bool {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return d.fail(f, n, "", "%s: want a text, got %s", words(path), describe(n))
	}
	if _, ok := d.expand(f, n, false); !ok || !d.noShell(f, n) {
		return false
	}
	doc := d.doc
	out.Set(reflect.ValueOf(Secret{text: n.Value, expand: func(text string) (string, error) {
		var failed error
		value := expandRefs(text, false, func(ref string) (string, error) { return doc.lookup(f, ref) },
			func(_ string, err error) { failed = err })
		return value, failed
	}}))
	return true
}
