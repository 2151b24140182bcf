// Package repl lets a person talk to an agent in a terminal.
//
// It promises that the agent's text cannot control the screen; that a question is shown as one, and silence never means
// yes; that Ctrl-C ends the turn at once, in every state, and the conversation only between turns. A person answers a
// question with a line typed after it was asked: earlier lines are messages. In a pipe, where everything may be written
// at once, the next line is the answer. It knows no particular agent, and keeps no messages: they wait in the
// conversation, within its limits.
package repl

import (
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"omniagent/internal/conversation"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/lines"
)

// Plain runs a conversation line by line, for any terminal and for a pipe.
//
// Three goroutines share it: Run handles signals, listen prints events, and handleInput handles typed lines. So a
// signal works even if the screen blocks or a message is still being written to disk.
//
//	idle ── message ──▶ busy ── Question ──▶ asking ── answer, Withdrawn ──▶ busy
//	 ▲                   │                     │
//	 └────── Ended ──────┴────── Ctrl-C ───────┘      Ctrl-C while idle ends the conversation
type Plain struct {
	Conversation *conversation.Conversation
	In           io.Reader
	Typed        bool // In is a person at a terminal
	Out          io.Writer
	Greet        string
	Signals      <-chan os.Signal

	questionsShown atomic.Int64 // questions shown so far
	quiet          atomic.Bool  // nothing is printed any more
	busy           atomic.Bool  // a turn runs or is about to

	changed chan struct{} // a question is shown, or no turn runs any more; handleInput waits for it

	mu        sync.Mutex
	screen    screen
	turns     map[int64]string // without an end; with the text of those that wait
	prompted  int64            // the last message that listen has seen
	sending   bool             // a message is being sent to the conversation
	questions []*event.Ask     // open ones; the first is shown
}

// line is a typed line, and how many questions had been shown before it.
type line struct {
	text  string
	after int64
}

const closing = 10 * time.Second

// Run talks until the input ends, and returns the exit code. The error says that the output cannot be written, or that
// the conversation cannot be kept.
func (p *Plain) Run(ctx context.Context) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer p.quiet.Store(true)
	broken, said := make(chan error, 1), make(chan struct{})
	p.changed, p.turns = make(chan struct{}, 1), map[int64]string{}
	p.screen = screen{out: p.Out, over: &p.quiet, broken: broken}
	events := p.Conversation.Events(p.Conversation.Last() + 1)
	go p.listen(ctx, events)
	go func() {
		defer close(said)
		p.handleInput(ctx, p.read(ctx))
	}()
	for {
		select {
		case <-said:
			return 0, p.close(ctx)
		case err := <-broken:
			_ = p.close(ctx)
			return 1, fault.New(fault.OutputFailed, "standard output cannot be written").Because(err)
		case <-p.Conversation.Done():
			return 0, p.close(ctx)
		case <-ctx.Done():
			return 0, p.close(ctx)
		case s := <-p.Signals:
			if s == os.Interrupt && p.busy.Load() {
				p.Conversation.Interrupt(false)
				continue
			}
			_ = p.close(ctx)
			if s, ok := s.(syscall.Signal); ok {
				return 128 + int(s), nil
			}
			return 130, nil
		}
	}
}

func (p *Plain) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	_, err := p.Conversation.Close(ctx)
	return err
}

// read sends typed lines, and closes the channel after the last. It reads a terminal all the time, to know when a line
// was typed.
func (p *Plain) read(ctx context.Context) <-chan line {
	room := 0
	if p.Typed {
		room = 64
	}
	typed := make(chan line, room)
	go func() {
		defer close(typed)
		from := &stamped{Reader: p.In, now: &p.questionsShown}
		for in := lines.NewReader(from, longestLine); in.Next(); {
			if in.Long {
				p.mu.Lock()
				p.screen.say("A line of more than 64 MiB was passed over.")
				p.mu.Unlock()
				continue
			}
			select {
			case typed <- line{strings.TrimRight(string(in.Text), "\r"), from.after}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return typed
}

const longestLine = 64 << 20

// stamped records how many questions had been shown at the last read.
type stamped struct {
	io.Reader
	now   *atomic.Int64
	after int64
}

func (s *stamped) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.after = s.now.Load()
	return n, err
}

// handleInput handles typed lines, until the input ends or the person leaves, and everything is answered.
func (p *Plain) handleInput(ctx context.Context, lines <-chan line) {
	p.mu.Lock()
	p.screen.say(p.Greet)
	p.screen.ask()
	p.mu.Unlock()
	leaves := false
	for !leaves || p.busy.Load() {
		from := lines
		if !p.Typed && p.busy.Load() && !p.questioned() { // a pipe is read only when needed
			from = nil
		}
		select {
		case l, more := <-from:
			switch {
			case !more:
				p.Conversation.NobodyAnswers()
				lines, leaves = nil, true
			case p.answers(ctx, l) || leaves:
			default:
				leaves = p.message(ctx, l.text)
			}
		case <-p.changed:
		case <-ctx.Done():
			return
		}
	}
}

func (p *Plain) questioned() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.questions) > 0
}

