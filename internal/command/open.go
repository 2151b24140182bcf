package command

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"omniagent/internal/admission"
	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
	"omniagent/internal/agent/native"
	"omniagent/internal/audit"
	"omniagent/internal/config"
	"omniagent/internal/contract"
	"omniagent/internal/conversation"
	"omniagent/internal/engine"
	"omniagent/internal/fault"
	"omniagent/internal/guard"
	"omniagent/internal/provider"
	"omniagent/internal/relay"
	"omniagent/internal/session"
)

// opener opens conversations for the hosts of a call. Its open is an agent.Opener.
type opener struct {
	call    *contract.Call
	log     func(format string, args ...any)
	detail  func(format string, args ...any) // the same, for who wants to know more
	drivers []agent.Driver
	// Of the native agent alone: which model API, at which address, and a file with what was said elsewhere.
	provider, base, history string
	ask                     []string // calls that are asked about, in the words of docs/rules.md
	unkept                  bool     // nothing of the conversation is kept
}

// open opens a conversation for a host that still wants an agent.Session.
func (o opener) open(ctx context.Context, name string, s agent.Spec, sv agent.Services) (agent.Session, error) {
	c, err := o.converse(ctx, name, s, sv)
	if err != nil {
		return nil, err
	}
	return conversation.NewLegacy(c, c.Last()+1), nil
}

// converse opens a conversation.
func (o opener) converse(ctx context.Context, name string, s agent.Spec, sv agent.Services) (*conversation.Conversation, error) {
	if s.Dir == "" {
		s.Dir = o.call.Dir()
	}
	if name != native.Name {
		return o.installed(ctx, name, s, sv)
	}
	options, err := o.native(s, sv)
	if err != nil {
		return nil, err
	}
	if options.Kept, err = native.Keep(ctx, options); err != nil {
		return nil, err
	}
	sv.Grace = cmp.Or(sv.Grace, o.call.Config.Duration("grace"))
	s.Resume, s.Fresh, s.Terms.Continue, s.Terms.Fork = options.Kept.ID(), "", false, false // that is done
	c, err := conversation.Open(ctx, conversation.Options{
		Journal: options.Kept, Mind: minds(options, s), Spec: s, Services: sv, Recorded: true, Log: o.log,
	})
	if err != nil {
		_ = options.Kept.Close()
		return nil, err
	}
	return c, nil
}

// minds makes the native agent's Minds. s is what the conversation begins with: the model in it is the one chosen.
func minds(o native.Options, s agent.Spec) agent.NewMind {
	first := s.Shared.Model.Value
	return func(ctx context.Context, s agent.Spec, sv agent.Services) (agent.Mind, error) {
		o := o
		o.Services, o.Mode = sv, cli.ModeOf(s)
		if name := s.Shared.Model.Value; name != first {
			var err error
			if o.Choice, err = o.Choice.With(name); err != nil {
				return nil, err
			}
		}
		m, err := native.Open(ctx, o)
		if err != nil {
			return nil, err
		}
		return m, nil
	}
}

// installed opens a conversation with an agent of this machine.
func (o opener) installed(ctx context.Context, name string, s agent.Spec, sv agent.Services) (*conversation.Conversation, error) {
	return nil, fault.New(fault.Unsupported, "not yet")
}

// prepare finds the agent, asks the gate, and fills in what belongs to this machine.
func (o opener) prepare(name string, s *agent.Spec) (agent.Driver, error) {
	known, err := knownAgents(o.call, o.drivers)
	if err != nil {
		return nil, err
	}
	if len(o.ask) > 0 {
		return nil, fault.New(fault.Unsupported, "rules that ask, such as %s, are not kept with the agent %s", o.ask[0], name)
	}
	i := slices.IndexFunc(known, func(k knownAgent) bool { return k.answersTo(name) })
	if i < 0 {
		return nil, fault.New(fault.NotFoundCode, "there is no agent %s", name).Hint("omniagent agents list")
	}
	driver, host := known[i].Driver, o.call.Host
	if s.Dir == "" {
		s.Dir = o.call.Dir()
	}
	s.Install, err = driver.Locate(agent.Env{Lookup: host.Lookup, Dir: s.Dir, Said: versions(o.call.Paths).Of})
	if err != nil {
		return nil, err
	}
	if s.Env, err = o.admitted(known[i], *s); err != nil {
		return nil, err
	}
	var random [12]byte
	_, _ = rand.Read(random[:]) // it never fails
	if s.Fresh == "" {
		s.Fresh = newUUID()
	}
	s.Temp = filepath.Join(o.call.Paths.Temp, "omniagent-"+hex.EncodeToString(random[:]))
	trust := config.OpenTrust(o.call.TrustFile())
	s.Trusted, s.Copy = trust.Trusted, trust.Copy
	s.Machine = agent.Machine{Root: os.Geteuid() == 0, OS: runtime.GOOS, Has: func(program string) bool { return cli.InPath(host.Lookup, program) }}
	return driver, nil
}

