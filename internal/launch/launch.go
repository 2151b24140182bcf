// Package launch opens conversations: from the request of a host it makes a journal, a Mind, and the conversation of
// both.
//
//	Request ─ Plan: decide, without effects ─▶ Plan ─ Open: journal, Mind ─▶ conversation
//	              └─▶ refused, by the name of a term
//
// Plan decides which agent, program, model and rules are used, and in which environment. It refuses terms that the
// agent cannot keep, and writes nothing. Open carries the plan out.
//
// It depends neither on commands nor on hosts: an Env has what it needs from the machine and from the person's
// configuration.
package launch

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"time"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/ident"
	"omniagent/internal/kit/setting"
	"omniagent/internal/launch/allow"
	"omniagent/internal/llm/provider"
	"omniagent/internal/native"
	"omniagent/internal/repo/undo"
	"omniagent/internal/sys/config"
	"omniagent/internal/sys/process"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/talk/session"
)

// Env is what Plan and Open need from the machine and from the person's configuration.
type Env struct {
	Dir      string // the directory of the caller
	Home     string // empty: unknown
	Config   string // empty: unknown
	Temp     string
	Lookup   func(name string) (string, bool) // a variable of the environment
	Environ  []string
	Machine  agent.Machine
	Version  string // of this program
	Agents   func() ([]Agent, error)
	Versions func(program string) string // see agent.Env.Printed
	Trust    *config.Trust               // the files that a person has reviewed
	Gate     func(a Agent, dir string) allow.Gate
	Native   NativeSettings
	Grace    time.Duration
	Register func() *process.Register // lists the agents that are started; nil: none
	Keep     bool                     // keep sessions on disk
	Bare     bool                     // no walls around installed agents
	// Plain: start an installed agent for one message like a call without a command: with these flags, the whole
	// environment and the settings of the repository, even if it is not allowed; nil: start it as usual.
	Plain *setting.Shared
	Owns  []string // further directories of the home directory that installed agents may change
	// the names in a workspace that any agent obeys; see the function Veiled
	Veiled []string
	Fork   []string    // the directories of the fork to work in; none: no fork
	ForkID string      // the id of that fork
	Undo   *undo.Store // of the snapshots before and after each turn; nil: none are taken
	Run    string      // the run that conversations are a part of; empty: none
	Log    func(format string, args ...any)
	Detail func(format string, args ...any) // logs details
}

// Agent is an agent that can be opened.
type Agent struct {
	agent.Driver
	Custom bool // defined by a person's own file
}

// NativeSettings holds the person's settings for the native agent. What a Request asks for comes
// before them.
type NativeSettings struct {
	native.Settings
	Model provider.Options // what does not depend on the Request
	// Profiles returns the profiles of the user and of the project in a directory. If it is nil, there are none.
	Profiles      func(dir string) provider.Profiles
	UsualProtocol string // of tools, if neither Settings nor the model's profile name one; empty: xnlcall.Native
	Problem       error  // syntax error of a rule
}

// Request is a request of a host.
type Request struct {
	Agent    string     // name of the agent; empty: the native agent
	Spec     agent.Spec // Resume and Fresh are session ids; this package fills in what depends on the machine
	Services agent.Services
	Mode     bool          // the mode was chosen for this conversation, and is not merely a default
	Rejoin   bool          // resume the session Fresh if it exists
	Forget   bool          // keep nothing on disk
	First    []event.Block // the first message, if it is already known; nil: none
	Patience time.Duration // for an answer; 0: the conversation's own

	Like string // id of a session whose model a new one has if none is chosen; empty: none

	// For the native agent only: the model API, its address, a file with an earlier conversation, and rules that ask.
	Provider, Base, History string
	Ask                     []string
	ToolProtocol            string // how the model calls tools; empty: the default
}

// Plan is a conversation that can be opened.
type Plan struct {
	env     Env
	request Request
	agent   string
	keep    bool
	driver  agent.Driver   // for an installed agent
	native  native.Options // otherwise
	secrets []string       // the environment; its secrets must not reach the journal
}

