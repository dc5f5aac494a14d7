package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/syslog"
)

func TestSeveritiesAreWordsNumbersAndRanges(t *testing.T) {
	check := func(text string, want ...uint8) {
		t.Helper()
		m := readMatch(t, "{any: [{severity: "+text+"}, {app_name: x}]}")
		for s := range uint8(8) {
			msg := sent(t, "")
			msg.Severity = s
			if got, want := m.Matches(msg), strings.Contains(fmt.Sprint(want), fmt.Sprint(s)); got != want {
				t.Errorf("%s: %s is taken: %v, want %v", text, syslog.SeverityName(s), got, want)
			}
		}
	}
	check("err", 3)
	check("ERROR", 3)
	check("Panic", 0)
	check("4", 4)
	check("<=warning", 0, 1, 2, 3, 4)
	check(`"<= warn"`, 0, 1, 2, 3, 4)
	check("<warning", 0, 1, 2, 3)
	check(`">=warning"`, 4, 5, 6, 7)
	check(`">warning"`, 5, 6, 7)
	check("<=0", 0)
	check(`">=debug"`, 7)
	check("err..warning", 3, 4)
	check("6 .. emerg", 0, 1, 2, 3, 4, 5, 6)
	check("[debug, <=crit, 4..5]", 0, 1, 2, 4, 5, 7)
}

func TestFacilitiesAreWordsNumbersAndRanges(t *testing.T) {
	check := func(text string, want ...uint8) {
		t.Helper()
		m := readMatch(t, "{any: [{facility: "+text+"}, {app_name: x}]}")
		for f := range uint8(24) {
			msg := sent(t, "")
			msg.Facility = f
			if got, want := m.Matches(msg), bytes.IndexByte(want, f) >= 0; got != want {
				t.Errorf("%s: %s is taken: %v, want %v", text, syslog.FacilityName(f), got, want)
			}
		}
	}
	check("kern", 0)
	check("SECURITY", 4)
	check("10", 10)
	check("local0..local7", 16, 17, 18, 19, 20, 21, 22, 23)
	check("local2..local1", 17, 18)
	check("[mail, authpriv, 0..1]", 0, 1, 2, 10)
}

func TestMatchesOfTheField(t *testing.T) {
	check := func(match string, want bool, words string) {
		t.Helper()
		if got := readMatch(t, match).Matches(sent(t, words)); got != want {
			t.Errorf("%s and %q: %v, want %v", match, words, got, want)
		}
	}
	asa := `{app_name: "%ASA-*", severity: <=warning, peer: 192.0.2.0/24}`
	check(asa, true, "app=%ASA-4-106023 sev=4 peer=192.0.2.1")
	check(asa, true, "app=%ASA-4-106023 sev=4 peer=::ffff:192.0.2.1")
	check(asa, false, "app=%ASA-6-302013 sev=6 peer=192.0.2.1")
	check(asa, false, "app=%asa-4-106023 sev=4 peer=192.0.2.1")
	check(`{hostname: FW-1.Example.NET}`, true, "host=fw-1.example.net")
	check(`{hostname: "*.example.net"}`, true, "host=FW-1.EXAMPLE.NET")
	check(`{peer: 2001:db8::/32}`, true, "peer=2001:db8::7")
	check(`{peer: "::ffff:10.0.0.0/104"}`, true, "peer=10.1.2.3")
	check(`{peer: "::1"}`, true, "peer=::1")
	check(`{peer: fe80::/10}`, true, "peer=fe80::1%eth0")
	check(`{message: {contains: "a\0b"}}`, true, "text=x a\x00b")
	check(`{message: {contains: "a\0b"}}`, false, "text=x ab")
	check(`{message: {regex: '^\x{FFFD}+ end$'}}`, true, "text=\xff\xfe end")
	check(`{message: {contains: [a, b], regex: ['c$', 'd$']}}`, true, "text=b d")
	check(`{message: {contains: [a, b], regex: ['c$', 'd$']}}`, false, "text=b e")
	check(`{proc_id: 123}`, true, "proc=123")
	check(`{proc_id: 0123}`, false, "proc=123")
	check(`{proc_id: 1.50}`, true, "proc=1.50")
	check(`{msg_id: "true"}`, true, "msgid=true")
	check(`{proc_id: ""}`, true, "")
	check(`{proc_id: "?*"}`, false, "")
	check(`{app_name: "${env:WEIR_NO_SUCH:-sshd}"}`, true, "app=sshd")
	check(`{app_name: "x$$y"}`, true, "app=x$y")
	check(`{not: {facility: mail, severity: debug}}`, true, "fac=mail sev=info")
	check(`{not: {facility: mail, severity: debug}}`, false, "fac=mail sev=debug")
	check(`{not: [{facility: mail}, {severity: debug}]}`, false, "fac=mail sev=info")
	check(`{listener: "unix://weir.sock"}`, true, "listener=unix://weir.sock")
	check(`{source: [edge]}`, false, "source=core")
}