// relay is a conversation of a host with an agent that speaks the host's own lines: they pass as they are. Of r it fills in what belongs to the agent.
// An agent that does not speak them is a fault of code UNSUPPORTED.
func (o opener) relay(ctx context.Context, name string, s agent.Spec, w relay.Wishes, r relay.Relay) (int, error) {
	driver, err := o.prepare(name, &s)
	if err != nil {
		return 0, err
	}
	speaker, ok := driver.(relay.Speaker)
	if !ok {
		return 0, fault.New(fault.Unsupported, "%s does not speak these lines itself", name)
	}
	if r.Launch, err = speaker.Relayed(s, w); err != nil {
		return 0, err
	}
	if err := cli.WriteFiles(r.Launch.Files); err != nil {
		return 0, err
	}
	defer cli.RemoveFiles(r.Launch.Files)
	r.Name, r.Log, r.Grace = driver.Describe().Binary, o.log, cmp.Or(r.Grace, o.call.Config.Duration("grace"))
	return r.Run(ctx)
}

// admitted asks the gate, and is the environment that the agent gets.
func (o opener) admitted(k knownAgent, s agent.Spec) ([]string, error) {
	root, _ := config.ProjectRoot(s.Dir)
	gate := admission.Gate{Allow: o.call.Config.List("agents.allow"), More: o.call.Config.List("agents.env"), Roots: []string{s.Dir, root}}
	if o.call.AuditPath() != "" {
		command := strings.Join(strings.Fields(o.call.Command.Path), " ") + " --agent " + k.Name()
		gate.Record = func(e audit.Entry) error {
			e.Command = command
			return o.call.RecordAlso(e)
		}
	}
	return gate.Admit(admission.Request{Driver: k.Driver, Custom: k.from != nil, Install: s.Install, Env: orElse(s.Env, os.Environ())})
}

func orElse[T any](a, b []T) []T {
	if a != nil {
		return a
	}
	return b
}

// native is what a conversation with our own agent is made of.
func (o opener) native(s agent.Spec, sv agent.Services) (native.Options, error) {
	c := o.call
	home, _ := c.Host.Lookup("HOME")
	if home == "" {
		return native.Options{}, fault.New(fault.NoHome, "there is no home directory to keep the session in").Hint("set HOME")
	}
	choice, err := provider.Choose(provider.Options{
		Provider: o.provider, Model: s.Shared.Model.Value, Base: o.base, Lookup: ownPrograms(c, home), Home: home,
		First: c.Config.Duration("native.first_byte"), Idle: c.Config.Duration("native.idle"),
	})
	if err != nil {
		return native.Options{}, err
	}
	o.detail("%s", choice.How)
	if choice.Note != "" {
		o.log("%s", choice.Note)
	}
	rules, problems := rulesOf(c)
	if len(problems) > 0 {
		return native.Options{}, problems[0]
	}
	for _, text := range o.ask {
		rule, err := guard.ParseRule(guard.Ask, text, "the settings")
		if err != nil {
			return native.Options{}, err
		}
		rules = append(rules, rule)
	}
	options := native.Options{
		Choice: choice, Dir: s.Dir, Store: session.Default(home), ID: s.Fresh, Resume: s.Resume, History: o.history, Mode: cli.ModeOf(s),
		CanAsk: sv.CanAsk, Web: s.Shared.Web.Value, Env: orElse(s.Env, os.Environ()), HandOn: c.Config.List("native.env"), Temp: c.Paths.Temp,
		Trusted: config.OpenTrust(c.TrustFile()).Trusted, Log: o.log, Rules: rules,
		Sandbox: cmp.Or(string(s.Shared.Sandbox.Value), c.Config.String("native.sandbox")), Network: cmp.Or(s.Terms.Network, c.Config.String("native.network")),
		Memory: c.Config.Int("native.memory"), Home: home, State: c.Paths.State,
		Limits: engine.Limits{Turns: s.Terms.MaxTurns, CostUSD: s.Terms.MaxUSD}, Lookup: c.Host.Lookup, Version: Version,
		Terms: s.Terms, Services: sv, Schema: s.Schema, Unkept: o.unkept,
	}
	if c.Paths.Config != "" {
		options.Servers = filepath.Join(c.Paths.Config, "mcp.json")
	}
	return options, nil
}

// newUUID is a random one, version 4.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
