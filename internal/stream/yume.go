package stream

import (
	"bytes"
	"context"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/proto/yume"
	"omniagent/internal/setting"
)

// Yume is the flat dialect.
type Yume struct {
	Mode    string                             // its own word
	Meaning func(word string) setting.Approval // what a mode means

	encoder yume.Encoder
	host    *Host
	waits   bool // the first line, for what is not known yet
}

var _ Dialect = (*Yume)(nil)

func (y *Yume) bind(h *Host) { y.host = h }

// Named says what the conversation will be called, for who has to tell that it cannot begin.
func (y *Yume) Named(id string) { y.encoder.Session = id }

// Know is part of Dialect. An agent that tells its session later has its first line later.
func (y *Yume) Know(id string, f event.Facts) [][]byte {
	y.encoder.Session, y.encoder.Model, y.encoder.Dir, y.encoder.Mode = id, f.Model, f.Dir, y.Mode
	y.encoder.Tools, y.encoder.Window, y.encoder.Walls = f.Tools, f.Window, f.Walls
	if y.waits = id == ""; y.waits {
		return nil
	}
	return y.encoder.Init()
}

// Event is part of Dialect.
func (y *Yume) Event(e event.Event) [][]byte {
	switch {
	case !y.waits:
	case e.Kind == event.Started && e.Session != "":
		y.encoder.Session = e.Session
		if e.Model != "" {
			y.encoder.Model = e.Model
		}
		y.waits = false
	case e.Kind == event.Started, e.Kind == event.TurnBegan, e.Kind == event.Notice, e.Kind == event.Retry, e.Kind == event.Changed:
		return nil
	default: // it comes to nothing more
		y.waits = false
	}
	return append(y.encoder.Init(), y.encoder.Event(e)...)
}

// Refuse is part of Dialect.
func (y *Yume) Refuse(f *fault.Fault) [][]byte { return y.encoder.Refuse(f) }

// Ends is part of Dialect.
func (y *Yume) Ends(line []byte) bool { return bytes.HasPrefix(line, []byte(`{"type":"result"`)) }

// Gone is part of Dialect.
func (y *Yume) Gone() {}

// Read is part of Dialect.
func (y *Yume) Read(line []byte) (Frame, error) {
	f, err := yume.Parse(line)
	if err != nil {
		return Frame{}, err
	}
	h := y.host
	switch {
	case f.User != nil:
		return Frame{User: f.User}, nil
	case f.Interrupt:
		return Frame{Do: h.interrupt}, nil
	case f.Mode != "":
		return Frame{Do: func(ctx context.Context) {
			if err := h.Session.Set(ctx, agent.Change{Mode: y.Meaning(f.Mode)}); err != nil {
				h.Log("the permission mode stays as it is: %v", err)
			}
		}}, nil
	case f.Approval != nil:
		return Frame{Do: func(ctx context.Context) {
			a := event.Reply{Option: "deny", Text: f.Approval.Reason}
			if f.Approval.Approved {
				a = event.Reply{Option: "allow"}
			}
			if err := h.Session.Answer(ctx, f.Approval.ID, a); err != nil {
				h.Log("an approval was passed over: %v", err)
			}
		}}, nil
	}
	return Frame{}, nil
}

// Code is part of Dialect: a failure, a denial, or all well.
func (y *Yume) Code(h *Host, last *event.End) int {
	switch {
	case last == nil && h.Stays:
		return done
	case last != nil && !last.OK && !h.Stays && h.denied && h.why == fault.Blocked: // it ended with the denial
		return blocked
	case last == nil || !last.OK && !h.Stays:
		return failed
	case h.denied && !h.Quiet && !h.Stays:
		return blocked
	}
	return done
}