// The path of a unix socket is relative to its file, in a match as in a source.
func TestMatchKnowsASocketByItsPathInTheFile(t *testing.T) {
	s := newSettings()
	doc := config.Parse(s, config.Options{}, "/etc/weir/weir.yaml", []byte(matchFile("{listener: [unix://weir.sock, tcp*]}")))
	s.wire(doc)
	if err := doc.Err(); err != nil {
		t.Fatal(err)
	}
	s.resolve(doc)
	m := s.routerConfig().Routes[0].Match
	for _, l := range s.Sources[0].Value.Listen {
		if got, want := m.Matches(sent(t, "listener="+l)), !strings.HasPrefix(l, "udp"); got != want {
			t.Errorf("%s: %v, want %v", l, got, want)
		}
	}
}

// shown is what config show prints of a configuration, or what is wrong with it.
func shown(text string) (out string, s *settings, err error) {
	s = newSettings()
	doc := config.Parse(s, config.Options{NotYet: notYet, Env: func(string) (string, bool) { return "of-the-environment", true }}, "weir.yaml", []byte(text))
	if doc.Readable() {
		s.wire(doc)
		s.warn(doc)
	}
	if err := doc.Err(); err != nil {
		return "", s, err
	}
	var b strings.Builder
	err = doc.Show(&b, s)
	return b.String(), s, err
}

func TestShownMatchesAreReadAsTheSame(t *testing.T) {
	for _, match := range []string{
		`{app_name: "%ASA-*", severity: <=warning, peer: 192.0.2.0/24, facility: [local0..local7, 3]}`,
		`{hostname: [web-*, "${env:X}x"], proc_id: 123, message: {contains: ["$$x", 7, "a\nb", "a\0b"], regex: '^GET \S+$'}}`,
		`{not: {app_name: [a, "x$$y", ""], hostname: "${env:X}"}, any: [{severity: [err, 5..6]}, {not: [{app_name: a}, {app_name: b}]}]}`,
		`{listener: udp*, source: edge, msg_id: "true", peer: ["::1", 10.0.0.1]}`,
	} {
		first, a, err := shown(matchFile(match))
		if err != nil {
			t.Fatal(err)
		}
		second, b, err := shown(first)
		if err != nil {
			t.Fatalf("%v\n%s", err, first)
		}
		if first != second {
			t.Errorf("shown as\n%sand then as\n%s", first, second)
		}
		if x, y := a.Routes[0].Value.Match.build(), b.Routes[0].Value.Match.build(); !reflect.DeepEqual(x, y) {
			t.Errorf("%s: read again, it is\n%+v, not\n%+v", match, y, x)
		}
		if strings.Contains(first, "environment") {
			t.Errorf("a reference is expanded:\n%s", first)
		}
	}
}

