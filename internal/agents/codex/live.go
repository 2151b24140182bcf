package codex

import (
	"context"
	"slices"

	"omniagent/internal/agents/cli"
	"omniagent/internal/agents/live"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
)

// Mind returns a Mind over app-server. For a single message without questions it uses exec, which starts faster but
// cannot ask.
func (d driver) Mind(_ context.Context, s agent.Spec, sv agent.Services) (agent.Mind, error) {
	if s.Terms.Once && s.Terms.Transport != agent.ByStream {
		return cli.TurnMind(d, s, sv)
	}
	s.Terms.Once = false
	if err := cli.Keep(d.ID, s, sv, terms()...); err != nil {
		return nil, err
	}
	return live.NewMind(live.Agent{
		Driver:    d,
		Abilities: agent.Abilities{Steer: true, Images: true, Resume: true},
		Launch:    func(s agent.Spec) (agent.Launch, error) { return d.live(s, sv.CanAsk) },
		Proto: func(s agent.Spec, _ agent.Launch) live.Proto {
			o, _ := optionsOf(s, sv.CanAsk) // the launch has checked the error
			return newTalk(o)
		},
	}, s, sv)
}

// terms returns the terms that Codex can keep. For the network that is only on and off.
func terms() []cli.Term {
	return []cli.Term{
		cli.Servers, cli.Network, cli.Directories, cli.System, cli.Append, cli.Continue, cli.Fork, cli.Schema,
	}
}

// live returns the launch of a process for many turns, which gets the terms of the conversation over the wire.
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
	t, err := cli.Translate(m, plain)
	if err != nil {
		return agent.Launch{}, err
	}
	if s.Rehearsal != nil {
		rehearse(&t, s, p)
	}
	if program := s.Install.Program; program != "" {
		t.Env, t.Unset = append(t.Env, managed(s.Install)...), append(t.Unset, managers()...)
		s.Install.Path = program
	}
	server := d.Program
	server.OneShot = []string{"app-server"}
	l := server.Launch(s, t)
	l.Session, l.Native = s.Resume, s.Schema != nil
	return l, nil
}

// optionsOf returns the options of a conversation, or an error if Codex cannot keep its terms.
func optionsOf(s agent.Spec, canAsk bool) (threadOptions, error) {
	t := s.Terms
	if t.Network != "" && t.Network != "on" && t.Network != "off" {
		return threadOptions{}, fault.New(fault.Unsupported, "codex cannot restrict its commands to a list of hosts")
	}
	o := threadOptions{
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

// policies translates a mode. Codex asks before it runs a command outside of its sandbox:
//
//	plan       the sandbox is read-only, and nothing is asked
//	prompt     it asks before every command that is not known to only read, and before every change of a file. Allowed
//	           commands run in a sandbox that can write to the workspace; if that stops one, Codex asks again. In a
//	           read-only sandbox they would fail, and on a busy machine Codex does not notice why. If nobody can be
//	           asked, the sandbox is read-only
//	default    as prompt; if nobody can be asked, commands run in a sandbox that can write to the workspace
//	auto-edit  inside a sandbox that can write to the workspace nothing is asked; it asks before anything else
//	yolo       everything runs without a sandbox; with --sandbox workspace-write inside it
//
// Codex has no mode that asks about all calls, or denies all: calls that only read always run.
func policies(m setting.Approval, o threadOptions) (approval string, sandbox map[string]any, err error) {
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
			"without a sandbox codex cannot keep its commands off the network")
	case box != "dangerFullAccess":
		sandbox["networkAccess"] = o.network == "on"
	}
	if box == "workspaceWrite" && len(o.dirs) > 0 {
		sandbox["writableRoots"] = o.dirs
	}
	return approval, sandbox, nil
}

// server is an MCP server in the form of Codex's settings.
type server struct {
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"http_headers,omitempty"`
}

// servers returns MCP servers in the form of Codex's settings.
func servers(data []byte) (map[string]any, error) {
	list, err := cli.HostServers("codex", data)
	out := map[string]any{}
	for _, s := range list {
		if out[s.Name] = (server{Command: s.Command, Args: s.Args, Env: s.Env}); s.Command == "" {
			out[s.Name] = server{URL: s.URL, Headers: s.Headers}
		}
	}
	return out, err
}
