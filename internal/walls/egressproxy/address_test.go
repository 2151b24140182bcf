package egressproxy

import (
	"net/netip"
	"testing"
)

func TestPublicAddresses(t *testing.T) {
	t.Parallel()
	for text, public := range map[string]bool{
		"1.1.1.1": true, "8.8.8.8": true, "100.63.255.255": true, "172.32.0.1": true, "2606:4700::1111": true,
		"64:ff9b::101:101": true, "::ffff:1.1.1.1": true,
		"127.0.0.1": false, "127.255.255.254": false, "10.1.2.3": false, "172.16.0.1": false, "172.31.255.255": false,
		"192.168.0.1":     false,
		"169.254.169.254": false, "100.64.0.1": false, "100.127.255.255": false, "0.0.0.0": false, "0.1.2.3": false,
		"224.0.0.1":       false,
		"255.255.255.255": false, "240.0.0.1": false, "198.18.0.1": false, "192.0.0.170": false, "192.0.2.1": false,
		"203.0.113.9": false,
		"::1":         false, "::": false, "fe80::1": false, "fc00::1": false, "fd00:ec2::254": false, "ff02::1": false,
		"::ffff:127.0.0.1":       false,
		"::ffff:169.254.169.254": false, "::127.0.0.1": false, "64:ff9b::7f00:1": false, "64:ff9b::a9fe:a9fe": false,
		"64:ff9b:1::1":  false,
		"2002:7f00:1::": false, "2001:0:1::1": false, "2001:db8::1": false, "fec0::1": false, "100::1": false,
		"fe80::1%eth0": false,
	} {
		if kind := NotPublic(netip.MustParseAddr(text)); (kind == "") != public {
			t.Errorf("%s is %q", text, kind)
		}
	}
}

func TestNumeric(t *testing.T) {
	t.Parallel()
	for host, numeric := range map[string]bool{
		"127.1": true, "2130706433": true, "0x7f000001": true, "0X7F.1": true, "example.0x": true, "127.0.0.1": true,
		"127.1.": true, "a.b.010": true,
		"example.com": false, "1.example": false, "0xg": false, "": false, ".": false, "example.0xyz": false,
		"a1": false,
	} {
		if got := Numeric(host); got != numeric {
			t.Errorf("%q: %v", host, got)
		}
	}
}
