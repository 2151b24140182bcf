package cli

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/sys/process"
	"omniagent/internal/sys/workspace"
)

// TurnMind returns a Mind for which every turn is a separate run: the agent is started for a message, resumes the
// session of the previous turn, and exits. It cannot ask a person.
//
// The end of a turn is reported when the process has exited. If the agent reported several ends, the last one counts.
func TurnMind(d agent.Driver, s agent.Spec, sv agent.Services) (agent.Mind, error) {
	if s.Temp == "" {
		return nil, fault.New(fault.Internal, "a conversation needs a private directory")
	}
	first := FirstFacts(d, s)
	if err := ApplyTerms(d, &s, sv); err != nil {
		return nil, err
	}
	sv.Grace = cmp.Or(sv.Grace, DefaultGrace)
	s.Mode = setting.OneShot
	s.Shared.Output = setting.Chosen[setting.Output]{Value: Readable(d), Origin: setting.Derived}
	return &turns{driver: d, spec: s, services: sv, first: first, id: s.Resume, model: first.Model}, nil
}

// Readable returns the output format to request from an agent: its stream, or its text if we cannot read its stream.
func Readable(d agent.Driver) setting.Output {
	if d.Decode(setting.StreamJSON) == nil {
		return setting.Text
	}
	return setting.StreamJSON
}

// turns is a Mind with a process for each turn.
type turns struct {
	driver   agent.Driver
	spec     agent.Spec
	services agent.Services
	first    event.Facts

	turning sync.Mutex // held by the current Turn

	mu      sync.Mutex
	run     *run // the process of the current turn
	id      string
	model   string
	begun   int // number of started turns
	closed  bool
	outcome agent.Outcome
	files   []agent.File
}

func (m *turns) Facts() event.Facts { return m.first }

// Abilities has at most Resume: every change needs a restart, for which the agent has to resume its session.
func (m *turns) Abilities() agent.Abilities {
	cell := m.driver.Matrix(m.spec.Install.Version).Cell(agent.Resume, "", setting.OneShot)
	return agent.Abilities{Resume: cell.Level == agent.Full}
}

// Steer fails, because the agent reads only one message.
func (m *turns) Steer(context.Context, []event.Block) error {
	return fault.New(fault.Unsupported, "%s cannot be steered while it works", m.driver.Describe().Title)
}

// Answer fails, because there are no questions.
func (m *turns) Answer(r event.Reply) error {
	return fault.New(fault.NotFoundCode, "there is no open question %s", r.Question)
}

// Set changes nothing, because each turn begins with the terms of the conversation.
func (m *turns) Set(context.Context, agent.Change) error { return agent.ErrRestart }

// Turn starts the agent with the message, and returns when all its processes have ended.
func (m *turns) Turn(ctx context.Context, message []event.Block) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := m.readable(message); err != nil {
		return err
	}
	if !m.turning.TryLock() {
		return fault.New(fault.Internal, "another turn is still running")
	}
	defer m.turning.Unlock()
	r, err := m.start(message)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { r.process.End("SIGINT", syscall.SIGINT) })()
	if limit := m.services.Connect; limit > 0 && !r.plain {
		defer time.AfterFunc(limit, r.silent).Stop()
	}
	x := r.process.Wait()
	last := r.finish(x)
	m.mu.Lock()
	x.Session = cmp.Or(last.Session, m.id)
	m.mu.Unlock()
	e := r.process.After(x)
	m.mu.Lock()
	m.id = cmp.Or(e.Session, m.id)
	last.Session = cmp.Or(last.Session, m.id, r.chosen)
	m.outcome = agent.Outcome{Exit: x, Evidence: e}
	m.run = nil
	m.mu.Unlock()
	for _, e := range r.completed(last, x, e) {
		m.services.Tell(e)
	}
	return nil
}

// readable refuses blocks that the agent cannot read.
func (m *turns) readable(message []event.Block) error {
	for _, block := range message {
		if block.Media != "" {
			return fault.New(fault.Unsupported, "%s accepts no %s in a message", m.driver.Describe().Title, block.Media)
		}
	}
	return CheckMessage(m.driver, m.spec.Install.Version, message)
}

