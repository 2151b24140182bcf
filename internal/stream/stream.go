// Package stream is the host of a conversation that speaks in lines: what happens goes to standard output, what the other side wants comes
// from standard input.
//
// It promises that a turn is told to its end whatever happens to it; that a line is written whole and at once; that a host which has gone
// away takes the turn with it, and nothing that it started is left; and an exit code that says how it went. It refuses to know an agent:
// anything that is a Session can be on the other side.
package stream

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/fault"
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
	// Know takes what is known of the conversation by now. It is called before all else, and whenever more may be known.
	Know(id string, f event.Facts) [][]byte
	// Event is what an event looks like: no line, or several.
	Event(e event.Event) [][]byte
	// Refuse is the whole stream of a conversation that cannot begin.
	Refuse(f *fault.Fault) [][]byte
	// Read reads a line of the other side, in the goroutine of whoever reads. A Frame that wants nothing is passed over.
	Read(line []byte) (Frame, error)
	// Ends says of a line of ours that it is the end of a turn.
	Ends(line []byte) bool
	// Gone says that the other side will say nothing any more.
	Gone()
	// Code is the exit code behind that end of the last turn; nil: there was none.
	Code(h *Host, last *event.End) int
}

// Host is one side of the conversation. The other is the Session.
type Host struct {
	Session agent.Session
	Dialect Dialect
	Form    Form
	Log     func(format string, args ...any) // for people, on standard error
	Detail  func(format string, args ...any) // the same, with --verbose only
	Frames  <-chan Said                      // what the other side says; nil: nothing
	// Stays: the process waits for further messages until Frames end. Otherwise it ends with the turn of First.
	Stays bool
	First []event.Block
	// Quiet: a denial is what was asked for, so that it is no exit code.
	Quiet   bool
	Signals <-chan os.Signal

	out   *writer
	lost  <-chan struct{} // closed when nobody reads standard output any more
	heard chan os.Signal

	course course

	turns   int             // sent and not ended
	later   [][]event.Block // messages for an agent that takes one at a time
	dropped int             // messages that waited when the turn was interrupted
	why     fault.Code      // what the last turn failed with
	last    *event.End
	denied  bool
	signal  os.Signal
	gone    error // standard output cannot be written
}

// New is a host that can write, and be asked things by a session that is not open yet.
func New(out io.Writer, d Dialect, form Form) *Host {
	h := &Host{Dialect: d, Form: form, out: newWriter(out), lost: process.Unheard(out)}
	if b, binds := d.(interface{ bind(*Host) }); binds {
		b.bind(h)
	}
	return h
}

const closing = 10 * time.Second

// Run talks until there is no more to do, and returns the exit code.
func (h *Host) Run(ctx context.Context) int {
	h.begin()
	events, stop := h.listen(ctx)
	defer stop()
	code := h.converse(ctx, events)
	h.Dialect.Gone()
	if !h.Finish() {
		return code
	}
	if h.out.failure != nil && h.gone == nil { // of the last lines
		h.Log("standard output cannot be written: %v", h.out.failure)
		return failed
	}
	return code
}

// Tell writes lines beside the conversation.
func (h *Host) Tell(lines [][]byte) { h.write(lines) }

// Finish waits until all that was said is written. False: nobody reads it.
func (h *Host) Finish() bool {
	h.out.finish()
	select {
	case <-h.out.written:
		return true
	case <-h.out.hurry:
	}
	select {
	case <-h.out.written:
		return true
	case <-time.After(time.Second):
		return false
	}
}

// begin hears signals, also while a line waits for room.
func (h *Host) begin() {
	h.heard = make(chan os.Signal, 1)
	go func() {
		first, ok := <-h.Signals
		if !ok {
			return
		}
		h.heard <- first
		select {
		case <-h.Signals:
		case <-time.After(closing):
		}
		close(h.out.hurry)
	}()
}

func (h *Host) converse(ctx context.Context, events <-chan event.Event) int {
	h.know()
	if len(h.First) > 0 {
		h.send(ctx, h.First)
	}
	frames := h.Frames
	for !h.over(frames) {
		select {
		case e := <-events:
			h.hear(ctx, e)
		case said, open := <-frames:
			if !open || errors.Is(said.Err, io.EOF) {
				frames = nil
				h.Dialect.Gone()
				if s, asks := h.Session.(interface{ NobodyAnswers() }); asks {
					s.NobodyAnswers()
				}
				continue
			}
			h.heed(ctx, said)
		case h.signal = <-h.heard:
			h.interrupt(ctx)
		case <-h.out.written: // nothing more can be, although nothing was to be written just now
			h.gone = h.out.failure
		case <-h.lost:
			if h.turns == 0 { // it went in peace
				h.close(ctx)
				return h.code()
			}
			h.gone = errors.New("nobody reads it")
		case <-h.out.hurry:
			h.giveUp(ctx, events)
			return h.code()
		}
		if h.gone != nil {
			h.interrupt(ctx)
			h.close(ctx)
			h.Log("standard output cannot be written: %v", h.gone)
			if h.signal != nil {
				return h.code()
			}
			return failed
		}
	}
	h.close(ctx)
	return h.code()
}

