package cli

import (
	"cmp"
	"encoding/json"
	"slices"

	"omniagent/internal/kit/fault"
	"omniagent/internal/wire/acp"
	"omniagent/internal/wire/mcp"
)

// HostServers reads the MCP servers of a host, and sorts them by name. It refuses the types that name cannot reach:
// servers that live in the host, and those of the older kind with an address.
func HostServers(name string, data []byte) (all []acp.Server, err error) {
	if len(data) == 0 {
		return nil, nil
	}
	list, err := mcp.Entries(data)
	if err != nil {
		return nil, fault.New(fault.ArgError, "the MCP servers are not a JSON object of servers")
	}
	for server, raw := range list {
		var one mcp.Entry
		switch err := json.Unmarshal(raw, &one); {
		case one.Type == "sdk":
			return nil, fault.New(fault.Unsupported, "%s does not support MCP servers that live in the host (type sdk)",
				name)
		case one.Type == "sse":
			return nil, fault.New(fault.Unsupported, "%s does not support MCP servers of type sse", name)
		case err != nil || one.Command == "" && one.URL == "":
			return nil, fault.New(fault.ArgError, "the MCP server %s has neither a command nor an address", server)
		}
		all = append(all, acp.Server{
			Name: server, Command: one.Command, Args: one.Args, Env: one.Env, URL: one.URL, Headers: one.Headers,
		})
	}
	slices.SortFunc(all, func(x, y acp.Server) int { return cmp.Compare(x.Name, y.Name) })
	return all, nil
}
