package stream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/wire/claude"
)

// Claude is the nested dialect of hosts that were written for Claude Code. It also sends requests to the host: whether
// a tool may run, what its hooks decide, and messages to an MCP server inside it.
type Claude struct {
	Encoder claude.Encoder
	Repeats bool // repeat a message when it is accepted
	Models  []string

	host        *Host
	mu          sync.Mutex
	requests    map[string]chan claude.Reply // our requests that an agent waits for
	gone        chan struct{}                // closed when the host's input has ended
	over        sync.Once
	greeting    *claude.Request // initialize, until it is answered
	initialized *claude.Initialize
	questions   map[string]claude.Question // by the id of our request
	scene       claude.Scene
	wishes      []claude.Mode // modes that the host requested, until an event reports them
}

var _ Dialect = (*Claude)(nil)

// The time limits for the host's answers.
const (
	hookPatience   = time.Minute // the default of Claude Code
	serverPatience = time.Hour   // of a tool in the host, which may wait for a person
)

// NewClaude returns the dialect for an encoder, which has the conversation's id if there is one yet.
func NewClaude(e claude.Encoder) *Claude {
	return &Claude{
		Encoder: e, requests: map[string]chan claude.Reply{}, gone: make(chan struct{}),
		questions: map[string]claude.Question{},
	}
}

func (d *Claude) bind(h *Host) { d.host = h }

// Greeting is the beginning of what a host sends.
type Greeting struct {
	Init    *claude.Initialize // its initialize request; nil: none
	Further []Input            // the first frame, if it is not initialize
	Open    bool               // the host has sent a frame
}

// Greet waits for the first frame of the host.
func (d *Claude) Greet(ctx context.Context, frames <-chan Input) (g Greeting) {
	for {
		select {
		case said, more := <-frames:
			if !more {
				return g
			}
			if said.Err != nil {
				d.host.Log("ignored a line on standard input: %v", said.Err)
				continue
			}
			if g.Open = true; said.Frame.greeting == nil {
				g.Further = append(g.Further, said)
			} else {
				g.Init = d.initialize(*said.Frame.greeting)
			}
			return g
		case <-ctx.Done():
			return g
		}
	}
}

// Read implements Dialect. Answers that an agent waits for are delivered at once, whatever the Host is doing.
func (d *Claude) Read(line []byte) (Frame, error) {
	f, err := claude.Parse(line)
	if bad, is := errors.AsType[*claude.BadRequest](err); is {
		return Frame{Do: func(context.Context) { d.write(claude.No(bad.ID, bad.Why)) }}, nil
	}
	switch {
	case err != nil:
		return Frame{}, err
	case f.User != nil:
		return Frame{
			User: f.User.Blocks, Steer: f.User.Steers(),
			Taken: func(_ int64, steered bool) [][]byte { return d.taken(f.User, steered) },
		}, nil
	case f.Reply != nil:
		if d.deliver(*f.Reply) {
			return Frame{}, nil
		}
		return Frame{Do: func(ctx context.Context) { d.answer(ctx, *f.Reply) }}, nil
	case f.Request != nil && f.Request.Subtype == "initialize":
		late := func(context.Context) {
			d.write(claude.No(f.Request.ID, "the conversation has begun: initialize comes first, and once"))
		}
		return Frame{Do: late, greeting: f.Request}, nil
	case f.Request != nil:
		return Frame{Do: func(ctx context.Context) { d.handle(ctx, *f.Request) }}, nil
	}
	return Frame{}, nil
}

// taken returns the lines that repeat a message, and that report what became of one for the running turn.
func (d *Claude) taken(u *claude.User, steered bool) (lines [][]byte) {
	if d.Repeats {
		lines = append(lines, d.Encoder.Repeat(u.Message))
	}
	switch {
	case !u.Steers() || u.UUID == "":
	case steered:
		lines = append(lines, d.Encoder.Became(u.UUID, "started"))
	default:
		lines = append(lines, d.Encoder.Became(u.UUID, "queued"))
	}
	return lines
}

