// Package stream is the host of a conversation that speaks in lines: what happens goes to standard output, what the other side wants comes
// from standard input.
//
// It promises that a turn is told to its end whatever happens to it; that a line is written whole and at once; that a host which has gone
// away takes the turn with it, and nothing that it started is left; and an exit code that says how it went. It refuses to know an agent:
// anything that is a Session can be on the other side.
package stream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/proto/yume"
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

// Host is one side of the conversation. The other is the Session.
type Host struct {
	Session agent.Session
	Encoder *yume.Encoder
	Form    Form
	Out     io.Writer
	Log     func(format string, args ...any) // for people, on standard error
	Detail  func(format string, args ...any) // the same, with --verbose only
	Frames  <-chan Said                      // what the other side says; nil: nothing
	// Stays: the process waits for further messages until Frames end. Otherwise it ends with the turn of First.
	Stays bool
	First []agent.Block
	Mode  func(word string) agent.Mode // what a mode of the lines means
	// Quiet: a denial is what was asked for, so that it is no exit code.
	Quiet   bool
	Signals <-chan os.Signal

	lines   chan []byte   // on their way to Out
	written chan struct{} // closed when all of them are, or none can be any more
	heard   chan os.Signal
	hurry   chan struct{} // closed when nothing is waited for any more: a second signal, or too long after the first
	failure error         // of Out; read it behind written

	turns  int // sent and not ended
	last   *event.End
	denied bool
	signal os.Signal
	gone   error // standard output cannot be written
}

// Said is a line of the other side, or that it has ended.
type Said struct {
	Frame yume.Frame
	Err   error // the line is wrong; io.EOF: no more will come
}

const closing = 10 * time.Second

// Run talks until there is no more to do, and returns the exit code.
func (h *Host) Run(ctx context.Context) int {
	h.begin()
	events, stop := h.listen(ctx)
	defer stop()
	code := h.converse(ctx, events)
	close(h.lines)
	select {
	case <-h.written:
	case <-h.hurry:
		select {
		case <-h.written:
		case <-time.After(time.Second): // nobody reads them
			return code
		}
	}
	if h.failure != nil && h.gone == nil { // of the last lines
		h.Log("standard output cannot be written: %v", h.failure)
		return failed
	}
	return code
}

// begin starts what stands between us and the other side: one that writes, so that a side which does not read keeps no signal from being heard,
// and one that hears signals.
func (h *Host) begin() {
	h.lines, h.written = make(chan []byte, 64), make(chan struct{})
	h.heard, h.hurry = make(chan os.Signal, 1), make(chan struct{})
	go func() {
		defer close(h.written)
		for line := range h.lines {
			if _, h.failure = h.Out.Write(line); h.failure != nil {
				return
			}
		}
	}()
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
		close(h.hurry)
	}()
}

func (h *Host) converse(ctx context.Context, events <-chan event.Event) int {
	h.write(h.Encoder.Init())
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
				if s, asks := h.Session.(interface{ NobodyAnswers() }); asks {
					s.NobodyAnswers()
				}
				continue
			}
			h.heed(ctx, said)
		case h.signal = <-h.heard:
			h.interrupt(ctx)
		case <-h.hurry:
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
	return h.turns == 0 && (!h.Stays || frames == nil || h.signal != nil)
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

func (h *Host) send(ctx context.Context, said []agent.Block) {
	if err := h.Session.Send(ctx, said); err != nil {
		h.Log("the message was not taken: %v", err)
		return
	}
	h.turns++
}

