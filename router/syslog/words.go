package syslog

import (
	"strconv"
	"strings"
)

// Names as RFC 5427 section 3 has them, by number.
var (
	severityNames = [8]string{"emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"}
	facilityNames = [24]string{"kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp",
		"ntp", "audit", "console", "cron2", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"}
)

// SeverityName is the RFC 5427 word for a severity, its number as text beyond 7.
func SeverityName(severity uint8) string { return name(severityNames[:], severity) }

// FacilityName is the RFC 5427 word for a facility, its number as text beyond 23.
func FacilityName(facility uint8) string { return name(facilityNames[:], facility) }

func name(names []string, n uint8) string {
	if int(n) < len(names) {
		return names[n]
	}
	return strconv.Itoa(int(n))
}

// ParseSeverity knows the words of RFC 5427, those of syslog(3) and the numbers
// 0 to 7, in any letter case.
func ParseSeverity(word string) (severity uint8, ok bool) {
	switch {
	case strings.EqualFold(word, "panic"):
		return 0, true
	case strings.EqualFold(word, "error"):
		return 3, true
	case strings.EqualFold(word, "warn"):
		return 4, true
	}
	return parseName(severityNames[:], word)
}

// ParseFacility knows the words of RFC 5427, those of syslog(3) and the numbers
// 0 to 23, in any letter case.
func ParseFacility(word string) (facility uint8, ok bool) {
	if strings.EqualFold(word, "security") {
		return 4, true
	}
	return parseName(facilityNames[:], word)
}

func parseName(names []string, word string) (uint8, bool) {
	for i, n := range names {
		if strings.EqualFold(n, word) {
			return uint8(i), true
		}
	}
	n, err := strconv.ParseUint(word, 10, 8)
	if err != nil || int(n) >= len(names) || word[0] == '+' {
		return 0, false
	}
	return uint8(n), true
}
