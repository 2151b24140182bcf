package egressproxy

import (
	"fmt"
	"net/netip"
	"strings"
)

// NotPublic returns why an address does not belong to the public internet, or "". An IPv4 address inside an IPv6
// address is judged as itself. It looks nothing up: only the address that is dialled can be judged, never a name.
func NotPublic(addr netip.Addr) (kind string) {
	addr = addr.Unmap() // ::ffff:127.0.0.1
	switch {
	case !addr.IsValid():
		return "no address"
	case addr.IsLoopback():
		return "an address of this machine"
	case addr.IsUnspecified():
		return "no address of a host"
	case addr.IsPrivate():
		return "an address of a private network"
	case addr.IsLinkLocalUnicast(), addr.Zone() != "":
		return "a link-local address, where clouds keep their metadata"
	case addr.IsMulticast():
		return "a multicast address"
	}
	if addr.Is4() {
		return special(addr, []reserved{
			{"0.0.0.0/8", "an address of this machine"},
			{"100.64.0.0/10", "an address behind a carrier's translation"},
			{"192.0.0.0/24", "a reserved address"},
			{"192.0.2.0/24", "an address for documentation"},
			{"192.88.99.0/24", "a reserved address"},
			{"198.18.0.0/15", "an address for measurements"},
			{"198.51.100.0/24", "an address for documentation"},
			{"203.0.113.0/24", "an address for documentation"},
			{"240.0.0.0/4", "a reserved address"},
		})
	}
	// an IPv4 address, translated (NAT64)
	if bytes := addr.As16(); netip.MustParsePrefix("64:ff9b::/96").Contains(addr) {
		return NotPublic(netip.AddrFrom4([4]byte(bytes[12:])))
	}
	if !netip.MustParsePrefix("2000::/3").Contains(addr) {
		return "a reserved address"
	}
	return special(addr, []reserved{
		{"2001::/23", "a reserved address"}, // among them the tunnels of Teredo
		{"2001:db8::/32", "an address for documentation"},
		{"2002::/16", "an address of a tunnel"}, // contains an IPv4 address
		{"3fff::/20", "an address for documentation"},
	})
}

type reserved struct{ prefix, kind string }

func special(addr netip.Addr, list []reserved) string {
	for _, r := range list {
		if netip.MustParsePrefix(r.prefix).Contains(addr) {
			return fmt.Sprintf("%s (%s)", r.kind, r.prefix)
		}
	}
	return ""
}

// Numeric reports whether some resolvers take a host for an address although it lacks the usual form: 127.1, 0x7f000001
// and 2130706433. No name of the internet ends like that.
func Numeric(host string) bool {
	last := strings.TrimSuffix(host, ".")
	last = strings.ToLower(last[strings.LastIndexByte(last, '.')+1:])
	digits, hexadecimal := strings.CutPrefix(last, "0x")
	return digits != "" && strings.Trim(digits, "0123456789") == "" || hexadecimal &&
		strings.Trim(digits, "0123456789abcdef") == ""
}
