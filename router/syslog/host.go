package syslog

import "bytes"

// Classes of bytes, as bits of class.
const (
	nameByte  = 1 << iota // may stand in a tag's name
	letter                // makes a word more than a number; every non-ASCII byte does
	hostStart             // may start a host
	hostByte              // may stand in a host
	mnemonic              // may stand in a Cisco mnemonic
	sdName                // may stand in an SD-NAME
	sdSpecial             // means something in a quoted SD value
)

var class = func() (t [256]uint8) {
	for i := range t {
		c := byte(i)
		if c > ' ' && c != 0x7f && bytes.IndexByte([]byte(`[]{}"<>=:;|`), c) < 0 {
			t[i] |= nameByte
		}
		if c > ' ' && c != 0x7f && bytes.IndexByte([]byte(`=]"`), c) < 0 {
			t[i] |= sdName
		}
		if c == '"' || c == '\\' {
			t[i] |= sdSpecial
		}
		alpha := c|0x20 >= 'a' && c|0x20 <= 'z'
		if alpha || c >= 0x80 {
			t[i] |= letter | hostStart | hostByte
		}
		if isDigit(c) || c == '_' {
			t[i] |= hostStart | hostByte | mnemonic
		}
		if bytes.IndexByte([]byte(".-@/"), c) >= 0 {
			t[i] |= hostByte
		}
		if alpha || c == '-' {
			t[i] |= mnemonic
		}
	}
	return t
}()

var (
	repeated  = []byte("last message repeated ")
	forwarded = []byte("Message forwarded from ") // AIX
)

// readHostAndTag reads what follows a timestamp. With a host known already,
// none is looked for.
func readHostAndTag(m *Message, s []byte, known bool) {
	w := s[skipSpaces(s, 0):]
	if bytes.HasPrefix(w, repeated) {
		m.Text = w
		return
	}
	rest := dropSpace(s)
	if !known {
		rest = readHost(m, s)
	}
	if !readTag(m, rest) && m.Text == nil {
		m.Text = rest
	}
}

// readHost takes the host off s and returns what is behind it and one space.
func readHost(m *Message, s []byte) []byte {
	i := skipSpaces(s, 0)
	w := s[i:]
	if len(w) > len(forwarded) && bytes.HasPrefix(w, forwarded) {
		n := len(forwarded)
		end := n + word(w[n:])
		if end > n && w[end-1] == ':' {
			if h := w[n : end-1 : end-1]; isHostWord(h) || isAddress(h) {
				m.Hostname = h
				return dropSpace(w[end:])
			}
		}
	}
	n := 0
	plain := true
	for n < len(w) && w[n] != ' ' {
		plain = plain && class[w[n]]&hostByte != 0
		n++
	}
	h := w[:n:n]
	switch {
	case n == 0:
		return dropSpace(s)
	case plain && class[h[0]]&hostStart != 0, isIPv6(h):
		m.Hostname = h
	case h[0] == '[' && h[n-1] == ']' && isAddress(h[1:n-1]):
		m.Hostname = h[1 : n-1 : n-1]
	case n == 1 && h[0] == '-':
	default:
		return dropSpace(s)
	}
	return dropSpace(w[n:])
}

func isHostWord(w []byte) bool {
	if len(w) == 0 || class[w[0]]&hostStart == 0 {
		return false
	}
	for _, c := range w {
		if class[c]&hostByte == 0 {
			return false
		}
	}
	return true
}

func hasLetter(w []byte) bool {
	for _, c := range w {
		if class[c]&letter != 0 {
			return true
		}
	}
	return false
}

func isAddress(w []byte) bool { return isIPv4(w) || isIPv6(w) }

func isIPv4(w []byte) bool {
	dots, digits, v := 0, 0, 0
	for _, c := range w {
		switch {
		case isDigit(c) && digits < 3:
			digits++
			v = v*10 + int(c-'0')
			if v > 255 {
				return false
			}
		case c == '.' && digits > 0 && dots < 3:
			dots++
			digits, v = 0, 0
		default:
			return false
		}
	}
	return dots == 3 && digits > 0
}

