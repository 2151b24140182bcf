// Package chat lets a person talk to any agent in a terminal.
//
// It promises that an agent's text cannot control the screen; that a question is shown as one, and silence never means
// yes; that Ctrl-C ends the turn at once, in every state, and the conversation only between turns; and that an unknown
// command is never sent as a message. A person answers a question with a line typed after it was asked: earlier lines
// are messages. In a pipe, where everything may be written at once, the next line is the answer.
//
// A Chat holds the state and decides what a line means. A View shows and reads: Plain line by line, for a pipe and for
// any terminal; Window with a prompt that stays at the bottom. Neither depends on a particular agent, and neither keeps
// messages: they wait in the conversation, within its limits.
package chat

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/talk/conversation"
)

// Chat connects a person and an agent.
//
// Three goroutines share it: Run handles signals, listen shows events, and handle handles what is typed. So a signal
// works even if the screen blocks or a message is being written to disk. A fourth runs the person's command.
//
//	idle ── message ──▶ busy ── Question ──▶ asking ── answer, Withdrawn ──▶ busy
//	 ▲                   │                     │
//	 └────── Ended ──────┴────── Ctrl-C ───────┘      Ctrl-C while idle ends the conversation
type Chat struct {
	View    View
	Typed   bool // a person types; otherwise the input is a pipe, which is read only when needed
	Greet   string
	Signals <-chan os.Signal
	World   World
	Picks   bool // the person chooses an earlier conversation first

	busy        atomic.Bool                        // something runs or was postponed
	running     atomic.Bool                        // something runs
	interrupted time.Time                          // the last interrupt of a turn
	command     atomic.Pointer[context.CancelFunc] // ends the running command of the person
	beside      sync.WaitGroup                     // for that command

	changed  chan struct{} // wakes handle: a question is shown, or the state has changed
	switched chan struct{} // wakes Run: another conversation was joined

	with atomic.Pointer[conversation.Conversation]

	mu      sync.Mutex
	stop    context.CancelFunc // ends listen
	joined  func()             // returned by World.Joined; may be nil
	replays bool               // earlier records are still being shown
	owed    bool               // listen asks for a message after them
	turns   turns
	unasked unasked
	open    []*Question // the first is shown
	shown   int64       // questions shown so far
	before  []event.Block
	agent   applied
	chosen  string // the model of the last /model
	results []kept // results of tools, for /show
	// what to show instead of the failure of a call that the person refused, by its id
	declined map[string]string
	spent    Spent
	failed   bool     // a turn failed, or a message was not sent
	nobody   bool     // the input has ended, so nobody answers questions
	retried  []string // notes of this turn's attempts that failed

	messages int     // of the person, in this conversation
	counted  int64   // the last turn that messages includes
	later    []later // done by handle
}

// turns holds the turns without an end.
type turns struct {
	texts    map[int64]string        // by turn; the text of a message that waits, or ""
	carries  map[int64][]event.Block // blocks sent before these texts
	unsent   map[int64]bool          // taken back by the person
	prompted int64                   // turn of the last message that listen has seen
	sending  bool                    // a message is being sent to the conversation
}

// later is an action that was typed during a turn and waits for its end.
type later struct {
	typed string
	do    func()
}

// applied is the agent that @agent: named last.
type applied struct {
	name, text string
	known      bool // its prompt is in the conversation
}

// kept is the result of a tool: the number of its record, or its text.
type kept struct {
	record int64
	text   string
}

// Spent is what a chat has cost so far.
type Spent struct {
	event.Usage
	Turns   int
	Context int64 // tokens that the model saw last
}

const closing = 10 * time.Second

