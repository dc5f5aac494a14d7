package router

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestGlobFitsTheWholeText(t *testing.T) {
	check := func(pattern, text string, want bool) {
		t.Helper()
		g := NewGlob(pattern)
		if got := g.Matches([]byte(text)); got != want {
			t.Errorf("%q and %q: %v, want %v", pattern, text, got, want)
		}
	}
	check("", "", true)
	check("", "a", false)
	check("*", "", true)
	check("*", "any\nthing\x00\xff", true)
	check("**", "", true)
	check("?", "", false)
	check("?", "ä", true)
	check("?", "\xe4", true)
	check("?", "ab", false)
	check("sshd", "sshd", true)
	check("sshd", "sshd2", false)
	check("sshd", "SSHD", false)
	check("%ASA-*", "%ASA-4-106023", true)
	check("%ASA-*", "%ASA-", true)
	check("%ASA-*", "ASA-4", false)
	check("*d", "sshd", true)
	check("*d", "d", true)
	check("*d", "sshd2", false)
	check("*sh*", "sshd", true)
	check("*sh*", "ssd", false)
	check("a*a", "a", false)
	check("a*a", "aa", true)
	check("ab*ba", "aba", false)
	check("web-??.*", "web-07.example.net", true)
	check("web-??.*", "web-7.example.net", false)
	check("*?*", "", false)
	check("*?", "x", true)
	check("*-?-*-?", "a-b-c-d", true)
	check("*ab?cd*", "xabab1cdy", true)
	check("*a?b", "aab", true)
	check("*a?", "\xe2\x82\xaca\xe2\x82\xac", true)
	check("[a-z]", "a", false) // only * and ? are special
	check("[a-z]", "[a-z]", true)
	check(`a\*`, `a\b`, true)
}

func TestGlobOfHostsDoesNotTellCases(t *testing.T) {
	check := func(pattern, text string, want bool) {
		t.Helper()
		g := NewFoldGlob(pattern)
		if got := g.Matches([]byte(text)); got != want {
			t.Errorf("%q and %q: %v, want %v", pattern, text, got, want)
		}
		if g.String() != pattern {
			t.Errorf("%q says that it is %q", pattern, g.String())
		}
	}
	check("WEB-1", "web-1", true)
	check("web-1", "WEB-1", true)
	check("web*", "WEBSERVER", true)
	check("*.Example.NET", "a.eXAMPLE.net", true)
	check("*Example*", "an.eXAMPLE.net", true)
	check("w*.?xample.*t", "WWW.EXAMPLE.NET", true)
	check("ä", "Ä", false) // letters of ASCII alone
	check("[", "{", false)
}

// The oracle tries every way to share the characters out.
func FuzzGlobAgreesWithTheOracle(f *testing.F) {
	for _, pattern := range []string{"", "*", "?*", "*a*b", "a?*?c", "*a?", "ä*?ö", "*\ufffd*", "**a**?b", "?a*", "a*b?c*d"} {
		for _, text := range []string{"", "aab", "\xe4\xf6", "äöä", "aXbXcXd", "\xe2\x82", "a\xe2\x82\xac\x82b", "ABab"} {
			f.Add(pattern, text, len(text)%2 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, pattern, text string, fold bool) {
		if !utf8.ValidString(pattern) || len(pattern)*len(text) > 1<<16 {
			t.Skip()
		}
		g := newGlob(pattern, fold)
		if got, want := g.Matches([]byte(text)), globOracle(pattern, text, fold); got != want {
			t.Errorf("%q (fold %v) and %q: %v, want %v", pattern, fold, text, got, want)
		}
		if g.Everything() && !g.Matches([]byte("\xff\n")) || g.Plain() && strings.ContainsAny(pattern, "*?") {
			t.Errorf("%q: everything %v, plain %v", pattern, g.Everything(), g.Plain())
		}
	})
}

func globOracle(pattern, text string, fold bool) bool {
	p, v := characters(pattern, fold), characters(text, fold)
	fits := make([]bool, len(v)+1) // of the pattern so far, up to each character
	fits[0] = true
	for _, c := range p {
		next := make([]bool, len(v)+1)
		for i := range next {
			switch c {
			case "*":
				next[i] = fits[i] || i > 0 && next[i-1]
			case "?":
				next[i] = i > 0 && fits[i-1]
			default:
				next[i] = i > 0 && fits[i-1] && v[i-1] == c
			}
		}
		fits = next
	}
	return fits[len(v)]
}

func characters(s string, fold bool) (all []string) {
	for s != "" {
		_, size := utf8.DecodeRuneInString(s)
		c := s[:size]
		if fold && len(c) == 1 && c >= "A" && c <= "Z" {
			c = strings.ToLower(c)
		}
		all = append(all, c)
		s = s[size:]
	}
	return all
}

// Patterns that make a matcher that goes back take forever.
func TestGlobTakesTimeInProportion(t *testing.T) {
	text := []byte(strings.Repeat("a", 1<<20))
	for _, pattern := range []string{strings.Repeat("*a", 100) + "*b", strings.Repeat("a*", 100) + "b", "*" + strings.Repeat("a", 30) + "b*c", strings.Repeat("?*", 100) + "b"} {
		g := NewGlob(pattern)
		if g.Matches(text) {
			t.Errorf("%q fits", pattern)
		}
	}
}