// start starts the process of a turn.
func (m *turns) start(message []event.Block) (*run, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, fault.New(fault.Internal, "the conversation is closed")
	}
	if m.begun > 0 && m.id == "" {
		return nil, fault.New(fault.AgentFailed,
			"%s did not report the session of the first message, so it cannot be resumed",
			m.driver.Describe().Title)
	}
	spec := m.spec
	spec.Resume = m.id
	launch, _, err := m.driver.Command(spec)
	if err != nil {
		return nil, err
	}
	prompt := textOf(message)
	if launch.Prompt == agent.ByArgument {
		if launch.Args, err = WithPrompt(launch, m.driver.Name(), prompt); err != nil {
			return nil, err
		}
		prompt = ""
	}
	m.files = append(m.files, launch.Files...)
	r := &run{mind: m, chosen: launch.Session}
	if r.decoder = m.driver.Decode(setting.StreamJSON); r.decoder == nil {
		r.decoder, r.plain = &plainText{}, true
	}
	r.process = Process{Driver: m.driver, Services: m.services, Env: m.spec.Env}
	plan := process.Plan{Standby: m.services.Standby, Stdin: strings.NewReader(prompt), Stdout: r}
	if err := r.process.Start(launch, plan, agent.Beginning{Plain: r.plain}); err != nil {
		return nil, err
	}
	m.run = r
	m.begun++
	return r, nil
}

// Kill ends the current turn.
func (m *turns) Kill() { m.end("SIGKILL", os.Kill) }

// end ends the process of the current turn.
func (m *turns) end(why string, with os.Signal) {
	m.mu.Lock()
	r := m.run
	m.mu.Unlock()
	if r != nil {
		r.process.End(why, with)
	}
}

// Close ends the turn, if one runs, and removes the files.
func (m *turns) Close(ctx context.Context) (agent.Outcome, error) {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.end("SIGTERM", syscall.SIGTERM)
	defer context.AfterFunc(ctx, m.Kill)()
	m.turning.Lock() // waits for the end of the turn
	defer m.turning.Unlock()
	RemoveFiles(m.files)
	return m.outcome, nil
}

// FirstFacts returns what is known about a conversation before the agent has reported anything.
func FirstFacts(d agent.Driver, s agent.Spec) event.Facts {
	return event.Facts{
		Agent: d.Name(), Version: s.Install.Version, Model: s.Shared.Model.Value, Mode: ModeOf(s), Dir: s.Dir,
	}
}

// ModeOf returns the mode in which a conversation begins.
func ModeOf(s agent.Spec) setting.Approval {
	switch {
	case s.Terms.Mode != "":
		return s.Terms.Mode
	case s.Shared.Approval.Value != "":
		return s.Shared.Approval.Value
	}
	return setting.Prompt
}

func textOf(message []event.Block) string {
	var b strings.Builder
	for _, block := range message {
		b.WriteString(block.Text)
	}
	return b.String()
}

// CheckMessage refuses a message that is empty or too long for the agent.
func CheckMessage(d agent.Driver, version string, message []event.Block) error {
	text, media := textOf(message), false
	for _, block := range message {
		media = media || block.Media != ""
	}
	if strings.TrimSpace(text) == "" && !media {
		return fault.New(fault.ArgError, "the message is empty").Hint("write what the agent should do")
	}
	limit, characters := d.Matrix(version).Limit, int64(utf8.RuneCountInString(text))
	if limit.Characters > 0 && characters > limit.Characters || limit.Bytes > 0 && int64(len(text)) > limit.Bytes {
		return fault.New(fault.PromptTooLong, "the message is longer than %s accepts", d.Describe().Title).
			Hint("put the text into a file and name it in the message")
	}
	return nil
}

// WriteFiles writes the files of a launch, readable only by the user.
func WriteFiles(files []agent.File) error {
	for _, f := range files {
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
			return fault.New(fault.Internal, "cannot create %s", filepath.Dir(f.Path)).Because(err)
		}
		if err := workspace.WriteFile(f.Path, f.Data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// RemoveFiles removes the files of a launch, except those with Keep.
func RemoveFiles(files []agent.File) {
	for _, f := range files {
		if !f.Keep {
			_ = os.Remove(f.Path)
			_ = os.Remove(filepath.Dir(f.Path)) // removes a private directory if it is empty
		}
	}
}
