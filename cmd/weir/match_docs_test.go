package main

import (
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/syslog"
)

// sent is a message in the words of a test: "app=sshd sev=4 text=all that follows".
func sent(t *testing.T, words string) *router.Message {
	t.Helper()
	m := &router.Message{Message: syslog.Message{Facility: 1, Severity: 5}, Origin: &router.Origin{Source: "edge", Listener: "tcp://127.0.0.1:5514"}}
	o := *m.Origin
	for words != "" {
		var word string
		if strings.HasPrefix(words, "text=") {
			word, words = words, ""
		} else {
			word, words, _ = strings.Cut(words, " ")
		}
		key, value, _ := strings.Cut(word, "=")
		ok := true
		switch key {
		case "fac":
			m.Facility, ok = syslog.ParseFacility(value)
		case "sev":
			m.Severity, ok = syslog.ParseSeverity(value)
		case "host":
			m.Hostname = []byte(value)
		case "app":
			m.AppName = []byte(value)
		case "proc":
			m.ProcID = []byte(value)
		case "msgid":
			m.MsgID = []byte(value)
		case "text":
			m.Text = []byte(value)
		case "peer":
			o.Peer, o.Addr = value, netip.MustParseAddr(value)
		case "source":
			o.Source = value
		case "listener":
			o.Listener = value
		default:
			ok = false
		}
		if !ok {
			t.Fatalf("%q says nothing of a message", word)
		}
	}
	m.Origin = &o
	return m
}

// readMatch reads a match as the file of a whole configuration has it.
func readMatch(t *testing.T, text string) *router.Match {
	t.Helper()
	s, doc := loadText(matchFile(text))
	if err := doc.Err(); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	for _, w := range doc.Warnings() {
		if !strings.Contains(w.What, "unrouted") {
			t.Errorf("%s: %v", text, w)
		}
	}
	return s.routerConfig().Routes[0].Match
}

func matchFile(match string) string {
	return "sources:\n" +
		"  edge: { listen: [tcp://127.0.0.1:5514, udp://127.0.0.1:5514, unix://weir.sock] }\n" +
		"  core: { listen: [tcp://127.0.0.1:5515] }\n" +
		"destinations: { nowhere: { discard: {} } }\n" +
		"routes:\n  it:\n    from: [edge, core]\n    to: [nowhere]\n    match: " + match + "\n"
}

