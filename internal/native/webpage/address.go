package webpage

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"omniagent/internal/kit/fault"
	"omniagent/internal/walls/egressproxy"
)

// transport returns a transport for one request. If the environment sets a proxy, the proxy connects.
func (f *Fetcher) transport(r *http.Request) (t *http.Transport, proxy string, err error) {
	dialer := &net.Dialer{Timeout: MaxTime}
	t = &http.Transport{
		DialContext: dialer.DialContext, DisableKeepAlives: true, MaxResponseHeaderBytes: 256 << 10,
		TLSHandshakeTimeout: 15 * time.Second,
	}
	through, err := http.ProxyFromEnvironment(r)
	if err != nil {
		return nil, "", fault.New(fault.ConfigInvalid, "the proxy that the environment names cannot be used").
			Because(err).
			Hint("Correct HTTPS_PROXY or HTTP_PROXY.")
	}
	if through != nil {
		t.Proxy = http.ProxyURL(through)
		return t, through.Host, f.judgeName(r.URL.Hostname())
	}
	if !f.o.AllowPrivate {
		// Check the address here, after the name is resolved, so that it cannot change again.
		dialer.Control = func(_, dialled string, _ syscall.RawConn) error { return judgeDialled(dialled) }
	}
	return t, "", nil
}

// refusedAddress is an address that must not be connected to.
type refusedAddress struct {
	addr string
	kind string
}

func (r *refusedAddress) Error() string { return r.addr + " is " + r.kind }

func (r *refusedAddress) fault(host string) error {
	at := ""
	if host != r.addr {
		at = " is at " + r.addr + ", which"
	}
	return fault.New(fault.PermissionDenied, "%s%s is %s: only public pages are fetched", shorten(host), at, r.kind)
}

func judgeDialled(dialled string) error {
	ap, err := netip.ParseAddrPort(dialled)
	if err != nil {
		return &refusedAddress{dialled, "no address of the internet"}
	}
	if kind := egressproxy.NotPublic(ap.Addr()); kind != "" {
		return &refusedAddress{ap.Addr().String(), kind}
	}
	return nil
}

// judgeHost checks a host as it is written.
func (f *Fetcher) judgeHost(host string) error {
	if f.o.AllowPrivate {
		return nil
	}
	addr, err := netip.ParseAddr(host)
	if err == nil {
		if kind := egressproxy.NotPublic(addr); kind != "" {
			return (&refusedAddress{host, kind}).fault(host)
		}
		return nil
	}
	if egressproxy.Numeric(host) || strings.ContainsAny(host, ":%") {
		return fault.New(fault.ArgError, "%s is neither a name nor an address in its usual form", shorten(host))
	}
	return nil
}

// judgeName refuses names that never belong to a public page, for hosts that a proxy resolves.
func (f *Fetcher) judgeName(host string) error {
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if f.o.AllowPrivate {
		return nil
	}
	if strings.ContainsFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) {
		// The proxy interprets such a host after our check: １２７.１ may become an address.
		return fault.New(fault.ArgError, "%s is not written in ASCII, and a proxy would decide what it is",
			shorten(host)).Hint("Give it in its form that begins with xn--.")
	}
	for _, suffix := range []string{"localhost", "local", "internal", "localdomain", "lan", "home.arpa"} {
		if name == suffix || strings.HasSuffix(name, "."+suffix) {
			return (&refusedAddress{host, "a name of this machine or of a private network"}).fault(host)
		}
	}
	return nil
}
