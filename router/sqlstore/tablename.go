package sqlstore

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirlog/weir/router"
)

// A naming says which table a message goes into: always the same, or one whose
// name a template makes.
type naming struct {
	schema string
	fixed  string // the name; "": by parts
	parts  []namePart
	prefix string // of every name by parts
	suffix string // of those that are not cut
}

// namePart is text, or a value.
type namePart struct {
	text  string
	value *router.Template // nil: text
	time  bool             // a value that is a time
	late  *router.Template // in place of value when the message's own time cannot be right; nil: value
}

const (
	nameBytes  = 48 // of a name by parts; what is longer is cut, and a hash added
	emptyValue = "none"
	// A message whose own time is farther from its arrival goes by its arrival:
	// a clock that was never set makes no tables of 1970.
	nameHours = 48 * time.Hour
)

// reserved are beginnings that belong to the databases, and to weir.
var reserved = []string{"sqlite_", "pg_", "weir_"}

// parseNaming reads `table:`.
func parseNaming(s string) (n naming, err error) {
	if !strings.Contains(s, "${") {
		t, err := parseTable(s)
		return naming{schema: t.schema, fixed: t.name}, err
	}
	if dot := strings.IndexByte(s, '.'); dot >= 0 && dot < strings.Index(s, "${") {
		if n.schema = s[:dot]; !goodName(n.schema) {
			return n, fmt.Errorf("%q is no table name", s)
		}
		s = s[dot+1:]
	}
	for len(s) > 0 {
		at, end := strings.Index(s, "${"), 0
		switch {
		case at < 0:
			n.parts, s = append(n.parts, namePart{text: s}), ""
			continue
		case at > 0:
			n.parts, s = append(n.parts, namePart{text: s[:at]}), s[at:]
			continue
		}
		if end = strings.IndexByte(s, '}') + 1; end == 0 {
			end = len(s)
		}
		part, err := parseNameValue(s[:end])
		if err != nil {
			return n, fmt.Errorf("table name: %w", err)
		}
		n.parts, s = append(n.parts, part), s[end:]
	}
	if n.parts[0].value == nil {
		n.prefix = string(asName([]byte(n.parts[0].text), 0))
		n.prefix = n.prefix[:min(len(n.prefix), nameBytes)]
	}
	if last := n.parts[len(n.parts)-1]; last.value == nil {
		n.suffix = string(asName([]byte("_"+last.text), 0)[1:])
	}
	return n, nil
}

// parseNameValue reads a ${…}.
func parseNameValue(s string) (p namePart, err error) {
	if p.value, err = router.ParseTemplate(s); err != nil {
		return p, err
	}
	name, format, ok := strings.Cut(strings.Trim(s, "${}"), ":")
	if name != "timestamp" && name != "received_at" {
		return p, nil
	}
	if p.time = true; !ok || format[0] != '%' {
		return p, fmt.Errorf("%s would make a table for each moment: ${%s:%%Y_%%m_%%d}", s, name)
	}
	if name == "timestamp" {
		p.late, err = router.ParseTemplate("${received_at:" + format + "}")
	}
	return p, err
}

// append appends the name of m's table, when it is one by parts:
// [a-z0-9_], at most 57 bytes, none where a value is absent or empty, and t_
// before a digit and what is reserved. It allocates only to grow dst.
func (n *naming) append(dst []byte, m *router.Message) []byte {
	start := len(dst)
	far := m.Timestamp == router.NoTime || time.Duration(max(m.Received-m.Timestamp, m.Timestamp-m.Received)) > nameHours
	for i := range n.parts {
		p := &n.parts[i]
		if p.value == nil {
			dst = append(dst, p.text...)
			continue
		}
		value := p.value
		if far && p.late != nil {
			value = p.late
		}
		from := len(dst)
		if dst = value.Append(dst, m); len(dst) == from {
			dst = append(dst, emptyValue...)
		}
	}
	return finishName(dst, start)
}

// finishName makes a name of what begins at start.
func finishName(dst []byte, start int) []byte {
	dst = asName(dst, start)
	if len(dst)-start <= nameBytes {
		return dst
	}
	return appendSum(dst[:start+nameBytes], dst[start:])
}

// appendSum appends _ and the FNV-1a sum of a name to what is left of it.
func appendSum(dst, name []byte) []byte {
	sum := uint32(2166136261)
	for _, c := range name {
		sum = (sum ^ uint32(c)) * 16777619
	}
	dst = append(dst, '_')
	for shift := 28; shift >= 0; shift -= 4 {
		dst = append(dst, "0123456789abcdef"[sum>>shift&15])
	}
	return dst
}

// asName makes a name of the text that begins at start.
func asName(dst []byte, start int) []byte {
	name := dst[start:start]
	for _, c := range dst[start:] {
		switch {
		case c >= 'A' && c <= 'Z':
			c |= 0x20
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
		case c&0xc0 == 0x80 && len(name) > 0 && name[len(name)-1] == '_':
			continue // the rest of a character that has its _ already
		default:
			c = '_'
		}
		name = append(name, c)
	}
	dst = dst[:start+len(name)]
	taken := len(name) > 0 && name[0] <= '9'
	for _, r := range reserved {
		taken = taken || len(name) >= len(r) && string(name[:len(r)]) == r
	}
	if taken {
		dst = append(dst, "t_"...)
		copy(dst[start+2:], dst[start:])
		copy(dst[start:], "t_")
	}
	return dst
}

// matches reports whether a table of that name may be one by parts.
func (n *naming) matches(name string) bool {
	for _, r := range reserved {
		if strings.HasPrefix(name, r) {
			return false
		}
	}
	return (strings.HasPrefix(name, n.prefix) || strings.HasPrefix(name, "t_"+n.prefix)) && (len(name) > nameBytes || strings.HasSuffix(name, n.suffix))
}

// index is the name of the index on a column of table t. Names by parts hold no
// dot, so that no sender can make a table whose name an index has already.
func (n *naming) index(t table, column string) string {
	if n.fixed != "" {
		return t.name + "_" + column + "_idx"
	}
	return t.name + "." + column
}