// Run opens a conversation, chats until the input ends, closes the conversation, and returns the exit code. That is 1
// if a turn failed and the input was a pipe. A person can type while the conversation is opened. Run returns an error
// of open, or if the output cannot be written, or if the conversation cannot be kept.
func (c *Chat) Run(ctx context.Context, open func(context.Context) (*conversation.Conversation, error)) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer c.View.Close()
	handled := make(chan struct{})
	c.changed, c.switched = make(chan struct{}, 1), make(chan struct{}, 1)
	room := 0
	if c.Typed {
		room = 64
	}
	typed := make(chan Input, room)
	go c.View.Run(ctx, typed)
	with, err := open(ctx)
	if err != nil {
		return 0, err
	}
	c.notice(c.Greet) // before listen shows anything
	c.problems(ctx)
	c.join(ctx, with, c.World.From)
	go func() {
		defer close(handled)
		c.handle(ctx, typed)
	}()
	for {
		select {
		case <-handled:
			select {
			case <-c.View.Broken():
				return c.unseen(ctx)
			default:
				return c.left(ctx)
			}
		case <-c.View.Broken():
			return c.unseen(ctx)
		case <-c.switched:
		case <-c.Conversation().Done():
			return c.left(ctx)
		case <-ctx.Done():
			return c.left(ctx)
		case s := <-c.Signals:
			if s == os.Interrupt && c.interrupt() {
				continue
			}
			_ = c.leave(ctx)
			if s, ok := s.(syscall.Signal); ok {
				return 128 + int(s), nil
			}
			return 130, nil
		}
	}
}

// left calls leave, and returns the exit code.
func (c *Chat) left(ctx context.Context) (int, error) {
	err := c.leave(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed && !c.Typed {
		return 1, err
	}
	return 0, err
}

// unseen ends a conversation because the output cannot be written.
func (c *Chat) unseen(ctx context.Context) (int, error) {
	_ = c.close(ctx)
	return 1, fault.New(fault.OutputFailed, "standard output cannot be written").Because(c.View.Err())
}

// interrupt ends the running turn or command, or else drops what was postponed, and reports whether there was anything.
// The second time in a short interval, it also drops the waiting messages.
func (c *Chat) interrupt() bool {
	if stop := c.command.Load(); stop != nil {
		(*stop)()
		return true
	}
	switch {
	case c.running.Load():
		drop := time.Since(c.interrupted) < twice
		c.interrupted = time.Now()
		if c.Conversation().Interrupt(drop); drop {
			go c.drop() // without waiting for the screen
		}
	case c.busy.Load():
		go c.drop() // without waiting for the screen
	default:
		return false
	}
	return true
}

// drop drops what was postponed.
func (c *Chat) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.later) > 0 {
		c.later = nil
		c.View.Notice("· what was waiting is dropped")
		c.update()
	}
}

// Conversation returns the current conversation; nil while the first one is opened.
func (c *Chat) Conversation() *conversation.Conversation { return c.with.Load() }

// join makes a conversation the current one, and shows its records beginning with number from.
func (c *Chat) join(ctx context.Context, with *conversation.Conversation, from int64) {
	c.mu.Lock()
	if c.stop != nil {
		c.stop()
	}
	life, stop := context.WithCancel(ctx)
	c.with.Store(with)
	c.stop, c.replays, c.owed = stop, max(from, 1) <= with.Opened(), false
	c.turns = turns{
		texts: map[int64]string{}, carries: map[int64][]event.Block{}, unsent: map[int64]bool{},
	}
	c.open, c.results, c.messages, c.counted, c.spent = nil, nil, 0, 0, Spent{}
	if c.nobody {
		with.NobodyAnswers()
	}
	c.mu.Unlock()
	if c.World.Joined != nil {
		joined := c.World.Joined(ctx, with)
		c.mu.Lock()
		c.joined = joined
		c.mu.Unlock()
	}
	go c.listen(life, with, from)
}

// leave closes the conversation, and shows how to continue it.
func (c *Chat) leave(ctx context.Context) error {
	err := c.close(ctx)
	c.mu.Lock()
	joined := c.joined
	c.mu.Unlock()
	if joined != nil {
		joined()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, line := range c.farewell() {
		c.View.Notice(line)
	}
	return err
}

func (c *Chat) close(ctx context.Context) error {
	if stop := c.command.Load(); stop != nil {
		(*stop)()
	}
	c.beside.Wait()
	return c.end(ctx, c.Conversation())
}

// end closes a conversation.
func (c *Chat) end(ctx context.Context, with *conversation.Conversation) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	_, err := with.Close(ctx)
	if c.World.Closed != nil {
		c.World.Closed(ctx, with.ID())
	}
	return err
}

