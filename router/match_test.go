package router

import (
	"net/netip"
	"regexp"
	"testing"

	"github.com/weirlog/weir/router/syslog"
)

func asa() *Message {
	return &Message{
		Message: syslog.Message{Facility: 20, Severity: 4, Hostname: []byte("FW-1.Example.net"), AppName: []byte("%ASA-4-106023"),
			Text: []byte("Deny tcp src outside:192.0.2.9/4242 dst inside:10.0.0.5/22 \x00\xff end")},
		Origin: &Origin{Source: "edge", Listener: "udp://0.0.0.0:514", Peer: "::ffff:192.0.2.7", Addr: netip.MustParseAddr("::ffff:192.0.2.7")},
	}
}

func prefixes(list ...string) (p []netip.Prefix) {
	for _, s := range list {
		p = append(p, netip.MustParsePrefix(s))
	}
	return p
}

func globs(list ...string) (g []Glob) {
	for _, s := range list {
		g = append(g, NewGlob(s))
	}
	return g
}

func expressions(list ...string) (all []*regexp.Regexp) {
	for _, s := range list {
		all = append(all, regexp.MustCompile(s))
	}
	return all
}

func TestMatchTakesWhatHoldsInAllOfItsFields(t *testing.T) {
	check := func(want bool, m Match) {
		t.Helper()
		if got := m.Matches(asa()); got != want {
			t.Errorf("%+v: %v, want %v", m, got, want)
		}
	}
	check(true, Match{})
	check(true, Match{Facilities: 1 << 20})
	check(true, Match{Facilities: 1<<20 | 1})
	check(false, Match{Facilities: 1 << 4})
	check(true, Match{Severities: 0b11111})
	check(false, Match{Severities: 0b1111})
	check(true, Match{AppName: globs("%ASA-*")})
	check(false, Match{AppName: globs("%asa-*")}) // only hosts do not tell cases apart
	check(true, Match{AppName: globs("sshd", "%ASA-?-106023")})
	check(true, Match{Hostname: []Glob{NewFoldGlob("fw-*.EXAMPLE.net")}})
	check(false, Match{Hostname: []Glob{NewFoldGlob("fw-2*")}})
	check(true, Match{ProcID: globs("*"), MsgID: globs("")}) // absent is empty
	check(false, Match{ProcID: globs("?*")})
	check(true, Match{Source: globs("edge"), Listener: globs("udp://*")})
	check(false, Match{Source: globs("core")})
	check(false, Match{Listener: globs("tcp://*")})
	check(true, Match{Contains: []string{"permit", "Deny"}})
	check(true, Match{Contains: []string{"\x00\xff"}})
	check(false, Match{Contains: []string{"deny"}})
	check(true, Match{Regex: expressions(`^permit`, `(?i)deny (tcp|udp) src \S+:192\.0\.2\.`)})
	check(true, Match{Regex: expressions("\\x00\ufffd end$")})
	check(false, Match{Regex: expressions(`^src`)})
	check(true, Match{Contains: []string{"Deny"}, Regex: expressions(`end$`)})
	check(false, Match{Contains: []string{"Deny"}, Regex: expressions(`start$`)})
	check(false, Match{Severities: 1 << 4, Facilities: 1})
}

func TestMatchNotIsNoneAndAnyIsOne(t *testing.T) {
	yes, no := Match{Severities: 1 << 4}, Match{Severities: 1 << 3}
	check := func(want bool, m Match) {
		t.Helper()
		if got := m.Matches(asa()); got != want {
			t.Errorf("%+v: %v, want %v", m, got, want)
		}
	}
	check(false, Match{Not: []Match{yes}})
	check(true, Match{Not: []Match{no}})
	check(false, Match{Not: []Match{no, yes}})
	check(true, Match{Any: []Match{no, yes}})
	check(false, Match{Any: []Match{no, no}})
	check(true, Match{Any: []Match{no, yes}, Not: []Match{no}, Facilities: 1 << 20})
	check(false, Match{Any: []Match{yes}, Facilities: 1 << 2})
	check(true, Match{Not: []Match{{Not: []Match{{Any: []Match{yes}}}}}})
	check(false, Match{Not: []Match{{}}})
}

