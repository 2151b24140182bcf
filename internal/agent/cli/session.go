package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/process"
	"omniagent/internal/setting"
	"omniagent/internal/workspace"
)

// Open begins a conversation in which every turn is a run of its own: the agent is started for a message, goes on with the session of the
// turn before, and ends. Nothing is asked of a person, since no agent can ask in that mode.
func Open(_ context.Context, d agent.Driver, s agent.Spec, sv agent.Services) (agent.Session, error) {
	if s.Temp == "" {
		return nil, fault.New(fault.Internal, "a session needs a private directory")
	}
	s.Mode = setting.OneShot
	s.Shared.Output = setting.Chosen[setting.Output]{Value: setting.StreamJSON, Origin: setting.Derived}
	return &session{driver: d, spec: s, services: sv, wake: make(chan struct{}, 1), id: s.Resume}, nil
}

type session struct {
	driver   agent.Driver
	spec     agent.Spec
	services agent.Services
	wake     chan struct{} // something changed for those who wait in Next

	mu       sync.Mutex
	queue    []event.Event
	id       string
	turns    int
	child    *process.Child // of the turn that runs
	ended    chan struct{}  // closed when that turn is over
	byUs     string
	closed   bool
	outcome  agent.Outcome
	launched []agent.File
}

func (s *session) ID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// Next returns what happened, in order.
func (s *session) Next(ctx context.Context) (event.Event, error) {
	for {
		s.mu.Lock()
		if len(s.queue) > 0 {
			e := s.queue[0]
			s.queue = s.queue[1:]
			s.mu.Unlock()
			return e, nil
		}
		over := s.closed && s.child == nil
		s.mu.Unlock()
		if over {
			return event.Event{}, io.EOF
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return event.Event{}, ctx.Err()
		}
	}
}

// Send starts the agent with the message.
func (s *session) Send(_ context.Context, blocks []agent.Block) error {
	var text strings.Builder
	for _, b := range blocks {
		text.WriteString(b.Text)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return fault.New(fault.Internal, "the session is closed")
	case s.child != nil:
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
	if launch.Prompt != agent.ByStdin {
		launch.Args = append(append(append([]string{}, launch.Args[:launch.PromptAt]...), text.String()), launch.Args[launch.PromptAt:]...)
		text.Reset()
	}
	return s.begin(launch, text.String())
}

// begin is called with the lock.
func (s *session) begin(launch agent.Launch, prompt string) error {
	for _, f := range launch.Files {
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
			return fault.New(fault.Internal, "%s cannot be made", filepath.Dir(f.Path)).Because(err)
		}
		if err := workspace.WriteFile(f.Path, f.Data, 0o600); err != nil {
			return err
		}
		s.launched = append(s.launched, f)
	}
	observer := s.driver.Observe(launch)
	decoder := s.driver.Decode(setting.StreamJSON)
	if decoder == nil {
		decoder = &plainText{}
	}
	turn := &turn{session: s, decoder: decoder}
	child, err := process.Start(process.Plan{
		Path: launch.Path, Argv: append([]string{s.driver.Describe().Binary}, launch.Args...), Dir: launch.Dir, Env: launch.Env,
		Stdin: strings.NewReader(prompt), Stdout: turn, Stderr: &turn.tail, Grace: s.services.Grace,
	})
	if err != nil {
		return err
	}
	s.child, s.byUs, s.ended = child, "", make(chan struct{})
	s.turns++
	go s.finish(child, turn, observer)
	return nil
}

// finish waits for the end of a turn and says how it was.
func (s *session) finish(child *process.Child, t *turn, observer agent.Observer) {
	end := child.Wait()
	s.mu.Lock()
	x := agent.Exit{Code: end.ExitCode, Signal: end.Signal, Stderr: t.tail.kept}
	if end.Ended {
		x.ByUs = s.byUs
	}
	s.mu.Unlock()
	events := t.decoder.End(x)
	evidence := observer.After(x)
	s.add(events)
	s.mu.Lock()
	if evidence.Session != "" {
		s.id = evidence.Session
	}
	s.outcome = agent.Outcome{Exit: x, Evidence: evidence}
	s.child = nil
	close(s.ended)
	s.mu.Unlock()
	s.stir()
}

func (s *session) add(events []event.Event) {
	s.mu.Lock()
	for _, e := range events {
		if e.Session != "" {
			s.id = e.Session
		}
		e.Raw = append([]byte(nil), e.Raw...) // it is valid until the next Feed only
		s.queue = append(s.queue, e)
	}
	s.mu.Unlock()
	s.stir()
}

func (s *session) stir() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Answer has nothing to answer.
func (s *session) Answer(context.Context, string, agent.Answer) error {
	return fault.New(fault.NeedsInput, "%s cannot be answered in the middle of a turn", s.driver.Name())
}

// Interrupt ends the turn.
func (s *session) Interrupt(ctx context.Context) error { return s.end(ctx, "SIGINT", syscall.SIGINT) }

func (s *session) end(ctx context.Context, why string, with os.Signal) error {
	s.mu.Lock()
	child, ended := s.child, s.ended
	if child != nil && s.byUs == "" {
		s.byUs = why
	}
	s.mu.Unlock()
	if child == nil {
		return nil
	}
	child.End(with)
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		child.End(os.Kill)
		<-ended
		return ctx.Err()
	}
}

// Close ends the turn, if one runs, and takes the files away.
func (s *session) Close(ctx context.Context) (agent.Outcome, error) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	err := s.end(ctx, "SIGTERM", syscall.SIGTERM)
	s.stir()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.launched {
		if !f.Keep {
			_ = os.Remove(f.Path)
		}
	}
	return s.outcome, err
}

// turn is what the process of a turn writes to.
type turn struct {
	session *session
	decoder agent.Decoder
	tail    ending
}

func (t *turn) Write(p []byte) (int, error) {
	t.session.add(t.decoder.Feed(p))
	return len(p), nil
}

// ending keeps the last 64 KiB.
type ending struct{ kept []byte }

func (e *ending) Write(p []byte) (int, error) {
	const most = 64 << 10
	e.kept = append(e.kept, p...)
	if over := len(e.kept) - most; over > 0 {
		e.kept = append(e.kept[:0], e.kept[over:]...)
	}
	return len(p), nil
}

// plainText is the decoder for agents that print nothing but their answer.
type plainText struct{ said strings.Builder }

func (d *plainText) Feed(p []byte) []event.Event {
	d.said.Write(p)
	return []event.Event{{Kind: event.Text, Text: string(p), Delta: true}}
}

func (d *plainText) End(x agent.Exit) []event.Event {
	ok := x.Code == 0 && x.ByUs == "" && d.said.Len() > 0
	return []event.Event{{Kind: event.Ended, Synthetic: true, End: &event.End{OK: ok, Text: d.said.String()}}}
}
