package syslog

import "bytes"

// parse5424 reads the header of RFC 5424 section 6.2 and what follows; false
// when there is none. Stamps of version 1 in epoch seconds (Meraki) count too.
func (p *Parser) parse5424(m *Message, s []byte, hasPRI bool, received int64, mem Memory) bool {
	if hasPRI && len(s) > 0 && s[0] == ' ' { // spaces behind the PRI, as old headers may have them
		i := skipSpaces(s, 0)
		return p.Format != RFC3164 && p.parse5424(m, s[i:], false, received, mem)
	}
	version := 0
	for version < len(s) && version < 3 && isDigit(s[version]) {
		version++
	}
	if version == 0 || s[0] == '0' || version >= len(s) || s[version] != ' ' {
		return false
	}
	one := version == 1 && s[0] == '1'
	rest := s[version+1:]
	var t stamp
	n := t.scanISO(rest)
	switch {
	case n > 0 && t.t && (n == len(rest) || rest[n] == ' '):
		if p.Format == RFC3164 {
			m.Text = s
			return true
		}
		m.Timestamp = p.clock.resolve(&t, received, p.Zone)
	case one && hasPRI && len(rest) > 0 && rest[0] == '-' && (len(rest) == 1 || rest[1] == ' '):
		if p.Format == RFC3164 {
			m.Text = s
			return true
		}
		n = 1
	case one && hasPRI && p.Format != RFC3164:
		return p.parseEpoch(m, rest)
	default:
		return false
	}
	rest = rest[n:]
	if len(rest) > 0 {
		rest = rest[1:]
	}
	m.Hostname, rest = column(rest)
	m.AppName, rest = column(rest)
	m.ProcID, rest = column(rest)
	m.MsgID, rest = column(rest)

	if len(rest) > 0 && rest[0] == '[' {
		n := p.parseSD(m, rest, mem)
		if n == 0 { // the text starts at the bracket
			m.Text = rest
			return true
		}
		rest = dropSpace(rest[n:])
	} else if len(rest) > 0 && rest[0] == '-' && (len(rest) == 1 || rest[1] == ' ') {
		rest = dropSpace(rest[1:])
	}
	m.Text = bytes.TrimPrefix(rest, bom)
	return true
}

// column cuts the next header column off s; NILVALUE and nothing are nil.
func column(s []byte) (col, rest []byte) {
	n := word(s)
	col, rest = s[:n:n], s[n:]
	if n == 0 || n == 1 && col[0] == '-' {
		col = nil
	}
	if len(rest) > 0 {
		rest = rest[1:]
	}
	return col, rest
}

// parseEpoch reads `1767225604.774247467 host text`, as Meraki sends behind
// version 1: ten digits of seconds with a fraction.
func (p *Parser) parseEpoch(m *Message, s []byte) bool {
	const digits = 10
	if len(s) < digits+2 || s[digits] != '.' {
		return false
	}
	sec := int64(0)
	for _, c := range s[:digits] {
		if !isDigit(c) {
			return false
		}
		sec = sec*10 + int64(c-'0')
	}
	nsec, n := scanFraction(s[digits:])
	n += digits
	if n == digits || n < len(s) && s[n] != ' ' {
		return false
	}
	m.Timestamp = nanos(sec, nsec)
	m.Text = readHost(m, s[n:])
	return true
}