// What the tables of docs/selecting.md give for selectors of other programs that the test cannot evaluate by itself:
// messages that they take, and messages that they do not.
var selected = map[string]struct{ takes, leaves []string }{
	`:programname, isequal, "sshd"`:        {[]string{"app=sshd"}, []string{"app=sshd-session", "app=sshd2 text=sshd", ""}},
	`:programname, startswith, "postfix"`:  {[]string{"app=postfix", "app=postfix/smtpd"}, []string{"app=my-postfix", ""}},
	`:programname, !isequal, "sshd"`:       {[]string{"app=su", "", "app=sshd2"}, []string{"app=sshd"}},
	`:hostname, isequal, "web-1"`:          {[]string{"host=web-1", "host=WEB-1"}, []string{"host=web-11", ""}},
	`:hostname, contains, "web"`:           {[]string{"host=web", "host=my-web-1.example.net"}, []string{"host=we.b", "app=web"}},
	`:procid, isequal, "1"`:                {[]string{"proc=1"}, []string{"proc=11", "proc=01", ""}},
	`:msg, contains, "x"`:                  {[]string{"text=x", "text=a x b\xff"}, []string{"text=X", "app=x"}},
	`:msg, !contains, "x"`:                 {[]string{"text=X", ""}, []string{"text=axb"}},
	`:msg, contains_i, "denied"`:           {[]string{"text=Permission DENIED\x00", "text=denied"}, []string{"text=deny"}},
	`:msg, startswith, " Accepted"`:        {[]string{"text=Accepted publickey"}, []string{"text=not Accepted", "text=accepted"}},
	`:msg, ereregex, "port [0-9]+"`:        {[]string{"text=from 192.0.2.1 port 4242 ssh2"}, []string{"text=port x"}},
	`:fromhost-ip, startswith, "192.0.2."`: {[]string{"peer=192.0.2.9", "peer=::ffff:192.0.2.255"}, []string{"peer=192.0.20.1", "", "host=192.0.2.9"}},
	`:fromhost-ip, isequal, "127.0.0.1"`:   {[]string{"peer=127.0.0.1", "peer=::ffff:127.0.0.1"}, []string{"peer=127.0.0.2", "peer=::1", ""}},
	`:inputname, isequal, "imudp"`:         {[]string{"listener=udp://127.0.0.1:5514"}, []string{"", "listener=unix:///weir.sock"}},
	`if $syslogseverity <= 4 then`:         {[]string{"sev=0", "sev=4"}, []string{"sev=5", "sev=7"}},

	`if $syslogseverity-text == 'err' then`:                                {[]string{"sev=err"}, []string{"sev=crit", "sev=warning"}},
	`if $syslogfacility-text == 'local0' then`:                             {[]string{"fac=local0"}, []string{"fac=local1", "fac=cron2"}},
	`if $syslogfacility >= 16 and $syslogfacility <= 23 then`:              {[]string{"fac=16", "fac=19", "fac=23"}, []string{"fac=15", "fac=0"}},
	`if $programname == 'su' or $programname == 'sudo' then`:               {[]string{"app=su", "app=sudo"}, []string{"app=sud", ""}},
	`if $programname == 'sshd' and not ($msg contains 'Accepted') then`:    {[]string{"app=sshd text=Failed"}, []string{"app=sshd text=Accepted", "app=su text=Failed"}},
	`if $fromhost-ip == '10.0.0.1' or $syslogtag startswith 'kernel' then`: {[]string{"peer=10.0.0.1", "app=kernel", "peer=10.0.0.2 app=kernel:"}, []string{"peer=10.0.0.2", "app=akernel"}},

	`facility(mail)`:                      {[]string{"fac=mail sev=debug", "fac=mail"}, []string{"fac=user"}},
	`facility(mail) and not level(debug)`: {[]string{"fac=mail sev=info"}, []string{"fac=mail sev=debug", "fac=user sev=info"}},
	`facility(auth, authpriv)`:            {[]string{"fac=auth", "fac=authpriv"}, []string{"fac=audit"}},
	`not facility(kern, mail)`:            {[]string{"fac=user"}, []string{"fac=kern", "fac=mail"}},
	`level(info..emerg)`:                  {[]string{"sev=emerg", "sev=info"}, []string{"sev=debug"}},
	`level(err)`:                          {[]string{"sev=err"}, []string{"sev=crit", "sev=warning"}},
	`level(warn) or level(err)`:           {[]string{"sev=err", "sev=warn"}, []string{"sev=crit", "sev=notice"}},
	`program("^sshd$")`:                   {[]string{"app=sshd"}, []string{"app=sshd2", "app=asshd", ""}},
	`program("sshd")`:                     {[]string{"app=sshd", "app=sshd2", "app=asshd"}, []string{"app=ssh", ""}},
	`host("web.*")`:                       {[]string{"host=web", "host=web-1", "host=my-web"}, []string{"host=we", ""}},
	`host("^web-[0-9]+$")`:                {[]string{"host=web-1", "host=web-10"}, []string{"host=web-", "host=myweb-1"}},
	`netmask(10.0.0.0/8)`:                 {[]string{"peer=10.255.255.255"}, []string{"peer=11.0.0.0", ""}},
	`netmask(10.0.0.0/255.0.0.0)`:         {[]string{"peer=10.255.255.255"}, []string{"peer=11.0.0.0", ""}},
	`netmask6("2001:db8::/32")`:           {[]string{"peer=2001:db8:1::1"}, []string{"peer=2001:db9::1", "peer=192.0.2.1", ""}},
	`message("x")`:                        {[]string{"text=axb"}, []string{"text=X", "app=x"}},
	`match("^TCP" value("MSGID"))`:        {[]string{"msgid=TCP", "msgid=TCPIN"}, []string{"msgid=ATCP", ""}},
	`match("Deny" value("MESSAGE"))`:      {[]string{"text=%ASA: Deny tcp"}, []string{"text=deny"}},
	`source(s_edge)`:                      {[]string{"source=edge"}, []string{"source=core"}},
	`filter(f_a) and not filter(f_b)`:     {[]string{"fac=mail app=dovecot"}, []string{"fac=mail app=postfix/smtp", "app=dovecot"}},
	`filter(f_a) or filter(f_b)`:          {[]string{"fac=mail", "app=postfix/smtp"}, []string{"app=dovecot"}},
}

