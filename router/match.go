package router

import (
	"bytes"
	"net/netip"
	"regexp"
	"slices"
)

// A Match says which messages a route takes. It looks at what the parser made
// of a message, before any filter. Every field that says something must hold; a
// list holds when one of its items does; the zero Match takes everything, and so
// does a nil one.
//
// What a message does not say is the empty text: the glob `*` fits it, `?*` does
// not. Facility and severity are what the parser assumed where the sender named none.
//
// A Match is not changed once it is in use, and is then safe for concurrent use.
type Match struct {
	Facilities uint32 // a bit each, 1<<4 for auth; 0: any
	Severities uint8  // a bit each, 1<<3 for err; 0: any

	Hostname []Glob
	AppName  []Glob
	ProcID   []Glob
	MsgID    []Glob
	Source   []Glob // Origin.Source
	Listener []Glob // Origin.Listener

	// Peer are networks of IPv4 and IPv6, the former not written as the latter. A sender without
	// an address (unix sockets) is in none.
	Peer []netip.Prefix

	Contains []string         // the message's text holds one of these, byte for byte
	Regex    []*regexp.Regexp // one of these fits somewhere in the message's text; bytes that are no UTF-8 are U+FFFD each

	Not []Match // none of these takes it
	Any []Match // one of these takes it; none here: no condition
}

// Matches reports whether the message is one of those that m is for. It costs no
// allocation, and time in proportion to the values that it looks at.
func (m *Match) Matches(msg *Message) bool {
	if m == nil {
		return true
	}
	// In the order of what they cost.
	return (m.Severities == 0 || m.Severities>>msg.Severity&1 != 0) &&
		(m.Facilities == 0 || m.Facilities>>msg.Facility&1 != 0) &&
		(len(m.AppName) == 0 || oneFits(m.AppName, msg.AppName)) &&
		(len(m.Hostname) == 0 || oneFits(m.Hostname, msg.Hostname)) &&
		(len(m.Source) == 0 || oneFits(m.Source, bytesOf(msg.Origin.Source))) &&
		(len(m.Listener) == 0 || oneFits(m.Listener, bytesOf(msg.Origin.Listener))) &&
		(len(m.Peer) == 0 || within(m.Peer, msg.Origin.Addr)) &&
		(len(m.ProcID) == 0 || oneFits(m.ProcID, msg.ProcID)) &&
		(len(m.MsgID) == 0 || oneFits(m.MsgID, msg.MsgID)) &&
		(len(m.Contains) == 0 || holds(m.Contains, msg.Text)) &&
		(len(m.Any) == 0 || oneTakes(m.Any, msg)) &&
		(len(m.Not) == 0 || !oneTakes(m.Not, msg)) &&
		(len(m.Regex) == 0 || found(m.Regex, msg.Text))
}

// Everything reports whether it is plain to see that m takes every message.
func (m *Match) Everything() bool {
	return m == nil || (m.Severities == 0 || m.Severities == 1<<8-1) && (m.Facilities == 0 || m.Facilities&(1<<24-1) == 1<<24-1) &&
		allFit(m.AppName) && allFit(m.Hostname) && allFit(m.Source) && allFit(m.Listener) && allFit(m.ProcID) && allFit(m.MsgID) &&
		len(m.Peer) == 0 && len(m.Contains) == 0 && len(m.Regex) == 0 && len(m.Not) == 0 && (len(m.Any) == 0 || slices.ContainsFunc(m.Any, func(a Match) bool { return a.Everything() }))
}

// allFit reports whether every value fits one of the list, or there is none.
func allFit(list []Glob) bool { return len(list) == 0 || slices.ContainsFunc(list, Glob.Everything) }

func oneTakes(list []Match, msg *Message) bool {
	for i := range list {
		if list[i].Matches(msg) {
			return true
		}
	}
	return false
}

func oneFits(list []Glob, value []byte) bool {
	for i := range list {
		if list[i].Matches(value) {
			return true
		}
	}
	return false
}

// within reports whether an address is in one of the networks, however it is
// written: ::ffff:192.0.2.1 is 192.0.2.1, and fe80::1%eth0 is fe80::1.
func within(list []netip.Prefix, a netip.Addr) bool {
	if !a.IsValid() {
		return false
	}
	a = a.Unmap().WithZone("")
	for i := range list {
		if list[i].Contains(a) {
			return true
		}
	}
	return false
}

func holds(list []string, text []byte) bool {
	for _, s := range list {
		if bytes.Contains(text, bytesOf(s)) {
			return true
		}
	}
	return false
}

func found(list []*regexp.Regexp, text []byte) bool {
	for _, re := range list {
		if re.Match(text) {
			return true
		}
	}
	return false
}
