package egressproxy

import (
	"net/netip"
	"strconv"
	"strings"

	"omniagent/internal/kit/fault"
)

// rule is one entry of the list.
type rule struct {
	name    string     // empty: addr is set
	beneath bool       // the hosts below the name, but not the name
	addr    netip.Addr //
	port    uint16     // 0: 80 and 443
}

// host is the host that a program wants to reach.
type host struct {
	name string     // empty: addr is set
	addr netip.Addr //
	port uint16
}

// String returns the canonical form, with the port.
func (h host) String() string {
	if h.name == "" {
		return netip.AddrPortFrom(h.addr, h.port).String()
	}
	return h.name + ":" + strconv.Itoa(int(h.port))
}

// short returns the host as a rule names it.
func (h host) short() string {
	switch {
	case h.port != 80 && h.port != 443, h.name == "" && NotPublic(h.addr) != "":
		return h.String()
	case h.name == "":
		return h.addr.String()
	}
	return h.name
}

func readRule(text string) (rule, error) {
	wrong := func(why string) (rule, error) {
		return rule{}, fault.New(fault.ConfigInvalid, "%s is not a host: %s", quote(text), why).
			Hint("Give one such as example.com, *.example.com, example.com:8443 or 127.0.0.1:8080.")
	}
	bare, beneath := strings.CutPrefix(text, "*.")
	if addr, err := netip.ParseAddr(bare); err == nil && addr.Is6() {
		bare = "[" + bare + "]"
	}
	h, portGiven, why := readHost(bare)
	switch {
	case why != "":
		return wrong(why)
	case h.name != "":
	case beneath:
		return wrong("there are no hosts beneath an address")
	case !portGiven && NotPublic(h.addr) != "":
		return wrong("it is " + NotPublic(h.addr) + ", which needs its port")
	}
	return rule{h.name, beneath, h.addr, h.port}, nil
}

// readHost parses what is before and after the colon: a name, an IPv4 address, or an IPv6 address in brackets. Every
// host has one canonical form, so that comparing them is enough. The port is 0 if it is not given.
func readHost(text string) (h host, portGiven bool, why string) {
	name, port := text, ""
	if colon := strings.LastIndexByte(text, ':'); colon >= 0 && !strings.HasSuffix(text, "]") {
		name, port = text[:colon], text[colon+1:]
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
			return h, false, "its port is not a number from 1 to 65535"
		}
		h.port, portGiven = uint16(n), true
	}
	if inner, bracket := strings.CutPrefix(name, "["); bracket {
		addr, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		if err != nil || !strings.HasSuffix(inner, "]") || !addr.Is6() || addr.Zone() != "" || addr.Is4In6() {
			return h, false, "what is in brackets is not an IPv6 address"
		}
		h.addr = addr
		return h, portGiven, ""
	}
	if addr, err := netip.ParseAddr(name); err == nil && addr.Is4() {
		h.addr = addr
		return h, portGiven, ""
	}
	h.name, why = plainName(name)
	return h, portGiven, why
}

// plainName returns the canonical form of a name: lower case, without the final dot. Names in other scripts are only
// accepted in their DNS form, which begins with xn--, because programs convert them in different ways.
func plainName(name string) (plain, why string) {
	plain = strings.ToLower(strings.TrimSuffix(name, "."))
	switch {
	case plain == "":
		return "", "it names no host"
	case len(plain) > 253:
		return "", "its name is too long"
	case strings.Contains(name, "@"):
		return "", "it has credentials in it"
	case strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.'
	}):
		return "", "its name has characters that no name of the internet has"
	case Numeric(plain):
		return "", "it is neither a name nor an address in its usual form"
	}
	for label := range strings.SplitSeq(plain, ".") {
		if label == "" || len(label) > 63 {
			return "", "a part of its name is empty or too long"
		}
	}
	return plain, ""
}

// allows reports whether a host is on the list, and whether a rule names this very address and port, which may then be
// private.
func (g *Gate) allows(h host) (listed, itself bool) {
	listed = g.o.Any
	for _, r := range g.rules {
		switch {
		case r.port != h.port && (r.port != 0 || h.port != 80 && h.port != 443):
		case h.name == "":
			// Rules with names have the zero Addr, and no host has it.
			if r.name == "" && r.addr == h.addr {
				listed, itself = true, true // a rule for a private address must have a port
			}
		case r.beneath:
			listed = listed || strings.HasSuffix(h.name, "."+r.name)
		default:
			listed = listed || r.name == h.name
		}
	}
	return listed, itself
}
