package main

import (
	"fmt"
	"strings"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/syslog"
)

// severities is one severity or a range of them, as a set of bits: `err`, `4`,
// `<=warning` (at least as severe), `err..warning`.
type severities struct {
	text  string
	set   uint8
	place config.Place
}

func (s *severities) UnmarshalConfig(v *config.Value) {
	s.place = v.Place()
	s.set = decodeText(v, &s.text, parseSeverities)
}

// String is the text that UnmarshalConfig reads.
func (s severities) String() string { return s.text }

func parseSeverities(text string) (set uint8, what, hint string) {
	if from, to, ok := strings.Cut(text, ".."); ok {
		from, to = strings.TrimSpace(from), strings.TrimSpace(to)
		switch {
		case from == "" && to != "":
			return 0, fmt.Sprintf("%q is a range without its beginning", text), `"<=` + to + `"`
		case to == "" && from != "":
			return 0, fmt.Sprintf("%q is a range without its end", text), `">=` + from + `"`
		}
		a, what, hint := parseSeverity(from)
		b, what2, hint2 := parseSeverity(to)
		if what == "" {
			what, hint = what2, hint2
		}
		a, b = min(a, b), max(a, b)
		return uint8(1<<(b+1) - 1<<a), what, hint
	}
	op := text[:len(text)-len(strings.TrimLeft(text, "<>=!"))]
	word := strings.TrimSpace(text[len(op):])
	switch op {
	case "", "<=", ">=", "<", ">":
	case "=", "==":
		return 0, fmt.Sprintf("%q: equal is what a severity means by itself", text), word
	case "!", "!=", "<>":
		return 0, fmt.Sprintf("%q: a match says what it takes, and not: says what it does not", text), "not: {severity: " + word + "}"
	case "=<", "=>":
		return 0, fmt.Sprintf("%q: the = stands behind", text), `"` + op[1:] + op[:1] + word + `"`
	default:
		return 0, fmt.Sprintf("%q is no severity", text), `err, "<=warning" or err..warning`
	}
	if word == "" && op != "" {
		return 0, fmt.Sprintf("%q: no severity behind it", text), `"` + op + `err"`
	}
	n, what, hint := parseSeverity(word)
	if what != "" {
		return 0, what, hint
	}
	all := 1<<8 - 1
	upTo := 1<<(n+1) - 1 // at least as severe
	switch op {
	case "<=":
		set = uint8(upTo)
	case "<":
		set = uint8(upTo >> 1)
	case ">=":
		set = uint8(all &^ (upTo >> 1))
	case ">":
		set = uint8(all &^ upTo)
	default:
		set = 1 << n
	}
	switch {
	case set == 0 && op == "<":
		return 0, fmt.Sprintf("%q: nothing is more severe than %s", text, syslog.SeverityName(0)), syslog.SeverityName(0)
	case set == 0:
		return 0, fmt.Sprintf("%q: nothing is less severe than %s", text, syslog.SeverityName(7)), syslog.SeverityName(7)
	}
	return set, "", ""
}

func parseSeverity(word string) (n int, what, hint string) {
	if s, ok := syslog.ParseSeverity(word); ok {
		return int(s), "", ""
	}
	what = fmt.Sprintf("%q is no severity", word)
	if hint = listed(word); hint != "" {
		return 0, what, hint
	}
	if hint = selectorHint(word); hint != "" {
		return 0, fmt.Sprintf(twoParts, word), hint
	}
	switch {
	case word == "*" || strings.EqualFold(word, "all"):
		return 0, what, "leave the key out: every severity is taken without it"
	case strings.EqualFold(word, "none"):
		return 0, what, "not: {facility: …}"
	case strings.HasSuffix(word, "+"):
		return 0, what, `"<=` + strings.TrimSuffix(word, "+") + `"`
	case isNumber(word):
		return 0, fmt.Sprintf("no severity has the number %s", word), "0 (emerg) to 7 (debug)"
	}
	words := append(severityWords()[1:], "panic", "error", "warn")
	if near := config.Nearest(word, words); near != "" {
		return 0, what, near
	}
	if _, ok := syslog.ParseFacility(word); ok {
		return 0, fmt.Sprintf("%q is a facility, not a severity", word), "facility: " + word
	}
	return 0, what, config.Suggest(word, words[:8])
}

