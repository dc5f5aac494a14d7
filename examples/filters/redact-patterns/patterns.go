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
	"email": {Match: `[\pL\pN._%+-]+(?:@|%40)(?:[\pL\pN-]+\.)+\pL{2,}`, needs: []string{"@", "%40"}},
	"ipv4":  {Match: `(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\.){3}(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])`, needs: []string{"."}},
	"ipv6":  {Match: `[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}[0-9.]{0,14}`, needs: []string{":"}, check: isIPv6},
	"mac":   {Match: `[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}`, needs: []string{":", "-"}},
	"phone": {Match: `\+[0-9](?:[ ()/.-]{0,2}[0-9]){7,14}`, needs: []string{"+"}},
	"iban":  {Match: `[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?`, check: isIBAN},
}

type pattern struct {
	Name  string `json:"name"`
	Match string `json:"match"`

	re *regexp.Regexp
	// needs are texts of which a finding has one: looking for them is much cheaper than the expression.
	needs []string
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
	may := p.needs == nil
	for _, need := range p.needs {
		may = may || bytes.Contains(text, []byte(need))
	}
	if !may {
		return nil
	}
	if p.check == nil {
		return p.re.FindAllIndex(text, -1)
	}
	for from := 0; from < len(text); {
		at := p.re.FindIndex(text[from:])
		if at == nil {
			break
		}
		start, before := from+at[0], byte(0)
		if start > 0 {
			before = text[start-1]
		}
		if n := p.check(text[start:from+at[1]], before); n > 0 {
			all = append(all, []int{start, start + n})
			from = start + n
		} else {
			from = start + 1
		}
	}
	return all
}

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
