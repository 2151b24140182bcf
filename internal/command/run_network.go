package command

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	"omniagent/internal/contract"
	"omniagent/internal/enclosure"
	"omniagent/internal/fault"
	"omniagent/internal/fork"
	"omniagent/internal/gate"
	"omniagent/internal/sandbox"
)

// internet is the network that an agent in a fork has: a loopback of its own, and through a proxy the internet and the
// models of this machine.
const internet = "internet"

// networkIn returns the network of a fork, in the words of --network. Where the tier has no network of its own, or the
// internet is behind a proxy already, internet is that of the machine.
func networkIn(c *contract.Call, f *fork.Fork, word string) (fork.Net, error) {
	own := f.Tier == fork.Overlay
	switch {
	case word == "on", word == internet && (!own || slices.ContainsFunc(os.Environ(), namesProxy)):
		return fork.Net{Word: "on", Network: sandbox.Network{Open: true}}, nil
	case word == "" && !own:
		return fork.Net{Network: sandbox.Network{Open: true}}, nil
	case !own:
		return fork.Net{}, fault.New(fault.Unsupported, "a fork of the tier %s has the network of this machine",
			f.Tier).Hint("--network on")
	case word != internet:
		return chosenNetwork(c, word)
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
	return fork.Net{Word: internet, Network: sandbox.Network{
		Serve: func(l net.Listener) (stop func()) { return through.Serve(l) },
	}}, nil
}

// chosenNetwork is the network that a person chose for a fork.
func chosenNetwork(c *contract.Call, word string) (fork.Net, error) {
	home, _ := c.Host.Lookup("HOME")
	w := enclosure.Wanted{
		Home: home, Network: word, Lookup: c.Host.Lookup, Via: forkProxy(c),
		Refused: func(host, why string) { logLine(c, "the command was kept from %s: %s", host, why) },
	}
	through, err := w.Through()
	return fork.Net{Word: w.Network, Network: through}, err
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

// forkProxy returns the proxy through which a program reaches hosts from the loopback of its fork. Not valid: it is not
// in a fork, or has the network of this machine.
func forkProxy(c *contract.Call) netip.AddrPort {
	proxy, err := url.Parse(os.Getenv("http_proxy"))
	if err != nil || proxy.Hostname() != "127.0.0.1" || forkAround(c) == nil {
		return netip.AddrPort{}
	}
	all, err := net.Interfaces()
	if err != nil || slices.ContainsFunc(all, func(i net.Interface) bool { return i.Flags&net.FlagLoopback == 0 }) {
		return netip.AddrPort{}
	}
	at, _ := netip.ParseAddrPort(proxy.Host)
	return at
}

// relayLoopback lets programs of a fork reach the models of this machine at their own addresses, as the many do that
// use no proxy for a loopback.
func relayLoopback(ctx context.Context, c *contract.Call) (stop func()) {
	proxy := forkProxy(c)
	if !proxy.IsValid() {
		return func() {}
	}
	var all []net.Listener
	for _, at := range modelsHere(c) {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at)
		if err != nil {
			continue // another program of the fork does this already
		}
		all = append(all, l)
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					inside, err := gate.Connect(ctx, proxy.String(), at)
					if err != nil {
						_ = conn.Close()
						return
					}
					pass(conn, inside)
				}()
			}
		}()
	}
	return func() {
		for _, l := range all {
			_ = l.Close()
		}
	}
}
