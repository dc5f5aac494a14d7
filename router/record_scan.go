package router

import (
	"strconv"
	"unicode/utf8"
	"unsafe"
)

// A scanner walks over JSON text (RFC 8259). Its methods stand at i, move
// behind what they read, and report false when that is not JSON. Bytes that are
// not UTF-8 are let through inside strings.
type scanner struct {
	data []byte
	i    int
}

// maxDepth is how deep arrays and objects may be nested; no recursion follows them.
const maxDepth = 512

func (s *scanner) space() {
	for s.i < len(s.data) {
		switch s.data[s.i] {
		case ' ', '\t', '\r', '\n':
			s.i++
		default:
			return
		}
	}
}

// peek is the byte at i, 0 at the end.
func (s *scanner) peek() byte {
	if s.i < len(s.data) {
		return s.data[s.i]
	}
	return 0
}

func (s *scanner) string() (t text, ok bool) {
	if s.peek() != '"' {
		return t, false
	}
	start := s.i + 1
	for i := start; i < len(s.data); i++ {
		c := s.data[i]
		if plain[c] {
			continue
		}
		switch {
		case c >= utf8.RuneSelf:
			t.wide = true
		case c == '"':
			t.raw, s.i = s.data[start:i:i], i+1
			return t, true
		case c == '\\':
			t.escaped = true
			i++
			if i >= len(s.data) {
				return t, false
			}
			switch s.data[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				if _, ok := hex4(s.data[i+1:]); !ok {
					return t, false
				}
				i += 4
			default:
				return t, false
			}
		default: // control characters must be escaped
			return t, false
		}
	}
	return t, false
}

// number reads a number; integer says that it has neither fraction nor exponent.
func (s *scanner) number() (raw []byte, integer, ok bool) {
	start := s.i
	if s.peek() == '-' {
		s.i++
	}
	if s.peek() == '0' {
		s.i++
	} else if !s.digits() {
		return nil, false, false
	}
	integer = true
	if s.peek() == '.' {
		s.i++
		integer = false
		if !s.digits() {
			return nil, false, false
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.i++
		integer = false
		if c := s.peek(); c == '+' || c == '-' {
			s.i++
		}
		if !s.digits() {
			return nil, false, false
		}
	}
	return s.data[start:s.i:s.i], integer, true
}

func (s *scanner) digits() bool {
	start := s.i
	for s.i < len(s.data) && s.data[s.i]-'0' <= 9 {
		s.i++
	}
	return s.i > start
}

func (s *scanner) word(w string) bool {
	if len(s.data)-s.i < len(w) || string(s.data[s.i:s.i+len(w)]) != w {
		return false
	}
	s.i += len(w)
	return true
}

// container reads an array or object. clean says that it is compact already and
// holds nothing that appendCompact would change; huge, that a number in it is
// beyond what a float can hold.
func (s *scanner) container() (raw []byte, clean, huge, ok bool) {
	start := s.i
	var objects [maxDepth / 64]uint64 // by depth: it is an object
	depth := 0
	clean = true
	for {
		c := s.peek()
		switch c {
		case '{', '[':
			if depth == maxDepth {
				return nil, false, false, false
			}
			s.i++
			s.gap(&clean)
			if s.peek() == c+2 { // ASCII: `{` + 2 is `}`, `[` + 2 is `]`
				s.i++
				break
			}
			if c == '{' {
				objects[depth/64] |= 1 << (depth % 64)
				if !s.key(&clean) {
					return nil, false, false, false
				}
			} else {
				objects[depth/64] &^= 1 << (depth % 64)
			}
			depth++
			continue
		case '"':
			t, ok := s.string()
			if !ok {
				return nil, false, false, false
			}
			clean = clean && t.sound()
		default:
			big, ok := s.scalar()
			if !ok {
				return nil, false, false, false
			}
			huge = huge || big
		}
		for { // behind a value
			if depth == 0 {
				return s.data[start:s.i:s.i], clean, huge, true
			}
			s.gap(&clean)
			object := objects[(depth-1)/64]&(1<<((depth-1)%64)) != 0
			c := s.peek()
			s.i++
			if c == ',' {
				s.gap(&clean)
				if object && !s.key(&clean) {
					return nil, false, false, false
				}
				break
			}
			if object && c != '}' || !object && c != ']' {
				return nil, false, false, false
			}
			depth--
		}
	}
}

// key reads a member's name and its colon.
func (s *scanner) key(clean *bool) bool {
	t, ok := s.string()
	if !ok {
		return false
	}
	*clean = *clean && t.sound()
	s.gap(clean)
	if s.peek() != ':' {
		return false
	}
	s.i++
	s.gap(clean)
	return true
}

func (s *scanner) gap(clean *bool) {
	i := s.i
	if s.space(); s.i > i {
		*clean = false
	}
}

// scalar reads true, false, null or a number.
func (s *scanner) scalar() (huge, ok bool) {
	switch s.peek() {
	case 't':
		return false, s.word("true")
	case 'f':
		return false, s.word("false")
	case 'n':
		return false, s.word("null")
	}
	raw, _, ok := s.number()
	return ok && tooHuge(raw), ok
}

// tooHuge reports whether a number is beyond every float.
func tooHuge(raw []byte) bool {
	long := len(raw) > 308
	for _, c := range raw {
		long = long || c|0x20 == 'e'
	}
	if !long {
		return false
	}
	_, err := strconv.ParseFloat(view(raw), 64)
	return err != nil
}

// member moves on to the next member of an object that is known to be valid: from
// its opening brace, or from behind a value, to the value behind name. At the
// closing brace it moves behind that and returns false.
func (s *scanner) member() (name text, ok bool) {
	s.space()
	if c := s.peek(); c == '{' || c == ',' {
		s.i++
		s.space()
	}
	if s.peek() == '}' {
		s.i++
		return name, false
	}
	name, _ = s.string()
	s.space()
	s.i++ // the colon
	s.space()
	return name, true
}

// appendCompact appends the valid JSON in raw without spaces, with U+FFFD for
// lone surrogates and bytes that are not UTF-8, and with numbers beyond every
// float as strings. All else, escapes included, stays as it is written.
func appendCompact(dst, raw []byte) []byte {
	s := scanner{data: raw}
	for s.i < len(raw) {
		switch c := raw[s.i]; c {
		case ' ', '\t', '\r', '\n':
			s.i++
		case '"':
			t, _ := s.string()
			dst = t.appendSound(append(dst, '"'))
			dst = append(dst, '"')
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			n, _, _ := s.number()
			if tooHuge(n) {
				dst = append(append(append(dst, '"'), n...), '"')
			} else {
				dst = append(dst, n...)
			}
		default:
			dst = append(dst, c)
			s.i++
		}
	}
	return dst
}

// view is b as a string, for callees that do not keep it.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
