// Package stream implements the host of a conversation for programs: events go to standard output as lines, and
// requests of the other side come from standard input.
//
// It promises that every turn is reported to its end; that a line is written whole and at once; that signals and
// requests are handled while the agent or standard output is busy; that the turn ends if the other side goes away, and
// nothing that it started is left; and that the exit code reflects the outcome. It makes no decisions about the
// conversation.
package stream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/lines"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/process"
	"omniagent/internal/talk/conversation"
)

// Form is what standard output carries.
type Form string

// The forms.
const (
	Lines  Form = "stream-json" // every line
	Result Form = "json"        // only the result
	Text   Form = "text"        // only the answer
)

// The exit codes, which are those of an agent.
const (
	done    = 0
	failed  = 1
	misused = 2
	blocked = 3
)

// Dialect is the protocol of the other side. Only the Host calls its methods, except for Read.
type Dialect interface {
	// Begin returns the first lines. It is called before Event, with the facts that are known when the conversation
	// opens; later facts come as events.
	Begin(id string, f event.Facts) [][]byte
	// Event returns the lines for an event, if any.
	Event(e event.Event) [][]byte
	// Refuse returns the whole stream of a conversation that cannot begin.
	Refuse(f *fault.Fault) [][]byte
	// Unreadable returns the lines for a line of the other side that could not be read, if any.
	Unreadable(why error) [][]byte
	// Read parses a line of the other side, in the reader's goroutine. An empty Frame is ignored.
	Read(line []byte) (Frame, error)
	// InputEnded is called when the other side's input has ended.
	InputEnded()
	// Code returns the exit code for the end of the last turn; nil: no turn ended.
	Code(h *Host, last *event.End) int
}

// Host translates between a conversation and its other side.
//
//	running ── the last turn ends, a signal, no reader, ctx ──▶ closing ── last events ──▶ closed ── Finish ──▶ code
//	   └── a second signal, or patience runs out: hurry ──────────┴── does not wait for the agent
type Host struct {
	Conversation *conversation.Conversation
	Dialect      Dialect
	Form         Form
	Log          func(format string, args ...any) // for people, on standard error
	Hint         func(format string, args ...any) // the next step, on standard error
	Detail       func(format string, args ...any) // as Log, only with --verbose
	Frames       <-chan Input                     // lines of the other side; nil: none
	// UntilEOF: the process waits for further messages until Frames end. Otherwise it ends with the turn of the message
	// that the conversation was opened with.
	UntilEOF bool
	// Quiet: denials were asked for, so they do not affect the exit code.
	Quiet   bool
	Signals <-chan os.Signal

	out     *lines.Writer
	lost    <-chan struct{} // closed when standard output has lost its reader
	results chan func()     // results of slow operations
	ended   chan struct{}   // closed when Run is over

	open        map[int64]bool // turns of messages that have not ended
	held        []Frame        // messages for which the conversation has no room yet
	heldBytes   int
	newest      int64           // the last turn of a message that an event reported
	pending     int             // answers still to come
	retried     string          // the last retry that was logged
	lastSteer   <-chan struct{} // closed when the outcome of the last steer was reported
	failCode    fault.Code      // why the last turn failed
	last        *event.End
	denied      bool // in the last turn
	refused     bool // a line of the other side could not be read
	signal      os.Signal
	outputError error         // set when standard output cannot be written
	closing     func()        // stops waiting for the agent; nil: the conversation is not being closed
	closed      chan struct{} // closed when the conversation is closed
	failure     error         // of Conversation.Close; read it after closed
}

// New returns a host, which can write lines before it has a conversation.
func New(out io.Writer, d Dialect, form Form) *Host {
	h := &Host{
		Dialect: d, Form: form, out: lines.NewWriter(out), lost: process.ReaderGone(out), results: make(chan func()),
		ended: make(chan struct{}),
		open:  map[int64]bool{}, closed: make(chan struct{}),
	}
	none := make(chan struct{})
	close(none)
	h.lastSteer = none
	if b, binds := d.(interface{ bind(*Host) }); binds {
		b.bind(h)
	}
	return h
}

// The limits.
const (
	patience   = 10 * time.Second // for closing, and for a reader that blocks after a signal
	mostQueued = 4096             // unread lines, before the other side's input is no longer read
)

// Run translates until the conversation is over, and returns the exit code.
func (h *Host) Run(ctx context.Context) int {
	defer close(h.ended)
	c := h.Conversation
	events := h.listen(c.Events(c.Opened() + 1))
	facts := c.Facts()
	h.Detail("session %s in %s, mode %s", c.ID(), facts.Dir, facts.Mode)
	h.write(h.Dialect.Begin(c.ID(), facts))
	if turn := c.First(); turn > 0 {
		h.open[turn] = true
	}
	h.converse(ctx, events)
	h.Dialect.InputEnded()
	<-h.closed
	if h.failure != nil {
		h.Log("the conversation could not be closed: %v", h.failure)
		h.loseTurns()
	}
	code := h.code()
	if h.outputError != nil {
		h.Log("standard output cannot be written: %v", h.outputError)
	} else if h.Finish() && h.out.Err() != nil { // of the last lines
		h.outputError = h.out.Err()
		h.Log("standard output cannot be written: %v", h.outputError)
	}
	if h.outputError != nil && h.signal == nil {
		return failed
	}
	return code
}

