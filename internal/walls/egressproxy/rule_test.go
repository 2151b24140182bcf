package egressproxy

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"omniagent/internal/kit/fault"
)

func gateTo(t testing.TB, hosts ...string) *Gate {
	t.Helper()
	g, err := New(Options{Hosts: hosts})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule     string
		yes, not string
	}{
		{
			"example.com", "example.com:80 example.com:443 EXAMPLE.com:443 example.com.:443",
			"example.com:8443 www.example.com:443 example.com.evil.org:443 evilexample.com:443 example.co:443 " +
				"example.com..:443 .example.com:443 " +
				"user@example.com:443 example.com@evil.org:443 example.com%2eevil.org:443 " +
				"example.com\x00.evil.org:443 exаmple.com:443 " +
				"example.com:443:80 example.com:+443 example.com:0443 example.com:00 example.com:0 example.com:65979 " +
				"[example.com]:443 example.com:",
		},
		{
			"*.example.com", "a.example.com:443 A.b.EXAMPLE.com.:80",
			"example.com:443 .example.com:443 *.example.com:443 aexample.com:443 a.example.com:22 " +
				"a.example.com.evil.org:80",
		},
		{"Example.COM.:8443", "example.com:8443", "example.com:443 example.com:80"},
		{"*.example.com:8443", "x.example.com:8443", "x.example.com:443 example.com:8443"},
		{"xn--bcher-kva.example", "XN--bcher-kva.example:443", "bücher.example:443 xn--bcher-kvb.example:443"},
		{"x_y.example", "x_y.example:80", "x-y.example:80"},
		{"k.example", "k.example:80", "\u212a.example:80"}, // the sign of Kelvin in lower case is k
		{
			"1.2.3.4", "1.2.3.4:80 1.2.3.4:443",
			"1.2.3.4:81 1.2.3.4.:80 16909060:80 0x01020304:80 1.2.772:80 01.2.3.4:80 [::ffff:1.2.3.4]:80 1.2.3.5:80 " +
				"[64:ff9b::102:304]:80",
		},
		{
			"127.0.0.1:8080", "127.0.0.1:8080",
			"127.0.0.1:80 127.0.0.2:8080 localhost:8080 127.1:8080 [::1]:8080 [::ffff:127.0.0.1]:8080 0.0.0.0:8080",
		},
		{
			"[2606:4700::1111]", "[2606:4700:0:0::1111]:443",
			"2606:4700::1111:443 [2606:4700::1111%25eth0]:443 [2606:4700::1112]:443",
		},
		{"2606:4700::1111", "[2606:4700::1111]:443", "[2606:4700::1111]:444"},
		{"[::1]:9", "[::1]:9 [0:0::0:1]:9", "[::]:9 127.0.0.1:9 [::1]:80"},
	} {
		g := gateTo(t, c.rule)
		for want, list := range map[bool]string{true: c.yes, false: c.not} {
			for said := range strings.FieldsSeq(list) {
				h, _, why := readHost(said)
				listed, _ := g.allows(h)
				if got := why == "" && listed; got != want {
					t.Errorf("%s: %q: %v (%s)", c.rule, said, got, why)
				}
			}
		}
	}
}

func TestWrongRules(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "*", "*.", ".", "*.*.com", "https://example.com", "example.com/path", "example.com:", "example.com:http",
		"example.com:70000", "a b", "a..b",
		"user@example.com", "127.0.0.1", "10.1.2.3", "169.254.169.254", "[::1]", "fe80::1", "fd00::1",
		"[fe80::1%eth0]:80", "[::ffff:1.2.3.4]:80", "::ffff:1.2.3.4",
		"*.1.2.3.4", "*.[::1]:80", "127.1:80", "0x7f000001:80", "2130706433:80", "[1.2.3.4]:80", "[::1:80",
		"bücher.example", strings.Repeat("a", 64) + ".com",
		strings.Repeat("a.", 127) + "com", "a\nb", "64:ff9b::7f00:1", "224.0.0.1",
	} {
		if _, err := New(Options{Hosts: []string{"example.com", text}}); !errors.Is(err, fault.ConfigInvalid) ||
			fault.Of(err).Suggestion == "" {
			t.Errorf("%q: %v", text, err)
		} else if strings.ContainsAny(err.Error(), "\n\x00") {
			t.Errorf("%q in %q", text, err)
		}
	}
}

// FuzzHosts: what is understood has one form, and that form means the same again.
func FuzzHosts(f *testing.F) {
	for _, seed := range []string{
		"example.com:443", "[::1]:80", "1.2.3.4:5", "EXAMPLE.com.:80", "a@b:1",
		"[::ffff:1.2.3.4]:80", "0x7f.1:80", "*.x:80",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, said string) {
		h, given, why := readHost(said)
		if why != "" || !given {
			return
		}
		again, _, why := readHost(h.String())
		if why != "" || again != h {
			t.Errorf("%q is %v, then %v (%s)", said, h, again, why)
		}
		if (h.name == "") == (h.addr == netip.Addr{}) || h.port == 0 || h.addr.Is4In6() || h.addr.Zone() != "" {
			t.Errorf("%q is %#v", said, h)
		}
		if strings.ContainsAny(h.String(), "@/\\ \r\n\t%\x00") || strings.ToLower(h.String()) != h.String() {
			t.Errorf("%q is %q", said, h)
		}
	})
}
