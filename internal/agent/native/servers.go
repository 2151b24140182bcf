package native

import (
	"context"
	"encoding/json"
	"sync"

	"omniagent/internal/event"
	"omniagent/internal/mcp"
	"omniagent/internal/tool"
)

// servers connects to the MCP servers of the user's own file. One that does not answer is told and left out: the conversation goes on
// without its tools.
func (c *Conversation) servers(ctx context.Context, o Options) []tool.Tool {
	if o.Servers == "" {
		return nil
	}
	list, problems, err := mcp.ReadServers(o.Servers, o.Lookup)
	if err != nil {
		problems = append(problems, err)
	}
	for _, problem := range problems {
		o.Log("%v", problem)
	}
	environ := o.inheritance()
	environ.Opens = true
	env := environ.Of(o.Env)
	conns := make([]*mcp.Conn, len(list))
	var wait sync.WaitGroup
	for i, s := range list {
		wait.Go(func() {
			conn, err := mcp.Open(ctx, s, mcp.Options{Dir: o.Dir, Environ: env, Roots: []string{o.Dir}, Log: func(line string) { o.Log("%s: %s", s.Name, line) }, Version: o.Version})
			if err != nil {
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
			c.closers = append(c.closers, conn.Close)
		}
	}
	if len(open) == 0 {
		return nil
	}
	offer := mcp.NewOffer(open...)
	var tools []tool.Tool
	for _, spec := range offer.Tools {
		server, about, _ := offer.About(spec.Name)
		tools = append(tools, tool.Tool{Tool: spec, Plan: func(input json.RawMessage) (tool.Action, error) {
			return tool.Action{
				Kind: event.MCP, Changes: true, Title: about.Name + " of the server " + server, Input: input,
				Run: func(ctx context.Context, progress func(string)) tool.Result {
					got, err := offer.Call(ctx, spec.Name, input, progress)
					if err != nil {
						return tool.Result{Text: err.Error(), Failed: true}
					}
					result := tool.Result{Text: got.Text, Failed: got.Failed}
					if result.Text == "" && got.Structured != nil {
						result.Text = string(got.Structured)
					}
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
