package config

import "strings"

// Suggest is the way out for a name that is not one of known: the nearest one,
// or all of them when none is near.
func Suggest(name string, known []string) string {
	if near := Nearest(name, known); near != "" {
		return near
	}
	switch len(known) {
	case 0:
		return ""
	case 1:
		return known[0]
	}
	return strings.Join(known[:len(known)-1], ", ") + " or " + known[len(known)-1]
}

// Typo is the name of known that somebody meant who wrote name: one or two edits
// away, or the same but for what one of them has more of the word. "" when there is none.
func Typo(name string, known []string) string {
	most := 1
	if len(name) >= 6 {
		most = 2
	}
	for _, k := range known {
		if distance(fold(name), fold(k)) <= most {
			return k
		}
	}
	for _, k := range known {
		longer, shorter := fold(name), fold(k)
		if len(longer) < len(shorter) {
			longer, shorter = shorter, longer
		}
		if len(shorter) >= 3 && strings.HasPrefix(longer, shorter) && !strings.Contains(longer, "_") {
			return k
		}
	}
	return ""
}

// Nearest is the name of known that is most like name, or "" when none is near.
func Nearest(name string, known []string) string {
	best, least := "", max(1, min(len(name), 40)/3)+1
	for _, k := range known {
		d := distance(fold(name), fold(k))
		if len(name) >= 3 && (strings.HasPrefix(fold(k), fold(name)) || strings.HasPrefix(fold(name), fold(k))) {
			d = min(d, 1)
		}
		if d < least {
			best, least = k, d
		}
	}
	return best
}

// fold takes away what people mix up: case, dash and underscore, and what word
// processors make of quotes.
func fold(s string) string {
	return strings.ReplaceAll(strings.ToLower(strings.Trim(s, "“”„‘’")), "-", "_")
}

// distance counts the edits (insert, delete, replace, swap of neighbours) from a to b.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	var rows [3][65]int
	for j := range len(b) + 1 {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, now := &rows[(i+2)%3], &rows[i%3], &rows[(i+1)%3]
		// rows rotate: last holds i-1, before holds i-2
		now[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
	}
	return rows[(len(a)+1)%3][len(b)]
}
