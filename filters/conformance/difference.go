package conformance

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Difference is one place in which what came is not what the case wants.
type Difference struct {
	Member    string // of the case: verdict, out.kind, log[2]
	Want, Got string // for people: JSON, absent, …; long ones are cut around the first byte that differs
}

const absent = "absent"

// differ compares two JSON values and gives each member that differs to add.
func differ(path string, want, got json.RawMessage, add func(Difference)) {
	if bytes.Equal(want, got) {
		return
	}
	wants, err := members(want)
	gots, err2 := members(got)
	if err != nil || err2 != nil {
		add(different(path, string(want), string(got)))
		return
	}
	same := true
	for _, m := range wants {
		value, in := want[m.value:m.end], valueOf(got, m.name)
		if in == nil {
			add(different(path+"."+m.name, string(value), absent))
		} else {
			differ(path+"."+m.name, value, in, add)
		}
		same = same && bytes.Equal(value, in)
	}
	for _, m := range gots {
		if !has(want, m.name) {
			add(different(path+"."+m.name, absent, string(got[m.value:m.end])))
			same = false
		}
	}
	if same { // which leaves the order
		add(Difference{path, "the order " + names(wants), names(gots)})
	}
}

func names(all []member) string {
	var list []string
	for _, m := range all {
		list = append(list, m.name)
	}
	return strings.Join(list, ", ")
}

// differLists compares two lists of texts, line by line.
func differLists(path string, want, got []string, add func(Difference)) {
	at := func(list []string, i int) string {
		if i >= len(list) {
			return absent
		}
		return quote(list[i])
	}
	for i := range max(len(want), len(got)) {
		if w, g := at(want, i), at(got, i); w != g {
			add(different(path+"["+strconv.Itoa(i)+"]", w, g))
		}
	}
}

// quote is s as JSON has it.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.Encode(s) // of a string there is no error
	return strings.TrimSuffix(b.String(), "\n")
}

// different makes a Difference of two texts that differ.
func different(path, want, got string) Difference {
	at := 0
	for at < len(want) && at < len(got) && want[at] == got[at] {
		at++
	}
	return Difference{path, window(want, at), window(got, at)}
}

// window cuts a long text around the byte at.
func window(s string, at int) string {
	const before, after = 60, 100
	from, to := max(at-before, 0), min(at+after, len(s))
	if len(s) <= before+after {
		return s
	}
	for from > 0 && !utf8.RuneStart(s[from]) {
		from--
	}
	for to < len(s) && !utf8.RuneStart(s[to]) {
		to++
	}
	cutting := s[from:to]
	if from > 0 {
		cutting = "…" + cutting
	}
	if to < len(s) {
		cutting += "…"
	}
	return cutting
}
