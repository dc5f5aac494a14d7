//go:build wasip1

package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	weir "github.com/weirlog/weir/filters/sdk/go"
)

// builtin are the patterns that a configuration names instead of writing them.
var builtin = map[string]pattern{
	"email": {Match: `[0-9A-Za-z._%+\x{80}-\x{10FFFF}-]+(?:@|%40)(?:[0-9A-Za-z\x{80}-\x{10FFFF}-]+\.)+[A-Za-z\x{80}-\x{10FFFF}]{2,}`, needs: []string{"@", "%40"}},
	"ipv4":  {Match: `(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\.){3}(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])`, needs: []string{"."}},
	"ipv6":  {Match: `[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}[0-9.]{0,14}`, needs: []string{":"}, check: isIPv6},
	"mac":   {Match: `[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}`, needs: []string{":", "-"}},
	"phone": {Match: `\+[0-9](?:[ ()/.-]{0,2}[0-9]){7,14}`, needs: []string{"+"}, ahead: 48},
	"iban":  {Match: `[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?`, check: isIBAN},
}

type pattern struct {
	Name  string `json:"name"`
	Match string `json:"match"`

	re *regexp.Regexp
	// needs are texts of which a finding has one. Only what is around them is given to the expression, which is dear: the
	// word, or with ahead so many bytes from there on.
	needs []string
	ahead int
	// check returns how much of a finding is meant, 0 when none is. before is the byte before it, 0 at the start.
	check func(finding []byte, before byte) int
}

var settings struct {
	Find   []string  `json:"find"`   // names of builtin
	Also   []pattern `json:"also"`   // patterns of one's own
	Fields []string  `json:"fields"` // fields and parameters that are hidden altogether
	Leave  []string  `json:"leave"`  // fields and parameters that are not looked at
	Key    string    `json:"key"`    // when there is one, equal values get equal marks
}

var patterns []pattern

func configure() error {
	settings.Find = []string{"email", "ipv6", "ipv4"}
	d := json.NewDecoder(bytes.NewReader(weir.Config()))
	d.DisallowUnknownFields()
	if err := d.Decode(&settings); err != nil {
		return fmt.Errorf("redact-patterns: %w", err)
	}
	for _, name := range settings.Find {
		p, ok := builtin[name]
		if !ok {
			known := slices.Sorted(maps.Keys(builtin))
			return fmt.Errorf("redact-patterns: find: there is no %q; there are %s", name, strings.Join(known, ", "))
		}
		p.Name = name
		patterns = append(patterns, p)
	}
	patterns = append(patterns, settings.Also...)
	for i := range patterns {
		p := &patterns[i]
		var err error
		if p.re, err = regexp.Compile(p.Match); err != nil {
			return fmt.Errorf("redact-patterns: also: %s: %w", p.Name, err)
		}
		if p.Name == "" || strings.ContainsAny(p.Name, "[]") || p.re.MatchString("") {
			return fmt.Errorf("redact-patterns: also: %q: a pattern needs a name without brackets, and may not match nothing", p.Name)
		}
	}
	for _, key := range settings.Fields {
		if slices.Contains(refused, key) {
			return fmt.Errorf("redact-patterns: fields: %s cannot be hidden (parameters of structured data go by their own name)", key)
		}
	}
	if settings.Key != "" && len(settings.Key) < 16 {
		return errors.New("redact-patterns: key: at least 16 bytes, or equal marks can be traced back by trying")
	}
	return nil
}

// inspect returns the text with a mark for each finding; the result is valid until the next call.
func inspect(in []byte) (clean []byte, found bool) {
	clean = in
	for i := range patterns {
		p := &patterns[i]
		at := p.findAll(clean)
		if at == nil {
			continue
		}
		found = true
		out, last := make([]byte, 0, len(clean)+16), 0
		for _, one := range at {
			out = append(out, clean[last:one[0]]...)
			out = hide(out, p.Name, clean[one[0]:one[1]])
			last = one[1]
		}
		clean = append(out, clean[last:]...)
	}
	return clean, found
}

func (p *pattern) findAll(text []byte) (all [][]int) {
	if p.needs == nil && p.check == nil {
		return p.re.FindAllIndex(text, -1)
	}
	for from := 0; from < len(text); {
		start, end := p.window(text, from)
		for ; start < end; start = from {
			at := p.re.FindIndex(text[start:end])
			if at == nil {
				from = end
				if p.ahead > 0 { // the window is no word: a finding may begin in it
					from = start + 1
				}
				break
			}
			found, n, before := start+at[0], at[1]-at[0], byte(0)
			if found > 0 {
				before = text[found-1]
			}
			if p.check != nil {
				n = p.check(text[found:found+n], before)
			}
			if n > 0 {
				all = append(all, []int{found, found + n})
			}
			from = found + max(n, 1)
		}
		from = max(from, start)
	}
	return all
}

// window returns the next part of text that may have a finding; at the end of text there is none.
func (p *pattern) window(text []byte, from int) (start, end int) {
	if p.needs == nil {
		return from, len(text)
	}
	at := len(text)
	for _, need := range p.needs {
		if i := bytes.Index(text[from:at], []byte(need)); i >= 0 {
			at = from + i
		}
	}
	if p.ahead > 0 || at == len(text) {
		return at, min(at+p.ahead, len(text))
	}
	start, end = at, at
	for start > from && !isSpace(text[start-1]) {
		start--
	}
	for end < len(text) && !isSpace(text[end]) {
		end++
	}
	return start, end
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// isIPv6 takes the longest address that is one; a name of C++ such as a::b behind a letter is none.
func isIPv6(finding []byte, before byte) int {
	if isWord(before) || before == ':' && finding[0] == ':' {
		return 0
	}
	for n := len(finding); n > 3; n-- {
		if n < len(finding) && isWord(finding[n-1]) && isWord(finding[n]) {
			continue
		}
		if a, err := netip.ParseAddr(string(finding[:n])); err == nil && a.Is6() {
			return n
		}
	}
	return 0
}

// isIBAN goes by the check digits (ISO 13616), also when a word in capitals follows.
func isIBAN(finding []byte, before byte) int {
	if isWord(before) {
		return 0
	}
	for n := len(finding); n >= 15; n-- {
		if n < len(finding) && finding[n] != ' ' {
			continue
		}
		rest := 0
		for _, c := range append(slices.Clone(finding[4:n]), finding[:4]...) {
			switch {
			case c >= 'A':
				rest = (rest*100 + int(c-'A') + 10) % 97
			case c >= '0':
				rest = (rest*10 + int(c-'0')) % 97
			}
		}
		if rest == 1 {
			return n
		}
	}
	return 0
}

// hide appends the mark for a value: its kind, and with a key what tells equal ones from others.
func hide(out []byte, kind string, value []byte) []byte {
	out = append(append(out, '['), kind...)
	if settings.Key != "" {
		mac := hmac.New(sha256.New, []byte(settings.Key))
		mac.Write(value)
		out = hex.AppendEncode(append(out, ':'), mac.Sum(nil)[:6])
	}
	return append(out, ']')
}