// interrupt ends the turn that runs, and those that wait: each has its end.
func (h *Host) interrupt(ctx context.Context) {
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

func (h *Host) hear(_ context.Context, e event.Event) {
	switch e.Kind {
	case event.Retry:
		h.Detail("asking again in %s, attempt %d of %d failed: %s", e.Retry.After.Round(time.Millisecond), e.Retry.Attempt, e.Retry.Of, e.Retry.Reason)
	case event.Notice:
		h.Detail("%s", e.Text)
	case event.Denied:
		h.denied = h.denied || !e.Denial.ByUser
		h.Detail("%s was denied: %s", e.Denial.Tool, e.Denial.Reason)
	case event.Failed:
		h.Log("%s", e.Fault.Sentence())
	case event.Ended:
		h.turns = max(h.turns-1, 0)
		h.last = e.End
		if h.Form == Text && e.End.OK {
			clean, _ := text.Clean(e.End.Text) // it may go to a terminal
			h.put([]byte(clean + "\n"))
		}
	}
	h.write(h.Encoder.Event(e))
}

func (h *Host) heed(ctx context.Context, said Said) {
	f := said.Frame
	switch {
	case said.Err != nil:
		h.Log("a line on standard input was passed over: %v", said.Err)
	case f.User != nil && h.signal != nil:
		h.Log("a message was passed over: the conversation is being ended")
	case f.User != nil:
		if !h.Stays {
			h.Log("a message on standard input was passed over: this process answers one, and that came with --prompt")
			return
		}
		h.send(ctx, f.User)
	case f.Interrupt:
		h.interrupt(ctx)
	case f.Mode != "":
		if err := h.Session.Set(ctx, agent.Change{Mode: h.Mode(f.Mode)}); err != nil {
			h.Log("the permission mode stays as it is: %v", err)
		}
	case f.Approval != nil:
		a := agent.Answer{Option: "deny", Text: f.Approval.Reason}
		if f.Approval.Approved {
			a = agent.Answer{Option: "allow"}
		}
		if err := h.Session.Answer(ctx, f.Approval.ID, a); err != nil {
			h.Log("an approval was passed over: %v", err)
		}
	}
}

// write puts lines out, each at once.
func (h *Host) write(lines [][]byte) {
	for _, line := range lines {
		if h.Form == Lines || h.Form == Result && bytes.HasPrefix(line, []byte(`{"type":"result"`)) {
			h.put(append(line, '\n'))
		}
	}
}

func (h *Host) put(data []byte) {
	if h.gone != nil {
		return
	}
	select {
	case <-h.written:
		h.gone = h.failure
		return
	case h.lines <- data:
		return
	default:
	}
	select {
	case h.lines <- data:
	case <-h.written:
		h.gone = h.failure
	case <-h.hurry:
		h.gone = errors.New("nobody reads it")
		select {
		case h.signal = <-h.heard:
		default:
		}
	}
}

// code says how it went: a signal, a failure, a denial, or all well.
func (h *Host) code() int {
	if s, ok := h.signal.(syscall.Signal); ok {
		return 128 + int(s)
	}
	switch {
	case h.last == nil && h.Stays:
		return done
	case h.last == nil || !h.last.OK && !h.Stays:
		return failed
	case h.denied && !h.Quiet && !h.Stays:
		return blocked
	}
	return done
}

// longestFrame is the longest line that is read; an image of a few megabytes fits.
const longestFrame = 64 << 20

// Read reads frames until the input ends. A line that is too long is passed over as a whole.
func Read(r io.Reader, frames chan<- Said, quit <-chan struct{}) {
	defer close(frames)
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := readLine(in)
		var said Said
		switch {
		case errors.Is(err, bufio.ErrTooLong):
			said.Err = fmt.Errorf("it is longer than %d MiB", longestFrame>>20)
		case len(bytes.TrimSpace(line)) > 0:
			said.Frame, said.Err = yume.Parse(line)
		case err != nil:
			return
		default:
			continue
		}
		select {
		case frames <- said:
		case <-quit:
			return
		}
	}
}

func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(line)+len(part) > longestFrame; !long {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if long && (err == nil || errors.Is(err, io.EOF)) {
			return nil, bufio.ErrTooLong
		}
		return line, err
	}
}

// IsFrame says whether a text begins with a frame, rather than with what a person would write.
func IsFrame(line []byte) bool {
	var f struct {
		Type *string `json:"type"`
	}
	return json.Unmarshal(line, &f) == nil && f.Type != nil
}
