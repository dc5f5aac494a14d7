package main

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
)

// match says which messages a route takes: all of its keys hold, a list is or.
type match struct {
	Facility some[facility]   `yaml:"facility"`
	Severity some[severities] `yaml:"severity"`
	Hostname some[glob]       `yaml:"hostname"`
	AppName  some[glob]       `yaml:"app_name"`
	ProcID   some[glob]       `yaml:"proc_id"`
	MsgID    some[glob]       `yaml:"msg_id"`
	Peer     some[network]    `yaml:"peer"`
	Source   some[glob]       `yaml:"source"`
	Listener some[glob]       `yaml:"listener"`
	Message  *inMessage       `yaml:"message"`
	Not      some[match]      `yaml:"not"`
	Any      alternatives     `yaml:"any"`

	place config.Place
}

// inMessage is what a message's text holds.
type inMessage struct {
	Contains some[piece]      `yaml:"contains"`
	Regex    some[expression] `yaml:"regex"`
}

// some is a list in which each item does, or one item without the list around it.
type some[T any] []T

func (s *some[T]) UnmarshalConfig(v *config.Value) {
	if v.DecodeSeveral((*[]T)(s)) && len(*s) == 0 {
		v.Errorf("what is meant, or leave the key out", "an empty list")
	}
}

// decodeText decodes a text and gives what parse makes of it, which says what is wrong with it, and the way out.
func decodeText[T any](v *config.Value, text *string, parse func(string) (T, string, string)) (parsed T) {
	if !v.Decode(text) {
		return parsed
	}
	parsed, what, hint := parse(strings.TrimSpace(*text))
	if what != "" {
		v.Errorf(hint, "%s", what)
	}
	return parsed
}

// alternatives are matches of which one has to hold.
type alternatives []match

func (a *alternatives) UnmarshalConfig(v *config.Value) {
	switch {
	case v.IsMap():
		v.Errorf("[{facility: mail}, {app_name: sshd}]: a - before each alternative", "any wants a list of alternatives: inside of one, all keys hold")
	case v.Decode((*[]match)(a)) && len(*a) == 0:
		v.Errorf("alternatives, or leave any out", "an empty list")
	}
}

// The keys of a match and of its message, without what reads them.
type (
	matchKeys   match
	messageKeys inMessage
)

// OtherNames are what other programs call the keys.
func (*matchKeys) OtherNames() map[string]string {
	return map[string]string{
		"level": "severity", "priority": "facility or severity", "pri": "facility or severity", "prio": "severity", "severity_min": `severity: "<=…"`,
		"host": "hostname", "fromhost": "hostname, or peer for an address", "fromhost_ip": "peer", "ip": "peer", "address": "peer", "addr": "peer", "netmask": "peer", "network": "peer",
		"client": "peer", "sender": "peer", "program": "app_name", "programname": "app_name", "app": "app_name", "tag": "app_name", "syslogtag": "app_name", "ident": "app_name", "process": "app_name", "service": "app_name",
		"pid": "proc_id", "msgid": "msg_id", "msg": "message", "text": "message", "line": "message", "contains": "message: {contains: …}", "regex": "message: {regex: …}", "regexp": "message: {regex: …}", "port": "listener", "listen": "listener",
		"input": "source", "inputname": "source", "from": "source", "or": "any", "one_of": "any", "none": "not", "and": "nothing: all keys hold", "all": "nothing: all keys hold",
		"fields": "a filter: match looks at what the parser found", "sd": "a filter: match does not look into structured data", "structured_data": "a filter: match does not look into structured data",
		"raw": "message", "timestamp": "a filter: match does not look at times", "else": "else beside match, not inside",
	}
}

// OtherNames are what other programs call the keys.
func (*messageKeys) OtherNames() map[string]string {
	return map[string]string{"re": "regex", "match": "regex", "equals": "regex: '^…$'", "is": "regex: '^…$'", "startswith": "regex: '^…'", "starts_with": "regex: '^…'", "prefix": "regex: '^…'",
		"endswith": "regex: '…$'", "ends_with": "regex: '…$'", "suffix": "regex: '…$'", "substring": "contains", "glob": "contains", "icontains": "regex: '(?i)…'", "not": "not beside message, not inside"}
}

