package native

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/native/tool"
	"omniagent/internal/sys/process"
	"omniagent/internal/sys/redact"
	"omniagent/internal/sys/touch"
	"omniagent/internal/wire/mcp"
)

// readServers reads the user's own file of MCP servers.
func (o Options) readServers() (list []mcp.Server, problems []error) {
	if o.Servers == "" || o.Terms.OnlyThese {
		return nil, nil
	}
	list, problems, err := mcp.ReadServers(o.Servers, o.inEntries)
	if err != nil {
		problems = append(problems, err)
	}
	return list, problems
}

// inEntries looks up ${NAME} in the entry of a server: a variable of the environment, or workspaceFolder, which is the
// directory of the conversation.
func (o Options) inEntries(name string) (string, bool) {
	if name == "workspaceFolder" {
		return o.Dir, true
	}
	return o.Walls.Lookup(name)
}

// secrets returns the values to remove from all texts: the key in use, variables with secret names, and the secrets of
// the servers.
func (o Options) secrets(servers []mcp.Server) *redact.Values {
	all, environ := o.Choice.Secrets(), slices.Clone(o.Env)
	for _, s := range servers {
		for name, value := range s.Env {
			environ = append(environ, name+"="+value)
		}
		for name, value := range s.Header {
			if words := strings.Fields(value); len(words) > 0 { // Bearer …
				environ = append(environ, name+"="+words[len(words)-1])
			}
		}
		for i, arg := range redact.Args(s.Command) {
			switch before, _, cut := strings.Cut(arg, redact.Mask); {
			case arg == redact.Mask:
				all = append(all, s.Command[i])
			case cut && strings.HasSuffix(arg, redact.Mask):
				all = append(all, strings.TrimPrefix(s.Command[i], before))
			}
		}
	}
	return redact.Known(append(all, redact.Secrets(environ)...)...)
}

// withHosts combines the user's servers with the host's, which replace others of the same name.
func withHosts(own, hosts []mcp.Server) []mcp.Server {
	own = slices.DeleteFunc(own, func(s mcp.Server) bool {
		return slices.ContainsFunc(hosts, func(h mcp.Server) bool { return h.Name == s.Name })
	})
	return append(own, hosts...)
}

// away returns the starter of all servers. Their environment has the depth of nested agents.
func (o Options) away() process.Programs {
	environ := o.inheritance()
	environ.Opens = true
	environ.Roots = append(environ.Roots, o.Terms.Dirs...)
	away := environ.Programs(o.Env, o.Walls.State)
	if depth, ok := process.Value(o.Env, agent.DepthVariable); ok {
		away.Env = append(away.Env, agent.DepthVariable+"="+depth)
	}
	return away
}

// silence is how long a server may take to connect before the wait is logged.
const silence = 3 * time.Second

// servers connects to the MCP servers of the user's own file and of the host. The conversation continues without the
// tools of a server that does not answer.
func (m *Mind) servers(ctx context.Context, o Options, list []mcp.Server) ([]tool.Tool, []event.Server) {
	if len(list) == 0 {
		return nil, nil
	}
	away := o.away()
	conns, states := make([]*mcp.Conn, len(list)), make([]event.Server, len(list))
	var wait sync.WaitGroup
	for i, s := range list {
		states[i] = event.Server{Name: s.Name, Status: "connected"}
		wait.Go(func() {
			slow := time.AfterFunc(silence, func() { o.Log("waiting for the MCP server %s", s.Name) })
			defer slow.Stop()
			conn, err := mcp.Open(ctx, s, mcp.Options{
				Programs: away, Roots: append([]string{o.Dir}, o.Terms.Dirs...), Version: o.Version,
				Carry: mcp.Carry(o.Services.Serve),
				Log:   func(line string) { o.Log("%s: %s", s.Name, line) },
			})
			if err != nil {
				states[i].Status = "failed"
				o.Log("the tools of %s are missing: %v", s.Name, err)
				return
			}
			conns[i] = conn
		})
	}
	wait.Wait()
	var open []*mcp.Conn
	for _, conn := range conns {
		if conn != nil {
			open = append(open, conn)
			m.closers = append(m.closers, conn.Close)
		}
	}
	return serverTools(open, o.Services.Touched), states
}

// serverTools returns the tools of connected servers. Before each call, touched is told that writes are not seen.
func serverTools(open []*mcp.Conn, touched *touch.Log) []tool.Tool {
	offer := mcp.NewOffer(open...)
	var tools []tool.Tool
	for _, spec := range offer.Tools {
		server, own, _ := offer.About(spec.Name)
		tools = append(tools, tool.Tool{ToolSpec: spec, Plan: func(input json.RawMessage) (tool.Action, error) {
			return tool.Action{
				Kind: event.MCP, Changes: true, Title: own + " of the server " + server, Input: input,
				Run: func(ctx context.Context) tool.Result {
					if touched != nil {
						touched.Unseen(touch.ReasonUnwatched)
					}
					got, err := offer.Call(ctx, spec.Name, input, nil)
					if err != nil {
						return tool.Result{Text: err.Error(), Failed: true}
					}
					result := tool.Result{Text: got.Text, Failed: got.Failed}
					for _, image := range got.Images {
						result.Images = append(result.Images, tool.Image{Media: image.Media, Data: image.Data})
					}
					return result
				},
			}, nil
		}})
	}
	return tools
}
