// Package acpclient is the client's side of the Agent Client Protocol. It drives an agent that speaks the protocol,
// decides by the mode about the calls that the agent asks about, and asks a person about the rest.
//
// It does no I/O for the agent: files and terminals are served by the host.
package acpclient

import (
	"bytes"
	"cmp"
	"context"
	"sync"
	"time"

	"omniagent/internal/agents/cli"
	"omniagent/internal/agents/live"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/wire/acp"
	"omniagent/internal/wire/jsonrpc"
)

// Agent describes an agent that we drive over the Agent Client Protocol, with one process for the whole conversation.
type Agent struct {
	Driver agent.Driver
	// Launch returns the program and its arguments. Shared.Approval is the mode. The messages, the session and the
	// servers go over the wire.
	Launch func(agent.Spec) (agent.Launch, error)
	// Fault translates an error of the agent. It may be nil or return nil; then the message of the error is used.
	Fault func(*jsonrpc.Error) *fault.Fault
	// Lost returns why a turn failed that the agent reports as done, judging by its last text. It is called only if the
	// text came in one piece; used reports whether the turn used the model. It may be nil.
	Lost func(last string, used bool) *fault.Fault
	// Exit returns the exit code in the result of a command, or nil. It may be nil.
	Exit func(output string) *int
	// Sums is set if the usage with a turn's end is that of all turns so far. The protocol's own documents contradict
	// each other.
	Sums bool
	// Recorded returns the usage of a session so far from the agent's records, or nil if they cannot be read. It
	// replaces the usage that the agent reports. It may be nil.
	Recorded func(env []string, session string) *event.Usage
	Models   bool // the model is chosen over the wire, not by a flag
	// Unflagged is set if no flag chooses the approval. Then plan needs a mode of the agent's own.
	Unflagged bool
	// Offered lists the requests that the agent may make of us. Services.Chore serves them.
	Offered acp.Offered
	// Unsafe returns an error if the agent is safe in the directory only over its stream. It may be nil.
	Unsafe func(agent.Spec) error
	// Stream returns the Mind of a conversation over the stream. It is also used if the agent does not speak the
	// protocol after all.
	Stream func(agent.Spec, agent.Services) (agent.Mind, error)

	within time.Duration // 0 means greetWithin
}

// greetWithin is how long an agent may take from its start to its answer to initialize. On an idle machine agents need
// 0.6 to 2.8 s, on two busy processors 1.2 to 8.6 s (docs/decisions/0025-acp-as-a-client.md), and opencode at its first
// start on a slow machine more than 30 s. An agent that is given up cannot ask questions, so the limit is long.
const greetWithin = 2 * time.Minute

// Mind returns a Mind over the transport that Terms name. If the agent turns out not to speak the protocol, because it
// prints something else, exits, or stays silent for too long, the conversation falls back to its stream.
func (a Agent) Mind(s agent.Spec, sv agent.Services) (agent.Mind, error) {
	var unsafe error
	if a.Unsafe != nil {
		unsafe = a.Unsafe(s)
	}
	switch by := s.Terms.Transport; {
	case by == "" || by == agent.ByStream, by == agent.ByChoice && unsafe != nil:
		s.Terms.Transport = agent.ByStream
		return a.Stream(s, sv)
	case unsafe != nil:
		return nil, unsafe
	}
	if err := a.keep(&s, sv); err != nil {
		return nil, err
	}
	m := &greeting{stream: func() (agent.Mind, error) {
		other := s
		other.Terms.Transport = agent.ByStream
		return a.Stream(other, sv)
	}, tell: sv.Tell, within: cmp.Or(a.within, greetWithin), title: a.Driver.Describe().Title}
	over := sv
	over.Tell = m.receive
	live, err := live.NewMind(live.Agent{
		Driver:    a.Driver,
		Abilities: agent.Abilities{Images: true, Resume: true},
		Launch: func(s agent.Spec) (agent.Launch, error) {
			if err := a.keep(&s, sv); err != nil {
				return agent.Launch{}, err
			}
			l, err := a.Launch(s)
			if l.Session = s.Resume; s.Terms.Fork {
				l.Session = "" // the original's records are not this run's, and the copy's id is unknown
			}
			return l, err
		},
		Proto: func(s agent.Spec, l agent.Launch) live.Proto {
			servers, _ := cli.HostServers(a.Driver.Name(), s.Terms.Servers) // the launch has checked the error
			about := a.Driver.Describe()
			o := terms{
				Agent: a, name: about.Title, login: about.Login, dir: s.Dir, resume: s.Resume, fork: s.Terms.Fork,
				mode: cli.ModeOf(s), plan: a.Unflagged && cli.ModeOf(s) == setting.Plan, servers: servers,
			}
			if a.Models {
				o.model = s.Shared.Model.Value
			}
			if a.Recorded != nil {
				o.recorded = func(session string) *event.Usage { return a.Recorded(l.Env, session) }
			}
			return &greeted{Proto: newTalk(o), mind: m}
		},
	}, s, over)
	m.mind = live
	return m, err
}

// keep refuses terms that the agent cannot keep, and copies the mode to the shared flag.
func (a Agent) keep(s *agent.Spec, sv agent.Services) error {
	if _, err := cli.HostServers(a.Driver.Name(), s.Terms.Servers); err != nil {
		return err
	}
	mode, flagged := cli.ModeOf(*s), *s
	if a.Unflagged {
		if mode == setting.DenyAll || mode == setting.AskAll {
			return fault.New(fault.Unsupported, "%s has no mode %s that we know to keep: what it does without a "+
				"question stays unasked", a.Driver.Name(), mode)
		}
		flagged.Terms.Mode, flagged.Shared.Approval = "", setting.Defaults().Approval
	}
	err := cli.ApplyTerms(a.Driver, &flagged, sv, cli.Servers, cli.Fork, cli.Protocol)
	flagged.Terms.Mode = mode
	*s = flagged
	return err
}

