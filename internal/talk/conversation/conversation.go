// Package conversation implements a conversation with an agent, for every agent and every host.
//
// It owns the queue of messages, the turns and their numbers, open questions and their time limits, the mode, the model
// and the other facts, restarts, and the journal. A Mind (package agent) answers one message at a time and knows
// nothing of all this; a host (stream, acp, mcp, chat) translates between a conversation and its client and decides
// nothing about it.
//
// It promises:
//
//   - A message that Send accepts is in the journal when Send returns, and has exactly one end, in the order of
//     acceptance, whatever happens.
//   - A text comes in pieces and then as a whole, and the pieces add up to the whole: a host uses either. A call has
//     exactly one result.
//   - A question is answered once, and the first answer counts. A question without an answer is denied.
//   - A change of mode or model is an event that precedes the first event it affects. Set holds when it returns nil;
//     else nothing has changed.
//   - Every method without a context returns at once, in every state. A host that reads slowly, or not at all, does
//     not delay the agent.
//   - When Close returns, nothing that was started is alive.
//
// It refuses what an agent cannot do, and more messages than the queue holds.
//
//	          Send                  Turn returns, queue empty
//	idle ───────────────▶ working ───────────────────────────▶ idle
//	 │                     │   ▲
//	 │ Set, restart        │   │ Turn returns, next message
//	 ▼                     ▼   │
//	changing            Interrupt, Timeout: cancel ─▶ grace ─▶ Kill ─▶ 1 s ─▶ given up: the next turn gets a new Mind
//
// One goroutine, run, owns all state below "owned by run". Everything else posts to its inbox.
package conversation

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/repo/claim"
	"omniagent/internal/sys/redact"
	"omniagent/internal/talk/session"
)

// Options are the parts and the limits of a conversation.
type Options struct {
	Journal  *session.Session // open for writing; the conversation closes it
	Mind     agent.NewMind    // makes the Mind; called again for each restart of the agent
	Spec     agent.Spec       // for the first Mind; Resume is the agent's own id
	Services agent.Services   // for the Mind; CanAsk: somebody answers questions
	Recorded bool             // the Mind appends its messages to the journal itself, as the engine does
	Patience time.Duration    // for the answer to a question; 0: five minutes
	Timeout  time.Duration    // for a turn; 0: none
	// the first message, if it is already known: it is written while the Mind starts; nil: none
	First []event.Block
	Log   func(format string, args ...any)
	// Witness takes snapshots of the workspace before and after each turn; nil: none are taken.
	Witness Witness
}

// Limits of a conversation.
const (
	MostWaiting = 64 // messages in the queue
	// bytes of the messages in the queue; a single message may be longer
	mostWaitingBytes = 128 << 20

	patience    = 5 * time.Minute
	grace       = 5 * time.Second
	giveUpAfter = time.Second // after Kill
)

// Conversation is a conversation with one agent. Its methods may be called from several goroutines.
type Conversation struct {
	o     Options
	inbox inbox
	done  chan struct{} // closed when the conversation is over and everything is written

	opened    int64 // see Opened
	firstTurn int64 // see First

	mu    sync.Mutex
	known event.Facts
	own   string   // the agent's own id
	dirs  []string // further directories in which the agent works
	watch *watch   // of the last turn that a message began; nil: none; only run sets it

	// Owned by run.
	mind       agent.Mind
	claims     *claim.Reporter // reads what the Mind changes; nil: not recorded
	generation int             // of the Mind; events of an earlier one are ignored
	able       agent.Abilities
	spec       agent.Spec
	canAsk     bool
	last       int64      // number of the last turn
	waiting    []*message // accepted; their turns have not begun
	steers     []steer    // the agent does not have them yet
	// accepted, but their turns will not begin; their ends come after the end of the running turn
	dropped     []*message
	turn        *turn // nil: none runs
	unprompted  *turn // a turn that no message began
	questions   questions
	assembly    assembly
	transcript  transcript
	changes     []func() // those that wait
	changing    bool
	abandoned   bool // the Mind no longer responds
	closing     bool
	closingMind bool // the Mind is being closed
	finished    bool
	outcome     agent.Outcome
	failure     error // the journal cannot be written; nothing more is accepted
}

// message is an accepted message.
type message struct {
	turn   int64
	blocks []event.Block
}