// facility is one facility or a range of them, as a set of bits: `mail`, `2`, `local0..local7`.
type facility struct {
	text  string
	set   uint32
	place config.Place
}

func (f *facility) UnmarshalConfig(v *config.Value) {
	f.place = v.Place()
	f.set = decodeText(v, &f.text, parseFacilities)
}

// String is the text that UnmarshalConfig reads.
func (f facility) String() string { return f.text }

func parseFacilities(text string) (set uint32, what, hint string) {
	from, to, ok := strings.Cut(text, "..")
	if !ok {
		to = from
	}
	from, to = strings.TrimSpace(from), strings.TrimSpace(to)
	if ok && (from == "" || to == "") {
		return 0, fmt.Sprintf("%q is a range without one of its ends", text), "local0..local7"
	}
	a, what, hint := parseFacility(from)
	b, what2, hint2 := parseFacility(to)
	if what == "" {
		what, hint = what2, hint2
	}
	a, b = min(a, b), max(a, b)
	return uint32(1<<(b+1) - 1<<a), what, hint
}

func parseFacility(word string) (n int, what, hint string) {
	if f, ok := syslog.ParseFacility(word); ok {
		return int(f), "", ""
	}
	what = fmt.Sprintf("%q is no facility", word)
	if hint = listed(word); hint != "" {
		return 0, what, hint
	}
	if hint = selectorHint(word); hint != "" {
		return 0, fmt.Sprintf(twoParts, word), hint
	}
	rest := strings.TrimSpace(strings.TrimLeft(word, "<>=!"))
	switch {
	case word == "*" || strings.EqualFold(word, "all"):
		return 0, what, "leave the key out: every facility is taken without it"
	case strings.HasPrefix(word, "!"):
		return 0, fmt.Sprintf("%q: a match says what it takes, and not: says what it does not", word), "not: {facility: " + rest + "}"
	case strings.HasPrefix(word, "="):
		return 0, fmt.Sprintf("%q: equal is what a facility means by itself", word), rest
	case rest != word:
		return 0, fmt.Sprintf("%q: no facility is more than another", word), "a range, such as local0..local7"
	case strings.ContainsAny(word, "*?"):
		if fit := facilitiesLike(word); len(fit) > 0 {
			hint = "[" + strings.Join(fit, ", ") + "]"
		}
		return 0, fmt.Sprintf("%q: a facility is a word or a number, not a pattern", word), hint
	case isNumber(word):
		return 0, fmt.Sprintf("no facility has the number %s", word), "0 (kern) to 23 (local7)"
	}
	words := append(facilitiesLike("*"), "security")
	if near := config.Nearest(word, words); near != "" {
		return 0, what, near
	}
	if _, ok := syslog.ParseSeverity(word); ok {
		return 0, fmt.Sprintf("%q is a severity, not a facility", word), "severity: " + word
	}
	return 0, what, config.Suggest(word, words[:24])
}

// facilitiesLike are those whose word fits a pattern.
func facilitiesLike(pattern string) (words []string) {
	g := router.NewFoldGlob(pattern)
	for n := range uint8(24) {
		if w := syslog.FacilityName(n); g.Matches([]byte(w)) {
			words = append(words, w)
		}
	}
	return words
}

const twoParts = "%q is a selector of two parts"

// selectorHint is the way out for what other programs write in one, such as mail.err, mail.=err, mail.!err and mail.none;
// "" where word is none.
func selectorHint(word string) string {
	name, priority, dotted := strings.Cut(word, ".")
	if _, known := syslog.ParseFacility(name); !dotted || !known {
		return ""
	}
	one := strings.TrimLeft(priority, "!=")
	if !strings.Contains(priority, "=") {
		one = `"<=` + one + `"`
	}
	switch {
	case priority == "*":
		return "facility: " + name
	case priority == "none":
		return "not: {facility: " + name + "}"
	case strings.HasPrefix(priority, "!"):
		return "facility: " + name + " and not: {severity: " + one + "}"
	}
	return "facility: " + name + " and severity: " + one
}

// listed is the way out for several words in one: a list.
func listed(word string) string {
	words := strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune(",;| ", r) })
	if len(words) < 2 {
		return ""
	}
	return "[" + strings.Join(words, ", ") + "]"
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == "" || strings.HasPrefix(s, "-") && isNumber(s[1:])
}
