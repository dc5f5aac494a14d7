package router

import (
	"unicode/utf16"
	"unicode/utf8"
)

// text is a string as it stands between its quotes.
type text struct {
	raw     []byte
	escaped bool // holds escapes
	wide    bool // holds bytes over 0x7f
}

// sound reports whether t holds neither lone surrogates nor bytes that are not UTF-8.
func (t text) sound() bool {
	if t.wide && !utf8.Valid(t.raw) {
		return false
	}
	if !t.escaped {
		return true
	}
	for i := 0; i < len(t.raw); i++ {
		if t.raw[i] != '\\' {
			continue
		}
		_, n, lone := unescape(t.raw[i:])
		if lone {
			return false
		}
		i += n - 1
	}
	return true
}

// appendSound appends t as written but for what sound complains about.
func (t text) appendSound(dst []byte) []byte {
	for i := 0; i < len(t.raw); {
		n := 1
		switch c := t.raw[i]; {
		case c == '\\':
			var lone bool
			if _, n, lone = unescape(t.raw[i:]); lone {
				dst = append(dst, `\ufffd`...)
			} else {
				dst = append(dst, t.raw[i:i+n]...)
			}
		case c >= utf8.RuneSelf:
			var r rune
			if r, n = utf8.DecodeRune(t.raw[i:]); r == utf8.RuneError && n == 1 {
				dst = append(dst, replacement...)
			} else {
				dst = append(dst, t.raw[i:i+n]...)
			}
		default:
			dst = append(dst, c)
		}
		i += n
	}
	return dst
}

// append appends what t says, lone surrogates as U+FFFD, other bytes as they are.
func (t text) append(dst []byte) []byte {
	start := 0
	for i := 0; i < len(t.raw); i++ {
		if t.raw[i] != '\\' {
			continue
		}
		r, n, _ := unescape(t.raw[i:])
		dst = utf8.AppendRune(append(dst, t.raw[start:i]...), r)
		i += n - 1
		start = i + 1
	}
	return append(dst, t.raw[start:]...)
}

// unescape reads the valid escape that s starts with, a surrogate pair as one.
func unescape(s []byte) (r rune, n int, lone bool) {
	switch s[1] {
	case 'b':
		return '\b', 2, false
	case 'f':
		return '\f', 2, false
	case 'n':
		return '\n', 2, false
	case 'r':
		return '\r', 2, false
	case 't':
		return '\t', 2, false
	case 'u':
	default:
		return rune(s[1]), 2, false
	}
	r, _ = hex4(s[2:])
	if !utf16.IsSurrogate(r) {
		return r, 6, false
	}
	if len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
		second, _ := hex4(s[8:])
		if both := utf16.DecodeRune(r, second); both != utf8.RuneError {
			return both, 12, false
		}
	}
	return utf8.RuneError, 6, true
}

func hex4(s []byte) (r rune, ok bool) {
	if len(s) < 4 {
		return 0, false
	}
	for _, c := range s[:4] {
		switch {
		case c-'0' <= 9:
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
