// Package stream is the host of a conversation that speaks in lines: what happens goes to standard output, what the
// other side wants comes from standard input.
//
// It promises that a turn is told to its end whatever happens to it; that a line is written whole and at once; that
// signals and the other side are heard whatever the agent or standard output is doing; that a host which has gone away
// takes the turn with it, and nothing that it started is left; and an exit code that says how it went. It refuses to
// decide anything about the conversation: it translates.
package stream

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"omniagent/internal/conversation"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/lines"
	"omniagent/internal/process"
	"omniagent/internal/text"
)

// Form is what standard output carries.
type Form string

// The forms.
const (
	Lines  Form = "stream-json" // every line
	Result Form = "json"        // the result alone
	Text   Form = "text"        // the answer alone
)

// The exit codes, which are those of an agent.
const (
	done    = 0
	failed  = 1
	blocked = 3
)

// Dialect is how the other side is spoken with. Its methods are called by the Host alone, but for Read.
type Dialect interface {
	// Begin takes what is known of the conversation when it is open. It is called before Event; later facts come as
	// events.
	Begin(id string, f event.Facts) [][]byte
	// Event is what an event looks like: no line, or several.
	Event(e event.Event) [][]byte
	// Refuse is the whole stream of a conversation that cannot begin.
	Refuse(f *fault.Fault) [][]byte
	// Read reads a line of the other side, in the goroutine of the reader. A Frame that wants nothing is passed over.
	Read(line []byte) (Frame, error)
	// Ends says of a line of ours that it is the end of a turn.
	Ends(line []byte) bool
	// Gone says that the other side will say nothing any more.
	Gone()
	// Code is the exit code behind that end of the last turn; nil: there was none.
	Code(h *Host, last *event.End) int
}

// Host translates between a conversation and its other side.
type Host struct {
	Conversation *conversation.Conversation
	Dialect      Dialect
	Form         Form
	Log          func(format string, args ...any) // for people, on standard error
	Detail       func(format string, args ...any) // the same, with --verbose only
	Frames       <-chan Said                      // what the other side says; nil: nothing
	// Stays: the process waits for further messages until Frames end. Otherwise it ends with the turn of the message
	// that the conversation was opened with.
	Stays bool
	// Quiet: a denial is what was asked for, so that it is no exit code.
	Quiet   bool
	Signals <-chan os.Signal

	out      *lines.Writer
	lost     <-chan struct{} // closed when nobody reads standard output any more
	answered chan func()     // what came of something that took its time
	ended    chan struct{}   // closed when Run is over

	open    map[int64]bool // turns of messages that have no end
	newest  int64          // the last turn of a message that an event told of
	awaited int            // answers that will come
	why     fault.Code     // what the last turn failed with
	last    *event.End
	denied  bool
	signal  os.Signal
	gone    error         // standard output cannot be written
	closing func()        // ends the patience of the closing; nil: the conversation is not being closed
	closed  chan struct{} // closed when it is
	failure error         // of the closing; read it behind closed
}

// New is a host that can write, and be asked things by a conversation that is not open yet.
func New(out io.Writer, d Dialect, form Form) *Host {
	h := &Host{
		Dialect: d, Form: form, out: lines.NewWriter(out), lost: process.Unheard(out), answered: make(chan func()),
		ended: make(chan struct{}),
		open:  map[int64]bool{}, closed: make(chan struct{}),
	}
	if b, binds := d.(interface{ bind(*Host) }); binds {
		b.bind(h)
	}
	return h
}

// The limits.
const (
	patience   = 10 * time.Second // with a closing, and with a side that reads nothing after a signal
	mostQueued = 4096             // lines that nobody reads, until nothing more is heard of the other side
)

// Run talks until there is no more to do, and returns the exit code.
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
	h.Dialect.Gone()
	<-h.closed
	if h.failure != nil {
		h.Log("the conversation could not be closed: %v", h.failure)
		h.loseTurns()
	}
	code := h.code()
	if h.gone != nil {
		h.Log("standard output cannot be written: %v", h.gone)
	} else if h.Finish() && h.out.Err() != nil { // of the last lines
		h.gone = h.out.Err()
		h.Log("standard output cannot be written: %v", h.gone)
	}
	if h.gone != nil && h.signal == nil {
		return failed
	}
	return code
}

// Tell writes lines beside the conversation.
func (h *Host) Tell(lines [][]byte) { h.write(lines) }

// Finish waits until all that was said is written. False: nobody reads it. After a signal it does not wait long, after
// two not at all.
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

// listen reads the conversation to its end.
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

