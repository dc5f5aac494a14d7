package syslog

import (
	"bytes"
	"time"
)

// A Format says which headers a Parser recognises.
type Format uint8

const (
	Auto    Format = iota // all of them
	RFC5424               // RFC 5424 alone; other text after the PRI stays whole
	RFC3164               // RFC 3164 and its kin; the text of an RFC 5424 message stays whole
	PRIOnly               // PRI, and what is behind it is text: for payloads of another kind
	Raw                   // none, not even PRI: everything is text
)

// A Memory lends what a message needs beyond its own bytes. Each method returns
// a slice with room for n (Bytes: of length n) that lives as long as the
// message, or nil when there is no room.
type Memory interface {
	NewElements(n int) []Element
	NewParams(n int) []Param
	Bytes(n int) []byte
}

// Heap is a Memory that never runs out: it asks Go's allocator.
type Heap struct{}

func (Heap) NewElements(n int) []Element { return make([]Element, 0, n) }
func (Heap) NewParams(n int) []Param     { return make([]Param, 0, n) }
func (Heap) Bytes(n int) []byte          { return make([]byte, n) }

// A Parser reads messages. It holds scratch space and remembered zone lookups,
// is meant to be used for many messages, and serves one goroutine at a time.
// The zero value reads every format and takes times without a zone as UTC.
type Parser struct {
	Zone   *time.Location // of timestamps that carry none; nil: UTC. Not to be changed after the first Parse
	Format Format

	clock clock
	sd    sdScratch
}

// Parse fills m from raw, one message without its framing. It never fails: what
// it cannot read stays in m.Text, which is always the end of raw less its line
// ends. All slices of m point into raw, except structured data that had to be
// decoded, merged or is implied (Cisco's sequence number): that lies in mem. Without
// room in mem, structured data stays text.
//
// received is our clock, in Unix ns; it decides years that the sender left out.
// Every field of m is set. Parse returns false, and m is of no use, when raw
// holds nothing but white space and NUL.
func (p *Parser) Parse(m *Message, raw []byte, received int64, mem Memory) bool {
	*m = Message{Timestamp: NoTime, Facility: DefaultFacility, Severity: DefaultSeverity}
	s := trimEnd(raw)
	if blank(s) {
		return false
	}
	if p.Format == Raw {
		m.Text = s
		return true
	}
	s, pri := splitPRI(s)
	if pri >= 0 {
		m.Facility, m.Severity = uint8(pri>>3), uint8(pri&7)
	}
	switch {
	case pri < 0 && len(s) > 0 && s[0] == '<':
		m.Text = s
	case p.Format == PRIOnly:
		m.Text = s
	case p.parse5424(m, s, pri >= 0, received, mem):
	case p.Format == RFC5424:
		m.Text = s
	default:
		p.parseLegacy(m, s, pri >= 0, received, mem)
	}
	return true
}

// trimEnd takes the run of line ends and NULs off the end.
func trimEnd(s []byte) []byte {
	n := len(s)
	for n > 0 && (s[n-1] == '\n' || s[n-1] == '\r' || s[n-1] == 0) {
		n--
	}
	return s[:n]
}

func blank(s []byte) bool {
	for _, c := range s {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' && c != 0 {
			return false
		}
	}
	return true
}

var bom = []byte("\ufeff")

// splitPRI returns the PRI value and what follows it, or -1. In front of a PRI a
// BOM, white space and a stray octet count are skipped, in that order.
func splitPRI(s []byte) (rest []byte, pri int) {
	if n, v := scanPRI(s); n > 0 && v <= 191 {
		return s[n:], v
	}
	t := bytes.TrimPrefix(s, bom)
	i := 0
	for i < len(t) && (t[i] == ' ' || t[i] == '\t' || t[i] == '\r' || t[i] == '\n') {
		i++
	}
	digits := i
	for digits < len(t) && digits-i < 10 && isDigit(t[digits]) {
		digits++
	}
	if digits > i && digits < len(t) && t[digits] == ' ' {
		i = digits + 1
	}
	n, v := scanPRI(t[i:])
	switch {
	case n == 0:
		return t, -1
	case v > 191:
		return t[i:], -1
	}
	return t[i+n:], v
}

// scanPRI reads `<`, 1 to 3 digits and `>`; n is their length, or 0.
func scanPRI(s []byte) (n, v int) {
	if len(s) < 3 || s[0] != '<' {
		return 0, 0
	}
	for i := 1; i < len(s) && i <= 4; i++ {
		switch c := s[i]; {
		case isDigit(c) && i < 4:
			v = v*10 + int(c-'0')
		case c == '>' && i > 1:
			return i + 1, v
		default:
			return 0, 0
		}
	}
	return 0, 0
}

func isDigit(c byte) bool { return c-'0' <= 9 }

// skipSpaces returns the index of the first byte of s at or behind i that is no space.
func skipSpaces(s []byte, i int) int {
	for i < len(s) && s[i] == ' ' {
		i++
	}
	return i
}

// dropSpace takes one space off the front.
func dropSpace(s []byte) []byte {
	if len(s) > 0 && s[0] == ' ' {
		return s[1:]
	}
	return s
}

// word is the length of s up to its first space.
func word(s []byte) int {
	if i := bytes.IndexByte(s, ' '); i >= 0 {
		return i
	}
	return len(s)
}
