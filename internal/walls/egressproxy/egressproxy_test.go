package egressproxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// open serves the gate and says where.
func open(t testing.TB, g *Gate) string {
	t.Helper()
	l := listen(t)
	t.Cleanup(g.Serve(l))
	return l.Addr().String()
}

// farSide is a server that hands each of its connections to f and closes it then.
func farSide(t testing.TB, f func(net.Conn)) string {
	t.Helper()
	l := listen(t)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(hermetic.Patience))
				f(c)
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	return l.Addr().String()
}

func echo(c net.Conn) {
	_, _ = io.Copy(c, c)
	closeWrite(c)
}

func dial(t testing.TB, at string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", at)
	check(t, err)
	check(t, c.SetDeadline(time.Now().Add(hermetic.Patience)))
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ask sends bytes, ends the sending if told to, and returns all that comes back.
func ask(t testing.TB, at, sent string) string {
	t.Helper()
	c := dial(t, at)
	_, _ = io.WriteString(c, sent)
	got, err := io.ReadAll(c)
	if err != nil {
		t.Errorf("after %q: %q, %v", sent[:min(len(sent), 60)], got, err)
	}
	return string(got)
}

// tunnelTo asks for a tunnel and returns it.
func tunnelTo(t testing.TB, at, to string) net.Conn {
	t.Helper()
	c := dial(t, at)
	_, err := fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to)
	check(t, err)
	head := make([]byte, len("HTTP/1.1 200 Connection established\r\n\r\n"))
	if _, err := io.ReadFull(c, head); err != nil || !strings.HasPrefix(string(head), "HTTP/1.1 200 ") {
		t.Fatalf("%q %v", head, err)
	}
	return c
}

func TestTunnel(t *testing.T) {
	t.Parallel()
	far := farSide(t, echo)
	var seen []Request
	g, err := New(Options{Hosts: []string{far}, Log: func(r Request) { seen = append(seen, r) }})
	check(t, err)
	l := listen(t)
	stop := g.Serve(l)
	c := dial(t, l.Addr().String())
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	// The first bytes of the tunnel come along with the request, and the end of sending is passed on.
	go func() {
		_, _ = io.WriteString(c,
			"CONNECT "+far+" HTTP/1.1\r\nHost: elsewhere.example\r\nProxy-Authorization: x\r\n\r\n"+string(data[:100]))
		_, _ = c.Write(data[100:])
		closeWrite(c)
	}()
	got, err := io.ReadAll(c)
	check(t, err)
	body, found := bytes.CutPrefix(got, []byte("HTTP/1.1 200 Connection established\r\n\r\n"))
	if !found || sha256.Sum256(body) != sha256.Sum256(data) {
		t.Errorf("%d bytes, %.80q", len(got), got)
	}
	stop()
	if len(seen) != 1 || seen[0] != (Request{"CONNECT", far, netip.MustParseAddrPort(far), ""}) {
		t.Errorf("%+v", seen)
	}
}

func TestPlainRequest(t *testing.T) {
	t.Parallel()
	heads := make(chan string, 10)
	far := farSide(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, _ := io.ReadAll(r.Body)
		heads <- fmt.Sprintf("%s %s %s|%v|%d %v|%s", r.Method, r.RequestURI, r.Host, r.Header, r.ContentLength,
			r.TransferEncoding, body)
		_, _ = io.WriteString(c,
			"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nConnection: X-Hop\r\nX-Hop: 1\r\nX-End: "+
				"2\r\nKeep-Alive: timeout=9\r\nUpgrade: h2c\r\nContent-Length: 4\r\n\r\nbodyHTTP/1.1 200 OK\r\n\r\n")
	})
	at := open(t, gateTo(t, far))
	got := ask(t, at,
		"POST http://"+far+
			"/a%2fb?c=d HTTP/1.1\r\nHost: other.example\r\nConnection: close, X-Private\r\nX-Private: "+
			"1\r\nProxy-Connection: keep-alive\r\n"+
			"Proxy-Authorization: Basic eDp5\r\nTE: trailers\r\nUpgrade: websocket\r\nX-Kept: yes\r\nExpect: "+
			"100-continue\r\nContent-Length: 5\r\n\r\nhello")
	if want := "POST /a%2fb?c=d " + far +
		"|map[Connection:[close] Content-Length:[5] X-Kept:[yes]]|5 []|hello"; <-heads != want {
		t.Errorf("want %s", want)
	}
	if want := "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\nX-End: " +
		"2\r\n\r\nbody"; got != want {
		t.Errorf("got %q", got)
	}
}

