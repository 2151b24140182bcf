package parts

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/agents/relay"
	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/flags"
	"omniagent/internal/cli/stores"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/host/mcp"
	"omniagent/internal/host/stream"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/launch"
	"omniagent/internal/launch/allow"
	"omniagent/internal/llm/provider"
	"omniagent/internal/native"
	"omniagent/internal/native/tool"
	"omniagent/internal/sys/audit"
	"omniagent/internal/sys/config"
	"omniagent/internal/sys/process"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/walls/policy"
)

// Opener opens conversations for one call.
type Opener struct {
	Call   *contract.Call
	Log    func(format string, args ...any) // for people, on standard error
	Detail func(format string, args ...any) // for people who want to know more
	Parts  Parts
	// Request is what the requests of all conversations have in common.
	Request launch.Request
	Closed  bool // only agents of `omniagent agents allow` are started
	// Others returns what carries out the work that conversations delegate. If it is nil, they cannot delegate.
	Others    func(Opener) tool.Agents
	Run       string           // the run of delegated work, for the audit log; empty: nothing is delegated
	PartOf    string           // the run that a conversation is a part of; empty: none
	Rehearsal *agent.Rehearsal // answers in place of a model, or nil
}

// Env returns what an opening needs of this call.
func (o Opener) Env() launch.Env {
	c, host := o.Call, o.Call.Host
	rules, problems := RulesOf(c, o.Parts.Tools.Specs())
	forkID, forkRoots := stores.OwnFork(c)
	e := launch.Env{
		Veiled: o.Parts.veiled(),
		Dir:    c.Dir(), Home: host.Home(), Config: c.Paths.Config, Temp: c.Paths.Temp,
		Lookup: host.Lookup, Environ: os.Environ(), Register: c.Register, Version: Version,
		Versions: stores.Versions(c.Paths).Of, Trust: config.OpenTrust(c.TrustFile()), Gate: o.gate,
		Grace: c.Config.Duration("grace"), Keep: c.Config.Bool(stores.KeepKey), Log: o.Log, Detail: o.Detail,
		Bare: o.bare(), Owns: c.Config.List("agents.own"),
		Undo: stores.SnapshotsToKeep(c), Fork: forkRoots, ForkID: forkID, Run: o.PartOf,
		Machine: agent.Machine{
			Root: os.Geteuid() == 0, OS: runtime.GOOS, Has: func(program string) bool {
				return process.Find(program, host.Lookup) != ""
			},
		},
		Native: launch.NativeSettings{
			Settings: native.Settings{
				Rules: rules, Tools: o.Parts.Tools, Sandbox: c.Config.String("native.sandbox"), Walls: o.Parts.Walls(c),
				HandOn: c.Config.List("native.env"), ToolProtocol: c.Config.String("native.tool_protocol"),
			},
			Model: o.Parts.modelOptions(c), Profiles: ProfilesOf(c), UsualProtocol: o.Parts.toolProtocol(),
		},
	}
	if o.Parts.Plain != nil {
		e.Plain = &o.Parts.Plain.Shared
	}
	if o.Others != nil {
		e.Native.Others = o.Others(o)
	}
	if len(problems) > 0 {
		e.Native.Problem = problems[0]
	}
	e.Agents = func() ([]launch.Agent, error) {
		known, err := KnownAgents(c, o.Parts.Agents)
		var all []launch.Agent
		for _, k := range known {
			all = append(all, launch.Agent{Driver: k.Driver, Custom: k.From != nil})
		}
		return all, err
	}
	return e
}

// Walls returns the walls around commands, by the configuration. What depends on the workspace is missing.
func (p Parts) Walls(c *contract.Call) policy.Wanted {
	return policy.Wanted{
		Home: c.Host.Home(), Agents: p.Guarded(c), Network: c.Config.String("native.network"),
		State: stores.WallsState(c), Memory: c.Config.Int("native.memory"), Read: c.Config.List("native.read"),
		Lookup: c.Host.Lookup, Via: ForkProxy(c),
	}
}

// modelOptions returns how a model API is chosen and called, by the configuration.
func (p Parts) modelOptions(c *contract.Call) provider.Options {
	return provider.Options{
		Selections: ConfiguredModel(c), APIs: p.APIs, Agents: p.Providing(), Keys: stores.Keys(c),
		Lookup: OwnPrograms(c), Home: c.Host.Home(), Programs: c.Programs(), Proxy: flags.ProxyOf(c),
		Again: flags.RetriesOf(c), First: flags.FirstByte(c), Idle: c.Config.Duration("native.idle"),
	}
}

// bare reports whether installed agents run without walls.
func (o Opener) bare() bool {
	return o.Parts.Plain != nil && !o.Parts.Plain.Walls || o.Call.Config.String("agents.walls") == "off"
}

