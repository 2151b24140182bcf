// Package egressproxy is an HTTP proxy through which programs in a sandbox reach the hosts on a list, and no other.
//
// It promises: a name is looked up once, here, and the very address that was checked is dialled, so that a name whose
// address changes in between gains nothing; a listed name never leads to this machine or a private network, which only
// a rule with an address and a port allows; a connection carries one request, so that nothing can hide behind it; the
// Host header of a plain request is the host that was allowed; every wait has a limit; and after stop nothing of it is
// left.
//
// It refuses anything but CONNECT and requests for http:// addresses. It does not look into a tunnel: it cannot know
// what a listed host passes on, or which name a program uses inside TLS. It has no authentication: every client of the
// listener may reach the hosts on the list. It uses no other proxy than the gate that Options.Via names.
package egressproxy

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Limits of a gate.
const (
	MaxHead        = 64 << 10 // bytes of a request or a response before its body
	MaxConnections = 256      // at a time; more are refused
)

// Options configure a Gate.
type Options struct {
	// Hosts are the allowed hosts: example.com, *.example.com (every host below it, not itself) or an address, each
	// with a port, such as example.com:8443 or [2001:db8::1]:443, or without one for 80 and 443. An address of this
	// machine or of a private network needs its port.
	Hosts []string
	// Any lets all hosts of the internet through. Hosts then names the private ones.
	Any bool

	// Via is a gate through which all hosts are reached, which then looks up names and checks their addresses. Not
	// valid: they are reached directly.
	Via netip.AddrPort

	// Advice returns how a person allows the host, for the one line that a refused program gets; nil: a general one.
	Advice func(host string) string

	// Log is called for every decision about a request, from many goroutines; nil: no log.
	Log func(Request)
}

// Request is a request of a program.
type Request struct {
	Method  string         // empty: not a request
	Host    string         // canonical, with its port; or what the client sent, if that is not a host
	Address netip.AddrPort // the address it was connected to; not valid: none
	Refusal string         // why it was refused, in one line; empty: it was not
}

// Gate is a list of hosts and the proxy to them.
type Gate struct {
	o     Options
	rules []rule
	patience
	resolve func(ctx context.Context, name string) ([]netip.Addr, error)
	dial    func(context.Context, netip.AddrPort) (net.Conn, error)
}

// patience has the time limits.
type patience struct {
	head    time.Duration // for a complete request, without its body
	connect time.Duration // for name and connection together
	each    time.Duration // for the connection to one of several addresses
	idle    time.Duration // without a byte in either direction
	answer  time.Duration // to send a refusal
}

// New returns a gate to those hosts. A rule that it cannot parse is a fault.
func New(o Options) (*Gate, error) {
	g := &Gate{o: o, patience: patience{
		head: 15 * time.Second, connect: 30 * time.Second, each: 10 * time.Second, idle: 10 * time.Minute,
		answer: time.Second,
	}}
	g.resolve = func(ctx context.Context, name string) ([]netip.Addr, error) {
		// The dot keeps the resolver from trying search domains.
		return net.DefaultResolver.LookupNetIP(ctx, "ip", name+".")
	}
	g.dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", to.String()) // a numeric address: no lookup
	}
	for _, text := range o.Hosts {
		r, err := readRule(text)
		if err != nil {
			return nil, err
		}
		g.rules = append(g.rules, r)
	}
	if g.o.Advice == nil {
		g.o.Advice = func(host string) string { return "Add " + host + " to the allowed hosts." }
	}
	return g, nil
}

// Serve accepts connections from the listener until stop is called. stop closes the listener and its connections and
// returns when nothing is left. A gate may serve several listeners.
func (g *Gate) Serve(l net.Listener) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { g.accept(ctx, l, &all) })
	return func() {
		cancel()
		_ = l.Close()
		all.Wait()
	}
}

func (g *Gate) accept(ctx context.Context, l net.Listener, all *sync.WaitGroup) {
	slots := make(chan struct{}, MaxConnections)
	for ctx.Err() == nil {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as too many open files, which is temporary
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
			continue
		}
		select {
		case slots <- struct{}{}:
			all.Go(func() {
				defer func() { <-slots }()
				g.serve(ctx, conn)
			})
		default:
			g.log(Request{Refusal: "too many connections at one time"})
			// it fits into the buffer of a new connection
			_ = conn.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
			_, _ = conn.Write(tooMany().answer())
			_ = conn.Close()
		}
	}
}

func (g *Gate) log(r Request) {
	if g.o.Log != nil {
		g.o.Log(r)
	}
}
