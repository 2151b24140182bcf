package cli

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"unicode/utf8"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/process"
	"omniagent/internal/setting"
	"omniagent/internal/workspace"
)

// Open begins a conversation in which every turn is a run of its own: the agent is started for a message, goes on with the session of the
// turn before, and ends. Nothing is asked of a person, since no agent can ask in that mode.
//
// Every message that Send accepts is followed by exactly one Ended, the last event of its turn. It is told when the process is gone and
// the next message can be sent: what an agent says of its end while it still runs is held back until then, and the last word counts.
func Open(_ context.Context, d agent.Driver, s agent.Spec, sv agent.Services) (agent.Session, error) {
	if s.Temp == "" {
		return nil, fault.New(fault.Internal, "a session needs a private directory")
	}
	if err := perTurn(d, &s, sv); err != nil {
		return nil, err
	}
	s.Mode = setting.OneShot
	s.Shared.Output = setting.Chosen[setting.Output]{Value: Readable(d), Origin: setting.Derived}
	return &session{driver: d, spec: s, services: sv, events: event.NewQueue(0), id: s.Resume, model: s.Shared.Model.Value}, nil
}

// perTurn puts the mode into a shared flag, and refuses what nothing of an agent would keep that cannot be talked to while it works.
func perTurn(d agent.Driver, s *agent.Spec, sv agent.Services) error {
	name, t := d.Name(), s.Terms
	switch t.Mode {
	case "":
	case setting.Prompt, setting.Default:
		s.Shared.Approval = typed(setting.Prompt)
	case setting.AutoEdit:
		s.Shared.Approval = typed(setting.AutoEdit)
	case setting.Yolo:
		s.Shared.Approval = typed(setting.Yolo)
	default:
		return fault.New(fault.Unsupported, "%s has no mode %s that we know to keep", name, t.Mode)
	}
	for _, no := range []struct {
		asked bool
		what  string
	}{
		{len(t.Allow) > 0, "--allowedTools"},
		{len(t.Deny) > 0, "--disallowedTools"},
		{t.Tools != nil, "--tools"},
		{t.MaxTurns > 0, "--max-turns"},
		{t.MaxUSD > 0, "--max-budget-usd"},
		{len(t.Servers) > 0, "--mcp-config"},
		{t.OnlyThese, "--strict-mcp-config"},
		{len(t.Helpers) > 0, "--agents"},
		{t.Network != "", "--network"},
		{len(t.Dirs) > 0, "--add-dir"},
		{t.System != "", "--system-prompt"},
		{t.Append != "", "--append-system-prompt"},
		{t.Continue, "--continue"},
		{t.Fork, "--fork-session"},
		{sv.Hook != nil, "word of a host in between (hooks)"},
		{s.Schema != nil && d.Matrix(s.Install.Version).Cell(agent.Schema, "", setting.OneShot).Level != agent.Full, "--json-schema"},
	} {
		if no.asked {
			return fault.New(fault.Unsupported, "%s has no %s in a conversation", name, no.what)
		}
	}
	if off := d.Matrix(s.Install.Version).Cell(agent.RepoConfig, "off", setting.OneShot); s.Env != nil && len(off.Env) > 0 {
		s.Env = Environ(s.Env, off.Env) // what a repository says is for a person to look at first
	}
	for _, shared := range []struct {
		feature, value string
		asked          bool
	}{
		{agent.Approval, string(s.Shared.Approval.Value), t.Mode != ""},
		{agent.Sandbox, string(s.Shared.Sandbox.Value), s.Shared.Sandbox.Typed()},
	} {
		cell := Here(d.Matrix(s.Install.Version).Cell(shared.feature, shared.value, setting.OneShot), s.Machine)
		if shared.asked && len(d.Matrix(s.Install.Version).Rows) > 0 && cell.Level == agent.None {
			return fault.New(fault.Unsupported, "%s has no --%s %s%s", name, shared.feature, shared.value, parenthesis(cell.Note))
		}
	}
	return nil
}

// Readable is the output to ask an agent for where we read it: its stream, or its text where we know no stream of it.
func Readable(d agent.Driver) setting.Output {
	if d.Decode(setting.StreamJSON) == nil {
		return setting.Text
	}
	return setting.StreamJSON
}

type session struct {
	driver   agent.Driver
	spec     agent.Spec
	services agent.Services

	events *event.Queue // closed when the session is, and no turn runs

	mu       sync.Mutex
	id       string
	chosen   string // by us, for a session that the agent has yet to begin
	model    string
	turns    int
	turn     *turn // the one that runs
	closed   bool
	outcome  agent.Outcome
	launched []agent.File
}

func (s *session) ID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.id, s.chosen)
}

// Facts are what is known before the agent says more.
func (s *session) Facts() event.Facts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return event.Facts{Agent: s.driver.Name(), Version: s.spec.Install.Version, Model: s.model, Mode: ModeOf(s.spec), Dir: s.spec.Dir}
}

// ModeOf is the mode that a conversation begins in.
func ModeOf(s agent.Spec) setting.Approval {
	switch {
	case s.Terms.Mode != "":
		return s.Terms.Mode
	case s.Shared.Approval.Value == "":
		return setting.Prompt
	}
	return setting.Approval(s.Shared.Approval.Value) // the words are the same
}

// Next returns what happened, in order.
func (s *session) Next(ctx context.Context) (event.Event, error) { return s.events.Next(ctx) }