// initialize reads the initialize request. If that sets a limit that would not be enforced, Initialize.Refused says so.
func (d *Claude) initialize(r claude.Request) *claude.Initialize {
	init, err := claude.ReadInitialize(r.Body)
	if err != nil {
		init = &claude.Initialize{Refused: err}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.initialized, d.greeting = init, &r
	return init
}

// Deny answers initialize with the reason why the conversation was refused.
func (d *Claude) Deny(why string) {
	d.mu.Lock()
	r := d.greeting
	d.greeting = nil
	d.mu.Unlock()
	if r != nil {
		d.write(claude.No(r.ID, why))
	}
}

// write writes a line.
func (d *Claude) write(line []byte) { d.host.write([][]byte{line}) }

// Begin implements Dialect.
func (d *Claude) Begin(id string, f event.Facts) (lines [][]byte) {
	d.Encoder.Know(id, f)
	d.updateScene()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.greeting != nil {
		lines = append(lines, claude.OK(d.greeting.ID, d.Encoder.Welcome(d.Models, len(d.initialized.Hooks) > 0)))
		d.greeting = nil
	}
	return lines
}

// updateScene updates what hooks are told.
func (d *Claude) updateScene() {
	f := d.Encoder.Facts()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.scene = claude.Scene{Session: d.Encoder.Session(), Dir: f.Dir, Mode: claude.Word(f.Mode, d.Encoder.Unasked)}
}

// Event implements Dialect.
func (d *Claude) Event(e event.Event) (lines [][]byte) {
	switch e.Kind {
	case event.Replied:
		lines = d.withdraw(e.Reply.Question)
	case event.Withdrawn:
		lines = d.withdraw(e.Ask.ID)
	case event.Changed:
		wished := func(m claude.Mode) bool { return m.Mode == e.Facts.Mode }
		if i := slices.IndexFunc(d.wishes, wished); i >= 0 {
			for i+1 < len(d.wishes) && wished(d.wishes[i+1]) { // one event reports them all
				i++
			}
			d.Encoder.Unasked = d.wishes[i].Unasked
			d.granted(d.wishes[i])
		}
	}
	lines = append(lines, d.Encoder.Event(e)...)
	if e.Facts != nil {
		d.updateScene()
	}
	if e.Kind == event.Question {
		lines = append(lines, d.ask(*e.Ask)...)
	}
	return lines
}

// ask returns the request for a question, or denies the question in a mode that does not ask.
func (d *Claude) ask(a event.Ask) [][]byte {
	q := claude.NewQuestion(a)
	if d.Encoder.Unasked {
		const why = "in the permission mode dontAsk nobody is asked"
		no, _, _ := q.Verdict(claude.Reply{Error: why})
		no.Text, no.Automatic = why, true
		d.answerQuestion(context.Background(), a.ID, no)
		return nil
	}
	id := d.Encoder.UUID()
	d.questions[id] = q
	return [][]byte{claude.Ask(id, q.Request)}
}

// withdraw returns the lines that withdraw a question.
func (d *Claude) withdraw(question string) (lines [][]byte) {
	for id, q := range d.questions {
		if q.Ask.ID == question {
			delete(d.questions, id)
			lines = append(lines, claude.Withdraw(id))
		}
	}
	return lines
}

// answer handles the host's answer to one of our questions.
func (d *Claude) answer(ctx context.Context, r claude.Reply) {
	q, open := d.questions[r.ID]
	if !open {
		d.host.Detail("an answer to no open question was ignored")
		return
	}
	delete(d.questions, r.ID)
	a, mode, notes := q.Verdict(r)
	if mode != nil && mode.Mode == setting.Yolo && !d.host.Conversation.MayBypass() {
		a, mode = event.Reply{Option: "deny", Text: bypassRefused}, nil
		notes = append(notes, bypassRefused)
	}
	for _, n := range notes {
		d.host.Log("%s", n)
	}
	d.answerQuestion(ctx, q.Ask.ID, a)
	if mode != nil {
		d.applyMode(*mode)
	}
}

func (d *Claude) answerQuestion(ctx context.Context, question string, a event.Reply) {
	a.Question = question
	if err := d.host.answer(ctx, a); err != nil {
		d.host.Log("an answer was ignored: %v", err)
	}
}

// applyMode sets whether the host is asked in the mode that it chose. If the mode itself does not change, there is no
// event, so applyMode writes the status.
func (d *Claude) applyMode(m claude.Mode) {
	d.Encoder.Unasked = m.Unasked
	if d.Encoder.Facts().Mode == m.Mode {
		d.host.write(d.Encoder.Status())
	}
	d.updateScene()
}

const bypassRefused = "Cannot set permission mode to bypassPermissions because the session was not launched with " +
	"--dangerously-skip-permissions"

// Refuse implements Dialect.
func (d *Claude) Refuse(f *fault.Fault) [][]byte { return d.Encoder.Refuse(f) }

// Unreadable implements Dialect. The dialect has no line for that.
func (*Claude) Unreadable(error) [][]byte { return nil }

// InputEnded implements Dialect.
func (d *Claude) InputEnded() { d.over.Do(func() { close(d.gone) }) }

// Code implements Dialect with the exit codes of Claude Code, which has none for a denial.
func (d *Claude) Code(h *Host, last *event.End) int {
	if last == nil && h.UntilEOF && !h.refused || last != nil && last.OK {
		return done
	}
	return failed
}

// deliver passes an answer to the request that waits for it, and reports whether there is one.
func (d *Claude) deliver(r claude.Reply) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	waits, found := d.requests[r.ID]
	if found {
		delete(d.requests, r.ID)
		waits <- r // buffered
	}
	return found
}