// handle handles what is typed, until the input ends or the person leaves, and no turn runs.
func (c *Chat) handle(ctx context.Context, typed <-chan Input) {
	if c.Picks {
		c.resume(ctx, "")
	}
	c.ready()
	for leaves := false; !leaves || c.busy.Load(); {
		from := typed
		if c.replaying() || !c.Typed && c.busy.Load() && !c.questioned() { // a pipe is read only when needed
			from = nil
		}
		select {
		case in, more := <-from:
			select {
			case <-c.View.Broken(): // do nothing, because its result could not be shown
				return
			default:
			}
			switch {
			case !more:
				c.unattended()
				typed, leaves = nil, true
			case in.Leave:
				if !leaves {
					c.leaving()
				}
				leaves = true
			case in.Back:
				c.takeBackLine(ctx)
			case in.Long:
				c.notice("A line of more than 64 MiB was ignored.")
			case c.answers(ctx, in):
			case leaves:
				if strings.TrimSpace(in.Text) != "" {
					c.notice("Chat is ending, so this was not sent.")
				}
			case c.enter(ctx, in):
				c.leaving()
				leaves = true
			}
			c.unanswered(ctx)
		case <-c.changed:
			c.catchUp()
			c.unanswered(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// unattended is called when the input has ended: no question will be answered.
func (c *Chat) unattended() {
	c.mu.Lock()
	c.nobody = true
	c.mu.Unlock()
	c.Conversation().NobodyAnswers()
}

// unanswered answers our open questions with "" if the input has ended.
func (c *Chat) unanswered(ctx context.Context) {
	for {
		c.mu.Lock()
		i := slices.IndexFunc(c.open, func(q *Question) bool { return q.id == "" })
		if !c.nobody || i < 0 {
			c.mu.Unlock()
			return
		}
		q := c.open[i]
		c.remove(i)
		c.mu.Unlock()
		c.answer(ctx, q, "")
	}
}

// leaving shows that chat waits for the end of the turns.
func (c *Chat) leaving() {
	if c.busy.Load() {
		c.notice("Chat ends when everything is answered.")
	}
}

// idle calls do at once if nothing runs, or else after everything that runs and was postponed. what names it for the
// person.
func (c *Chat) idle(what, typed string, do func()) {
	c.mu.Lock()
	if !c.runs() && len(c.later) == 0 {
		c.mu.Unlock()
		do()
		return
	}
	defer c.mu.Unlock()
	if len(c.later) >= conversation.MostWaiting {
		c.View.Notice(what + " was not taken: too much waits already")
		return
	}
	c.later = append(c.later, later{typed, do})
	of := "turn"
	if c.command.Load() != nil {
		of = "command"
	}
	c.View.Notice("· " + what + " waits for the end of the " + of)
	c.update()
}

// catchUp does the first postponed action, if nothing runs and no question is open. What it begins has to end before
// the next one.
func (c *Chat) catchUp() {
	c.mu.Lock()
	if len(c.later) == 0 || c.runs() || len(c.open) > 0 {
		c.mu.Unlock()
		return
	}
	first := c.later[0]
	c.mu.Unlock()
	first.do()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.later) > 0 { // otherwise it was dropped
		c.later = c.later[1:]
	}
	c.refresh(true)
}

// notice shows a line of ours.
func (c *Chat) notice(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if line != "" {
		c.View.Notice(line)
	}
}

// replaying reports whether earlier records are still being shown. Until then, what is typed is not read.
func (c *Chat) replaying() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.replays
}

// ready asks the person for a message, if nothing runs.
func (c *Chat) ready() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refresh(true)
}

// update passes the state to the view and wakes handle. The caller holds the lock.
func (c *Chat) update() { c.refresh(false) }

func (c *Chat) refresh(again bool) {
	running := c.runs()
	busy := running || len(c.later) > 0
	c.running.Store(running)
	c.busy.Store(busy)
	if c.owed = c.replays && !busy; !c.owed { // otherwise listen does this after the replay
		s := State{Busy: busy, Again: again, Spent: c.spent, Waiting: c.waiting()}
		if with := c.Conversation(); with != nil && len(c.turns.texts) > 0 {
			s.Agent = with.Facts().Agent
		}
		c.View.State(s)
	}
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// runs reports whether a turn runs or is about to, or a command of the person runs. The caller holds the lock.
func (c *Chat) runs() bool {
	return c.turns.sending || len(c.turns.texts) > 0 || c.command.Load() != nil
}

// waiting returns the lines that wait, in order.
func (c *Chat) waiting() (list []string) {
	for _, n := range slices.Sorted(maps.Keys(c.turns.texts)) {
		if words := c.turns.texts[n]; words != "" {
			list = append(list, words)
		}
	}
	for _, one := range c.later {
		list = append(list, one.typed)
	}
	return list
}