// converse carries what is said from one side to the other, until the conversation is over. Nothing that it does waits.
func (h *Host) converse(ctx context.Context, events <-chan event.Event) {
	frames, lost, written, over := h.Frames, h.lost, h.out.Written(), ctx.Done()
	var late <-chan time.Time
	for {
		if h.closing == nil && len(h.open) == 0 && h.awaited == 0 && (!h.Stays || frames == nil || h.signal != nil) {
			h.close()
		}
		next, said := events, frames
		room := h.out.Room()
		// the agent does not wait for them: its record does
		if queued, _ := h.out.State(); h.gone == nil && queued >= lines.Full {
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
			h.tell(e)
		case s, more := <-said:
			if !more || errors.Is(s.Err, io.EOF) {
				frames = nil
				h.Dialect.Gone()
				h.Conversation.NobodyAnswers()
				continue
			}
			h.take(ctx, s)
		case do := <-h.answered:
			h.awaited--
			do()
		case <-room:
		case s := <-h.Signals:
			late = time.After(patience)
			if h.signal == nil {
				h.signal = s
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
		case <-written: // nothing more can be, although nothing was to be written just now
			written = nil
			h.lose(h.out.Err())
		case <-lost:
			lost = nil
			if len(h.open) == 0 { // it went in peace
				h.close()
			} else {
				h.lose(errors.New("nobody reads it"))
			}
		}
	}
}

// lose ends a conversation that nobody hears of.
func (h *Host) lose(why error) {
	if h.gone == nil {
		h.gone = why
		h.Dialect.Gone()
		h.close()
	}
}

// hurry ends it without waiting for the agent to agree, or for a side that reads nothing.
func (h *Host) hurry() {
	h.close()
	h.closing()
	if queued, _ := h.out.State(); queued >= lines.Full {
		h.lose(errors.New("nobody reads it"))
	}
}

// close begins to close the conversation: what runs is interrupted. Its last events still come.
func (h *Host) close() {
	if h.closing != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	h.closing = cancel
	go func() {
		defer close(h.closed)
		defer cancel()
		_, h.failure = h.Conversation.Close(ctx)
	}()
}

// later waits elsewhere for something that takes its time.
func (h *Host) later(wait func() (then func())) {
	h.awaited++
	go func() {
		then := wait()
		select {
		case h.answered <- then:
		case <-h.ended:
		}
	}()
}

// send hands over a message.
func (h *Host) send(ctx context.Context, f Frame) {
	if f.Steer {
		reached := h.Conversation.StartSteer(ctx, f.User)
		h.later(func() func() {
			turn, steered, err := reached()
			return func() { h.sent(f, turn, steered, err) }
		})
		return
	}
	turn, err := h.Conversation.Send(ctx, f.User)
	h.sent(f, turn, false, err)
}

func (h *Host) sent(f Frame, turn int64, steered bool, err error) {
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

func (h *Host) tell(e event.Event) {
	switch e.Kind {
	case event.Prompted:
		h.open[e.Turn], h.newest = true, e.Turn
	case event.Retry:
		h.Detail("asking again in %s, attempt %d of %d failed: %s", e.Retry.After.Round(time.Millisecond),
			e.Retry.Attempt, e.Retry.Of, e.Retry.Reason)
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
			h.why = e.Fault.Code
		}
		h.Log("%s", e.Fault.Message)
		for _, hint := range []string{e.Fault.Suggestion, e.Fault.FixCommand} {
			if hint != "" {
				h.Log("hint: %s", hint)
			}
		}
	case event.Ended:
		delete(h.open, e.Turn)
		h.last = e.End
		h.Detail("turn %d ended after %s: %s", e.Turn, e.End.Took.Round(time.Millisecond), e.End.Reason)
		if h.Form == Text && e.End.OK {
			clean, _ := text.Clean(e.End.Text) // it may go to a terminal
			h.put([]byte(clean + "\n"))
		}
	}
	h.write(h.Dialect.Event(e))
}

// loseTurns tells that turns have no end on record, since the record could not be written.
func (h *Host) loseTurns() {
	for range h.open {
		h.tell(event.Event{Kind: event.Failed, Terminal: true, Synthetic: true, Fault: fault.Of(h.failure)})
		h.tell(event.Event{Kind: event.Ended, Synthetic: true, End: &event.End{Reason: event.FailedTurn}})
	}
}

func (h *Host) take(ctx context.Context, said Said) {
	f := said.Frame
	switch {
	case said.Err != nil:
		h.Log("a line on standard input was passed over: %v", said.Err)
	case f.User != nil && h.signal != nil:
		h.Log("a message was passed over: the conversation is being ended")
	case f.User != nil && !h.Stays:
		h.Log("a message on standard input was passed over: this process answers one, and that came with --prompt")
	case f.User != nil:
		h.send(ctx, f)
	case f.Do != nil:
		f.Do(ctx)
	}
}

// write puts lines out, each at once.
func (h *Host) write(lines [][]byte) {
	for _, line := range lines {
		if h.Form == Lines || h.Form == Result && h.Dialect.Ends(line) {
			h.put(append(line, '\n'))
		}
	}
}

func (h *Host) put(data []byte) {
	if h.gone == nil {
		h.out.Put(data)
	}
}

// code says how it went: a signal, or what the dialect makes of it.
func (h *Host) code() int {
	if s, ok := h.signal.(syscall.Signal); ok {
		return 128 + int(s)
	}
	return h.Dialect.Code(h, h.last)
}
