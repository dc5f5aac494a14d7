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

// maxPath is the room for a path in sockaddr_un, less the NUL.
const maxPath = 107

// parseAddress reads scheme://address. hint is the way out of an error.
func parseAddress(text string) (a address, hint string, err error) {
	const example = "udp://127.0.0.1:5514, tcp://[::1]:5514, unix:///run/weir/weir.sock or unixgram:///dev/log"
	scheme, rest, found := strings.Cut(text, "://")
	a = address{text: text, network: scheme}
	switch {
	case strings.ContainsAny(text, "“”„‘’"):
		return a, `"` + strings.Trim(text, "“”„‘’") + `"`, fmt.Errorf("%q is no address: its quotes are typographic ones", text)
	case strings.ContainsAny(text, " \t\n"):
		return a, "one address for each - or comma, each - in the same column", fmt.Errorf("%q is no address: there is a space in it", text)
	case !found:
		return a, example, fmt.Errorf("%q is no address", text)
	case scheme == "tls":
		return a, "tcp:// behind a TLS proxy", errors.New("tls:// is not in this version of weir")
	case scheme == "unix" || scheme == "unixgram":
		if rest == "" || rest == "@" {
			return a, scheme + ":///run/weir/weir.sock", errors.New("a socket without a path")
		}
		if len(rest) > maxPath {
			return a, "a shorter path", fmt.Errorf("the path has %d bytes, and a unix socket takes at most %d", len(rest), maxPath)
		}
		a.path = rest
		return a, "", nil
	case scheme != "udp" && scheme != "tcp":
		return a, example, fmt.Errorf("%s:// is no way to listen", scheme)
	}
	i := strings.LastIndexByte(rest, ':')
	if i < 0 {
		return a, text + ":5514", errors.New("an address without a port")
	}
	host, port := rest[:i], rest[i+1:]
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return a, "0 to 65535", fmt.Errorf("%q is no port", port)
	}
	switch host {
	case "", "localhost": // safe unless an address is given
		host = "127.0.0.1"
	case "*":
		return a, fmt.Sprintf("%s://[::]:%s, or 0.0.0.0 for IPv4 alone", scheme, port), errors.New("* is no address")
	}
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
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
