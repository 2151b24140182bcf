//go:build unix

package agenttest

import (
	"cmp"
	"testing"

	"omniagent/internal/agents/claude"
	"omniagent/internal/agents/gemini"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/setting"
	"omniagent/internal/llm/modelserver"
)

// Subject is an agent and the host through which a conversation with it is driven.
type Subject struct {
	Agent  string
	Host   Host
	Driver agent.Driver     // nil: the engine
	Pace   modelserver.Pace // how slowly its model or its stub answers
	Busy   bool             // somebody else works in its workspace meanwhile

	prepare   func(*place, *agent.Spec)   // of an installed agent
	around    func(agent.Mind) agent.Mind // what stands in front of its Mind, driven directly; nil: nothing
	installed bool                        // a real agent
	base      string
	env       []string
	lacks     map[int]string // laws that cannot be tried, and why
}

// Host is a way to drive a conversation.
type Host struct {
	Name string
	open func(*testing.T, Subject, wish) side
	// unsaid are the laws that its protocol has no words for, and why.
	unsaid map[int]string
	mute   bool             // nobody can be asked through it
	single string           // why nothing can be said while a turn runs; empty: it can
	fixed  string           // why no mode can be set; empty: it can
	idle   string           // what an interruption means while nothing runs; empty: nothing
	passes string           // why it holds no conversation with the live stub; empty: it does
	soft   bool             // a change that fails is not told to its client
	holds  bool             // a message beyond the limit waits in it for room
	queue  map[bool]string  // why messages that wait cannot be dropped (true) or kept (false) by an interruption
	freer  setting.Approval // a mode of it in which files are written unasked; empty: auto-edit
	tight  setting.Approval // a mode of it in which they are asked about or denied; empty: prompt
}

// Name of the subject in the names of tests.
func (s Subject) Name() string { return s.Agent + ", " + s.Host.Name }

// Engine is the engine on a scripted model.
func Engine(h Host) Subject {
	return Subject{Agent: "engine", Host: h, lacks: map[int]string{
		7:  "it changes everything live, so nothing restarts it",
		10: "its sub-agents run one after the other, and so do their questions",
		17: "nothing wakes it: a command in the background is looked at by the next turn",
	}}
}

// Live is an agent that stays for many turns.
func Live(h Host) Subject { return Subject{Agent: "live", Host: h, Driver: claude.New()} }

// PerTurn is an agent that is started for each turn.
func PerTurn(h Host) Subject {
	return Subject{Agent: "per turn", Host: h, Driver: gemini.New(), lacks: map[int]string{
		9:  "it cannot ask in a run of its own",
		10: "it cannot ask in a run of its own",
		17: "its process is gone between turns, so nothing is left that could wake it",
	}}
}

// Direct drives a conversation in this process.
func Direct() Host { return Host{Name: "direct", open: openDirect} }

// stub reports whether the agent is one of our stubs.
func (s Subject) stub() bool { return s.Driver != nil && !s.installed }

// Installed is an agent of this machine, driven directly. env is its environment in addition to HOME, for a model at
// that address. base is a directory for homes and workspaces, because some agents refuse the system's temporary
// directory.
func Installed(d agent.Driver, base string, rehearsal func(url, home string) agent.Rehearsal, env []string) Subject {
	const scripted = "a scripted model cannot bring it about"
	s := Subject{
		Agent: d.Name(), Host: Direct(), Driver: d, installed: true, base: base, env: env,
		prepare: func(p *place, spec *agent.Spec) {
			r := rehearsal(p.model.URL(), p.home)
			spec.Rehearsal = &r
		},
		lacks: map[int]string{
			10: scripted, 13: "what it says goes the way of the stubs'",
			16: "what is killed is the host, for every agent",
			17: scripted,
		},
	}
	if name := d.Name(); name != "claude" && name != "codex" {
		s.lacks[9] = "it cannot ask in a run of its own"
	}
	if d.Name() == "opencode" {
		s.lacks[6] = "it tells a call when it is over, so nothing says that one runs"
	}
	return s
}

// live reports whether the agent accepts changes while a turn runs.
func (s Subject) live() bool { return s.Driver == nil || s.Agent == "live" || s.Agent == "claude" }

// modes returns a mode that writes files without asking.
func (h Host) modes(s Subject) setting.Approval {
	if s.installed && !s.live() {
		return setting.Yolo // not each has the other without a sandbox
	}
	return cmp.Or(h.freer, setting.AutoEdit)
}

// strict returns a mode that does not.
func (h Host) strict(Subject) setting.Approval { return cmp.Or(h.tight, setting.Prompt) }