// request sends the host a request, and waits for the answer, the time limit, the end of the host or ctx.
func (d *Claude) request(ctx context.Context, patience time.Duration, body claude.Control) ([]byte, error) {
	id, answer := d.Encoder.UUID(), make(chan claude.Reply, 1)
	d.mu.Lock()
	d.requests[id] = answer
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.requests, id)
	}()
	d.host.out.Put(append(claude.Ask(id, body), '\n'))
	clock := time.NewTimer(patience)
	defer clock.Stop()
	select {
	case r := <-answer:
		if r.Error != "" {
			return nil, errors.New(r.Error)
		}
		return r.Body, nil
	case <-d.gone:
		return nil, errors.New("the host is gone")
	case <-clock.C:
		d.host.out.Put(append(claude.Withdraw(id), '\n'))
		return nil, fmt.Errorf("the host did not answer within %s", patience)
	case <-ctx.Done():
		d.host.out.Put(append(claude.Withdraw(id), '\n'))
		return nil, context.Cause(ctx)
	}
}

// Hook asks the host's hooks, as an agent.Hook.
func (d *Claude) Hook(ctx context.Context, m agent.Moment) agent.HookAnswer {
	type place struct {
		hook claude.Hook
		id   string
	}
	var places []place
	d.mu.Lock()
	scene, words := d.scene, d.initialized
	d.mu.Unlock()
	if words == nil {
		return agent.HookAnswer{}
	}
	for _, h := range words.Hooks {
		if h.Moment != m.Name || !h.Matcher.Matches(claude.Subject(m)) {
			continue
		}
		for _, id := range h.IDs {
			places = append(places, place{h, id})
		}
	}
	said := make([]agent.HookAnswer, len(places))
	var wait sync.WaitGroup
	for i, p := range places {
		wait.Go(func() {
			patience := cmp.Or(p.hook.Timeout, hookPatience)
			body, err := d.request(ctx, patience, claude.HookRequest(p.id, scene, m))
			if err == nil {
				said[i], err = claude.ReadWord(m.Name, body)
			}
			if err != nil {
				said[i] = claude.Failed(p.hook, err.Error())
			}
		})
	}
	wait.Wait()
	return claude.Together(said)
}

// Serve passes a message to an MCP server of the host and returns its answer, which is nil for a notification.
func (d *Claude) Serve(ctx context.Context, server string, message []byte) ([]byte, error) {
	request := claude.Control{Subtype: "mcp_message", Server: server, Message: message}
	body, err := d.request(ctx, serverPatience, request)
	if err != nil {
		return nil, err
	}
	var answer claude.MessageAnswer
	if json.Unmarshal(body, &answer) != nil || string(answer.Response) == "null" {
		return nil, nil // like a notification
	}
	return answer.Response, nil
}