// Send starts the agent with the message.
func (s *session) Send(ctx context.Context, blocks []event.Block) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var b strings.Builder
	for _, block := range blocks {
		b.WriteString(block.Text)
	}
	text := b.String()
	if err := fits(s.driver, s.spec.Install.Version, text); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return fault.New(fault.Internal, "the session is closed")
	case s.turn != nil:
		return fault.New(fault.LockHeld, "%s still works on the message before", s.driver.Name())
	}
	spec := s.spec
	spec.Resume = s.id
	if s.turns > 0 && s.id == "" {
		return fault.New(fault.AgentFailed, "the session of the first message is not known, so it cannot go on")
	}
	launch, _, err := s.driver.Command(spec)
	if err != nil {
		return err
	}
	if launch.Prompt == agent.ByArgument {
		if launch.Args, err = WithPrompt(launch, s.driver.Name(), text); err != nil {
			return err
		}
		text = ""
	}
	return s.begin(launch, text)
}

// fits refuses a message that is empty, or that the agent would not take whole.
func fits(d agent.Driver, version, text string) error {
	if strings.TrimSpace(text) == "" {
		return fault.New(fault.ArgError, "the message is empty").Hint("say what is to be done")
	}
	limit := d.Matrix(version).Limit
	if limit.Characters > 0 && int64(utf8.RuneCountInString(text)) > limit.Characters || limit.Bytes > 0 && int64(len(text)) > limit.Bytes {
		return fault.New(fault.PromptTooLong, "the message is longer than %s takes", d.Describe().Title).
			Hint("put the text into a file and name it in the message")
	}
	return nil
}

// begin is called with the lock.
func (s *session) begin(launch agent.Launch, prompt string) error {
	if err := WriteFiles(launch.Files); err != nil {
		return err
	}
	s.launched = append(s.launched, launch.Files...)
	observer := s.driver.Observe(launch)
	decoder := s.driver.Decode(setting.StreamJSON)
	if decoder == nil {
		decoder = &plainText{}
	}
	t := &turn{session: s, decoder: decoder, ended: make(chan struct{})}
	child, err := process.Start(process.Plan{
		Path: launch.Path, Argv: append([]string{s.driver.Describe().Binary}, launch.Args...), Dir: launch.Dir, Env: launch.Env,
		Stdin: strings.NewReader(prompt), Stdout: t, Stderr: &t.stderr, Grace: s.services.Grace,
	})
	if err != nil {
		return err
	}
	t.child, s.turn, s.chosen = child, t, launch.Session
	s.turns++
	go s.finish(t, observer)
	return nil
}

// finish waits for the end of a turn and says how it was.
func (s *session) finish(t *turn, observer agent.Observer) {
	end := t.child.Wait()
	s.mu.Lock()
	x := agent.Exit{Code: end.ExitCode, Signal: end.Signal, Stderr: t.stderr.bytes()}
	if end.Ended {
		x.ByUs = t.byUs
	}
	s.mu.Unlock()
	last := t.finish(x)
	evidence := observer.After(x)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.mended(t, last, x, evidence) {
		s.events.Put(e) // who hears it has to wait for the lock to do anything about it
	}
	if evidence.Session != "" {
		s.id = evidence.Session
	}
	s.outcome = agent.Outcome{Exit: x, Evidence: evidence}
	s.turn = nil
	close(t.ended)
	if s.closed {
		s.events.Close()
	}
}

// Answer has nothing to answer.
func (s *session) Answer(context.Context, string, event.Reply) error {
	return fault.New(fault.NeedsInput, "%s cannot be answered in the middle of a turn", s.driver.Name())
}

// Set has nothing to change: each turn begins with what the session began with.
func (s *session) Set(context.Context, agent.Change) error {
	return fault.New(fault.Unsupported, "%s cannot be changed in the middle of a conversation", s.driver.Name())
}

// Interrupt ends the turn, and returns when it is over. Called again meanwhile, or with a context that ends, it does not wait for the
// grace.
func (s *session) Interrupt(ctx context.Context) error { return s.end(ctx, "SIGINT", syscall.SIGINT) }

func (s *session) end(ctx context.Context, why string, with os.Signal) error {
	s.mu.Lock()
	t := s.turn
	if t != nil && t.byUs == "" {
		t.byUs = why
	}
	s.mu.Unlock()
	if t == nil {
		return nil
	}
	t.child.End(with)
	select {
	case <-t.ended:
		return nil
	case <-ctx.Done():
		t.child.End(os.Kill)
		<-t.ended
		return ctx.Err()
	}
}

// Close ends the turn, if one runs, and takes the files away.
func (s *session) Close(ctx context.Context) (agent.Outcome, error) {
	s.mu.Lock()
	s.closed = true
	if s.turn == nil {
		s.events.Close()
	}
	s.mu.Unlock()
	err := s.end(ctx, "SIGTERM", syscall.SIGTERM)
	s.mu.Lock()
	defer s.mu.Unlock()
	RemoveFiles(s.launched)
	return s.outcome, err
}

// WriteFiles writes what a launch needs, readable by the user alone.
func WriteFiles(files []agent.File) error {
	for _, f := range files {
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
			return fault.New(fault.Internal, "%s cannot be made", filepath.Dir(f.Path)).Because(err)
		}
		if err := workspace.WriteFile(f.Path, f.Data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// RemoveFiles takes away what was written for a launch, but for what is to stay.
func RemoveFiles(files []agent.File) {
	for _, f := range files {
		if !f.Keep {
			_ = os.Remove(f.Path)
			_ = os.Remove(filepath.Dir(f.Path)) // a private directory; one that is not empty stays
		}
	}
}