func (m *match) UnmarshalConfig(v *config.Value) {
	m.place = v.Place()
	switch {
	case v.IsList():
		v.Errorf("any: [{…}, {…}]", "a match is keys and their values, not a list")
	case v.IsScalar():
		v.Errorf(`{app_name: sshd} or {facility: mail, severity: "<=info"}`, "a match is keys and their values, not a text")
	default:
		v.Decode((*matchKeys)(m))
	}
}

func (m *match) Check() []config.Problem {
	if m.conditions() > 0 {
		return nil
	}
	return []config.Problem{{What: "a match without a condition", Hint: "{app_name: sshd}; a route without match takes everything"}}
}

// conditions is how many keys a match has.
func (m *match) conditions() (n int) {
	for _, there := range []bool{len(m.Facility) > 0, len(m.Severity) > 0, len(m.Hostname) > 0, len(m.AppName) > 0, len(m.ProcID) > 0, len(m.MsgID) > 0,
		len(m.Peer) > 0, len(m.Source) > 0, len(m.Listener) > 0, m.Message != nil, len(m.Not) > 0, len(m.Any) > 0} {
		if there {
			n++
		}
	}
	return n
}

func (m *inMessage) UnmarshalConfig(v *config.Value) {
	if v.IsScalar() || v.IsList() {
		v.Errorf("{contains: …}, or {regex: …}", "say how to look for it in the message")
		return
	}
	v.Decode((*messageKeys)(m))
}

func (m *inMessage) Check() []config.Problem {
	if len(m.Contains)+len(m.Regex) > 0 {
		return nil
	}
	return []config.Problem{{What: "nothing to look for in the message", Hint: "{contains: …}, or {regex: …}"}}
}

// facilities is the set of those it names; 0: all.
func (m *match) facilities() (set uint32) {
	for _, f := range m.Facility {
		set |= f.set
	}
	return set
}

// severities is the set of those it names; 0: all.
func (m *match) severities() (set uint8) {
	for _, s := range m.Severity {
		set |= s.set
	}
	return set
}

// forRouter is the match as the router has it; nil: it takes everything.
func (m *match) forRouter() *router.Match {
	if m == nil {
		return nil
	}
	out := m.build()
	if out.Everything() {
		return nil
	}
	return &out
}

func (m match) build() router.Match {
	out := router.Match{
		Facilities: m.facilities(), Severities: m.severities(),
		Hostname: buildAll(m.Hostname, glob.folded), AppName: buildAll(m.AppName, glob.exact), ProcID: buildAll(m.ProcID, glob.exact), MsgID: buildAll(m.MsgID, glob.exact),
		Source: buildAll(m.Source, glob.exact), Listener: buildAll(m.Listener, glob.ofListener),
		Peer: buildAll(m.Peer, func(n network) netip.Prefix { return n.prefix }),
		Not:  buildAll(m.Not, match.build), Any: buildAll(m.Any, match.build),
	}
	if m.Message != nil {
		for _, p := range m.Message.Contains {
			out.Contains = append(out.Contains, p.text)
		}
		for _, e := range m.Message.Regex {
			out.Regex = append(out.Regex, e.re)
		}
	}
	return out
}

func buildAll[T, R any](list []T, each func(T) R) (out []R) {
	for _, item := range list {
		out = append(out, each(item))
	}
	return out
}

// resolve makes the paths of sockets usable, as settings.resolve does.
func (m *match) resolve() {
	if m == nil {
		return
	}
	for i := range m.Listener {
		m.Listener[i].resolve()
	}
	for i := range m.Not {
		m.Not[i].resolve()
	}
	for i := range m.Any {
		m.Any[i].resolve()
	}
}

// depth is how many matches are in each other, this one included.
func (m *match) depth() int {
	deepest := 0
	for _, in := range slices.Concat([]match(m.Not), []match(m.Any)) {
		deepest = max(deepest, in.depth())
	}
	return deepest + 1
}
