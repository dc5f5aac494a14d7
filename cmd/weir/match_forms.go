package main

import (
	"slices"

	"github.com/weirlog/weir/router/config"
)

// The forms in which a match is written, for the schema.

// byNumber is a severity or a facility by its number.
type byNumber uint8

// Patterns for one severity and one facility, as syslog.ParseSeverity and syslog.ParseFacility read them.
var (
	severityPattern = "(?:" + config.AnyCase(append(severityWords()[1:], "panic", "error", "warn")...) + "|0*[0-7])"
	facilityPattern = "(?:" + config.AnyCase(append(facilitiesLike("*"), "security")...) + "|0*(?:1?[0-9]|2[0-3]))"
)

// Forms implements config.Former.
func (m *match) Forms() []config.Form { return []config.Form{{Value: new(matchKeys)}} }

// Forms implements config.Former.
func (m *inMessage) Forms() []config.Form { return []config.Form{{Value: new(messageKeys)}} }

// Forms implements config.Former.
func (s *some[T]) Forms() []config.Form { return []config.Form{{Value: new(T)}, {Value: new([]T)}} }

// Forms implements config.Former.
func (a *alternatives) Forms() []config.Form { return []config.Form{{Value: new([]match)}} }

// Forms implements config.Former.
func (s *severities) Forms() []config.Form {
	words := severityWords()[1:]
	atLeast := make([]string, len(words))
	for i, word := range words {
		atLeast[i] = "<=" + word
	}
	return []config.Form{{Words: slices.Concat(words, atLeast[1:])}, {Pattern: `^\s*(?:[<>]=?)?\s*` + severityPattern + `\s*$`},
		{Pattern: `^\s*` + severityPattern + `\s*\.\.\s*` + severityPattern + `\s*$`}, {Value: new(byNumber), Most: 7}}
}

// Forms implements config.Former.
func (f *facility) Forms() []config.Form {
	return []config.Form{{Words: facilitiesLike("*")}, {Pattern: `^\s*` + facilityPattern + `\s*$`},
		{Pattern: `^\s*` + facilityPattern + `\s*\.\.\s*` + facilityPattern + `\s*$`}, {Value: new(byNumber), Most: 23}}
}

// Forms implements config.Former.
func (n *network) Forms() []config.Form { return []config.Form{{Value: new(string)}} }

// Forms implements config.Former.
func (g *glob) Forms() []config.Form { return []config.Form{{Value: new(string)}} }

// Forms implements config.Former.
func (p *piece) Forms() []config.Form { return []config.Form{{Value: new(string)}} }

// Forms implements config.Former.
func (e *expression) Forms() []config.Form { return []config.Form{{Value: new(string)}} }
