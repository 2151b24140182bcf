package command

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"omniagent/internal/agents/cli"
	"omniagent/internal/agents/relay"
	"omniagent/internal/cli/contract"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/host/mcp"
	"omniagent/internal/host/stream"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/launch"
	"omniagent/internal/launch/allow"
	"omniagent/internal/native/tool"
	"omniagent/internal/sys/audit"
	"omniagent/internal/sys/config"
	"omniagent/internal/sys/process"
	"omniagent/internal/talk/conversation"
)

// opener opens conversations for one call.
type opener struct {
	call   *contract.Call
	log    func(format string, args ...any) // for people, on standard error
	detail func(format string, args ...any) // for people who want to know more
	parts  Parts
	// Only for the native agent: the model API, and its address.
	provider, base string
	ask            []string      // calls that need a question, in the words of docs/rules.md
	moded          bool          // each conversation has a mode that was chosen for it
	closed         bool          // only agents of `omniagent agents allow` are started
	patience       time.Duration // for the answer to a question; 0: the conversation's own
	// what carries out the work that conversations delegate; nil: they may not
	others    func(opener) tool.Agents
	run       string           // the run of delegated work; empty: it is something else
	of        string           // the run that a conversation is a part of; empty: none
	rehearsal *agent.Rehearsal // answers in place of a model, or nil
}

// env returns what an opening needs of this call.
func (o opener) env() launch.Env {
	c, host := o.call, o.call.Host
	rules, problems := rulesOf(c, o.parts.Tools.Specs())
	trust := config.OpenTrust(c.TrustFile())
	forkID, forkRoots := ownFork(c)
	e := launch.Env{
		Veiled: o.parts.veiled(),
		Dir:    c.Dir(), Home: host.Home(), State: wallsState(c), Config: c.Paths.Config, Temp: c.Paths.Temp,
		Lookup: host.Lookup, Environ: os.Environ(), Register: c.Register, Version: Version,
		Versions: versions(c.Paths).Of, Trusted: trust.Trusted, Copy: trust.Copy, Gate: o.gate,
		Grace: c.Config.Duration("grace"), Keep: c.Config.Bool(keepKey), Log: o.log, Detail: o.detail,
		Bare: o.bare(), Owns: c.Config.List("agents.own"), Reviewed: trust.Beneath,
		Undo: snapshots(c), Fork: forkRoots, ForkID: forkID, Run: o.of,
		Machine: agent.Machine{
			Root: os.Geteuid() == 0, OS: runtime.GOOS, Has: func(program string) bool {
				return process.Find(program, host.Lookup) != ""
			},
		},
		Own: launch.Own{
			Rules: rules, Tools: o.parts.Tools, Known: o.parts.guarded(c), Variables: c.Config.List("native.env"),
			Memory: c.Config.Int("native.memory"), Read: c.Config.List("native.read"),
			Sandbox: c.Config.String("native.sandbox"),
			Network: c.Config.String("native.network"), Via: forkProxy(c), First: firstByte(c),
			Idle:         c.Config.Duration("native.idle"),
			ToolProtocol: c.Config.String("native.tool_protocol"), UsualProtocol: o.parts.toolProtocol(),
			Away: c.Away(), Programs: ownPrograms(c), APIs: o.parts.APIs, Agents: o.parts.providing(),
			Proxy: proxyOf(c), Again: retriesOf(c), Wishes: configuredModel(c), Profiles: profilesOf(c),
			Keys: keysOf(c),
		},
	}
	if o.parts.Plain != nil {
		e.Plain = &o.parts.Plain.Shared
	}
	if o.others != nil {
		e.Own.Others = o.others(o)
	}
	if len(problems) > 0 {
		e.Own.Problem = problems[0]
	}
	e.Agents = func() ([]launch.Agent, error) {
		known, err := knownAgents(c, o.parts.Agents)
		var all []launch.Agent
		for _, k := range known {
			all = append(all, launch.Agent{Driver: k.Driver, Custom: k.from != nil})
		}
		return all, err
	}
	return e
}

