package main

import (
	"fmt"
	"math/bits"
	"net/netip"
	"strings"

	"github.com/weirlog/weir/router/config"
)

// network is where a peer is: 192.0.2.0/24, 2001:db8::/32, or one address.
type network struct {
	text   string
	prefix netip.Prefix
	place  config.Place
}

func (n *network) UnmarshalConfig(v *config.Value) {
	n.place = v.Place()
	n.prefix = decodeText(v, &n.text, parseNetwork)
}

// String is the text that UnmarshalConfig reads.
func (n network) String() string { return n.text }

func parseNetwork(text string) (p netip.Prefix, what, hint string) {
	host, mask, masked := strings.Cut(text, "/")
	a, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return p, fmt.Sprintf("%q is no address and no network", text), networkHint(text)
	case a.Zone() != "":
		return p, fmt.Sprintf("%q: a peer is compared without the interface behind the %%", text), a.WithZone("").String()
	case !masked:
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), "", ""
	}
	p, err = netip.ParsePrefix(text)
	if m, e := netip.ParseAddr(mask); err != nil && e == nil && m.Is4() && a.Is4() {
		return p, fmt.Sprintf("%q: the length of a mask is a number", text), dotted(a, m)
	}
	switch {
	case err != nil && isNumber(mask):
		return p, fmt.Sprintf("%q: an address like this has %d bits", text, a.BitLen()), fmt.Sprintf("%s/%d for this address alone; at most %d", a, a.BitLen(), a.BitLen())
	case err != nil:
		return p, fmt.Sprintf("%q: the length of the mask is missing", text), fmt.Sprintf("%s/24, or %s for this address alone", a, a)
	case p.Masked() != p:
		return p, fmt.Sprintf("%q is an address inside of the network %s", text, p.Masked()), fmt.Sprintf("%s for the network, %s for the address", p.Masked(), a)
	case a.Is4In6() && p.Bits() >= 96:
		p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
	}
	return p, "", ""
}

// networkHint is the way out for what is no address.
func networkHint(text string) string {
	if inside, ok := strings.CutPrefix(text, "["); ok {
		inside, _, _ = strings.Cut(inside, "]")
		if _, err := netip.ParseAddr(inside); err == nil {
			return inside
		}
	}
	if ap, err := netip.ParseAddrPort(text); err == nil {
		return ap.Addr().String() + ": a peer is compared without its port"
	}
	if from, to, ok := strings.Cut(text, "-"); ok {
		a, err := netip.ParseAddr(strings.TrimSpace(from))
		if _, e := netip.ParseAddr(strings.TrimSpace(to)); err == nil && e == nil {
			return fmt.Sprintf("a network, such as %s, or a list of them", netip.PrefixFrom(a, a.BitLen()*3/4).Masked())
		}
	}
	if text == "localhost" {
		return "[127.0.0.0/8, ::1]"
	}
	// 10.*, 192.0.2. and 192.0
	parts := strings.Split(strings.TrimRight(text, ".*"), ".")
	if n := len(parts); n < 4 {
		full := strings.Join(parts, ".") + strings.Repeat(".0", 4-n)
		if a, err := netip.ParseAddr(full); err == nil {
			return fmt.Sprintf("%s/%d", a, 8*n)
		}
	}
	return "192.0.2.0/24, or an address; hostname: for a name"
}

// dotted is a network whose mask is written as an address.
func dotted(a, mask netip.Addr) string {
	m := mask.As4()
	n := uint32(m[0])<<24 | uint32(m[1])<<16 | uint32(m[2])<<8 | uint32(m[3])
	ones := bits.LeadingZeros32(^n)
	if n<<ones != 0 {
		return "a network whose mask has no gaps"
	}
	return netip.PrefixFrom(a, ones).Masked().String()
}
