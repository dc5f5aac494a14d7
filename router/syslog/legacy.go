package syslog

import "bytes"

// parseLegacy reads what is no RFC 5424: RFC 3164, its kin, and text.
func (p *Parser) parseLegacy(m *Message, s []byte, hasPRI bool, received int64, mem Memory) {
	if !hasPRI {
		// A prefix or a tag without a PRI would be guesswork.
		var t stamp
		n := t.scanLegacy(s)
		if n == 0 {
			m.Text = s
			return
		}
		n = t.skipZone(s, n, false)
		m.Timestamp = p.clock.resolve(&t, received, p.Zone)
		readHostAndTag(m, s[n:], false)
		return
	}
	i := skipSpaces(s, 0)
	if len(s) > i+2 && s[i] == '1' && s[i+1] == ' ' {
		var t stamp
		if t.scanLegacy(s[i+2:]) > 0 {
			i += 2 // a version in front of an old header
		}
	}
	h := cisco{}
	var t stamp
	n := t.scanLegacy(s[i:])
	if n > 0 {
		n = t.skipZone(s, i+n, false)
	} else if n = h.scan(&t, s, i); n == 0 {
		p.parseBare(m, s, mem)
		return
	}
	m.Timestamp = p.clock.resolve(&t, received, p.Zone)
	m.Hostname = h.host
	h.store(m, mem)
	readHostAndTag(m, s[n:], h.host != nil)
}

// skipZone skips the zone name and the colon behind a timestamp that ends at n.
// UTC, GMT and Z are believed; other names are ambiguous and count for nothing.
// A word in capitals may as well be a tag (CRON:): outside a Cisco header it is
// a zone only if it is a known one or a mnemonic follows.
func (t *stamp) skipZone(s []byte, n int, prefixed bool) int {
	if n < len(s) && s[n] == ' ' && !t.hasZone {
		end := n + 1
		for end < len(s) && end <= n+5 && s[end] >= 'A' && s[end] <= 'Z' {
			end++
		}
		name := s[n+1 : end]
		if len(name) > 0 && end < len(s) && s[end] == ':' {
			utc := string(name) == "UTC" || string(name) == "GMT" || string(name) == "Z"
			if utc {
				t.hasZone = true
			}
			if utc || prefixed || isZoneName(name) || bytes.HasPrefix(bytes.TrimLeft(s[end+1:], " "), []byte("%")) {
				n = end
			}
		}
	}
	if n < len(s) && s[n] == ':' {
		n++
	}
	return n
}

// isZoneName knows the abbreviations in use; daylight forms included.
func isZoneName(name []byte) bool {
	switch string(name) {
	case "WET", "WEST", "CET", "CEST", "MET", "MEST", "EET", "EEST", "BST", "IST", "MSK", "TRT",
		"EST", "EDT", "CST", "CDT", "MST", "MDT", "PST", "PDT", "AKST", "AKDT", "HST", "AST", "ADT", "NST", "NDT",
		"BRT", "ART", "CLT", "CLST", "JST", "KST", "HKT", "SGT", "ICT", "WIB", "PKT", "GST",
		"AEST", "AEDT", "ACST", "ACDT", "AWST", "NZST", "NZDT", "SAST", "CAT", "EAT", "WAT":
		return true
	}
	return false
}

// cisco is what stands in front of a Cisco timestamp or mnemonic.
type cisco struct {
	seq      []byte
	host     []byte
	unsynced bool // the clock was marked with * or .
}

// scan reads a prefix and the timestamp behind it, and returns where the text
// goes on, or 0. Without the colon that Cisco sets behind the time it is
// just text that begins alike.
func (h *cisco) scan(t *stamp, s []byte, i int) int {
	if i >= len(s) {
		return 0
	}
	if s[i] == ':' {
		i = skipSpaces(s, i+1)
		n := t.scanLegacy(s[i:])
		if n == 0 {
			return 0
		}
		return t.skipZone(s, i+n, true)
	}
	i = h.scanNames(s, i)
	if n := scanSeq(s[i:]); n > 0 {
		if h.seq == nil {
			h.seq = s[i : i+n-2 : i+n-2]
		}
		i += n
	}
	if i < len(s) && (s[i] == '*' || s[i] == '.') {
		h.unsynced = true
		i++
	}
	n := t.scanLegacy(s[i:])
	if n == 0 {
		*h = cisco{}
		return 0
	}
	n = t.skipZone(s, i+n, true)
	if s[n-1] != ':' {
		*h = cisco{}
		return 0
	}
	return n
}

// scanNames reads `seq: ` and `host: `, both optional.
func (h *cisco) scanNames(s []byte, i int) int {
	if n := scanSeq(s[i:]); n > 0 {
		h.seq = s[i : i+n-2 : i+n-2]
		i += n
	}
	n := word(s[i:])
	if n < 2 || i+n >= len(s) || s[i+n-1] != ':' {
		return i
	}
	if w := s[i : i+n-1 : i+n-1]; isAddress(w) || isHostWord(w) && hasLetter(w) {
		h.host = w
		i += n + 1
	}
	return i
}

// scanSeq reads digits, a colon and a space, and returns their length, or 0.
func scanSeq(s []byte) int {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	if n == 0 || n+1 >= len(s) || s[n] != ':' || s[n+1] != ' ' {
		return 0
	}
	return n + 2
}

var (
	idMeta        = []byte("meta") // RFC 5424 section 7.3
	idTimeQuality = []byte("timeQuality")
	nameSequence  = []byte("sequenceId")
	nameSynced    = []byte("isSynced")
	valueNo       = []byte("0")
)

// store keeps the sequence number and the clock's mark as structured data.
func (h *cisco) store(m *Message, mem Memory) {
	n := 0
	if h.seq != nil {
		n++
	}
	if h.unsynced {
		n++
	}
	if n == 0 {
		return
	}
	elements, params := mem.NewElements(n), mem.NewParams(n)
	if elements == nil || params == nil {
		return
	}
	if h.seq != nil {
		params = append(params, Param{Name: nameSequence, Value: h.seq})
		elements = append(elements, Element{ID: idMeta, Params: params[:1:1]})
	}
	if h.unsynced {
		params = append(params, Param{Name: nameSynced, Value: valueNo})
		elements = append(elements, Element{ID: idTimeQuality, Params: params[n-1 : n : n]})
	}
	m.Structured = elements
}

// parseBare reads what has a PRI but no timestamp: no host can be told from
// text, unless Cisco's mnemonic behind it shows what it is.
func (p *Parser) parseBare(m *Message, s []byte, mem Memory) {
	h := cisco{}
	i := skipSpaces(s, 0)
	if n := h.scanNames(s, i); n > i && n < len(s) && s[n] == '%' {
		if end := scanMnemonic(s[n:]); end > 0 && colonBehind(s, n+end) {
			m.Hostname = h.host
			h.store(m, mem)
			readTag(m, s[n:])
			return
		}
	}
	if !readTag(m, s) {
		m.Text = dropSpace(s)
	}
}

func colonBehind(s []byte, i int) bool {
	i = skipSpaces(s, i)
	return i < len(s) && s[i] == ':'
}
