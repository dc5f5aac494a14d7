package router

import (
	"fmt"
	"strings"
)

// A Template is text with values of a message in it:
//
//	${key}                 a value (see Ref), nothing where it is absent
//	${key:-text}           text where it is absent or empty
//	${timestamp:%Y_%m_%d}  a time as strftime writes it, in UTC; also received_at
//	$$                     a dollar
//
// A Template is immutable and safe for concurrent use.
type Template struct {
	parts []templatePart
}

type templatePart struct {
	text   string // before the value
	value  bool   // a value follows
	ref    Ref
	other  string // in place of an absent or empty value
	format string // strftime, for times
}

// ParseTemplate reads a template. The error says what is wrong and where.
func ParseTemplate(s string) (*Template, error) {
	t := &Template{}
	var text strings.Builder
	for i := 0; i < len(s); {
		if s[i] != '$' {
			text.WriteByte(s[i])
			i++
			continue
		}
		if i+1 < len(s) && s[i+1] == '$' {
			text.WriteByte('$')
			i += 2
			continue
		}
		if i+1 >= len(s) || s[i+1] != '{' {
			return nil, fmt.Errorf("a $ at character %d that begins no ${key} (a dollar is written $$)", i+1)
		}
		end := strings.IndexByte(s[i:], '}')
		if end < 0 {
			return nil, fmt.Errorf("the ${ at character %d is not closed", i+1)
		}
		p, err := parseValue(s[i+2 : i+end])
		if err != nil {
			return nil, err
		}
		p.text = text.String()
		text.Reset()
		t.parts = append(t.parts, p)
		i += end + 1
	}
	if text.Len() > 0 {
		t.parts = append(t.parts, templatePart{text: text.String()})
	}
	return t, nil
}

// parseValue reads what stands between the braces.
func parseValue(s string) (templatePart, error) {
	p := templatePart{value: true}
	name := s
	if before, after, ok := strings.Cut(s, ":-"); ok {
		name, p.other = before, after
	}
	if before, after, ok := strings.Cut(name, ":%"); ok {
		name, p.format = before, "%"+after
	}
	var err error
	if p.ref, err = ParseRef(name); err != nil {
		return p, err
	}
	if p.format == "" {
		return p, nil
	}
	if p.ref.Kind != RefKey || p.ref.Key != KeyTimestamp && p.ref.Key != KeyReceivedAt {
		return p, fmt.Errorf("${%s}: %s is not a time", s, name)
	}
	return p, checkStrftime(p.format)
}

// Constant returns the text and true when no message's value is in it.
func (t *Template) Constant() (string, bool) {
	switch {
	case len(t.parts) == 0:
		return "", true
	case len(t.parts) == 1 && !t.parts[0].value:
		return t.parts[0].text, true
	}
	return "", false
}

// Append appends the text for m. It allocates only to grow dst.
func (t *Template) Append(dst []byte, m *Message) []byte {
	for i := range t.parts {
		p := &t.parts[i]
		dst = append(dst, p.text...)
		if !p.value {
			continue
		}
		from := len(dst)
		if p.format == "" {
			dst, _ = p.ref.Append(dst, m)
		} else if ns := p.time(m); ns != NoTime {
			dst = appendStrftime(dst, p.format, ns)
		}
		if len(dst) == from {
			dst = append(dst, p.other...)
		}
	}
	return dst
}

func (p *templatePart) time(m *Message) int64 {
	if p.ref.Key == KeyReceivedAt {
		return m.Received
	}
	return m.Timestamp
}
