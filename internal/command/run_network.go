package command

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	"omniagent/internal/contract"
	"omniagent/internal/fork"
	"omniagent/internal/gate"
	"omniagent/internal/sandbox"
)

// ownLoopback returns the network of a contestant: a loopback of its own, and through a proxy the internet and the
// models of this machine. Where the tier has no such network, or the internet is behind a proxy already, it is that of
// the machine. --network says otherwise.
func ownLoopback(c *contract.Call, f *fork.Fork) (fork.Net, error) {
	if c.Given("network") {
		return networkIn(c, f)
	}
	if f.Tier != fork.Overlay || slices.ContainsFunc(os.Environ(), namesProxy) {
		return wholeNetwork(), nil
	}
	through, err := gate.New(gate.Options{
		Any: true, Hosts: modelsHere(c),
		Log: func(r gate.Request) {
			if r.Refusal != "" {
				logLine(c, "%s was kept from %s: %s", f.Name, r.Host, r.Refusal)
			}
		},
		Advice: func(string) string { return "--network on lets it through" },
	})
	if err != nil {
		return fork.Net{}, err
	}
	return fork.Net{Network: sandbox.Network{
		Serve: func(l net.Listener) (stop func()) { return through.Serve(l) },
	}}, nil
}

// namesProxy reports whether an entry of the environment names a proxy.
func namesProxy(entry string) bool {
	name, value, _ := strings.Cut(strings.ToLower(entry), "=")
	return value != "" && slices.Contains([]string{"http_proxy", "https_proxy", "all_proxy"}, name)
}

// modelsHere are the addresses of models on this machine, as far as a flag or the environment names them.
func modelsHere(c *contract.Call) (all []string) {
	said := []string{c.String("api-base"), c.Config.String("native.api_base")}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		for _, part := range []string{"BASE_URL", "API_BASE", "ENDPOINT"} {
			if strings.Contains(name, part) {
				said = append(said, value)
			}
		}
	}
	for _, text := range said {
		at, err := url.Parse(text)
		if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Port() == "" {
			continue
		}
		host := at.Hostname()
		if host == "localhost" {
			host = "127.0.0.1"
		}
		to, err := netip.ParseAddrPort(net.JoinHostPort(host, at.Port()))
		if err == nil && to.Addr().IsLoopback() && !slices.Contains(all, to.String()) {
			all = append(all, to.String())
		}
	}
	return all
}

// directly are variables by which programs reach their own loopback without the proxy.
func directly() []string {
	const here = "localhost,127.0.0.1,::1"
	return []string{"no_proxy=" + here, "NO_PROXY=" + here}
}

// relayLoopback lets programs of a fork reach the models of this machine at their own addresses, as the many do that
// use no proxy for a loopback. It does nothing outside of a contestant's fork.
func relayLoopback(ctx context.Context, c *contract.Call) (stop func()) {
	proxy, err := url.Parse(os.Getenv("http_proxy"))
	if err != nil || proxy.Hostname() != "127.0.0.1" || os.Getenv("no_proxy") == "" || forkAround(c) == nil {
		return func() {}
	}
	var all []net.Listener
	for _, at := range modelsHere(c) {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at)
		if err != nil {
			continue // this is the machine's own loopback
		}
		all = append(all, l)
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go relayTo(conn, proxy.Host, at)
			}
		}()
	}
	return func() {
		for _, l := range all {
			_ = l.Close()
		}
	}
}

// relayTo relays a connection to an address behind a proxy.
func relayTo(conn net.Conn, proxy, at string) {
	out, err := net.Dial("tcp", proxy)
	if err != nil {
		_ = conn.Close()
		return
	}
	_, err = fmt.Fprintf(out, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", at, at)
	in := bufio.NewReader(out)
	if err == nil {
		var answer *http.Response
		if answer, err = http.ReadResponse(in, &http.Request{Method: http.MethodConnect}); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				err = http.ErrNotSupported
			}
		}
	}
	if err != nil || in.Buffered() > 0 { // the other side speaks second
		_, _ = conn.Close(), out.Close()
		return
	}
	pass(conn, out)
}
