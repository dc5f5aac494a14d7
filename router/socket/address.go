package socket

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// An address is one entry of `listen`.
type address struct {
	text    string // as written
	network string // unix, unixgram, udp, tcp
	path    string // of unix sockets; @name is an abstract one
	at      netip.AddrPort
}

// MostPath is how many bytes the path of a unix socket may have: the room in sockaddr_un, less the NUL.
const MostPath = 107

// parseAddress reads scheme://address. hint is the way out of an error.
func parseAddress(text string) (a address, hint string, err error) {
	scheme, rest, found := strings.Cut(text, "://")
	a = address{text: text, network: scheme}
	switch {
	case strings.ContainsAny(text, "“”„‘’"):
		return a, `"` + strings.Trim(text, "“”„‘’") + `"`, fmt.Errorf("%q is no address: its quotes are typographic ones", text)
	case strings.ContainsAny(text, " \t\n"):
		return a, "one address for each - or comma, each - in the same column", fmt.Errorf("%q is no address: there is a space in it", text)
	case !found:
		return a, withScheme(text), fmt.Errorf("%q does not say how to listen", text)
	case scheme == "tls":
		return a, "tcp:// behind a TLS proxy", errors.New("tls:// is not in this version of weir")
	case scheme == "unix" || scheme == "unixgram":
		if rest == "" || rest == "@" {
			return a, scheme + ":///run/weir/weir.sock", errors.New("a socket without a path")
		}
		if len(rest) > MostPath {
			return a, "a shorter path", fmt.Errorf("the path has %d bytes, and a unix socket takes at most %d", len(rest), MostPath)
		}
		a.path = rest
		return a, "", nil
	case scheme != "udp" && scheme != "tcp":
		hint := "tcp://" + rest + " or udp://" + rest
		for _, known := range []string{"tcp", "udp", "unixgram", "unix"} {
			if strings.HasPrefix(strings.ToLower(scheme), known) {
				hint = known + "://" + rest
				break
			}
		}
		return a, hint, fmt.Errorf("%s:// is no way to listen", scheme)
	case rest != strings.TrimRight(rest, "/"):
		return a, scheme + "://" + strings.TrimRight(rest, "/"), errors.New("there is a / behind the address")
	}
	if _, err := strconv.ParseUint(rest, 10, 16); err == nil {
		return a, scheme + "://127.0.0.1:" + rest + ", or 0.0.0.0 for all of IPv4", errors.New("a port without an address")
	}
	i := strings.LastIndexByte(rest, ':')
	if rest = strings.TrimSuffix(rest, ":"); i < 0 || i == len(rest) || strings.HasSuffix(rest, "]") {
		return a, scheme + "://" + rest + ":5514", errors.New("an address without a port")
	}
	host, port := rest[:i], rest[i+1:]
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		if strings.HasPrefix(host, "[") && !strings.Contains(host, "]") {
			return a, scheme + "://" + host + "]:5514", errors.New("the ] behind the address is missing")
		}
		if strings.Trim(port, "-0123456789") != "" {
			return a, "its number, such as 514", fmt.Errorf("%q is no port: names are not looked up", port)
		}
		return a, "1 to 65535", fmt.Errorf("%q is no port", port)
	}
	switch host {
	case "", "localhost": // safe unless an address is given
		host = "127.0.0.1"
	case "*":
		return a, fmt.Sprintf("%s://[::]:%s, or 0.0.0.0 for IPv4 alone", scheme, port), errors.New("* is no address")
	}
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	} else if strings.HasPrefix(host, "[") {
		return a, fmt.Sprintf("%s://%s]:%s", scheme, host, port), errors.New("the ] behind the address is missing")
	} else if strings.Contains(host, ":") {
		return a, fmt.Sprintf("%s://[%s]:%s", scheme, host, port), errors.New("an IPv6 address without brackets")
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return a, "an address of this host, such as 127.0.0.1; names are not looked up", fmt.Errorf("%q is no address", host)
	}
	a.at = netip.AddrPortFrom(ip, uint16(n))
	return a, "", nil
}

// withScheme is what somebody meant who wrote an address without its scheme://.
func withScheme(text string) string {
	scheme, rest, ok := strings.Cut(text, ":")
	switch {
	case strings.HasPrefix(text, "/"):
		return "unix://" + text + " (a stream), or unixgram://" + text + " (datagrams)"
	case ok && (scheme == "unix" || scheme == "unixgram" || scheme == "tcp" || scheme == "udp"):
		return scheme + "://" + rest
	case ok && scheme == "":
		return "tcp://127.0.0.1" + text + " or udp://127.0.0.1" + text
	case ok:
		return "tcp://" + text + " or udp://" + text
	}
	if _, err := strconv.ParseUint(text, 10, 16); err == nil {
		return "tcp://127.0.0.1:" + text + " or udp://127.0.0.1:" + text
	}
	return "udp://127.0.0.1:5514, tcp://[::1]:5514, unix:///run/weir/weir.sock or unixgram:///dev/log"
}

// Overlap reports whether two entries of `listen`, of different sources, take the
// same address, so that the second one cannot be opened.
func Overlap(one, other string) bool {
	a, _, err := parseAddress(one)
	b, _, otherErr := parseAddress(other)
	switch {
	case err != nil || otherErr != nil:
		return false
	case a.path != "" || b.path != "":
		return a.path == b.path
	case a.network != b.network || a.at.Port() != b.at.Port() || a.at.Port() == 0:
		return false
	}
	x, y := a.at.Addr().Unmap(), b.at.Addr().Unmap()
	both := func(ip netip.Addr) bool { return ip.Is6() && ip.IsUnspecified() } // takes IPv4 too
	return x == y || both(x) || both(y) || x.Is4() == y.Is4() && (x.IsUnspecified() || y.IsUnspecified())
}

// net is the network to give to package net. An IPv6 wildcard takes IPv4 too,
// unless its IPv4 twin is among others.
func (a address) net(others []address) string {
	ip := a.at.Addr()
	if !ip.Is6() {
		return a.network + "4"
	}
	if ip.IsUnspecified() {
		for _, o := range others {
			if o.network == a.network && o.at.Port() == a.at.Port() && o.at.Addr().Is4() {
				return a.network + "6"
			}
		}
		return a.network
	}
	return a.network + "6"
}
