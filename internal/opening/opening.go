// Package opening opens conversations: it makes of what a host asks for a journal, a Mind and the conversation of the
// two.
//
// Plan decides everything that can be decided beforehand and has no effect: which agent, which program, which model,
// which rules, with which environment. Open makes it so. A Plan that cannot be kept is refused with the term that
// cannot be, and leaves nothing behind.
//
// It knows neither commands nor hosts: what it has to know of the machine and of the person's configuration is an Env.
package opening

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"omniagent/internal/admission"
	"omniagent/internal/agent"
	"omniagent/internal/agent/native"
	"omniagent/internal/conversation"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/guard"
	"omniagent/internal/ident"
	"omniagent/internal/model"
	"omniagent/internal/session"
	"omniagent/internal/setting"
	"omniagent/internal/tool"
)

// Env is what an opening has to know of the machine and of the person's configuration.
type Env struct {
	Dir      string // where the caller works
	Home     string // empty: there is none
	State    string
	Config   string // empty: there is none
	Temp     string
	Lookup   func(name string) (string, bool) // a variable of the environment
	Environ  []string
	Machine  agent.Machine
	Version  string // of this program
	Agents   func() ([]Agent, error)
	Versions func(program string) string // see agent.Env.Said
	Trusted  func(path string, content []byte) bool
	Copy     func(path string) ([]byte, bool) // see agent.Spec.Copy
	Gate     func(a Agent, dir string) admission.Gate
	Own      Own
	Grace    time.Duration
	Keep     bool // sessions stay on disk
	Log      func(format string, args ...any)
	Detail   func(format string, args ...any) // for people who want to know more
}

// Agent is one that can be opened.
type Agent struct {
	agent.Driver
	Custom bool // a person's own file defines it
}

// Own are the person's settings of the native agent.
type Own struct {
	Rules            guard.Rules
	Tools            tool.List
	Known            guard.Agents // beside the native one
	Problem          error        // of a rule that does not parse
	Variables        []string     // that commands and servers get as well
	Memory           int64
	Sandbox, Network string // where the request does not say
	First, Idle      time.Duration
	Programs         func(name string) (string, bool) // the environment for finding programs that are asked for a login
	APIs             []model.API                      // among which one is chosen; nil: provider.APIs
	Agents           []string                         // that a person may take for one
}

// Request is what a host asks for.
type Request struct {
	Agent    string     // its name; empty: the native agent
	Spec     agent.Spec // Resume and Fresh are names of sessions; what belongs to the machine is filled in here
	Services agent.Services
	Mode     bool          // the mode was chosen for this conversation, and is not merely a default
	Rejoin   bool          // a session that exists under the name Fresh is resumed
	Forget   bool          // nothing of it stays on disk
	First    []event.Block // the first message, where it is known already; nil: none
	Patience time.Duration // for an answer; 0: the conversation's own

	// Of the native agent alone: which model API, at which address, a file with what was said elsewhere, and calls that
	// are asked about.
	Provider, Base, History string
	Ask                     []string
}

// Plan is a conversation that can be opened.
type Plan struct {
	env     Env
	request Request
	agent   string
	keep    bool
	driver  agent.Driver   // of an installed agent
	native  native.Options // else
	secrets []string       // the environment whose secrets stay out of the journal
}

// Plan decides how a conversation is opened. It reads, and neither writes nor starts anything.
func (e Env) Plan(r Request) (*Plan, error) {
	if e.Home == "" {
		return nil, fault.New(fault.NoHome, "there is no home directory to keep the session in").Hint("set HOME")
	}
	if r.Spec.Dir == "" {
		r.Spec.Dir = e.Dir
	}
	if r.Agent == "" {
		r.Agent = native.Name
	}
	p := &Plan{env: e, request: r, agent: r.Agent, keep: e.Keep && !r.Forget}
	resumes := r.Spec.Resume != "" || r.Spec.Terms.Continue
	if !p.keep && resumes {
		return nil, fault.New(fault.ArgError, "a session that is on disk cannot be resumed without keeping it").
			Hint("leave out --no-session-persistence, or fork it: omniagent session fork")
	}
	s := &p.request.Spec
	if r.Rejoin && p.keep && !resumes && s.Fresh != "" && r.History == "" && e.Store().Has(s.Fresh) {
		s.Resume, s.Fresh = s.Fresh, ""
	}
	if r.Agent == native.Name {
		return p, p.own()
	}
	return p, p.installed()
}

// Open plans a conversation and opens it.
func (e Env) Open(ctx context.Context, r Request) (*conversation.Conversation, error) {
	p, err := e.Plan(r)
	if err != nil {
		return nil, err
	}
	return p.Open(ctx)
}

// Store is where sessions are kept.
func (e Env) Store() session.Store { return session.Default(e.Home) }

// installed plans a conversation with an agent of this machine.
func (p *Plan) installed() error {
	driver, err := p.env.Prepare(p.agent, &p.request.Spec, p.request.Ask)
	if err != nil {
		return err
	}
	p.driver, p.agent = driver, driver.Name()
	p.secrets = p.env.Environ
	if p.request.Services.Grace == 0 {
		p.request.Services.Grace = p.env.Grace
	}
	return nil
}

// Prepare finds the agent, asks the gate, and fills in what belongs to this machine.
func (e Env) Prepare(name string, s *agent.Spec, ask []string) (agent.Driver, error) {
	known, err := e.Agents()
	if err != nil {
		return nil, err
	}
	if len(ask) > 0 {
		return nil, fault.New(fault.Unsupported, "%s keeps no rules that ask, such as %s", name, ask[0]).
			Hint("leave them out, or use the native agent")
	}
	i := slices.IndexFunc(
		known,
		func(a Agent) bool { return a.Name() == name || slices.Contains(a.Describe().Aliases, name) },
	)
	if i < 0 {
		return nil, fault.New(fault.NotFoundCode, "there is no agent %s", name).Hint("omniagent agents list")
	}
	a := known[i]
	if s.Dir == "" {
		s.Dir = e.Dir
	}
	s.Install, err = a.Locate(agent.Env{Lookup: e.Lookup, Dir: s.Dir, Said: e.Versions})
	if err != nil {
		return nil, err
	}
	env := e.Environ
	if s.Env != nil {
		env = s.Env
	}
	s.Env, err = e.Gate(a, s.Dir).
		Admit(admission.Request{Driver: a.Driver, Custom: a.Custom, Install: s.Install, Env: env})
	if err != nil {
		return nil, err
	}
	if s.Fresh == "" {
		s.Fresh = ident.UUID()
	}
	s.Temp = filepath.Join(e.Temp, "omniagent-"+ident.Hex(12))
	s.Trusted, s.Copy, s.Machine = e.Trusted, e.Copy, e.Machine
	return a.Driver, nil
}

// typed is a value that somebody chose; an empty one is nobody's choice.
func typed[T comparable](v T) setting.Chosen[T] {
	var none T
	if v == none {
		return setting.Chosen[T]{}
	}
	return setting.Chosen[T]{Value: v, Origin: setting.Typed}
}