func TestMatchKnowsAPeerHoweverItIsWritten(t *testing.T) {
	check := func(addr string, want bool, networks ...string) {
		t.Helper()
		m := Match{Peer: prefixes(networks...)}
		msg := asa()
		msg.Origin = &Origin{}
		if addr != "" {
			msg.Origin.Addr = netip.MustParseAddr(addr)
		}
		if got := m.Matches(msg); got != want {
			t.Errorf("%q in %v: %v, want %v", addr, networks, got, want)
		}
	}
	check("192.0.2.7", true, "192.0.2.0/24")
	check("::ffff:192.0.2.7", true, "192.0.2.0/24")
	check("192.0.3.7", false, "192.0.2.0/24", "10.0.0.0/8")
	check("10.1.2.3", true, "192.0.2.0/24", "10.0.0.0/8")
	check("192.0.2.7", true, "192.0.2.7/32")
	check("2001:db8::7", true, "2001:db8::/32")
	check("2001:db8::7", false, "0.0.0.0/0")
	check("192.0.2.7", false, "::/0")
	check("fe80::1%eth0", true, "fe80::/10")
	check("", false, "0.0.0.0/0", "::/0") // a unix socket is no network
}

func TestMatchEverythingIsWhatHasNoCondition(t *testing.T) {
	var none *Match
	if !none.Everything() || !none.Matches(asa()) || !(&Match{}).Everything() {
		t.Error("no match takes not everything")
	}
	for _, m := range []Match{{Facilities: 1<<24 - 1, Severities: 255}, {AppName: globs("x", "**")}, {Any: []Match{{Severities: 1}, {}}}} {
		if !m.Everything() {
			t.Errorf("%+v takes everything", m)
		}
	}
	for _, m := range []Match{{Facilities: 1}, {Severities: 1}, {Hostname: globs("a")}, {AppName: globs("a")}, {ProcID: globs("a")}, {MsgID: globs("a")},
		{Source: globs("a")}, {Listener: globs("a")}, {Peer: prefixes("::/0")}, {Contains: []string{"a"}}, {Regex: expressions("a")},
		{Not: []Match{{Severities: 1}}}, {Any: []Match{{Severities: 1}}}} {
		if m.Everything() {
			t.Errorf("%+v is said to take everything", m)
		}
	}
}

// A facility or severity that no parser gives is in no set, and harms nobody.
func TestMatchBearsNumbersOutOfRange(t *testing.T) {
	msg := asa()
	msg.Facility, msg.Severity = 255, 255
	if (&Match{Facilities: 1<<32 - 1}).Matches(msg) || (&Match{Severities: 255}).Matches(msg) {
		t.Error("a number out of range is in a set")
	}
}

func TestMatchDoesNotAllocate(t *testing.T) {
	msg := asa()
	m := &Match{
		Facilities: 1 << 20, Severities: 0xff, Hostname: []Glob{NewGlob("x"), NewFoldGlob("*W-?.*.NET")}, AppName: globs("%ASA-*"),
		Peer: prefixes("10.0.0.0/8", "192.0.2.0/24"), Source: globs("edge"), Listener: globs("udp*514"),
		Contains: []string{"nothing", "Deny"}, Regex: expressions(`^permit`, `(tcp|udp) src \S+:192\.0\.2\.\d+/(\d+)`),
		Not: []Match{{AppName: globs("*106024"), Regex: expressions(`x+y`)}},
		Any: []Match{{Regex: expressions(`inside:[0-9.]+/23`)}, {Regex: expressions(`inside:[0-9.]+/22`)}},
	}
	if !m.Matches(msg) {
		t.Fatal("it does not match")
	}
	if raceDetector {
		t.Skip("the race detector makes pools forget, that of package regexp among them")
	}
	if n := testing.AllocsPerRun(1000, func() { m.Matches(msg) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// What does a route cost that takes nothing of a message?
func BenchmarkMatchRefuses(b *testing.B) {
	msg := asa()
	run := func(name string, m Match) {
		b.Run("by="+name, func(b *testing.B) {
			for b.Loop() {
				if m.Matches(msg) {
					b.Fatal("it matches")
				}
			}
		})
	}
	run("severity", Match{Severities: 1})
	run("app_name", Match{AppName: globs("%ASA-6-302013")})
	run("app_name_prefix", Match{AppName: globs("%ASB-*")})
	run("hostname", Match{Hostname: []Glob{NewFoldGlob("fw-2.example.net")}})
	run("hostname_mixed", Match{Hostname: []Glob{NewFoldGlob("*fw-*.example.org")}})
	run("peer", Match{Peer: prefixes("10.0.0.0/8", "2001:db8::/32")})
	run("contains", Match{Contains: []string{"permit"}})
	run("regex", Match{Regex: expressions(`permit (tcp|udp)`)})
}