// gate returns the gate for an agent of this call. It records each start in the audit log, if there is one.
func (o Opener) gate(a launch.Agent, dir string) allow.Gate {
	gate := UserGate(o.Call, a.Name(), dir)
	gate.Closed = o.Closed
	if o.Call.AuditPath() != "" {
		command := strings.Join(strings.Fields(o.Call.Command.Path), " ") + " --agent " + a.Name()
		gate.Record = func(e audit.Entry) error {
			e.Command = command
			if o.Run != "" {
				e.Args = append(e.Args, "sub_agent="+tool.RunnerName, "run_id="+o.Run)
			}
			return o.Call.RecordAlso(e)
		}
	}
	return gate
}

// Converse opens a conversation. As a method value it is a conversation.Opener.
func (o Opener) Converse(
	ctx context.Context,
	name string,
	s agent.Spec,
	sv agent.Services,
) (*conversation.Conversation, error) {
	_, chosen, err := flags.ApprovalOf(o.Call)
	if err != nil {
		return nil, err
	}
	turn, connect := flags.Clocks(o.Call)
	sv.Timeout, sv.Connect = cmp.Or(sv.Timeout, turn), cmp.Or(sv.Connect, connect)
	e, r := o.Env(), o.Request
	r.Agent, r.Spec, r.Services, r.Mode = name, s, sv, r.Mode || chosen != ""
	if o.Rehearsal != nil {
		if err := onRehearsal(o.Rehearsal, &e, &r); err != nil {
			return nil, err
		}
	}
	return e.Open(ctx, r)
}

// Relay opens a conversation of a host with an agent that uses the host's own dialect: lines are passed unchanged, and
// recorded. It fills in the agent's fields of r. For any other agent it returns a fault of code UNSUPPORTED.
func (o Opener) Relay(ctx context.Context, q launch.Request, w relay.Wishes, r relay.Relay) (int, error) {
	plan, err := o.Env().Plan(ctx, q)
	if err != nil {
		return 0, err
	}
	driver, spec := plan.Installed()
	speaker, ok := driver.(relay.Speaker)
	if !ok {
		return 0, fault.New(fault.Unsupported, "%s does not speak these lines itself", q.Agent)
	}
	if _, err := speaker.Relayed(spec, w); err != nil { // before a session is created
		return 0, err
	}
	p, err := plan.PassThrough(ctx)
	if err != nil {
		return 0, err
	}
	around, err := o.Env().OpenWalls(driver, p.Spec, p.Touched)
	if err != nil {
		return 0, err
	}
	defer around.Close()
	p.Spec.Walled, r.WithWalls = around.Exist(), around.Plan
	record := stream.Record(p.Record, wallsDecoder{driver.Decode(setting.StreamJSON), around})
	defer func() {
		if err := record.Close(); err != nil {
			o.Log("the conversation could not be kept: %v", err)
		}
	}()
	r.Record = record
	if r.Launch, err = speaker.Relayed(p.Spec, w); err != nil {
		return 0, err
	}
	if err := cli.WriteFiles(r.Launch.Files); err != nil {
		return 0, err
	}
	defer cli.RemoveFiles(r.Launch.Files)
	r.Register = o.Call.Register()
	r.Name, r.Log, r.Grace = driver.Describe().Binary, o.Log, cmp.Or(r.Grace, o.Call.Config.Duration("grace"))
	return r.Run(ctx)
}

// wallsDecoder is a Decoder that also shows its events to the walls, which depend on them.
type wallsDecoder struct {
	agent.Decoder
	around *launch.AgentWalls
}

// Feed decodes data and shows the events to the walls.
func (f wallsDecoder) Feed(data []byte) []event.Event {
	all := f.Decoder.Feed(data)
	for _, e := range all {
		f.around.Follow(e)
	}
	return all
}

// QuietOpener returns an Opener that logs nothing. It is for commands that only ask how a conversation would be opened.
func (p Parts) QuietOpener(c *contract.Call) Opener {
	return Opener{Call: c, Parts: p, Log: NoLog, Detail: NoLog}
}

// Refuses returns why an agent cannot be started. It changes nothing.
func (p Parts) Refuses(ctx context.Context, c *contract.Call, r launch.Request, closed bool) error {
	quiet := p.QuietOpener(c)
	quiet.Closed = closed
	env := quiet.Env()
	gate := env.Gate
	env.Register, env.Gate = nil, func(a launch.Agent, dir string) allow.Gate {
		g := gate(a, dir)
		g.Record = nil
		return g
	}
	_, err := env.Plan(ctx, r)
	return err
}

// DepthOf returns how many agents are above this call: each of them was asked by the one before.
func DepthOf(c *contract.Call) int {
	var around []string
	if c.Paths.State != "" {
		around = process.OwnNotes(filepath.Join(c.Paths.State, stores.ProcessesDir))
	}
	return mcp.Depth(c.Host.Lookup, around)
}