// TestNothingHides: a connection has one request, and its length is written again.
func TestNothingHides(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	var bodies sync.Map
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		bodies.Store(r.URL.Path, fmt.Sprint(string(body), err))
		if r.Host != r.Context().Value(http.LocalAddrContextKey).(net.Addr).String() {
			t.Errorf("host %q", r.Host)
		}
		requests.Add(1)
		_, _ = io.WriteString(w, "seen "+r.URL.Path)
	}))
	t.Cleanup(server.Close)
	far := strings.TrimPrefix(server.URL, "http://")
	at := open(t, gateTo(t, far))
	for name, c := range map[string]struct {
		head   string
		status string // 200: one request and no other is seen
		body   string
	}{
		"pipeline": {
			"GET http://FAR/pipeline HTTP/1.1\r\nHost: a\r\n\r\nGET http://FAR/second HTTP/1.1\r\nHost: a\r\n\r\n",
			"200", "",
		},
		"both lengths": {
			"POST http://FAR/both%20lengths HTTP/1.1\r\nHost: a\r\nContent-Length: 60\r\nTransfer-Encoding: " +
				"chunked\r\n\r\n1\r\nx\r\n0\r\n\r\nGET http://FAR/second HTTP/1.1\r\n\r\n", "200", "x",
		},
		"two lengths": {
			"POST http://FAR/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 9\r\n\r\nGET / " +
				"HTTP/1.1\r\n\r\n", "400", "",
		},
		"odd length": {"POST http://FAR/ HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx", "400", ""},
		"odd encoding": {
			"POST http://FAR/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
			"400", "",
		},
		"two encodings": {
			"POST http://FAR/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: " +
				"identity\r\n\r\n0\r\n\r\n", "400", "",
		},
		"space in name": {"GET http://FAR/ HTTP/1.1\r\nHost: a\r\nContent-Length : 5\r\n\r\nhello", "400", ""},
		"bare return": {
			"GET http://FAR/ HTTP/1.1\r\nHost: a\r\nX: a\rTransfer-Encoding: chunked\r\n\r\n", "400",
			"",
		},
		"space in path":  {"GET http://FAR/ /x HTTP/1.1\r\nHost: a\r\n\r\n", "400", ""},
		"connect length": {"CONNECT FAR HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", "400", ""},
		"connect chunks": {"CONNECT FAR HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400", ""},
		"other host":     {"GET http://FAR/other%20host HTTP/1.1\r\nHost: evil.example\r\n\r\n", "200", ""},
		"two hosts":      {"GET http://FAR/ HTTP/1.1\r\nHost: FAR\r\nHost: evil.example\r\n\r\n", "400", ""},
		"names a length": {
			"POST http://FAR/names%20a%20length HTTP/1.1\r\nHost: a\r\nConnection: Content-Length\r\nContent-Length: " +
				"2\r\n\r\nhi", "200", "hi",
		},
	} {
		before := requests.Load()
		got := ask(t, at, strings.ReplaceAll(c.head, "FAR", far))
		if !strings.HasPrefix(got, "HTTP/1.1 "+c.status+" ") || strings.Count(got, "HTTP/1.1 ") != 1 {
			t.Errorf("%s: %q", name, got)
		}
		want := int32(0)
		if c.status == "200" {
			want = 1
			if body, _ := bodies.Load("/" + name); body != c.body+"<nil>" {
				t.Errorf("%s: body %q", name, body)
			}
		}
		if seen := requests.Load() - before; seen != want {
			t.Errorf("%s: %d requests", name, seen)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	g := gateTo(t, "example.com", "127.0.0.1:1")
	g.o.Advice = func(host string) string { return "Say --host " + host + "." }
	g.dial = func(_ context.Context, to netip.AddrPort) (net.Conn, error) {
		t.Errorf("connected to %s", to)
		return nil, errors.New("not here")
	}
	at := open(t, g)
	for sent, want := range map[string]string{
		"CONNECT evil.org:443 HTTP/1.1\r\n\r\n": "403|omniagent: " +
			"evil.org:443 is not among the allowed hosts. Say --host evil.org.",
		"CONNECT example.com.evil.org:443 HTTP/1.1\r\n\r\n": "403|omniagent: " +
			"example.com.evil.org:443 is not among the allowed hosts. Say --host example.com.evil.org.",
		"CONNECT example.com:22 HTTP/1.1\r\n\r\n": "403|Say --host " +
			"example.com:22.",
		"CONNECT 10.0.0.1:443 HTTP/1.1\r\n\r\n": "403|Say --host " +
			"10.0.0.1:443.",
		"CONNECT [::1]:443 HTTP/1.1\r\n\r\n": "403|[::1]:443 is " +
			"not among",
		"CONNECT example.com HTTP/1.1\r\n\r\n": "403|CONNECT " +
			"needs a port",
		"CONNECT user@example.com:443 HTTP/1.1\r\n\r\n":    "403|credentials",
		"CONNECT example.com:443/path HTTP/1.1\r\n\r\n":    "403|port",
		"CONNECT http://example.com:443 HTTP/1.1\r\n\r\n":  "403|refused",
		"CONNECT /x HTTP/1.1\r\nHost: example.com\r\n\r\n": "403|refused",
		"GET http://evil.org/ HTTP/1.1\r\nHost: example.com\r\n\r\n": "403|evil.org:80 is " +
			"not among",
		"GET http://user:pw@example.com/ HTTP/1.1\r\n\r\n": "403|credentials",
		"GET http://example.com:81/ HTTP/1.1\r\n\r\n": "403|Say --host " +
			"example.com:81.",
		"GET https://example.com/ HTTP/1.1\r\n\r\n": "403|http:// " +
			"addresses",
		"GET ftp://example.com/ HTTP/1.1\r\n\r\n": "403|http:// " +
			"addresses",
		"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n": "403|http:// " +
			"addresses",
		"OPTIONS * HTTP/1.1\r\nHost: example.com\r\n\r\n": "403|http:// " +
			"addresses",
		"GET http:example.com HTTP/1.1\r\nHost: example.com\r\n\r\n": "403|",
		"GET http:///x HTTP/1.1\r\nHost: example.com\r\n\r\n":        "403|names no host",
		"GET http://example.com%2f@evil.org/ HTTP/1.1\r\n\r\n":       "40",
		"GET http://2130706433/ HTTP/1.1\r\n\r\n":                    "403|usual form",
		"GET http://example.com/ HTTP/2.0\r\n\r\n":                   "403|HTTP/1",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":                           "403|",
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n": "400|not an HTTP/1 " +
			"request",
		"GET http://example.com/\r\n\r\n": "400|not an HTTP/1 " +
			"request",
		"\r\n\r\n": "400|not an HTTP/1 " +
			"request",
		"GET http://example.com/ HTTP/1.1\r\nX: " + strings.Repeat("x", MaxHead) + "\r\n\r\n":   "431|more than",
		"GET http://example.com/ HTTP/1.1\r\n" + strings.Repeat("X: y\r\n", MaxHead/6) + "\r\n": "431|more than",
	} {
		status, part, _ := strings.Cut(want, "|")
		got := ask(t, at, sent)
		_, body, _ := strings.Cut(got, "\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 "+status) || !strings.Contains(body, part) ||
			strings.Count(body, "\n") != 1 {
			t.Errorf("%.80q: %q", sent, got)
		}
	}
}

// TestWhereANameLeads: a listed name opens public addresses only, and what was judged is what is dialled.
func TestWhereANameLeads(t *testing.T) {
	t.Parallel()
	far := farSide(t, echo)
	var looked atomic.Int32
	answers := func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("not set") }
	var dialled []string
	g := gateTo(t, "example.com", "127.0.0.1:443", "[::1]:443")
	g.resolve = func(ctx context.Context, name string) ([]netip.Addr, error) {
		looked.Add(1)
		if name != "example.com" {
			t.Errorf("looked for %q", name)
		}
		return answers(ctx, name)
	}
	g.dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		dialled = append(dialled, to.String())
		if to.Addr() == netip.MustParseAddr("9.9.9.9") {
			return nil, errors.New("nobody is there")
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", far)
	}
	at := open(t, g)
	try := func(list ...string) string {
		var addrs []netip.Addr
		for _, a := range list {
			addrs = append(addrs, netip.MustParseAddr(a))
		}
		dialled = nil
		looked.Store(0)
		answers = func(context.Context, string) ([]netip.Addr, error) {
			if looked.Load() > 1 { // it would lead elsewhere now
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
			}
			return addrs, nil
		}
		c := dial(t, at)
		_, _ = io.WriteString(c, "CONNECT Example.com.:443 HTTP/1.1\r\n\r\n")
		closeWrite(c)
		got, _ := io.ReadAll(c)
		if looked.Load() != 1 {
			t.Errorf("%q: looked up %d times", list, looked.Load())
		}
		return string(got)
	}
	for _, private := range []string{
		"127.0.0.1", "10.0.0.1", "192.168.1.1", "172.16.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
		"255.255.255.255", "::1", "::",
		"fe80::1", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe",
		"64:ff9b:1::1", "2002:7f00:1::", "fe80::1%eth0",
	} {
		if got := try(private); !strings.HasPrefix(got, "HTTP/1.1 403 ") || len(dialled) != 0 {
			t.Errorf("%s: %q, dialled %q", private, got, dialled)
		}
	}
	for want, list := range map[string][]string{
		"1.1.1.1:443":             {"1.1.1.1"},
		"8.8.8.8:443":             {"10.0.0.1", "::ffff:8.8.8.8", "127.0.0.1"},
		"9.9.9.9:443 1.1.1.1:443": {"9.9.9.9", "1.1.1.1", "8.8.8.8"},
		"[2606:4700::1111]:443":   {"::1", "2606:4700::1111"},
		"[64:ff9b::101:101]:443":  {"64:ff9b::101:101"},
	} {
		if got := try(list...); !strings.HasPrefix(got, "HTTP/1.1 200 ") || strings.Join(dialled, " ") != want {
			t.Errorf("%q: %q, dialled %q", list, got, dialled)
		}
	}
	if got := try(); !strings.HasPrefix(got, "HTTP/1.1 502 ") {
		t.Errorf("no address: %q", got)
	}
	if got := try("9.9.9.9"); !strings.HasPrefix(got, "HTTP/1.1 502 ") {
		t.Errorf("nobody: %q", got)
	}
}