// Each match that the manual gives for a selector of another program takes what that takes, and nothing else.
func TestSelectorsOfOthersAreWhatTheManualSays(t *testing.T) {
	page, err := os.ReadFile("../../docs/selecting.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tables, _ := strings.Cut(string(page), "## From rsyslog")
	seen, used := 0, map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (.*?) \\|.*\\|$").FindAllStringSubmatch(tables, -1) {
		selector, match := row[1], strings.Trim(row[2], "`")
		if !strings.HasPrefix(match, "{") {
			continue // a route, told in words
		}
		seen++
		t.Run(selector, func(t *testing.T) {
			m := readMatch(t, match)
			if mask, ok := priorities(selector); ok {
				for f := range uint8(24) {
					for s := range uint8(8) {
						msg := sent(t, "")
						msg.Facility, msg.Severity = f, s
						if got, want := m.Matches(msg), mask[f]>>s&1 != 0; got != want {
							t.Errorf("%s.%s: %v, want %v", syslog.FacilityName(f), syslog.SeverityName(s), got, want)
						}
					}
				}
				return
			}
			want, ok := selected[selector]
			if used[selector] = true; !ok {
				t.Fatal("the test has no messages for it")
			}
			for _, words := range want.takes {
				if !m.Matches(sent(t, words)) {
					t.Errorf("%s does not take %q", match, words)
				}
			}
			for _, words := range want.leaves {
				if m.Matches(sent(t, words)) {
					t.Errorf("%s takes %q", match, words)
				}
			}
		})
	}
	for selector := range selected {
		if !used[selector] {
			t.Errorf("the manual does not have %s any more", selector)
		}
	}
	if seen < 50 {
		t.Errorf("%d rows were found", seen)
	}
}

// priorities evaluates a selector of rsyslog as rsyslog.conf(5) tells: from left to right, each part adds to what its
// facilities take, or takes away.
func priorities(selector string) (mask [24]uint8, ok bool) {
	for part := range strings.SplitSeq(selector, ";") {
		facilities, priority, dotted := strings.Cut(part, ".")
		if !dotted {
			return mask, false
		}
		word := strings.TrimPrefix(priority, "!")
		not := word != priority
		one := strings.HasPrefix(word, "=")
		word = strings.TrimPrefix(word, "=")
		var bits uint8
		switch n, known := syslog.ParseSeverity(word); {
		case word == "*":
			bits = 0xff
		case word == "none":
			bits, not = 0xff, true
		case !known:
			return mask, false
		case one:
			bits = 1 << n
		default:
			bits = 1<<(n+1) - 1
		}
		names := strings.Split(facilities, ",")
		for f := range uint8(24) {
			if !slices.Contains(names, "*") && !slices.Contains(names, syslog.FacilityName(f)) {
				continue
			}
			if not {
				mask[f] &^= bits
			} else {
				mask[f] |= bits
			}
		}
		for _, name := range names {
			if _, known := syslog.ParseFacility(name); !known && name != "*" {
				return mask, false
			}
		}
	}
	return mask, true
}
