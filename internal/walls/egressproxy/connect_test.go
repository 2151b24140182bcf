package egressproxy

import (
	"context"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// A gate behind another one reaches what both allow, and looks up nothing itself.
func TestVia(t *testing.T) {
	t.Parallel()
	far := farSide(t, echo)
	outer := open(t, gateTo(t, far))
	inner, err := New(Options{
		Hosts: []string{far, "example.com", "127.0.0.1:1"}, Via: netip.MustParseAddrPort(outer),
	})
	check(t, err)
	inner.resolve = func(context.Context, string) ([]netip.Addr, error) {
		t.Error("it looked up a name")
		return nil, nil
	}
	at := open(t, inner)
	c := tunnelTo(t, at, far)
	if _, err := io.WriteString(c, "there and back"); err != nil {
		t.Fatal(err)
	}
	closeWrite(c)
	if got, err := io.ReadAll(c); err != nil || string(got) != "there and back" {
		t.Errorf("%q %v", got, err)
	}
	for host, want := range map[string]string{
		"evil.example:443": "is not among the allowed hosts",
		"example.com:443":  "is allowed here, but cannot be reached: 403 Forbidden: omniagent: example.com:443 is not among",
		"127.0.0.1:1":      "is allowed here, but cannot be reached: 403 Forbidden: omniagent: 127.0.0.1:1 is not among",
	} {
		got := ask(t, at, "CONNECT "+host+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
		if !strings.Contains(got, want) {
			t.Errorf("%s: %q", host, got)
		}
	}
}

// A server that is not a proxy, or does not answer, is an error.
func TestConnect(t *testing.T) {
	t.Parallel()
	if conn, err := Connect(t.Context(), farSide(t, echo), "example.com:443"); err == nil {
		_ = conn.Close()
		t.Error("an echo is a proxy")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	silent := listen(t)
	if conn, err := Connect(ctx, silent.Addr().String(), "example.com:443"); err == nil {
		_ = conn.Close()
		t.Error("silence is an answer")
	}
}
