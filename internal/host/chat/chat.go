// Package chat lets a person talk to any agent in a terminal.
//
// It promises that an agent's text cannot control the screen; that a question is shown as one, and silence never means
// yes; that Ctrl-C ends the turn at once, in every state, and the conversation only between turns; and that what is not
// a message, such as an unknown command, is never sent as one. A person answers a question with a line typed after it
// was asked: earlier lines are messages. In a pipe, where everything may be written at once, the next line is the
// answer.
//
// A Chat holds the state and decides what a line means. A View shows and reads: Plain line by line, for a pipe and for
// any terminal; Window with a prompt that stays below what is said. Neither knows a particular agent, and neither keeps
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

// Chat is a person in front of an agent.
//
// Three goroutines share it: Run handles signals, listen shows events, and handle handles what is typed. So a signal
// works even if the screen blocks or a message is still being written to disk. A fourth runs the person's command.
//
//	idle ── message ──▶ busy ── Question ──▶ asking ── answer, Withdrawn ──▶ busy
//	 ▲                   │                     │
//	 └────── Ended ──────┴────── Ctrl-C ───────┘      Ctrl-C while idle ends the conversation
type Chat struct {
	View    View
	Typed   bool // a person types; else the input is a pipe, which is read only when needed
	Greet   string
	Signals <-chan os.Signal
	World   World
	Picks   bool // the person chooses an earlier conversation first

	busy        atomic.Bool                        // something runs or was postponed
	running     atomic.Bool                        // something runs
	interrupted time.Time                          // the last interrupt of a turn
	command     atomic.Pointer[context.CancelFunc] // ends the person's command that runs
	beside      sync.WaitGroup                     // for that command

	changed  chan struct{} // a question is shown, or nothing runs any more; handle waits for it
	switched chan struct{} // the person is with another conversation now

	with atomic.Pointer[conversation.Conversation]

	mu      sync.Mutex
	stop    context.CancelFunc // ends listen
	joined  func()             // waits until what World.Joined began is done; nil: there is nothing
	replays bool               // what was recorded before is still being shown
	owed    bool               // listen asks for a message after the replay
	turns   turns
	unasked unasked
	open    []*Question // the first is shown
	shown   int64       // questions shown so far
	before  []event.Block
	agent   applied
	results []kept // what tools gave back, for /show
	// what is shown in place of the failure of a call that the person did not allow, by its id
	declined map[string]string
	spent    Spent
	failed   bool     // a turn failed, or a message was not sent
	nobody   bool     // the input has ended: nobody answers any more
	retried  []string // notes of this turn's attempts that failed

	messages int     // of the person, in this conversation
	counted  int64   // the last turn whose message is among them
	later    []later // handle does them
}

// turns are those without an end.
type turns struct {
	texts    map[int64]string        // with the text of those that wait
	carries  map[int64][]event.Block // what travels before these texts
	unsent   map[int64]bool          // taken back by the person
	prompted int64                   // the last message that listen has seen
	sending  bool                    // a message is being sent to the conversation
}

// later is what was typed in a turn and can happen only when nothing runs.
type later struct {
	typed string
	do    func()
}

// applied is the agent that @agent: has named last.
type applied struct {
	name, text string
	known      bool // its prompt is in the conversation
}

// kept is what a tool gave back: a record of the conversation, or the text itself.
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

// Run opens a conversation, talks until the input ends, and returns the exit code, which is 1 if a turn failed that no
// person saw. It closes the conversation. A person can type while it is opened. The error is that of open, or says that
// the output cannot be written or that the conversation cannot be kept.
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

// left leaves, and returns the exit code.
func (c *Chat) left(ctx context.Context) (int, error) {
	err := c.leave(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed && !c.Typed {
		return 1, err
	}
	return 0, err
}

// unseen ends a conversation whose words nobody can see any more.
func (c *Chat) unseen(ctx context.Context) (int, error) {
	_ = c.close(ctx)
	return 1, fault.New(fault.OutputFailed, "standard output cannot be written").Because(c.View.Err())
}

// interrupt ends what runs, or drops what was postponed, and reports whether there was anything. Twice in a short time
// it drops what waits as well, so that no further turn begins.
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

// Conversation returns the one that the person talks with now; nil while the first is opened.
func (c *Chat) Conversation() *conversation.Conversation { return c.with.Load() }

// join makes a conversation the one that the person talks with, and shows what is recorded of it from a record on.
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

// leave says how to go on, and closes the conversation.
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

// handle handles what is typed, until the input ends or the person leaves, and everything is answered.
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
			case <-c.View.Broken(): // nothing is done whose result nobody would see
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
				c.notice("A line of more than 64 MiB was passed over.")
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

// unattended is for an input that has ended: no question is answered any more.
func (c *Chat) unattended() {
	c.mu.Lock()
	c.nobody = true
	c.mu.Unlock()
	c.Conversation().NobodyAnswers()
}

// unanswered gives our open questions the empty answer, if nobody answers.
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

// leaving says what chat waits for before it ends.
func (c *Chat) leaving() {
	if c.busy.Load() {
		c.notice("Chat ends when everything is answered.")
	}
}

// idle does now what was typed, or behind what runs and what was postponed before. what is its name.
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

// catchUp does the first thing that was postponed, if nothing runs and no question is open. What it begins has to end
// before the next one.
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
	if len(c.later) > 0 { // else it was dropped
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

// replaying reports whether what was recorded before is still being shown. Until then the person is asked for nothing.
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

// update tells the view and the other goroutines whether a turn runs. The caller holds the lock.
func (c *Chat) update() { c.refresh(false) }

func (c *Chat) refresh(again bool) {
	running := c.runs()
	busy := running || len(c.later) > 0
	c.running.Store(running)
	c.busy.Store(busy)
	if c.owed = c.replays && !busy; !c.owed { // else listen asks for a message, behind what it shows
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

// runs reports whether a turn runs or is about to, or a command of the person. The caller holds the lock.
func (c *Chat) runs() bool {
	return c.turns.sending || len(c.turns.texts) > 0 || c.command.Load() != nil
}

// waiting returns what waits for a turn, in its order.
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