// answers answers the shown question with a line, and reports whether it did.
func (p *Plain) answers(ctx context.Context, l line) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.questions) == 0 || p.Typed && l.after < p.questionsShown.Load() {
		return false
	}
	q := p.questions[0]
	p.screen.open = false // the person has ended the line
	p.forget(q.ID)
	r := reply(q, strings.TrimSpace(l.text))
	p.mu.Unlock()
	err := p.Conversation.Answer(ctx, r)
	p.mu.Lock()
	if err != nil {
		p.screen.say("the answer was not taken: " + err.Error())
	}
	return true
}

// reply takes y or yes for consent, and everything else for a refusal with its reason.
func reply(q *event.Ask, words string) event.Reply {
	r := event.Reply{Question: q.ID, Option: event.Deny}
	switch word := strings.ToLower(words); {
	case q.Form && words != "":
		r.Option, r.Text = event.Allow, words
	case q.Form:
	case word == "y", word == "yes":
		r.Option = event.Allow
	case word == "a", word == "always":
		r.Option = event.Always
	case word == "", word == "n", word == "no":
	default:
		r.Text = words
	}
	return r
}

// message sends a line. It reports whether the person wants to leave instead.
func (p *Plain) message(ctx context.Context, text string) (leaves bool) {
	words := strings.TrimSpace(text)
	toTurn, steers := strings.CutPrefix(words, "/steer ")
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case words == "":
		if !p.busy.Load() {
			p.screen.ask()
		}
		return false
	case words == "/exit", words == "/quit":
		return true
	case steers:
		text = strings.TrimSpace(toTurn)
	}
	p.sending = true
	p.update()
	p.mu.Unlock()
	number, steered, err := p.send(ctx, []event.Block{{Text: text}}, steers)
	p.mu.Lock()
	p.sending = false
	defer p.update()
	waits := len(p.turns) > 0 && p.earlier(number)
	if err == nil && !steered && number > p.prompted {
		p.turns[number] = ""
	}
	switch able := p.Conversation.Abilities().Steer; {
	case err != nil:
		p.screen.say("the message was not taken: " + err.Error())
		if len(p.turns) == 0 {
			p.screen.ask()
		}
		return false
	case steered:
		p.screen.say("· the turn that runs hears it")
		return false
	case !waits:
		return false
	case steers && !able:
		p.screen.say("· this agent hears nothing in the middle of a turn: the message waits for its end")
	case able:
		p.screen.say("· the message waits for the end of the turn; /steer TEXT says something to the turn itself")
	default:
		p.screen.say("· the message waits for the end of the turn")
	}
	if _, open := p.turns[number]; open {
		p.turns[number] = text
	}
	return false
}

// earlier reports whether an earlier turn is still open.
func (p *Plain) earlier(number int64) bool {
	for n := range p.turns {
		if n < number {
			return true
		}
	}
	return false
}

func (p *Plain) send(ctx context.Context, blocks []event.Block, steers bool) (number int64, steered bool, err error) {
	if steers {
		return p.Conversation.Steer(ctx, blocks)
	}
	number, err = p.Conversation.Send(ctx, blocks)
	return number, false, err
}

// update tells the other goroutines whether a turn runs.
func (p *Plain) update() {
	p.busy.Store(p.sending || len(p.turns) > 0)
	select {
	case p.changed <- struct{}{}:
	default:
	}
}
