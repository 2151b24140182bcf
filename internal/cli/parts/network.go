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

// Internet is the network that an agent in a fork has: a loopback of its own, and through a proxy the internet and the
// models of this machine.
const Internet = "internet"

// ForkProxy returns the proxy through which a program reaches hosts from the loopback of its fork. Not valid: it is not
// in a fork, or has the network of this machine.
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

// KeptFrom says which hosts a command was kept from.
func KeptFrom(c *contract.Call) func(host, why string) {
	return policy.OncePerHost(func(host, why string) {
		LogLine(c, "the command was kept from %s: %s", host, why)
	})
}

// InFork is a command that runs another one in a fork.
func InFork(name, network, command string) string {
	return "omniagent fork run --name " + name + " --network " + network + " -- " + command
}