// Whatever stands behind match: is read or told of, and what is shown of it means the same.
func FuzzMatchYAML(f *testing.F) {
	for _, seed := range []string{"{}", "", "x", "[]", "{severity: <=err}", "{severity: >err}", "{facility: local0..local7, severity: [1, 2..err]}",
		`{hostname: ["*.a", "b?"], app_name: "%ASA*", proc_id: 1, msg_id: ~, peer: [::1, 10.0.0.0/8, "::ffff:10.0.0.0/104"]}`, `{not: {not: [{any: [{app_name: x}]}]}}`,
		`{message: {contains: ["$", "a\0"], regex: ['^a$$', "(?i)b"]}}`, "&a {not: *a}", `{source: edge, listener: "unix*"}`, "{app_name: !x y}", `{proc_id: "${env:X:-1}$${x}"}`,
		"\n      app_name: x\n      message:\n        contains: |\n          a\n          b\n", `{any: {a: b}}`, "{peer: [10.*, 1.2.3.4-5, fe80::1%1, 1/2]}", `{severity: "<=>", facility: ".."}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, match string) {
		if strings.Contains(match, "${file") || len(match) > 1<<12 {
			t.Skip()
		}
		first, a, err := shown(matchFile(match))
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Error("refused without a word")
			}
			return
		}
		if strings.Contains(first, "***") {
			return // what looks like a password is not shown
		}
		second, b, err := shown(first)
		if err != nil {
			t.Fatalf("%q is shown as\n%s, which is refused: %v", match, first, err)
		}
		if len(a.Routes) != len(b.Routes) {
			t.Fatalf("%q: %d routes, and %d when they are shown", match, len(a.Routes), len(b.Routes))
		}
		for i := range a.Routes {
			x, y := a.Routes[i].Value.Match, b.Routes[i].Value.Match
			if (x == nil) != (y == nil) || x != nil && !reflect.DeepEqual(x.build(), y.build()) {
				t.Fatalf("%q is shown as\n%s, which means something else", match, second)
			}
		}
	})
}

func TestWhatNoRouteTakesIsWarnedOf(t *testing.T) {
	check := func(want string, routes ...string) {
		t.Helper()
		text := "sources:\n  edge: { listen: [tcp://127.0.0.1:5514] }\n  core: { listen: [tcp://127.0.0.1:5515] }\n" +
			"destinations: { nowhere: { discard: {} } }\nroutes:\n  core: { from: [core], to: [nowhere] }\n"
		for i, r := range routes {
			text += fmt.Sprintf("  r%d: { from: [edge], to: [nowhere], %s }\n", i, r)
		}
		s := newSettings()
		doc := config.Parse(s, config.Options{}, "weir.yaml", []byte(text))
		s.wire(doc)
		s.warnMatches(doc)
		if err := doc.Err(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range doc.Warnings() {
			got = append(got, w.What)
		}
		if strings.Join(got, "\n") != want {
			t.Errorf("%q: warned of %q, want %q", routes, got, want)
		}
	}
	const two = "source edge: what none of the routes r0, r1 matches is counted as unrouted and stored nowhere"
	check("no route takes what source edge brings: it would be counted as unrouted")
	check("source edge: what route r0 does not match is counted as unrouted and stored nowhere", "match: {app_name: a}")
	check(two, "match: {app_name: a}", "match: {app_name: b}")
	check("source edge: what none of its 7 routes (r0, r1, …, r6) matches is counted as unrouted and stored nowhere",
		"match: {app_name: a}", "match: {app_name: b}", "match: {app_name: c}", "match: {app_name: d}", "match: {app_name: e}", "match: {app_name: f}", "match: {app_name: g}")
	check("", "match: {app_name: a}", "else: true")
	check("", "match: {app_name: a}", "else: false")
	check("", "match: {severity: <=err}", `match: {severity: ">err"}`)
	check(two, "match: {severity: <=err}", `match: {severity: ">warning"}`)
	check(two, "match: {severity: <=err}", `match: {severity: ">err", app_name: x}`)
	check("", "match: {facility: 0..15}", `match: {facility: local0..local7}`)
	check("", "match: {app_name: a, severity: err}", "match: {not: {app_name: a, severity: err}}")
	check(two, "match: {app_name: a, severity: err}", "match: {not: {app_name: a}}")
	check(two, "match: {app_name: a}", "match: {not: {app_name: a}, severity: err}")
	check("route r0: no other route takes from edge, so that else is everything", "else: true")
	check("route r1: nothing is left for it: route r0 takes everything", "filters: []", "else: true")
	check("route r0: this match takes everything", `match: {app_name: "*"}`)
}

func TestElseIsForOneRouteOfASource(t *testing.T) {
	s := newSettings()
	doc := config.Parse(s, config.Options{}, "weir.yaml", []byte("sources: { edge: { listen: [tcp://127.0.0.1:5514] } }\ndestinations: { nowhere: { discard: {} } }\n"+
		"routes:\n  a: { from: [edge], to: [nowhere], else: true }\n  b: { from: [edge], to: [nowhere], else: true }\n"))
	s.wireElse(doc)
	all := doc.Mistakes()
	if len(all) != 1 || all[0].Place.Line != 5 || all[0].Other.Line != 4 {
		t.Errorf("%v", all)
	}
}

// What check prints of a warning hides secrets; so does what run logs of it.
func TestLoggedWarningsHoldNoSecrets(t *testing.T) {
	_, doc := loadText(matchFile(`{message: {contains: "*password=geheim*"}}`))
	var b bytes.Buffer
	logWarnings(slog.New(slog.NewTextHandler(&b, nil)), doc.Warnings(), nil)
	if text := b.String(); !strings.Contains(text, "password=***") || strings.Contains(text, "geheim") {
		t.Errorf("logged: %s", text)
	}
}
