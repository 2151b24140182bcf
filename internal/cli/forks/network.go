package forks

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
	"omniagent/internal/kit/fault"
	"omniagent/internal/repo/fork"
	"omniagent/internal/walls/egressproxy"
	"omniagent/internal/walls/policy"
	"omniagent/internal/walls/sandbox"
)

// NetworkIn returns the network of a fork for a value of --network. The value internet means the network of the machine
// if the tier has no network of its own, the environment names a proxy, or a model's host name is in a private network.
func NetworkIn(c *contract.Call, f *fork.Fork, word string) (fork.Net, error) {
	own := f.Tier == fork.Overlay
	switch {
	case word == "on", word == parts.Internet && (!own || slices.ContainsFunc(os.Environ(), namesProxy)):
		return fork.Net{Word: "on", Network: sandbox.Network{Open: true}}, nil
	case word == "" && !own:
		return fork.Net{Network: sandbox.Network{Open: true}}, nil
	case !own:
		return fork.Net{}, fault.New(fault.Unsupported, "a fork of the tier %s has the network of this machine",
			f.Tier).Hint("--network on")
	case word != parts.Internet:
		return chosenNetwork(c, word)
	}
	private, named := privateModels(c)
	if named != "" {
		parts.LogLine(c, "%s has the network of this machine, because the model at %s is in a private one", f.Name,
			named)
		return NetworkIn(c, f, "on")
	}
	refused := policy.OncePerHost(func(host, why string) {
		parts.LogLine(c, "%s was kept from %s: %s", f.Name, host, why)
	})
	through, err := egressproxy.New(egressproxy.Options{
		Any: true, Hosts: private,
		Log: func(r egressproxy.Request) {
			if r.Refusal != "" {
				refused(r.Host, r.Refusal)
			}
		},
		Advice: func(string) string { return "--network on lets it through" },
	})
	if err != nil {
		return fork.Net{}, err
	}
	return fork.Net{Word: parts.Internet, Network: sandbox.Network{
		Serve: func(l net.Listener) (stop func()) { return through.Serve(l) },
	}}, nil
}

// chosenNetwork returns the network for a value of --network, or a fault for an invalid one.
func chosenNetwork(c *contract.Call, word string) (fork.Net, error) {
	w := policy.Wanted{
		Home: c.Host.Home(), Network: word, Lookup: c.Host.Lookup, Via: parts.ForkProxy(c),
		Refused: parts.ReportRefusedHosts(c),
	}
	through, err := w.Through()
	return fork.Net{Word: w.Network, Network: through}, err
}

// namesProxy reports whether an entry of the environment names a proxy.
func namesProxy(entry string) bool {
	name, value, _ := strings.Cut(strings.ToLower(entry), "=")
	return value != "" && slices.Contains([]string{"http_proxy", "https_proxy", "all_proxy"}, name)
}

// modelURLs returns the addresses of models that a flag, the configuration and the environment name.
func modelURLs(c *contract.Call) (all []*url.URL) {
	named := []string{c.String("api-base"), c.Config.String("native.api_base")}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		for _, part := range []string{"BASE_URL", "API_BASE", "ENDPOINT"} {
			if strings.Contains(name, part) && !strings.HasPrefix(name, "OTEL_") {
				named = append(named, value)
			}
		}
	}
	for _, text := range named {
		if at, err := url.Parse(text); err == nil && (at.Scheme == "http" || at.Scheme == "https") && at.Host != "" {
			all = append(all, at)
		}
	}
	return all
}

// addressOf returns the IP address and port of a URL; ok is false if its host is a name other than localhost.
func addressOf(at *url.URL) (to netip.AddrPort, ok bool) {
	host, port := at.Hostname(), at.Port()
	if host == "localhost" {
		host = "127.0.0.1"
	}
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[at.Scheme]
	}
	to, err := netip.ParseAddrPort(net.JoinHostPort(host, port))
	return to, err == nil
}

// localModels returns the addresses of models on this machine.
func localModels(c *contract.Call) (all []string) {
	for _, at := range modelURLs(c) {
		if to, ok := addressOf(at); ok && to.Addr().IsLoopback() && !slices.Contains(all, to.String()) {
			all = append(all, to.String())
		}
	}
	return all
}

// lookupTime limits the lookup of a model's host name.
const lookupTime = 2 * time.Second

// privateModels returns the addresses of models that are not on the internet, for the proxy to allow. named is the
// first host name of such a model, or "": such a name can be reached only through the network of the machine.
func privateModels(c *contract.Call) (all []string, named string) {
	all = localModels(c)
	for _, at := range modelURLs(c) {
		to, ok := addressOf(at)
		if ok && egressproxy.NotPublic(to.Addr()) != "" && !slices.Contains(all, to.String()) {
			all = append(all, to.String())
		}
		if ok || named != "" {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
		found, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", at.Hostname())
		cancel()
		if slices.ContainsFunc(found, func(a netip.Addr) bool { return egressproxy.NotPublic(a.Unmap()) != "" }) {
			named = at.Host
		}
	}
	return all, named
}

// RelayLoopback makes the models of this machine reachable in a fork at their usual loopback addresses, because many
// programs do not use a proxy for them. Outside of a fork it does nothing.
func RelayLoopback(ctx context.Context, c *contract.Call) (stop func()) {
	proxy := parts.ForkProxy(c)
	if !proxy.IsValid() {
		return func() {}
	}
	var all []net.Listener
	for _, at := range localModels(c) {
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
					inside, err := egressproxy.Connect(ctx, proxy.String(), at)
					if err != nil {
						_ = conn.Close()
						return
					}
					relay(conn, inside)
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