// isIPv6 knows the forms of RFC 4291 section 2.2 and a zone (RFC 4007).
func isIPv6(w []byte) bool {
	if len(w) < 2 || bytes.IndexByte(w[:min(len(w), 5)], ':') < 0 {
		return false
	}
	if i := bytes.IndexByte(w, '%'); i >= 0 {
		if !isHostWord(w[i+1:]) {
			return false
		}
		w = w[:i]
	}
	groups, gap := 0, false
	i := 0
	if len(w) >= 2 && w[0] == ':' && w[1] == ':' {
		gap, i = true, 2
	}
	for i < len(w) {
		n := i
		for n < len(w) && n-i < 5 && isHex(w[n]) {
			n++
		}
		if n < len(w) && w[n] == '.' {
			if !isIPv4(w[i:]) {
				return false
			}
			groups += 2
			break
		}
		if n == i || n-i > 4 {
			return false
		}
		groups++
		i = n
		if i == len(w) {
			break
		}
		if w[i] != ':' || i+1 == len(w) {
			return false
		}
		i++
		if w[i] == ':' {
			if gap {
				return false
			}
			gap = true
			i++
		}
	}
	return groups == 8 && !gap || groups < 8 && gap
}

func isHex(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

// readTag reads a tag in front of s into AppName and ProcID, what is behind it
// into Text. Without a tag it returns false and leaves AppName nil; Text is set
// then only if a lone colon in front was skipped.
func readTag(m *Message, s []byte) bool {
	i := skipSpaces(s, 0)
	if i < len(s) && s[i] == ':' && (i+1 == len(s) || s[i+1] == ' ' || s[i+1] == '%') {
		m.Text = dropSpace(s[i+1:])
		i = skipSpaces(s, i+1)
	}
	t := s[i:]
	if n := scanMnemonic(t); n > 0 && n < len(t) {
		end := n
		if t[n] == ' ' && n+1 < len(t) && t[n+1] == ':' {
			end += 2
		} else if t[n] == ':' {
			end++
		}
		if end > n || t[n] == ' ' {
			m.AppName = t[:n:n]
			m.Text = dropSpace(t[end:])
			return true
		}
	}
	n, bits := 0, uint8(0)
	for n < len(t) && n <= maxTag && class[t[n]]&nameByte != 0 {
		bits |= class[t[n]]
		n++
	}
	if n == 0 || n > maxTag || n == len(t) || bits&letter == 0 {
		return false
	}
	name, rest := t[:n:n], t[n+1:]
	switch t[n] {
	case '\t':
		m.Text = rest
	case ':':
		if neverTag(t, name, rest) {
			return false
		}
		m.Text = dropSpace(rest)
	case '[':
		k := 0
		for k < len(rest) && k <= maxTag && rest[k] != ' ' && rest[k] != ']' {
			k++
		}
		if k == 0 || k > maxTag || k == len(rest) || rest[k] != ']' {
			return false
		}
		pid := rest[:k:k]
		rest = rest[k+1:]
		if len(rest) > 0 && rest[0] == ':' {
			rest = rest[1:]
		} else if len(rest) > 0 && rest[0] != ' ' {
			return false
		}
		m.ProcID = pid
		m.Text = dropSpace(rest)
	default:
		return false
	}
	m.AppName = name
	return true
}

const maxTag = 128 // bytes of a name, and of a pid

// neverTag knows the words before a colon that are no program: payloads would
// lose their heads, addresses and paths be torn apart.
func neverTag(t, name, rest []byte) bool {
	switch string(name) {
	case "CEF", "LEEF":
		return len(rest) > 0 && isDigit(rest[0])
	case "@cee":
		return true
	}
	if len(rest) > 0 && rest[0] == '\\' || len(rest) > 1 && rest[0] == '/' && rest[1] == '/' {
		return true
	}
	if w := t[:word(t)]; len(w) > 2 && w[len(w)-1] == ':' {
		return isIPv6(w[:len(w)-1])
	}
	return false
}

// scanMnemonic reads Cisco's `%FAC-…-n-NAME` and returns its length, or 0.
func scanMnemonic(s []byte) int {
	if len(s) < 6 || s[0] != '%' || s[1] == '-' {
		return 0
	}
	n, severity := 1, false
	for n < len(s) && class[s[n]]&mnemonic != 0 {
		if s[n] == '-' && n+3 < len(s) && s[n+1] >= '0' && s[n+1] <= '7' && s[n+2] == '-' && class[s[n+3]]&mnemonic != 0 && s[n+3] != '-' {
			severity = true
		}
		n++
	}
	if !severity {
		return 0
	}
	return n
}
