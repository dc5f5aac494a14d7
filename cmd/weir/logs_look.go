package main

import (
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/weirlog/weir/router/sqlstore"
)

// look is the question that was typed.
func (l *logs) look(c *cobra.Command, now time.Time) (q sqlstore.Look, err error) {
	if now = now.Local(); l.utc {
		now = now.UTC()
	}
	given := c.Flags().Changed
	for _, x := range []struct {
		flag, text string
		t          *time.Time
	}{{"since", l.since, &q.Since}, {"until", l.until, &q.Until}} {
		if !given(x.flag) {
			continue
		}
		if *x.t, err = moment(x.text, now); err != nil {
			return q, usagef("--%s %s: %v", x.flag, x.text, err)
		}
	}
	if !q.Since.IsZero() && !q.Until.IsZero() && !q.Since.Before(q.Until) {
		return q, usagef("--since %s --until %s: nothing lies between", l.since, l.until)
	}
	if given("severity") {
		if q.Severities, err = atLeast(l.severity); err != nil {
			return q, err
		}
	}
	q.Hosts, q.Apps = l.hosts, l.apps
	fold := func(text string) bool {
		if given("case-sensitive") {
			return !l.exact
		}
		return !strings.ContainsFunc(text, unicode.IsUpper)
	}
	q.Text, q.Fold = l.grep, fold(l.grep)
	if given("regex") {
		if q.Regexp, err = regexp.Compile(l.regex); err != nil {
			return q, usagef("--regex %s: %v", l.regex, err)
		}
		// \S and \W are no capital letters.
		if fold(regexp.MustCompile(`\\(?:p\{.*?\}|.)`).ReplaceAllString(l.regex, "")) {
			q.Regexp = regexp.MustCompile("(?i)" + l.regex)
		}
	}
	if q.N, err = strconv.Atoi(l.number); l.number == "all" {
		q.N, err = -1, nil
	} else if err != nil || q.N < 0 {
		return q, usagef("-n %s: want a number or all", l.number)
	}
	q.Reverse = l.reverse
	switch {
	case l.follow && l.reverse:
		return q, usagef("--follow and --reverse: what is yet to come is the newest and would be at the end")
	case l.follow && !q.Until.IsZero():
		return q, usagef("--follow and --until: nothing new would be shown")
	}
	return q, nil
}

// atLeast reads --severity: a word means this one and all that are more severe; =word this one alone;
// otherwise it is written as in match:.
func atLeast(text string) (uint8, error) {
	word := strings.TrimSpace(text)
	if alone, ok := strings.CutPrefix(word, "="); ok && !strings.HasPrefix(alone, "<") && !strings.HasPrefix(alone, ">") {
		word = strings.TrimSpace(strings.TrimPrefix(alone, "="))
	} else if !strings.ContainsAny(word, "<>!") && !strings.Contains(word, "..") {
		word = "<=" + word
	}
	set, what, hint := parseSeverities(word)
	switch {
	case what != "" && hint != "":
		return 0, usagef("--severity %s: %s (%s)", text, what, hint)
	case what != "":
		return 0, usagef("--severity %s: %s", text, what)
	}
	return set, nil
}
