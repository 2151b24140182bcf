package codex

import (
	"context"
	"encoding/json"
	"slices"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
	"omniagent/internal/fault"
	"omniagent/internal/mcp"
	"omniagent/internal/setting"
)

// Mind prepares a conversation over app-server.
func (d driver) Mind(_ context.Context, s agent.Spec, sv agent.Services) (agent.Mind, error) {
	if err := cli.Keep(d.ID, s, sv, terms()...); err != nil {
		return nil, err
	}
	return cli.LiveMind(cli.Live{
		Driver:    d,
		Abilities: agent.Abilities{Steer: true, Images: true, Questions: true, Resume: true},
		Launch:    func(s agent.Spec) (agent.Launch, error) { return d.live(s, sv.CanAsk) },
		Proto: func(s agent.Spec) cli.Proto {
			o, _ := optionsOf(s, sv.CanAsk) // it was looked at for the launch
			return newTalk(o)
		},
	}, s, sv)
}

// terms are those that Codex keeps; the network only as on or off.
func terms() []cli.Term {
	return []cli.Term{
		cli.Servers, cli.Network, cli.Directories, cli.System, cli.Append, cli.Continue, cli.Fork, cli.Schema,
	}
}

// live is the launch of a process for many turns. What the conversation is like is said over the wire.
func (d driver) live(s agent.Spec, canAsk bool) (agent.Launch, error) {
	if _, err := optionsOf(s, canAsk); err != nil {
		return agent.Launch{}, err
	}
	s.Mode = setting.OneShot
	p := readPassed(s.Passthrough)
	m := d.Matrix(s.Install.Version)
	m.Rows = slices.DeleteFunc(m.Rows, func(r agent.Row) bool { return r.Feature != agent.Web })
	plain := s
	plain.Shared = setting.Shared{Web: s.Shared.Web}
	t := cli.Translate(m, plain)
	var files []agent.File
	var remove []string
	if s.Rehearsal != nil {
		files, remove = rehearse(&t, s, p), privateVariables()
	}
	path := s.Install.Path
	if s.Install.Program != "" {
		path, t.Env, remove = s.Install.Program, append(t.Env, managed(s.Install)...), append(remove, managers()...)
	}
	args := append([]string{"app-server"}, t.Args...)
	return agent.Launch{
		Path: path, Args: append(slices.Clone(args), s.Passthrough...), Translated: len(args),
		Env: cli.Environ(s.Env, t.Env, remove...),
		Dir: s.Dir, Files: files, Session: s.Resume, Spec: s, Native: s.Schema != nil, UsageCodes: d.UsageCodes,
	}, nil
}

// optionsOf is what the conversation is opened with, or why it cannot be.
func optionsOf(s agent.Spec, canAsk bool) (options, error) {
	t := s.Terms
	if t.Network != "" && t.Network != "on" && t.Network != "off" {
		return options{}, fault.New(fault.Unsupported, "codex keeps no list of hosts that its commands may reach")
	}
	o := options{
		dir: s.Dir, mode: cli.ModeOf(s), canAsk: canAsk, network: t.Network, dirs: t.Dirs,
		model: s.Shared.Model.Value, system: t.System, append: t.Append, schema: s.Schema, resume: s.Resume,
		fork: t.Fork, last: t.Continue && s.Resume == "",
	}
	if s.Shared.Sandbox.Asked() {
		o.sandbox = string(s.Shared.Sandbox.Value)
	}
	var err error
	if o.servers, err = servers(t.Servers); err != nil {
		return o, err
	}
	_, _, err = policies(o.mode, o)
	return o, err
}

// policies are what a mode is in Codex's words. A question about a command is about running it outside of the sandbox:
//
//	plan       read-only, and nothing is asked
//	prompt     every command is asked about that is not known to read only, and every change of a file. What was
//	           allowed runs in a sandbox that holds the workspace, and where that stops it Codex asks again; in one
//	           that is read-only it would fail, and on a busy machine Codex does not notice why. With nobody to ask
//	           the sandbox is read-only
//	default    likewise; with nobody to ask, what the sandbox holds in the workspace runs
//	auto-edit  the sandbox holds the workspace, in which it asks for nothing; it asks before anything beyond
//	yolo       all, without a sandbox; with --sandbox workspace-write in that
//
// A mode that asks about all calls, or denies all, it does not have: what only reads runs always.
func policies(m setting.Approval, o options) (approval string, sandbox map[string]any, err error) {
	const typed = string(setting.WorkspaceWrite)
	box := "readOnly"
	switch m {
	case setting.Plan:
		approval = "never"
	case setting.Prompt, setting.Default:
		approval = "untrusted"
		switch {
		case m == setting.Default && !o.canAsk && o.sandbox != string(setting.Off):
			approval, box = "never", "workspaceWrite"
		case o.sandbox == typed, o.canAsk && o.sandbox == "":
			box = "workspaceWrite"
		case o.sandbox == string(setting.Off):
			box = "dangerFullAccess"
		}
	case setting.AutoEdit:
		approval, box = "on-request", "workspaceWrite"
		if o.sandbox == string(setting.Off) {
			return "", nil, fault.New(fault.Unsupported,
				"without a sandbox codex has no mode %s: it would ask for nothing", m)
		}
	case setting.Yolo:
		approval, box = "never", "dangerFullAccess"
		if o.sandbox == typed {
			box = "workspaceWrite"
		}
	default:
		return "", nil, fault.New(fault.Unsupported, "codex has no mode %s: what only reads runs without a question", m)
	}
	sandbox = map[string]any{"type": box}
	switch {
	case box == "dangerFullAccess" && o.network == "off":
		return "", nil, fault.New(fault.Unsupported,
			"without a sandbox codex does not keep its commands from the network")
	case box != "dangerFullAccess":
		sandbox["networkAccess"] = o.network == "on"
	}
	if box == "workspaceWrite" && len(o.dirs) > 0 {
		sandbox["writableRoots"] = o.dirs
	}
	return approval, sandbox, nil
}

// servers are MCP servers in the form of Codex's settings.
func servers(data []byte) (map[string]any, error) {
	if len(data) == 0 {
		return nil, nil
	}
	list, err := mcp.Entries(data)
	if err != nil {
		return nil, fault.New(fault.ArgError, "the MCP servers are not a JSON object of servers")
	}
	out := map[string]any{}
	for name, raw := range list {
		var one mcp.Entry
		if json.Unmarshal(raw, &one) != nil {
			return nil, fault.New(fault.ArgError, "the MCP server %s cannot be read", name)
		}
		switch {
		case one.Type == "sdk":
			return nil, fault.New(fault.Unsupported, "codex takes no MCP server that lives in the host")
		case one.Type == "sse":
			return nil, fault.New(fault.Unsupported, "codex takes no MCP server of type sse")
		case one.Command != "":
			entry := map[string]any{"command": one.Command}
			if one.Args != nil {
				entry["args"] = one.Args
			}
			if one.Env != nil {
				entry["env"] = one.Env
			}
			out[name] = entry
		case one.URL != "":
			entry := map[string]any{"url": one.URL}
			if one.Headers != nil {
				entry["http_headers"] = one.Headers
			}
			out[name] = entry
		default:
			return nil, fault.New(fault.ArgError, "the MCP server %s has neither a command nor an address", name)
		}
	}
	return out, nil
}
