package router

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// AppendString appends s as a JSON string. Bytes that are not UTF-8 become
// U+FFFD, one for each.
func AppendString(dst, s []byte) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if plain[c] {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			dst = appendEscape(append(dst, s[start:i]...), c)
			i++
			start = i
			continue
		}
		r, n := utf8.DecodeRune(s[i:])
		if r == utf8.RuneError && n == 1 {
			dst = append(append(dst, s[start:i]...), replacement...)
			start = i + 1
		}
		i += n
	}
	return append(append(dst, s[start:]...), '"')
}

// replacement is U+FFFD.
const replacement = "\ufffd"

// plain are the bytes that stand for themselves in a JSON string.
var plain = func() (t [256]bool) {
	for c := 0x20; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// appendValid appends s with U+FFFD for each byte that is not UTF-8.
func appendValid(dst, s []byte) []byte {
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		if r == utf8.RuneError && n == 1 {
			dst = append(dst, replacement...)
		} else {
			dst = append(dst, s[:n]...)
		}
		s = s[n:]
	}
	return dst
}

// AppendValue appends v as JSON. A float always shows that it is one (2.0), so
// that it is one again when it is read; bytes show as a string with U+FFFD for
// what is not UTF-8.
func AppendValue(dst []byte, v Value) []byte {
	switch v.Kind {
	case String, Bytes:
		return AppendString(dst, v.Bytes)
	}
	return AppendText(dst, v)
}

// AppendText appends v as a filter reads it (filters/ABI.md, field_get): text
// as its bytes, numbers in decimal, true, false and null as words, arrays and
// objects as their compact JSON.
func AppendText(dst []byte, v Value) []byte {
	switch v.Kind {
	case Bool:
		return strconv.AppendBool(dst, v.Bool())
	case Int:
		return strconv.AppendInt(dst, v.Int(), 10)
	case Float:
		return appendFloat(dst, v.Float())
	case String, Bytes, Array, Object:
		return append(dst, v.Bytes...)
	}
	return append(dst, "null"...)
}

// appendFloat writes the shortest text that reads as the same float, with an
// exponent where JavaScript and encoding/json use one.
func appendFloat(dst []byte, f float64) []byte {
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	from := len(dst)
	dst = strconv.AppendFloat(dst, f, format, -1, 64)
	for _, c := range dst[from:] {
		if c == '.' || c == 'e' {
			return dst
		}
	}
	return append(dst, ".0"...)
}
