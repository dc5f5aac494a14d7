package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// inForm are weir's words for what is wrong in the form of a file, which a schema can see: keys, kinds of values, units
// and words. All else (files, names, bounds, what does not work together) only weir knows.
var inForm = regexp.MustCompile(`unknown key|: want |(?:^|: )[a-z_]+ is missing$|unknown word|is no severity|no key says what kind|two destinations in one`)

// notInForm are those of them that depend on more than the form: what a reference gives, what a text is made of, how
// large a number is, and 1_000, which other readers of YAML take for a number.
var notInForm = regexp.MustCompile(`in the connection string|for sslmode|got what \$|got [0-9]{4,}|got [0-9]+_`)

var toldAt = regexp.MustCompile(`(?m)^(?:  the other one is )?([^ :]+\.yaml):(\d+):\d+: (.*)$`)

// Of the broken files those that are wrong in form are refused by the schema, at a place where weir sees a mistake,
// too; the others pass.
func TestSchemaRefusesWhatIsWrongInForm(t *testing.T) {
	s := schemaJudge(t)
	refused, passed := 0, 0
	for _, topic := range brokenTopics(t) {
		for _, c := range topic.cases {
			for _, f := range c.files {
				var told, form []int
				why := map[int]string{}
				for _, m := range toldAt.FindAllStringSubmatch(c.want, -1) {
					line, _ := strconv.Atoi(m[2])
					switch {
					case m[1] != f.Name:
					case inForm.MatchString(m[3]) && !notInForm.MatchString(m[3]):
						form = append(form, line)
						why[line] = m[3]
						fallthrough
					default:
						told = append(told, line)
					}
				}
				all, ok := judge(s, []byte(strings.ReplaceAll(string(f.Data), "→", "\t")))
				if !ok || told == nil {
					continue // no YAML, or weir does not look into it
				}
				if len(all) > 0 {
					refused++
				} else {
					passed++
				}
				for _, one := range all {
					if !slices.ContainsFunc(one.lines, func(n int) bool { return slices.Contains(told, n) }) {
						t.Errorf("%s: the schema complains of %s:%v (%s), weir of %v", c.name, f.Name, one.lines, one.what, told)
					}
				}
				for _, line := range form {
					if !slices.ContainsFunc(all, func(one complaint) bool { return slices.Contains(one.lines, line) }) {
						t.Errorf("%s: the schema sees nothing in %s:%d (%s)", c.name, f.Name, line, why[line])
					}
				}
			}
		}
	}
	if refused < 70 || passed < 190 {
		t.Errorf("%d are refused, %d pass", refused, passed)
	}
}