// Open begins a conversation, or continues the one in the journal. It makes the Mind, which starts nothing before the
// first message.
func Open(ctx context.Context, o Options) (*Conversation, error) {
	o.Patience = cmp.Or(o.Patience, patience)
	o.Timeout = cmp.Or(o.Timeout, o.Services.Timeout)
	o.Services.Grace = cmp.Or(o.Services.Grace, grace)
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	c := &Conversation{o: o, done: make(chan struct{}), spec: o.Spec, canAsk: o.Services.CanAsk, own: o.Spec.Resume}
	c.inbox.init()
	c.questions.init()
	c.opened = o.Journal.Last()
	state := o.Journal.State()
	c.last = state.LastTurn
	c.own = cmp.Or(c.own, state.Session)
	c.endUnfinished(state)
	durable := c.first()
	mind, err := c.newMind(ctx, c.spec)
	if failed := durable(); err == nil {
		err = failed
	}
	if err != nil {
		return nil, err
	}
	c.adopt(mind)
	if err := c.fits(o.First); err != nil {
		_, _ = mind.Close(ctx)
		return nil, err
	}
	c.inbox.post(c.next)
	go c.run()
	return c, nil
}

// first accepts the message that opens the conversation. The function that it returns waits until the message is
// durable.
func (c *Conversation) first() func() error {
	if c.o.First == nil {
		return func() error { return c.failure }
	}
	if err := empty(c.o.First); err != nil {
		return func() error { return err }
	}
	c.dropStale()
	c.last++
	c.firstTurn = c.last
	c.waiting = append(c.waiting, &message{turn: c.last, blocks: c.o.First})
	c.record(event.Event{Kind: event.Prompted, Turn: c.last, Blocks: c.o.First})
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.sync()
	}()
	return func() error {
		<-done
		return c.failure
	}
}

// newMind makes a Mind and ignores the events of earlier ones from now on.
func (c *Conversation) newMind(ctx context.Context, s agent.Spec) (agent.Mind, error) {
	c.generation++
	generation, services := c.generation, c.o.Services
	claims := claim.NewReporter(services.Touched, s.Dir)
	c.claims = claims
	services.Tell = func(e event.Event) {
		if precedesChange(e.Kind) {
			c.awaitSnapshot()
		}
		claims.Tell(&e)
		e.Hash, e.Raw = hash(e.Raw), nil
		if e.End != nil && e.End.Usage != nil && s.Rehearsal != nil { // an agent counts the price of a model
			end, used := *e.End, *e.End.Usage
			used.CostUSD, end.Usage = nil, &used
			e.End = &end
		}
		c.inbox.tell(item{event: &e, generation: generation})
	}
	services.Cover = func() event.Cover { return c.watched().cover() }
	return c.o.Mind(ctx, s, services)
}

// awaitSnapshot waits for the snapshot from before the turn that runs.
func (c *Conversation) awaitSnapshot() { c.watched().ready() }

// watched returns the watch of the turn that runs.
func (c *Conversation) watched() *watch {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watch
}

// setWatch sets the watch of the turn that begins.
func (c *Conversation) setWatch(w *watch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watch = w
}

// adopt makes m the Mind of the conversation.
func (c *Conversation) adopt(m agent.Mind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mind, c.able, c.abandoned, c.dirs = m, m.Abilities(), false, c.spec.Terms.Dirs
	c.known.Merge(m.Facts())
}

// ID returns the id of the conversation, which is the id of its journal.
func (c *Conversation) ID() string { return c.o.Journal.ID() }

// AgentSessionID returns the agent's own id of the conversation, or "" until it is known.
func (c *Conversation) AgentSessionID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.own
}

// Facts returns the current mode, model and other facts. Started and Changed events report changes.
func (c *Conversation) Facts() event.Facts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known
}

// Dirs returns the further directories in which the agent works.
func (c *Conversation) Dirs() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dirs
}

// Instructions returns what the model reads before the conversation, or nil if the agent does not report it.
func (c *Conversation) Instructions() []string {
	c.mu.Lock()
	mind, _ := c.mind.(agent.Instructed)
	c.mu.Unlock()
	if mind == nil {
		return nil
	}
	return mind.Instructions()
}

// Abilities returns what the agent can do.
func (c *Conversation) Abilities() agent.Abilities {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.able
}