// Plan returns how to open a conversation, or why it cannot be opened. It reads files, but writes and starts nothing.
func (e Env) Plan(ctx context.Context, r Request) (*Plan, error) {
	if e.Home == "" {
		return nil, fault.New(fault.NoHome, "there is no home directory to keep the session in").Hint("set HOME")
	}
	r.Spec.Dir = cmp.Or(r.Spec.Dir, e.Dir)
	r.Agent = cmp.Or(r.Agent, native.Name)
	r.Spec.Terms.Bypass = r.Spec.Terms.Bypass || cli.ModeOf(r.Spec) == setting.Yolo
	p := &Plan{env: e, request: r, agent: r.Agent, keep: e.Keep && !r.Forget}
	resumes := r.Spec.Resume != "" || r.Spec.Terms.Continue
	if !p.keep && resumes {
		return nil, fault.New(fault.ArgError, "a session on disk cannot be resumed without keeping it").
			Hint("leave out --no-session-persistence, or fork it: omniagent session fork")
	}
	if id := r.Spec.Resume; id != "" && r.Spec.Rehearsal == nil && e.rehearsed(id) {
		return nil, fault.New(fault.Unsupported, "session %s was a rehearsal: a script answered, which is gone", id).
			Hint("begin another with omniagent chat --rehearse, or with a model: omniagent chat")
	}
	p.request.Services.Grace = cmp.Or(r.Services.Grace, e.Grace)
	if s := &p.request.Spec; e.rejoins(r) {
		s.Resume, s.Fresh = s.Fresh, ""
	}
	if r.Agent == native.Name {
		return p, p.own(ctx)
	}
	return p, p.installed()
}

// Open plans a conversation and opens it.
func (e Env) Open(ctx context.Context, r Request) (*conversation.Conversation, error) {
	p, err := e.Plan(ctx, r)
	if err != nil {
		return nil, err
	}
	opened, err := p.Open(ctx)
	if !errors.Is(err, fault.AlreadyExists) || !e.rejoins(r) {
		return opened, err
	}
	if p, err = e.Plan(ctx, r); err != nil { // another process has begun the session since it was planned
		return nil, err
	}
	return p.Open(ctx)
}

// rehearsed reports whether a script answered in a session, in place of a model.
func (e Env) rehearsed(id string) bool {
	view, err := e.Store().Show(id)
	if err != nil {
		return false
	}
	defer view.Close()
	return view.State.Begin.Rehearsed
}

// rejoins reports whether a request continues the session that its Fresh names.
func (e Env) rejoins(r Request) bool {
	s := r.Spec
	return r.Rejoin && e.Keep && !r.Forget && s.Resume == "" && !s.Terms.Continue && s.Fresh != "" && r.History == "" &&
		e.Store().Has(s.Fresh)
}

// Store returns the store of the sessions.
func (e Env) Store() session.Store { return session.Default(e.Home).In(e.ForkID) }

// installed plans a conversation with an installed agent.
func (p *Plan) installed() error {
	if protocol := p.request.ToolProtocol; protocol != "" {
		return fault.New(fault.Unsupported, "%s calls tools in its own way, so --tool-protocol %s does not go with it",
			p.agent, protocol).Hint("leave it out, or use the native agent")
	}
	driver, err := p.env.Prepare(p.agent, &p.request.Spec, p.request.Ask)
	if err != nil {
		return err
	}
	p.driver, p.agent = driver, driver.Name()
	p.secrets = p.env.Environ
	if p.env.Register != nil {
		p.request.Services.Register = p.env.Register()
	}
	return nil
}

// Prepare returns the driver of an agent, and fills in the parts of its Spec that depend on this machine. It fails if
// the agent is unknown, is not installed, or may not be started.
func (e Env) Prepare(name string, s *agent.Spec, ask []string) (agent.Driver, error) {
	known, err := e.Agents()
	if err != nil {
		return nil, err
	}
	if len(ask) > 0 {
		return nil, fault.New(fault.Unsupported, "%s keeps no rules that ask, such as %s", name, ask[0]).
			Hint("leave them out, or use the native agent")
	}
	a, ok := agent.Find(known, name)
	if !ok {
		return nil, fault.New(fault.NotFoundCode, "there is no agent %s", name).Hint("omniagent agents list")
	}
	s.Dir = cmp.Or(s.Dir, e.Dir)
	s.Install, err = a.Locate(agent.Env{Lookup: e.Lookup, Dir: s.Dir, Printed: e.Versions})
	if err != nil {
		return nil, err
	}
	gate, env := e.Gate(a, s.Dir), orElse(s.Env, e.Environ)
	if e.Plain != nil {
		if found := gate.FromWorkspace(s.Install, env); found != "" {
			return nil, fault.New(fault.Unsafe, "%s is not started: %s comes with the workspace", a.Name(), found).
				With("path", found)
		}
		s.Env, s.Plain, s.Shared = env, true, *e.Plain
		s.Newest, s.Terms.Continue = s.Terms.Continue, false
	} else if s.Env, err = gate.Admit(allow.Request{
		Driver: a.Driver, Custom: a.Custom, Install: s.Install, Env: env,
		Dirs: append([]string{s.Dir}, s.Terms.Dirs...), Passthrough: s.Passthrough,
	}); err != nil {
		return nil, err
	}
	s.Fresh = cmp.Or(s.Fresh, ident.UUID())
	s.Temp = filepath.Join(e.Temp, "omniagent-"+ident.Hex(12))
	s.Trusted, s.Copy, s.Machine = e.Trust.Trusted, e.Trust.Copy, e.Machine
	return a.Driver, nil
}