// Tell writes lines outside the conversation.
func (h *Host) Tell(lines [][]byte) { h.write(lines) }

// Finish waits until everything is written. After a signal it waits for at most patience, and after a second one it
// stops at once. It reports whether everything was written.
func (h *Host) Finish() bool {
	h.out.Finish()
	var late <-chan time.Time
	if h.signal != nil {
		late = time.After(patience)
	}
	for {
		select {
		case <-h.out.Written():
			return true
		case h.signal = <-h.Signals:
			if late != nil {
				return false
			}
			late = time.After(patience)
		case <-late:
			return false
		}
	}
}

// listen returns a channel with the events of the conversation, which is closed at its end.
func (h *Host) listen(from *conversation.Events) <-chan event.Event {
	events := make(chan event.Event)
	go func() {
		defer close(events)
		defer from.Close()
		for {
			e, err := from.Next(context.Background())
			if err != nil {
				return
			}
			events <- e
		}
	}()
	return events
}

// converse passes events and frames between both sides until the conversation is over. It never blocks.
func (h *Host) converse(ctx context.Context, events <-chan event.Event) {
	frames, lost, written, over := h.Frames, h.lost, h.out.Written(), ctx.Done()
	var late <-chan time.Time
	for {
		if h.closing == nil && len(h.open) == 0 && h.pending == 0 &&
			(!h.UntilEOF || frames == nil || h.signal != nil) &&
			len(h.held) == 0 {
			h.close()
		}
		next, said := events, frames
		room := h.out.Room()
		if len(h.held) >= mostQueued || h.heldBytes >= longestFrame {
			said = nil
		}
		// leave further events in the journal; the agent does not wait for them
		if queued, _ := h.out.State(); h.outputError == nil && queued >= lines.Full {
			next = nil
			if queued >= mostQueued {
				said = nil
			}
		}
		select {
		case e, more := <-next:
			if !more {
				h.close()
				return
			}
			h.event(e)
			if e.Kind == event.Prompted || e.Kind == event.Ended {
				h.sendHeld(ctx)
			}
		case s, more := <-said:
			if !more || errors.Is(s.Err, io.EOF) {
				frames = nil
				h.Dialect.InputEnded()
				h.Conversation.NobodyAnswers()
				continue
			}
			h.input(ctx, s)
		case do := <-h.results:
			h.pending--
			do()
		case <-room:
		case s := <-h.Signals:
			late = time.After(patience)
			if h.signal == nil {
				h.signal = s
				h.dropHeld()
				h.Conversation.Interrupt(true)
			} else {
				h.hurry()
			}
		case <-late:
			late = time.After(patience)
			h.hurry()
		case <-over:
			over = nil
			h.close()
		case <-written: // standard output failed, although nothing was queued
			written = nil
			h.lose(h.out.Err())
		case <-lost:
			lost = nil
			if len(h.open) == 0 { // it ended normally
				h.close()
			} else {
				h.lose(errors.New("nobody reads it"))
			}
		}
	}
}

// lose ends a conversation whose output has no reader.
func (h *Host) lose(why error) {
	if h.outputError == nil {
		h.outputError = why
		h.Dialect.InputEnded()
		h.close()
	}
}

// hurry ends the conversation without waiting for the agent, or for a reader that blocks.
func (h *Host) hurry() {
	h.close()
	h.closing()
	if queued, _ := h.out.State(); queued >= lines.Full {
		h.lose(errors.New("nobody reads it"))
	}
}

// close begins to close the conversation, which interrupts the running turn. Its last events are still reported.
func (h *Host) close() {
	if h.closing != nil {
		return
	}
	h.dropHeld()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	h.closing = cancel
	go func() {
		defer close(h.closed)
		defer cancel()
		_, h.failure = h.Conversation.Close(ctx)
	}()
}

// later waits for a slow operation in its own goroutine. Run calls then, the function that wait returns.
func (h *Host) later(wait func() (then func())) {
	h.pending++
	go func() {
		then := wait()
		select {
		case h.results <- then:
		case <-h.ended:
		}
	}()
}

// send passes a message to the conversation. If that has no room, the message and all later ones wait in held.
func (h *Host) send(ctx context.Context, f Frame) {
	if len(h.held) > 0 {
		h.hold(f)
		return
	}
	if f.Steer {
		reached := h.Conversation.StartSteer(ctx, f.User)
		earlier, told := h.lastSteer, make(chan struct{})
		h.lastSteer = told
		h.later(func() func() {
			turn, steered, err := reached()
			select { // the line names only the turn, so lines must be in the order of the messages
			case <-earlier:
			case <-h.ended:
			}
			return func() {
				h.sent(f, turn, steered, err)
				close(told)
			}
		})
		return
	}
	turn, err := h.Conversation.Send(ctx, f.User)
	h.sent(f, turn, false, err)
}