// Done returns a channel that is closed when the conversation is over: it was closed, or its journal cannot be written.
func (c *Conversation) Done() <-chan struct{} { return c.done }

// Events reads the conversation, beginning with record number from; 1 reads all. To read only what comes from now on,
// pass Last() + 1.
func (c *Conversation) Events(from int64) *Events { return &Events{c.o.Journal.Reader(from)} }

// Opened returns the number of the last record before the conversation was opened. A reader that begins after it sees
// everything that happens in the conversation.
func (c *Conversation) Opened() int64 { return c.opened }

// First returns the turn of the message that the conversation was opened with, or 0.
func (c *Conversation) First() int64 { return c.firstTurn }

// Last returns the number of the last record.
func (c *Conversation) Last() int64 { return c.o.Journal.Last() }

// Events is a reader of a conversation.
type Events struct{ records *session.Reader }

// Next waits for the next event and returns it, or the error of ctx. It returns io.EOF when the conversation is over.
func (e *Events) Next(ctx context.Context) (event.Event, error) {
	for {
		entry, err := e.Record(ctx)
		if err != nil {
			return event.Event{}, err
		}
		if ev := entry.Event(); ev != nil {
			return *ev, nil
		}
	}
}

// Record waits for the next record of the journal, whether it is an event or not.
func (e *Events) Record(ctx context.Context) (session.Entry, error) { return e.records.Next(ctx) }

// Recorded calls each with every event from record number from up to the record that is the last one now.
func (c *Conversation) Recorded(ctx context.Context, from int64, each func(event.Event)) error {
	last := c.Last()
	records := c.o.Journal.Reader(from)
	defer func() { _ = records.Close() }() // it was only read
	for n := max(from, 1) - 1; n < last; {
		entry, err := records.Next(ctx)
		if err != nil {
			return err
		}
		if e := entry.Event(); e != nil {
			each(*e)
		}
		n = max(n, entry.Number)
	}
	return nil
}

// Close ends the reader.
func (e *Events) Close() { _ = e.records.Close() }

// ask posts do to run and waits for its reply.
func ask[T any](ctx context.Context, c *Conversation, do func(reply func(T, error))) (T, error) {
	return start(ctx, c, do)()
}

// start posts do to run. The function that it returns waits for the reply.
func start[T any](ctx context.Context, c *Conversation, do func(reply func(T, error))) func() (T, error) {
	type result struct {
		value T
		err   error
	}
	answer := make(chan result, 1)
	c.inbox.post(func() { do(func(v T, err error) { answer <- result{v, err} }) })
	return func() (T, error) {
		select {
		case r := <-answer:
			return r.value, r.err
		case <-c.done:
		case <-ctx.Done():
		}
		select {
		case r := <-answer:
			return r.value, r.err
		default:
		}
		var none T
		if err := ctx.Err(); err != nil {
			return none, err
		}
		return none, c.overError()
	}
}

func (c *Conversation) overError() error {
	return fault.New(fault.Conflicting, "the conversation %s is over", c.ID()).
		Hint("resume it: --resume %s", c.ID())
}

// Send accepts a message and returns the number of its turn. The turn begins when those before it are over.
func (c *Conversation) Send(ctx context.Context, blocks []event.Block) (int64, error) {
	return c.StartSend(ctx, blocks)()
}

// StartSend is Send in two parts: it takes its place before all later requests, and the function that it returns waits
// for the result.
func (c *Conversation) StartSend(ctx context.Context, blocks []event.Block) (wait func() (number int64, err error)) {
	if err := empty(blocks); err != nil {
		return func() (int64, error) { return 0, err }
	}
	return start(ctx, c, func(reply func(int64, error)) {
		c.dropStale()
		reply(c.accept(blocks))
	})
}

// Steer adds to the turn that runs. If the turn can no longer take it, it becomes a message and steered is false.
func (c *Conversation) Steer(ctx context.Context, blocks []event.Block) (number int64, steered bool, err error) {
	return c.StartSteer(ctx, blocks)()
}

