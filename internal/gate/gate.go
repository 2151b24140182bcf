// Package gate is an HTTP proxy through which programs behind walls reach the hosts on a list, and no other.
//
// It promises that a name is looked up once, here, and that the very address that was judged is dialled, so that a name
// which changes its meaning in between gains nothing; that a listed name never leads to this machine or a private
// network, which only a rule that is an address with its port opens; that a connection carries one request, so that
// nothing can hide behind it; that the Host header of a plain request is the host that was allowed; that every wait has
// an end; and that after stop nothing of it is left.
//
// It refuses what is neither CONNECT nor a request for an http:// address. It does not look into a tunnel: what a
// listed host passes on, and which name a program speaks of inside TLS, is beyond it. It offers no authentication:
// whoever reaches the listener is let through to the list. It uses no other proxy.
package gate

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

// The limits of a gate.
const (
	MaxHead        = 64 << 10 // bytes of a request before its body, and of an answer
	MaxConnections = 256      // at one time; more are turned away
)

// Options of a Gate.
type Options struct {
	// Hosts may be reached: example.com, *.example.com (every host beneath it, not itself), an address, each with a
	// port, such as example.com:8443 or [2001:db8::1]:443, or without one for 80 and 443. An address of this machine or
	// of a private network needs its port.
	Hosts []string

	// Resolve finds the addresses of a name and ends with its context; nil: the system's resolver.
	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)

	// Advice says how a person allows the host, for the one line that a refused program gets; nil: in general words.
	Advice func(host string) string

	// Log is told of every request when it is decided, from many goroutines; nil: nobody is.
	Log func(Request)
}

// Request is what a program asked for.
type Request struct {
	Method  string         // empty: it was no request
	Host    string         // in its plain form with its port; what it said where that is no host
	Address netip.AddrPort // to which it was connected; not valid: to none
	Refusal string         // why not, in one line; empty: it was passed on
}

// Gate is a list of hosts and the way to them.
type Gate struct {
	o     Options
	rules []rule
	patience
	dial func(context.Context, netip.AddrPort) (net.Conn, error)
}

// patience is how long is waited for what.
type patience struct {
	head    time.Duration // for a whole request, without its body
	connect time.Duration // for name and connection together
	each    time.Duration // for the connection to one of several addresses
	idle    time.Duration // while not a byte goes either way
	answer  time.Duration // for a refusal to be taken
}

// New is a gate to those hosts. A rule that cannot be understood is a fault.
func New(o Options) (*Gate, error) {
	g := &Gate{o: o, patience: patience{
		head: 15 * time.Second, connect: 30 * time.Second, each: 10 * time.Second, idle: 10 * time.Minute,
		answer: time.Second,
	}}
	g.dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", to.String()) // digits: nothing is looked up
	}
	for _, text := range o.Hosts {
		r, err := readRule(text)
		if err != nil {
			return nil, err
		}
		g.rules = append(g.rules, r)
	}
	if g.o.Resolve == nil {
		g.o.Resolve = func(ctx context.Context, name string) ([]netip.Addr, error) {
			// The dot keeps the resolver from trying the name in domains of its own.
			return net.DefaultResolver.LookupNetIP(ctx, "ip", name+".")
		}
	}
	if g.o.Advice == nil {
		g.o.Advice = func(host string) string { return "Add " + host + " to the allowed hosts." }
	}
	return g, nil
}

// Serve takes connections from the listener until stop is called, which closes it and them and returns when nothing is
// left. The gate may serve several listeners.
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
		if err != nil { // such as too many open files, which passes
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