// over says that nothing more will happen.
func (h *Host) over(frames <-chan Said) bool {
	return h.turns == 0 && len(h.later) == 0 && (!h.Stays || frames == nil || h.signal != nil)
}

// listen passes the events on; stop ends that.
func (h *Host) listen(ctx context.Context) (<-chan event.Event, func()) {
	ctx, cancel := context.WithCancel(ctx)
	events, ended := make(chan event.Event), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			e, err := h.Session.Next(ctx)
			if err != nil {
				return
			}
			select {
			case events <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	return events, func() { cancel(); <-ended }
}

func (h *Host) send(ctx context.Context, said []event.Block) {
	if len(h.later) > 0 {
		h.later = append(h.later, said)
		return
	}
	err := h.Session.Send(ctx, said)
	if h.turns > 0 && errors.Is(err, fault.LockHeld) { // it waits while another turn runs
		h.later = append(h.later, said)
		return
	}
	if err != nil {
		h.Log("the message was not taken: %v", err)
		return
	}
	h.turns++
}

// interrupt ends the turn that runs, and those that wait: each has its end.
func (h *Host) interrupt(ctx context.Context) {
	h.dropped += len(h.later)
	h.later = nil
	if err := h.Session.Interrupt(ctx); err != nil {
		h.Log("the turn could not be interrupted: %v", err)
	}
}

func (h *Host) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, closing)
	defer cancel()
	if _, err := h.Session.Close(ctx); err != nil {
		h.Log("the session could not be closed: %v", err)
	}
}

// giveUp closes the session without waiting for its turns to end by themselves. They have an end all the same.
func (h *Host) giveUp(ctx context.Context, events <-chan event.Event) {
	h.close(ctx)
	soon := time.After(time.Second)
	for h.turns > 0 {
		select {
		case e := <-events:
			h.hear(ctx, e)
		case <-soon:
			h.hear(ctx, event.Event{Kind: event.Ended, Synthetic: true, End: &event.End{Reason: "cancelled"}})
			soon = time.After(0)
		}
	}
}

func (h *Host) hear(ctx context.Context, e event.Event) {
	for _, e := range h.course.put(e) {
		h.tell(e)
	}
	if e.Kind != event.Ended || h.turns > 0 {
		return
	}
	for ; h.dropped > 0; h.dropped-- {
		h.tell(event.Event{Kind: event.Ended, Synthetic: true, End: &event.End{Reason: cancelled}})
	}
	for len(h.later) > 0 && h.turns == 0 {
		next := h.later[0]
		waiting := h.later[1:]
		h.later = nil
		h.send(ctx, next)
		h.later = append(h.later, waiting...)
	}
}

func (h *Host) tell(e event.Event) {
	switch e.Kind {
	case event.Retry:
		h.Detail("asking again in %s, attempt %d of %d failed: %s", e.Retry.After.Round(time.Millisecond), e.Retry.Attempt, e.Retry.Of, e.Retry.Reason)
	case event.Notice:
		h.Detail("%s", e.Text)
	case event.Denied:
		h.denied = h.denied || !e.Denial.ByUser
		h.Detail("%s was denied: %s", e.Denial.Tool, e.Denial.Reason)
	case event.Failed:
		if e.Terminal {
			h.why = e.Fault.Code
		}
		h.Log("%s", e.Fault.Sentence())
	case event.Ended:
		if !e.Unasked { // an agent may go on by itself, as when something ends that it had begun
			h.turns = max(h.turns-1, 0)
		}
		h.last = e.End
		if h.Form == Text && e.End.OK {
			clean, _ := text.Clean(e.End.Text) // it may go to a terminal
			h.put([]byte(clean + "\n"))
		}
	}
	if e.Kind == event.Started || e.Kind == event.TurnBegan {
		h.know()
	}
	h.write(h.Dialect.Event(e))
}

// know hands on what is known of the conversation.
func (h *Host) know() { h.write(h.Dialect.Know(h.Session.ID(), h.Session.Facts())) }

func (h *Host) heed(ctx context.Context, said Said) {
	f := said.Frame
	switch {
	case said.Err != nil:
		h.Log("a line on standard input was passed over: %v", said.Err)
	case f.User != nil && h.signal != nil:
		h.Log("a message was passed over: the conversation is being ended")
	case f.User != nil && !h.Stays:
		h.Log("a message on standard input was passed over: this process answers one, and that came with --prompt")
	case f.User != nil:
		if f.Taken != nil {
			f.Taken()
		}
		h.send(ctx, f.User)
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
	if h.gone != nil {
		return
	}
	if h.gone = h.out.put(data); h.gone == nil {
		return
	}
	select {
	case h.signal = <-h.heard:
	default:
	}
}

// code says how it went: a signal, or what the dialect makes of it.
func (h *Host) code() int {
	if s, ok := h.signal.(syscall.Signal); ok {
		return 128 + int(s)
	}
	return h.Dialect.Code(h, h.last)
}