func (h *Host) hold(f Frame) {
	h.held = append(h.held, f)
	h.heldBytes += conversation.Size(f.User)
}

// sendHeld sends the held messages for which the conversation has room now.
func (h *Host) sendHeld(ctx context.Context) {
	waiting := h.held
	h.held, h.heldBytes = nil, 0
	for _, f := range waiting {
		f.Steer = false // its turn has ended
		h.send(ctx, f)
	}
}

func (h *Host) dropHeld() {
	for range h.held {
		h.Log("a message was ignored: the conversation is being ended")
	}
	h.held, h.heldBytes = nil, 0
}

// answer passes an answer to the conversation. If a turn begins with it, the host waits for its end.
func (h *Host) answer(ctx context.Context, r event.Reply) error {
	turn, err := h.Conversation.Answer(ctx, r)
	if turn > h.newest {
		h.open[turn] = true
	}
	return err
}

func (h *Host) sent(f Frame, turn int64, steered bool, err error) {
	if err != nil && fault.Of(err).Code == fault.TooManyRequests && h.signal == nil && h.closing == nil {
		h.hold(f)
		return
	}
	if err != nil {
		h.Log("the message was not taken: %v", err)
		return
	}
	if !steered && turn > h.newest { // its events are still to come
		h.open[turn] = true
	}
	if f.Taken != nil {
		h.write(f.Taken(turn, steered))
	}
}

func (h *Host) event(e event.Event) {
	switch e.Kind {
	case event.Prompted:
		if e.Turn != h.newest {
			h.denied, h.failCode, h.retried = false, "", ""
		}
		h.open[e.Turn], h.newest = true, e.Turn
	case event.Retry:
		if said := e.Retry.Sentence(); said != h.retried { // an agent without a network may retry for ever
			h.Log("%s", said)
			h.retried = said
		}
	case event.Notice:
		h.Detail("%s", e.Text)
	case event.Answered:
		if u := e.Answer.Usage; u != nil {
			h.Detail("%s answered: %d tokens in, %d out", text.Name(e.Model), u.Input, u.Output)
		}
	case event.ToolCall:
		h.Detail("%s %s", text.Name(e.Call.Name), text.Name(cmp.Or(e.Call.Command, e.Call.Path)))
	case event.ToolResult:
		if e.Result.Failed {
			h.Detail("the call %s failed", text.Name(e.Result.ID))
		}
	case event.Denied:
		h.denied = h.denied || !e.Denial.ByUser
		h.Detail("%s was denied: %s", e.Denial.Tool, e.Denial.Reason)
	case event.Failed:
		if e.Terminal {
			h.failCode = e.Fault.Code
		}
		h.Log("%s", e.Fault.Message)
		for _, hint := range []string{e.Fault.Suggestion, e.Fault.FixCommand} {
			if hint != "" {
				h.Hint("%s", hint)
			}
		}
	case event.Ended:
		if conversation.Abandoned(e.End) { // a turn of an earlier process has no lines here
			h.Log("%s", strings.Join(e.End.Notes, "; "))
			return
		}
		delete(h.open, e.Turn)
		h.last = e.End
		if lost := e.End.Lost(); lost != "" {
			h.Log("%s", lost)
		}
		h.Detail("turn %d ended after %s: %s", e.Turn, e.End.Took.Round(time.Millisecond), e.End.Reason)
		if h.Form == Text && e.End.OK {
			clean, _ := text.Clean(e.End.Text) // it may go to a terminal
			h.put([]byte(clean + "\n"))
		}
	}
	h.write(h.Dialect.Event(e))
}

// loseTurns reports a failed end for each turn that has none, because the conversation could not be closed.
func (h *Host) loseTurns() {
	for range h.open {
		h.event(event.Event{Kind: event.Failed, Terminal: true, Synthetic: true, Fault: fault.Of(h.failure)})
		h.event(event.Event{Kind: event.Ended, Synthetic: true, End: &event.End{Reason: event.FailedTurn}})
	}
}

// write writes the lines that Form includes.
func (h *Host) write(lines [][]byte) {
	for _, line := range lines {
		if h.Form == Lines || h.Form == Result && EndsTurn(line) {
			h.put(append(line, '\n'))
		}
	}
}

// EndsTurn reports whether a line of either dialect is the end of a turn.
func EndsTurn(line []byte) bool { return bytes.HasPrefix(line, []byte(`{"type":"result"`)) }

func (h *Host) put(data []byte) {
	if h.outputError == nil {
		h.out.Put(data)
	}
}

// code returns the exit code: that of a signal, or what the dialect returns.
func (h *Host) code() int {
	if s, ok := h.signal.(syscall.Signal); ok {
		return 128 + int(s)
	}
	return h.Dialect.Code(h, h.last)
}
