package sqlstore

import (
	"bytes"
	"unicode/utf8"
	"unsafe"

	"github.com/weirlog/weir/router"
)

// originCell is NULL for "".
func originCell(s string) cell {
	if s == "" {
		return cell{}
	}
	return cell{kind: cellText, data: unsafe.Slice(unsafe.StringData(s), len(s))}
}

// storableText returns b, or a copy in s with U+FFFD for each NUL and each byte
// that is not UTF-8: no SQL text can hold those.
func storableText(b []byte, s *scratch) []byte {
	if bytes.IndexByte(b, 0) < 0 && utf8.Valid(b) {
		return b
	}
	s.repaired++
	from := len(s.buf)
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if b[0] == 0 || r == utf8.RuneError && n == 1 {
			s.buf = append(s.buf, replacement...)
		} else {
			s.buf = append(s.buf, b[:n]...)
		}
		b = b[n:]
	}
	return s.buf[from:]
}

const replacement = "\uFFFD"

const (
	maxDepth    = 64     // of arrays and objects; a server's own stack bounds it somewhere
	maxExponent = 16_000 // PostgreSQL's numeric ends at 131 072 digits before and 16 383 behind the point
)

// storableJSON returns b, valid JSON text, or a copy in s without what jsonb
// refuses: lone surrogates and \u0000 become U+FFFD, numbers of absurd size and
// what is nested deeper than maxDepth become strings.
func storableJSON(b []byte, s *scratch) []byte {
	if !suspicious(b) {
		return b
	}
	from, before := len(s.buf), s.repaired
	depth := 0
	for i := 0; i < len(b); {
		switch c := b[i]; {
		case c == '"':
			i = s.jsonString(b, i)
		case c == '{' || c == '[':
			if depth == maxDepth {
				end := jsonEnd(b, i)
				s.buf = router.AppendString(s.buf, b[i:end])
				s.repaired++
				i = end
				continue
			}
			depth++
			s.buf = append(s.buf, c)
			i++
		case c == '}' || c == ']':
			depth--
			s.buf = append(s.buf, c)
			i++
		case c == '-' || c-'0' <= 9:
			i = s.jsonNumber(b, i)
		default:
			s.buf = append(s.buf, c)
			i++
		}
	}
	if s.repaired == before {
		s.buf = s.buf[:from]
		return b
	}
	s.repaired = before + 1 // values are counted, not places
	return s.buf[from:]
}

// suspicious reports whether something in b may need repair; most JSON is let
// by after this one look.
func suspicious(b []byte) bool {
	depth, digits := 0, 0
	for i, c := range b {
		if c-'0' <= 9 {
			if digits++; digits > 1000 {
				return true
			}
			continue
		}
		switch c {
		case '[', '{':
			if depth++; depth > maxDepth {
				return true
			}
		case ']', '}':
			depth--
		case '\\':
			if i+1 < len(b) && b[i+1] == 'u' {
				return true
			}
		case 'e', 'E':
			if digits > 0 {
				return true
			}
		}
		if c != '.' {
			digits = 0
		}
	}
	return false
}

// jsonString copies the string that begins at b[i] and returns where it ends.
func (s *scratch) jsonString(b []byte, i int) int {
	s.buf = append(s.buf, '"')
	for i++; i < len(b); i++ {
		switch b[i] {
		case '"':
			s.buf = append(s.buf, '"')
			return i + 1
		case '\\':
			if i+1 >= len(b) {
				return len(b)
			}
			if b[i+1] != 'u' {
				s.buf = append(s.buf, b[i], b[i+1])
				i++
				continue
			}
			r := hex4(b, i)
			switch {
			case r == 0, r >= 0xDC00 && r < 0xE000:
				s.buf = append(s.buf, replacement...)
				s.repaired++
			case r >= 0xD800 && r < 0xDC00:
				if low := hex4(b, i+6); low >= 0xDC00 && low < 0xE000 {
					s.buf = append(s.buf, b[i:i+12]...)
					i += 6
				} else {
					s.buf = append(s.buf, replacement...)
					s.repaired++
				}
			default:
				s.buf = append(s.buf, b[i:min(i+6, len(b))]...)
			}
			i += 5
		default:
			s.buf = append(s.buf, b[i])
		}
	}
	return len(b)
}

// hex4 is the value of the \uXXXX at b[i], or -1 when there is none.
func hex4(b []byte, i int) int {
	if i+6 > len(b) || b[i] != '\\' || b[i+1] != 'u' {
		return -1
	}
	n := 0
	for _, c := range b[i+2 : i+6] {
		switch {
		case c-'0' <= 9:
			n = n<<4 | int(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			n = n<<4 | int(c|0x20-'a'+10)
		default:
			return -1
		}
	}
	return n
}

// jsonNumber copies the number at b[i], as a string when it is too long.
func (s *scratch) jsonNumber(b []byte, i int) int {
	end, exponent, inExponent := i, 0, false
	for ; end < len(b); end++ {
		c := b[end]
		if c|0x20 == 'e' {
			inExponent = true
		} else if c-'0' <= 9 {
			if inExponent && exponent < maxExponent*10 {
				exponent = exponent*10 + int(c-'0')
			}
		} else if c != '-' && c != '+' && c != '.' {
			break
		}
	}
	if exponent+end-i <= maxExponent {
		s.buf = append(s.buf, b[i:end]...)
	} else {
		s.repaired++
		s.buf = append(append(append(s.buf, '"'), b[i:end]...), '"')
	}
	return end
}

// jsonEnd is where the array or object that begins at b[i] ends.
func jsonEnd(b []byte, i int) int {
	depth := 0
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(b)
}