// greeting is a Mind over the Agent Client Protocol, until it turns out that the agent does not speak it.
//
//	               initialize answered
//	Turn ─▶ greeting ─────────────────▶ the Mind over the protocol
//	          │ something else printed, exit, silence
//	          └───────────────────────▶ the Mind over the stream, with the same message
type greeting struct {
	stream func() (agent.Mind, error)
	tell   func(event.Event)
	within time.Duration

	mu      sync.Mutex
	mind    agent.Mind // in use
	decided bool       // the choice of the Mind is final
	why     string     // why the stream is used
	line    string     // what it printed instead of the protocol
	title   string     // of the agent
	alone   bool       // there is no stream either, so the conversation fails for that reason
	ended   bool       // we ended the process
	held    []event.Event
}

// greeted reports the agent's first output to the greeting.
type greeted struct {
	live.Proto
	mind *greeting
}

// Feed detects the answer to initialize, or other output.
func (p *greeted) Feed(data []byte) live.Step {
	step := p.Proto.Feed(data)
	if p.Ready() {
		p.mind.mu.Lock()
		p.mind.decided = true
		p.mind.mu.Unlock()
		return step
	}
	for _, e := range step.Events {
		if cli.IsUnreadable(e) {
			p.mind.printed(e.Raw)
		}
	}
	return step
}

// End detects that the process is gone.
func (p *greeted) End(x agent.Exit) []event.Event {
	m := p.mind
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = x.Signal != "" || x.EndedBy != ""
	return p.Proto.End(x)
}

// printed gives up the protocol because of a line that is not part of it.
func (m *greeting) printed(line []byte) {
	m.mu.Lock()
	m.line = cmp.Or(m.line, cli.FirstLine(string(line)))
	m.mu.Unlock()
	m.leave("the agent printed something else")
}

// leave gives up the protocol.
func (m *greeting) leave(why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.decided && m.why == "" {
		m.why = why
		go m.mind.Kill()
	}
}

// receive holds events back until it is clear that the agent speaks the protocol. It reports them without holding the
// lock.
func (m *greeting) receive(e event.Event) {
	m.mu.Lock()
	heard := m.decided
	if !heard {
		e.Raw = bytes.Clone(e.Raw)
		m.held = append(m.held, e)
	}
	m.mu.Unlock()
	if heard {
		m.flush()
		m.tell(e)
	}
}

// flush reports the events that were held back, and keeps new ones waiting meanwhile.
func (m *greeting) flush() {
	m.mu.Lock()
	held := m.held
	m.held = nil
	m.mu.Unlock()
	for _, e := range held {
		m.tell(m.explained(e))
	}
}

// explained sets the fault of a turn that ended because we gave up the protocol. We ended the process then, so without
// it the turn would count as cancelled.
func (m *greeting) explained(e event.Event) event.Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case !m.alone:
	case e.Kind == event.Failed && e.Terminal:
		e.Fault = fault.New(fault.AgentFailed, "%s cannot be used over the Agent Client Protocol: %s", m.title, m.why)
		if m.line != "" {
			e.Fault.Message += ": " + m.line
		}
	case e.Kind == event.Ended && !e.Unprompted:
		e.End = &event.End{Reason: event.FailedTurn}
	}
	return e
}

func (m *greeting) now() agent.Mind {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mind
}

// Turn answers a message. If the agent did not accept the first one, it is sent again over the stream.
func (m *greeting) Turn(ctx context.Context, message []event.Block) error {
	late := time.AfterFunc(m.within, func() { m.leave("the agent did not answer within " + m.within.String()) })
	mind := m.now()
	err := mind.Turn(ctx, message)
	late.Stop()
	stream, why := m.other(err != nil || ctx.Err() != nil)
	if stream == nil {
		m.flush()
		return err
	}
	m.tell(event.Event{
		Kind: event.Notice, Synthetic: true, Denies: true,
		Text: "the Agent Client Protocol is not used, as " + why + "; what the agent prints is read as a stream, and " +
			"what it would ask about is denied",
	})
	_, _ = mind.Close(ctx)
	return stream.Turn(ctx, message)
}

// other returns the Mind over the stream if it has to take over, and why. If over is true, the turn must not continue.
func (m *greeting) other(over bool) (stream agent.Mind, why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.decided || over {
		return nil, ""
	}
	if m.why == "" && !m.ended {
		m.why = "the agent ended before it answered"
	}
	if m.why == "" {
		return nil, ""
	}
	stream, err := m.stream()
	if err != nil { // the stream fails too
		m.alone = true
		return nil, ""
	}
	m.mind, m.decided, m.held = stream, true, nil
	return stream, m.why
}

// Abilities returns those over the protocol.
func (m *greeting) Abilities() agent.Abilities {
	return agent.Abilities{Images: true, Resume: true}
}

// Facts returns the facts of the Mind in use.
func (m *greeting) Facts() event.Facts { return m.now().Facts() }

// Steer passes a message on.
func (m *greeting) Steer(ctx context.Context, message []event.Block) error {
	return m.now().Steer(ctx, message)
}

// Set passes a change on.
func (m *greeting) Set(ctx context.Context, c agent.Change) error { return m.now().Set(ctx, c) }

// Answer passes an answer on.
func (m *greeting) Answer(r event.Reply) error { return m.now().Answer(r) }

// Kill ends the turn.
func (m *greeting) Kill() { m.now().Kill() }

// Close ends the Mind in use.
func (m *greeting) Close(ctx context.Context) (agent.Outcome, error) { return m.now().Close(ctx) }
