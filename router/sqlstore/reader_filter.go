package sqlstore

import (
	"strings"

	"github.com/weirlog/weir/router/syslog"
)

// severityTexts are all words and numbers that stand for one of the severities, in lower case.
func severityTexts(mask uint8) (texts []string) {
	words := []string{"panic", "error", "warn"}
	for n := range uint8(8) {
		words = append(words, syslog.SeverityName(n), string('0'+rune(n)))
	}
	for _, w := range words {
		if n, ok := syslog.ParseSeverity(w); ok && mask>>n&1 != 0 {
			texts = append(texts, w)
		}
	}
	return texts
}

// severityNumbers are the severities, as a list in SQL.
func severityNumbers(mask uint8) string {
	var list []string
	for n := range 8 {
		if mask>>n&1 != 0 {
			list = append(list, string('0'+rune(n)))
		}
	}
	return strings.Join(list, ", ")
}

// likePattern is a glob as LIKE reads it, with \ as ESCAPE.
func likePattern(glob string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`, `*`, `%`, `?`, `_`).Replace(glob)
}

// liteGlob is a glob as SQLite's GLOB reads it.
func liteGlob(glob string) string { return strings.ReplaceAll(glob, "[", "[[]") }

// lowerASCII is what both databases do without a locale.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + ('a' - 'A')
		}
		return r
	}, s)
}

// oneOf is a condition of several.
func oneOf(conditions []string) string { return "(" + strings.Join(conditions, " OR ") + ")" }
