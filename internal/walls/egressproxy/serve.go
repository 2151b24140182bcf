package egressproxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"
)

// visit is one connection of a program, with its one request.
type visit struct {
	g       *Gate
	client  net.Conn
	in      *bufio.Reader // from the client
	request Request       // for the log
}

// serve reads one request, decides, forwards it and closes the connection.
func (g *Gate) serve(ctx context.Context, client net.Conn) {
	defer client.Close()
	defer context.AfterFunc(ctx, func() { _ = client.Close() })()
	v := &visit{g: g, client: client}
	request, refused := v.read()
	var to host
	if refused == nil {
		to, refused = v.where(request)
	}
	var server net.Conn
	if refused == nil {
		server, refused = v.dial(ctx, to)
	}
	if refused != nil {
		v.request.Refusal = refused.line
		g.log(v.request)
		v.answer(refused)
		return
	}
	defer server.Close()
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	g.log(v.request)
	if request.Method == http.MethodConnect {
		v.tunnel(server)
	} else {
		v.forward(request, to, server)
	}
}

// read reads the head of a request within its time limit: a client that sends a byte now and then gets no more time.
func (v *visit) read() (*http.Request, *refusal) {
	_ = v.client.SetDeadline(time.Now().Add(v.g.head))
	heard := &listener{Conn: v.client}
	limit := &io.LimitedReader{R: heard, N: MaxHead}
	v.in = bufio.NewReader(limit)
	request, err := http.ReadRequest(v.in)
	switch {
	case err == nil && !slices.ContainsFunc(slices.Collect(maps.Keys(request.Header)), oddName):
	case limit.N <= 0:
		return nil, refuse(http.StatusRequestHeaderFieldsTooLarge, "a request of more than %d bytes before its body",
			MaxHead)
	case errors.Is(heard.err, os.ErrDeadlineExceeded):
		return nil, refuse(http.StatusRequestTimeout, "no whole request within %s", v.g.head)
	default:
		return nil, refuse(http.StatusBadRequest, "this is not an HTTP/1 request")
	}
	limit.N = math.MaxInt64 // only time limits a body
	v.request.Method = request.Method
	return request, nil
}

// listener keeps the error that ended reading: the parser takes it for a short line.
type listener struct {
	net.Conn
	err error
}

func (l *listener) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if err != nil {
		l.err = err
	}
	return n, err
}

// oddName finds an invalid header name, such as one with a space before its colon, which other parsers read
// differently.
func oddName(name string) bool {
	return name == "" || strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') &&
			!strings.ContainsRune("!#$%&'*+-.^_`|~", c)
	})
}

// where returns the host that a request wants to reach, if it may.
func (v *visit) where(r *http.Request) (host, *refusal) {
	said := r.URL.Host
	switch {
	case r.ProtoMajor != 1:
		return host{}, refuse(http.StatusForbidden, "only HTTP/1 is spoken here")
	case r.Method == http.MethodConnect:
		if said = r.RequestURI; r.ContentLength != 0 { // -1 for chunks
			// What follows could be the body or the tunnel.
			return host{}, refuse(http.StatusBadRequest, "CONNECT has no body")
		}
	case r.URL.Scheme != "http" || r.URL.Opaque != "":
		return host{}, refuse(http.StatusForbidden,
			"%s of %s is refused: this is a proxy for http:// addresses and for CONNECT", quote(r.Method),
			quote(r.RequestURI))
	case r.URL.User != nil:
		return host{}, refuse(http.StatusForbidden,
			"an address with credentials in it is refused: send them in a header")
	}
	if said != "" {
		v.request.Host = quote(said)
	}
	h, portGiven, why := readHost(said)
	switch {
	case why != "":
		return host{}, refuse(http.StatusForbidden, "%s is refused: %s", quote(said), why)
	case !portGiven && r.Method == http.MethodConnect:
		return host{}, refuse(http.StatusForbidden, "%s is refused: CONNECT needs a port", quote(said))
	case !portGiven:
		h.port = 80
	}
	v.request.Host = h.String()
	if listed, _ := v.g.allows(h); !listed {
		return host{}, refuse(http.StatusForbidden, "%s is not among the allowed hosts. %s", h, v.g.o.Advice(h.short()))
	}
	return h, nil
}

// dial connects to a host on the list, at an address that was checked.
func (v *visit) dial(ctx context.Context, h host) (net.Conn, *refusal) {
	ctx, cancel := context.WithTimeout(ctx, v.g.connect)
	defer cancel()
	if v.g.o.Via.IsValid() {
		conn, err := Connect(ctx, v.g.o.Via.String(), h.String())
		if err != nil {
			return nil, refuse(http.StatusBadGateway, "%s is allowed here, but cannot be reached: %v", h, err)
		}
		return conn, nil
	}
	addresses := []netip.Addr{h.addr}
	if h.name != "" {
		var err error
		if addresses, err = v.g.resolve(ctx, h.name); err != nil || len(addresses) == 0 {
			return nil, refuse(http.StatusBadGateway, "%s is allowed, but its name has no address", h)
		}
	}
	_, itself := v.g.allows(h)
	public := addresses[:0:0]
	kind := ""
	for _, a := range addresses {
		a = a.Unmap()
		if why := NotPublic(a); why != "" && !itself {
			kind = a.String() + ", " + why
			continue
		}
		public = append(public, a)
	}
	if len(public) == 0 {
		return nil, refuse(http.StatusForbidden,
			"%s is at %s: only an address with its port in the list of allowed hosts leads there", h, kind)
	}
	for _, a := range public {
		each, done := context.WithTimeout(ctx, v.g.each)
		to := netip.AddrPortFrom(a, h.port)
		conn, err := v.g.dial(each, to)
		done()
		if err == nil {
			v.request.Address = to
			return conn, nil
		}
	}
	return nil, refuse(http.StatusBadGateway, "%s is allowed, but nothing answers there", h)
}

// answer sends a refusal.
func (v *visit) answer(r *refusal) {
	_ = v.client.SetDeadline(time.Now().Add(v.g.answer))
	if _, err := v.client.Write(r.answer()); err == nil {
		v.last()
	}
}

// last ends the response. It reads for a moment what the client still sends: closing the connection earlier would lose
// the end of the response.
func (v *visit) last() {
	_ = v.client.SetDeadline(time.Now().Add(v.g.patience.answer))
	closeWrite(v.client)
	_, _ = io.CopyN(io.Discard, v.client, 1<<20)
}

// closeWrite ends one direction if the connection supports that.
func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = c.Close()
}
