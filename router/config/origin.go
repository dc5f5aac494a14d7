package config

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// ShowOrigin writes what Show does, with a comment behind each value that says
// where it comes from: file:line; the anchor that an alias means; the variables
// and files that references name, never what is in them; or "default". builtin is
// the name of the file that is no file: of what it holds "built-in" is said.
func (d *Document) ShowOrigin(w io.Writer, from any, builtin string) error {
	s := &shower{doc: d, from: map[*yaml.Node]string{}, builtin: builtin}
	text, top, err := s.text(from)
	if err != nil {
		return err
	}
	var again yaml.Node
	if err := yaml.Unmarshal(text, &again); err != nil {
		return fmt.Errorf("read what is shown: %w", err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	said := make([][]string, len(lines))
	if len(again.Content) == 1 {
		s.spread(said, top, again.Content[0], 0)
	}
	_, err = w.Write(align(lines, said))
	return err
}

// spread puts origins on the lines where their values are: shown is the tree that was written, read the same as it
// was read again, and line the one with the key of it, from 1; 0: there is none.
func (s *shower) spread(said [][]string, shown, read *yaml.Node, line int) {
	if shown.Kind == yaml.ScalarNode || line == 0 {
		line = read.Line
	}
	if from := s.from[shown]; from != "" && !slices.Contains(said[line-1], from) {
		said[line-1] = append(said[line-1], from)
	}
	for i := range min(len(shown.Content), len(read.Content)) {
		switch {
		case shown.Kind == yaml.SequenceNode:
			s.spread(said, shown.Content[i], read.Content[i], read.Content[i].Line)
		case i%2 == 1:
			s.spread(said, shown.Content[i], read.Content[i], read.Content[i-1].Line)
		}
	}
}

// farthest is where comments begin at the latest, but behind longer lines.
const farthest = 56

// align puts the comments behind the lines, in one column where that is possible.
func align(lines []string, said [][]string) []byte {
	column := 0
	for i, line := range lines {
		if n := utf8.RuneCountInString(line); len(said[i]) > 0 && n <= farthest {
			column = max(column, n)
		}
	}
	var b bytes.Buffer
	for i, line := range lines {
		b.WriteString(line)
		if len(said[i]) > 0 {
			pad := max(0, column-utf8.RuneCountInString(line))
			b.WriteString(strings.Repeat(" ", pad) + "  # " + strings.Join(said[i], "; "))
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// note remembers where the value at a path comes from, which is shown as n.
func (s *shower) note(n *yaml.Node, path string) {
	if s.from == nil {
		return
	}
	at, ok := s.doc.places[path]
	switch {
	case !ok && n.Kind == yaml.MappingNode && len(n.Content) > 0 && n.Style&yaml.FlowStyle == 0:
		return // each of its settings tells
	case !ok:
		s.from[n] = "default"
		return
	}
	key, alias := at.file.written(path)
	line := at.node.Line
	if key != nil {
		line = key.Line
	}
	written := at.node
	if alias != nil {
		written = alias.Alias
	}
	said := s.place(at.file, line)
	if alias != nil && key == nil {
		said = s.place(at.file, alias.Line)
	}
	if strings.Count(path, sep) == 1 && n.Kind == yaml.MappingNode && len(s.doc.files) > 1 {
		said = "" // laid together from several files: each name tells
	}
	if alias != nil {
		said += fmt.Sprintf(", *%s of line %d", alias.Value, written.Line)
	}
	if n.Kind == yaml.ScalarNode && written.Kind == yaml.ScalarNode {
		said += s.references(written.Value)
	}
	s.from[n] = said
	if n.Kind != yaml.ScalarNode && n.Style&yaml.FlowStyle != 0 {
		s.noteInside(n, written)
	}
}

// noteInside adds the references in a value that is shown as it is written.
func (s *shower) noteInside(n, written *yaml.Node) {
	for written.Kind == yaml.AliasNode {
		written = written.Alias
	}
	for i := range min(len(n.Content), len(written.Content)) {
		if n.Content[i].Kind != yaml.ScalarNode {
			s.noteInside(n.Content[i], written.Content[i])
		} else if refs := s.references(written.Content[i].Value); refs != "" {
			s.from[n.Content[i]] = strings.TrimPrefix(refs, ", ")
		}
	}
}

// place is a line of a file.
func (s *shower) place(f *file, line int) string {
	if f.name == s.builtin {
		return "built-in"
	}
	name := strings.Map(func(r rune) rune {
		if r == '\n' {
			return '�'
		}
		return r
	}, f.name)
	return fmt.Sprintf("%s:%d", printable(name), line)
}

// references lists what a text takes from elsewhere.
func (s *shower) references(text string) (said string) {
	if s.doc.opts.Verbatim {
		return ""
	}
	expandRefs(text, true, func(ref string) (string, error) {
		kind, name, _ := strings.Cut(ref, ":")
		note := ""
		if kind == "env" {
			var otherwise bool
			name, _, otherwise = strings.Cut(name, ":-")
			if value, _ := s.doc.opts.Env(name); otherwise && value == "" {
				note = " is not set"
			}
		}
		said += ", " + kind + " " + printable(name) + note
		return "", nil
	}, func(string, error) {})
	return strings.ReplaceAll(said, "\n", " ")
}

// written finds the key that a path leads to, nil for an item of a list, and the alias that stands
// there, if one does. Inside of an alias the places are those of its anchor.
func (f *file) written(path string) (key, alias *yaml.Node) {
	n := f.root
	for name := range strings.SplitSeq(strings.TrimSuffix(path, sep), sep) {
		for hops := 0; n != nil && n.Kind == yaml.AliasNode && hops < deepest; hops++ {
			n = n.Alias
		}
		if n == nil {
			return nil, nil
		}
		var next *yaml.Node
		key = nil
		switch i, err := strconv.Atoi(name); {
		case n.Kind == yaml.SequenceNode && err == nil && i < len(n.Content):
			next = n.Content[i]
		case n.Kind == yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == name {
					key, next = n.Content[i], n.Content[i+1]
				}
			}
		}
		n = next
	}
	if n != nil && n.Kind == yaml.AliasNode {
		alias = n
	}
	return key, alias
}