// bare reports whether no walls stand around installed agents.
func (o opener) bare() bool {
	return o.parts.Plain != nil && !o.parts.Plain.Walls || o.call.Config.String("agents.walls") == "off"
}

// gate returns what the user's configuration lets programs start.
func (o opener) gate(a launch.Agent, dir string) allow.Gate {
	gate := userGate(o.call, a.Name(), dir)
	gate.Closed = o.closed
	if o.call.AuditPath() != "" {
		command := strings.Join(strings.Fields(o.call.Command.Path), " ") + " --agent " + a.Name()
		gate.Record = func(e audit.Entry) error {
			e.Command = command
			if o.run != "" {
				e.Args = append(e.Args, "sub_agent="+tool.RunnerName, "run_id="+o.run)
			}
			return o.call.RecordAlso(e)
		}
	}
	return gate
}

// converse opens a conversation, as a conversation.Opener.
func (o opener) converse(
	ctx context.Context,
	name string,
	s agent.Spec,
	sv agent.Services,
) (*conversation.Conversation, error) {
	_, chosen, err := approvalOf(o.call)
	if err != nil {
		return nil, err
	}
	turn, connect := clocks(o.call)
	sv.Timeout, sv.Connect = cmp.Or(sv.Timeout, turn), cmp.Or(sv.Connect, connect)
	e, r := o.env(), launch.Request{
		Agent: name, Spec: s, Services: sv, Mode: o.moded ||
			chosen != "", Provider: o.provider, Base: o.base, Ask: o.ask,
		Patience: o.patience,
	}
	if o.rehearsal != nil {
		if err := onRehearsal(o.rehearsal, &e, &r); err != nil {
			return nil, err
		}
	}
	return e.Open(ctx, r)
}

// relay opens a conversation of a host with an agent that uses the host's own dialect: lines are passed unchanged, and
// recorded. It fills in the agent's fields of r. For any other agent it returns a fault of code UNSUPPORTED.
func (o opener) relay(ctx context.Context, q launch.Request, w relay.Wishes, r relay.Relay) (int, error) {
	plan, err := o.env().Plan(ctx, q)
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
	p, err := plan.Pass(ctx)
	if err != nil {
		return 0, err
	}
	around, err := o.env().Around(driver, p.Spec, p.Touched)
	if err != nil {
		return 0, err
	}
	defer around.Close()
	p.Spec.Walled, r.Around = around.Stands(), around.Plan
	record := stream.Record(p.Record, followed{driver.Decode(setting.StreamJSON), around})
	defer func() {
		if err := record.Close(); err != nil {
			o.log("the conversation could not be kept: %v", err)
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
	r.Register = o.call.Register()
	r.Name, r.Log, r.Grace = driver.Describe().Binary, o.log, cmp.Or(r.Grace, o.call.Config.Duration("grace"))
	return r.Run(ctx)
}

// followed is a Decoder whose events the walls follow.
type followed struct {
	agent.Decoder
	around *launch.Around
}

func (f followed) Feed(data []byte) []event.Event {
	all := f.Decoder.Feed(data)
	for _, e := range all {
		f.around.Follow(e)
	}
	return all
}

// quietOpener opens nothing: it knows what a conversation here would be opened with.
func (p Parts) quietOpener(c *contract.Call) opener {
	return opener{call: c, parts: p, log: noLog, detail: noLog}
}

// refuses returns why an agent cannot be started. It changes nothing.
func (p Parts) refuses(ctx context.Context, c *contract.Call, r launch.Request, closed bool) error {
	quiet := p.quietOpener(c)
	quiet.closed = closed
	env := quiet.env()
	gate := env.Gate
	env.Register, env.Gate = nil, func(a launch.Agent, dir string) allow.Gate {
		g := gate(a, dir)
		g.Record = nil
		return g
	}
	_, err := env.Plan(ctx, r)
	return err
}

// depthOf returns how many agents above a call ask one another.
func depthOf(c *contract.Call) int {
	var around []string
	if c.Paths.State != "" {
		around = process.OwnNotes(filepath.Join(c.Paths.State, startedDir))
	}
	return mcp.Depth(c.Host.Lookup, around)
}
