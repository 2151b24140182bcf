package page

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"omniagent/internal/fault"
)

// transport is for one request, and keeps nothing. Where the environment names a proxy for it, it is the proxy that connects.
func (f *Fetcher) transport(r *http.Request) (t *http.Transport, proxy string, err error) {
	dialer := &net.Dialer{Timeout: MaxTime}
	t = &http.Transport{
		DialContext: dialer.DialContext, DisableKeepAlives: true, MaxResponseHeaderBytes: 256 << 10, TLSHandshakeTimeout: 15 * time.Second,
	}
	through, err := http.ProxyFromEnvironment(r)
	if err != nil {
		return nil, "", fault.New(fault.ConfigInvalid, "the proxy that the environment names cannot be used").Because(err).
			Hint("Correct HTTPS_PROXY or HTTP_PROXY.")
	}
	if through != nil {
		t.Proxy = http.ProxyURL(through)
		return t, through.Host, f.judgeName(r.URL.Hostname())
	}
	if !f.o.AllowPrivate {
		// Here it is known which address a name had in the end, and nobody can change it any more.
		dialer.Control = func(_, address string, _ syscall.RawConn) error { return judgeDialled(address) }
	}
	return t, "", nil
}

// refusal is an address that is not connected to.
type refusal struct {
	addr string
	kind string
}

func (r *refusal) Error() string { return r.addr + " is " + r.kind }

func (r *refusal) fault(host string) error {
	at := ""
	if host != r.addr {
		at = " is at " + r.addr + ", which"
	}
	return fault.New(fault.PermissionDenied, "%s%s is %s: only public pages are fetched", shorten(host), at, r.kind)
}

func judgeDialled(address string) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return &refusal{address, "no address of the internet"}
	}
	if kind := notPublic(ap.Addr()); kind != "" {
		return &refusal{ap.Addr().String(), kind}
	}
	return nil
}

// judgeHost looks at a host as it is written.
func (f *Fetcher) judgeHost(host string) error {
	if f.o.AllowPrivate {
		return nil
	}
	addr, err := netip.ParseAddr(host)
	if err == nil {
		if kind := notPublic(addr); kind != "" {
			return (&refusal{host, kind}).fault(host)
		}
		return nil
	}
	// 127.1, 0x7f000001 and 2130706433 are addresses to some resolvers. No name of the internet ends like that.
	last := strings.TrimSuffix(host, ".")
	last = strings.ToLower(last[strings.LastIndexByte(last, '.')+1:])
	digits, hexadecimal := strings.CutPrefix(last, "0x")
	number := digits != "" && strings.Trim(digits, "0123456789") == "" || hexadecimal && strings.Trim(digits, "0123456789abcdef") == ""
	if number || strings.ContainsAny(host, ":%") {
		return fault.New(fault.ArgError, "%s is neither a name nor an address in its usual form", shorten(host))
	}
	return nil
}

// judgeName is for what a proxy would resolve: names that never belong to a public page.
func (f *Fetcher) judgeName(host string) error {
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if f.o.AllowPrivate {
		return nil
	}
	if strings.ContainsFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) {
		// What such a host is to the proxy is decided after us: １２７.１ may become an address.
		return fault.New(fault.ArgError, "%s is not written in ASCII, and a proxy would decide what it is", shorten(host)).Hint("Give it in its form that begins with xn--.")
	}
	for _, suffix := range []string{"localhost", "local", "internal", "localdomain", "lan", "home.arpa"} {
		if name == suffix || strings.HasSuffix(name, "."+suffix) {
			return (&refusal{host, "a name of this machine or of a private network"}).fault(host)
		}
	}
	return nil
}

// notPublic says why an address is none of the public internet; empty: it is one.
func notPublic(addr netip.Addr) (kind string) {
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
	if bytes := addr.As16(); netip.MustParsePrefix("64:ff9b::/96").Contains(addr) { // an address of the old kind, translated
		return notPublic(netip.AddrFrom4([4]byte(bytes[12:])))
	}
	if !netip.MustParsePrefix("2000::/3").Contains(addr) {
		return "a reserved address"
	}
	return special(addr, []reserved{
		{"2001::/23", "a reserved address"}, // among them the tunnels of Teredo
		{"2001:db8::/32", "an address for documentation"},
		{"2002::/16", "an address of a tunnel"}, // has one of the old kind in it
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