// TestAny: every public host is reached, and of the private ones only what the list names.
func TestAny(t *testing.T) {
	t.Parallel()
	far := farSide(t, echo)
	g, err := New(Options{Any: true, Hosts: []string{"127.0.0.1:8080"}})
	check(t, err)
	g.resolve = func(_ context.Context, name string) ([]netip.Addr, error) {
		if name == "inside.example" {
			return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
		}
		return []netip.Addr{netip.MustParseAddr("1.1.1.1")}, nil
	}
	g.dial = func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", far)
	}
	at := open(t, g)
	for host, want := range map[string]string{
		"example.com:443": "200", "example.org:8443": "200", "1.1.1.1:22": "200", "127.0.0.1:8080": "200",
		"127.0.0.1:3000": "403", "127.0.0.2:8080": "403", "inside.example:443": "403", "169.254.169.254:80": "403",
		"[::1]:443": "403",
	} {
		c := dial(t, at)
		_, _ = io.WriteString(c, "CONNECT "+host+" HTTP/1.1\r\n\r\n")
		closeWrite(c)
		if got, _ := io.ReadAll(c); !strings.HasPrefix(string(got), "HTTP/1.1 "+want+" ") {
			t.Errorf("%s: want %s: %.80q", host, want, got)
		}
	}
}

