package parts

import (
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/stores"
	"omniagent/internal/walls/policy"
)

// Internet is the network of an agent in a fork: its own loopback, and a proxy to the internet and to the models of
// this machine.
const Internet = "internet"

// ForkProxy returns the proxy through which programs in a fork reach hosts. The result is not valid outside of a fork,
// and in a fork that has the network of this machine.
func ForkProxy(c *contract.Call) netip.AddrPort {
	proxy, err := url.Parse(os.Getenv("http_proxy"))
	if err != nil || proxy.Hostname() != "127.0.0.1" || stores.ForkAround(c) == nil {
		return netip.AddrPort{}
	}
	all, err := net.Interfaces()
	if err != nil || slices.ContainsFunc(all, func(i net.Interface) bool { return i.Flags&net.FlagLoopback == 0 }) {
		return netip.AddrPort{}
	}
	at, _ := netip.ParseAddrPort(proxy.Host)
	return at
}

// ReportRefusedHosts returns a function that reports a host which a command could not reach, and why, once for each
// host.
func ReportRefusedHosts(c *contract.Call) func(host, why string) {
	return policy.OncePerHost(func(host, why string) {
		LogLine(c, "the command was kept from %s: %s", host, why)
	})
}

// InFork returns the command that runs another command in a fork.
func InFork(name, network, command string) string {
	return "omniagent fork run --name " + name + " --network " + network + " -- " + command
}
