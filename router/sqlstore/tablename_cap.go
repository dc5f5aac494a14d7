package sqlstore

import (
	"regexp"
	"strings"
	"time"

	"github.com/weirlog/weir/router"
)

// families counts the tables that a template names. Senders may not make as
// many as they like, but time makes more and more: tables that differ in a time
// only are one family.
type families struct {
	naming *naming
	most   int
	seen   map[string]bool
	known  *regexp.Regexp // matches a table's name, with a group for each value that is no time
	buf    []byte
}

// someTime stands for every time in a family's name.
const someTime = "0"

// tooManyTables is what happens to a row that admit does not admit.
var tooManyTables = refusal{code: "tables", reason: "its table would be one more than max_tables allows", sure: true}

// reset forgets all families.
func (f *families) reset() {
	f.seen = map[string]bool{}
	if f.known != nil {
		return
	}
	sample := &router.Message{Received: time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC).UnixNano()}
	sample.Timestamp = sample.Received
	var b strings.Builder
	b.WriteString("^(?:t_)?")
	for i, p := range f.naming.parts {
		switch {
		case p.value == nil:
			text := asName([]byte("_"+p.text), 0)[1:]
			if i == 0 {
				text = []byte(strings.TrimPrefix(f.naming.prefix, "t_"))
			}
			b.Write(text)
		case p.time:
			for _, c := range asName(p.value.Append([]byte("_"), sample), 0)[1:] {
				switch {
				case c >= '0' && c <= '9':
					b.WriteString("[0-9_]")
				case c >= 'a' && c <= 'z':
					b.WriteString("[a-z]?")
				default:
					b.WriteByte(c)
				}
			}
		default:
			b.WriteString("(.+)")
		}
	}
	b.WriteByte('$')
	f.known = regexp.MustCompile(b.String())
}

// found says that there is a table of that name.
func (f *families) found(name string) {
	if !f.naming.matches(name) {
		return
	}
	groups := f.known.FindStringSubmatch(name)
	if groups == nil { // cut and hashed, or somebody else's
		if len(name) > nameBytes {
			f.seen[name] = true
		}
		return
	}
	var family []byte
	for _, p := range f.naming.parts {
		switch {
		case p.value == nil:
			family = append(family, p.text...)
		case p.time:
			family = append(family, someTime...)
		default:
			family, groups = append(family, groups[1]...), groups[1:]
		}
	}
	f.seen[string(finishName(family, 0))] = true
}

// admit reports whether m's table may be made, and counts it.
func (f *families) admit(m *router.Message) bool {
	family := f.buf[:0]
	values := false
	for i := range f.naming.parts {
		p := &f.naming.parts[i]
		switch {
		case p.value == nil:
			family = append(family, p.text...)
		case p.time:
			family = append(family, someTime...)
		default:
			values = true
			from := len(family)
			if family = p.value.Append(family, m); len(family) == from {
				family = append(family, emptyValue...)
			}
		}
	}
	f.buf = finishName(family, 0)
	if !values || f.seen[string(f.buf)] {
		return true
	}
	if len(f.seen) >= f.most {
		return false
	}
	f.seen[string(f.buf)] = true
	return true
}