// TestHostHeader: it is the host that was allowed, in its plain form, whatever was said.
func TestHostHeader(t *testing.T) {
	t.Parallel()
	far := farSide(t, func(c net.Conn) {
		if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(r.Host), r.Host)
		}
	})
	g := gateTo(t, "example.com", "example.com:8080")
	g.resolve = func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("1.1.1.1")}, nil
	}
	g.dial = func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", far)
	}
	at := open(t, g)
	for said, want := range map[string]string{
		"EXAMPLE.com.": "example.com", "example.com:80": "example.com",
		"Example.com:8080": "example.com:8080",
	} {
		if got := ask(t, at, "GET http://"+said+"/ HTTP/1.1\r\nHost: evil.example\r\n\r\n"); !strings.HasSuffix(got,
			"\r\n\r\n"+want) {
			t.Errorf("%s: %q", said, got)
		}
	}
}

// TestRealClients goes through the gate as programs do, also over a Unix socket.
func TestRealClients(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, io.MultiReader(strings.NewReader("plain "), r.Body))
	}))
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_,
			_ = io.WriteString(w, "secure")
	}))
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	g := gateTo(t, strings.TrimPrefix(plain.URL, "http://"), strings.TrimPrefix(secure.URL, "https://"))
	at := open(t, g)
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	check(t, err)
	t.Cleanup(g.Serve(l))

	for name, transport := range map[string]*http.Transport{
		"tcp": {}, "unix": {DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}},
	} {
		transport.TLSClientConfig = secure.Client().Transport.(*http.Transport).TLSClientConfig
		transport.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: at})
		client := &http.Client{Transport: transport}
		for address, want := range map[string]string{plain.URL: "plain posted", secure.URL: "secure"} {
			// of no known length
			r, err := client.Post(address, "text/plain", io.MultiReader(strings.NewReader("posted")))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if body, _ := io.ReadAll(r.Body); string(body) != want {
				t.Errorf("%s: %q", name, body)
			}
			r.Body.Close()
		}
		transport.CloseIdleConnections()
	}
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Log("curl is not installed, so only Go's client was tried")
		return
	}
	for _, args := range [][]string{
		{plain.URL, "-d", "x"},
		{secure.URL},
		{"-H", "Expect: 100-continue", "--data-binary", strings.Repeat("y", 5000), plain.URL},
	} {
		out, err := exec.Command(curl, append([]string{"-sSfk", "--noproxy", "", "-x", at, "-m", "10"},
			args...)...).CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), "plain ") && string(out) != "secure" {
			t.Errorf("%v: %.100s", err, out)
		}
	}
}