// StartSteer is Steer in two parts: it takes its place before all later requests, and the function that it returns
// waits for the result.
func (c *Conversation) StartSteer(ctx context.Context, blocks []event.Block) (
	wait func() (number int64, steered bool, err error),
) {
	if err := empty(blocks); err != nil {
		return func() (int64, bool, error) { return 0, false, err }
	}
	reached := start(ctx, c, func(reply func(int64, error)) { c.steer(steer{blocks, reply}) })
	return func() (int64, bool, error) {
		number, err := reached()
		if number < 0 {
			return -number, false, err
		}
		return number, err == nil, err
	}
}

func empty(blocks []event.Block) error {
	for _, b := range blocks {
		if b.Media != "" || strings.TrimSpace(b.Text) != "" {
			return nil
		}
	}
	return fault.New(fault.ArgError, "the message is empty").Hint("say what is to be done")
}

// Answer answers a question, named by its id or by the id of the call that it is about. An answer may come before its
// question: a host that sees a call knows what it will be asked. The answer to a question of a process that died begins
// a turn, whose number is returned; else that is 0.
func (c *Conversation) Answer(ctx context.Context, r event.Reply) (turn int64, err error) {
	return ask(ctx, c, func(reply func(int64, error)) { reply(c.answer(r)) })
}

// Hide keeps secrets out of the journal from now on, and so out of everything that a host gets. In texts that come in
// pieces, only the secrets of the last call are masked.
func (c *Conversation) Hide(ctx context.Context, known *redact.Values) error {
	_, err := ask(ctx, c, func(reply func(struct{}, error)) {
		c.o.Journal.Hide(known)
		c.assembly.hidden = known
		reply(struct{}{}, nil)
	})
	return err
}

// Set changes the mode, the model or the directories, from the next call of a tool on. If the agent accepts the change
// only when it starts, Set restarts it between turns, and returns UNSUPPORTED during a turn.
func (c *Conversation) Set(ctx context.Context, change agent.Change) error {
	return c.StartSet(ctx, change)()
}

// StartSet is Set in two parts: it takes its place before all later requests, and the function that it returns waits
// for the result.
func (c *Conversation) StartSet(ctx context.Context, change agent.Change) (wait func() error) {
	done := start(ctx, c, func(reply func(struct{}, error)) {
		c.set(change, func(err error) { reply(struct{}{}, err) })
	})
	return func() error {
		_, err := done()
		return err
	}
}

// Interrupt ends the turn that runs. A second call kills the agent instead of waiting for it. With drop, it also drops
// the messages in the queue, which end after that turn.
func (c *Conversation) Interrupt(drop bool) { c.inbox.post(func() { c.interrupt(drop) }) }

// Withdraw removes a message from the queue; it ends after the turn that runs. If its turn has begun, Withdraw
// interrupts it.
func (c *Conversation) Withdraw(number int64) { c.inbox.post(func() { c.withdraw(number) }) }

// Unsend is Withdraw for a message whose turn has not begun, and nothing for any other. It reports whether the message
// was taken back.
func (c *Conversation) Unsend(ctx context.Context, number int64) bool {
	taken, err := ask(ctx, c, func(reply func(bool, error)) {
		waits := slices.ContainsFunc(c.waiting, func(m *message) bool { return m.turn == number })
		if waits {
			c.withdraw(number)
		}
		reply(waits, nil)
	})
	return taken && err == nil
}

// Kill ends the turn that runs and sends the agent nothing, because it could take an interrupt on its standard input
// for an answer.
func (c *Conversation) Kill() { c.inbox.post(c.kill) }

// NobodyAnswers declares that no more answers come: open and later questions are denied.
func (c *Conversation) NobodyAnswers() { c.inbox.post(c.nobodyAnswers) }

// Close ends the conversation. It interrupts the turn that runs, drops the queue, and ends each message. When it
// returns, nothing that was started is alive. When ctx ends, the agent is killed.
func (c *Conversation) Close(ctx context.Context) (agent.Outcome, error) {
	c.inbox.post(c.close)
	select {
	case <-c.done:
	case <-ctx.Done():
		c.inbox.post(c.kill)
		<-c.done
	}
	return c.outcome, c.failure
}

// Opener opens a conversation with the named agent, for hosts whose other side may choose the agent. It fills in the
// parts of the Spec that depend on this machine. Spec.Resume and Spec.Fresh are ids of conversations, as every host
// prints them and `omniagent session` takes them.
type Opener func(ctx context.Context, name string, s agent.Spec, sv agent.Services) (*Conversation, error)
