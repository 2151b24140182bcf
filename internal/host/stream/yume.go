package stream

import (
	"context"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/wire/yume"
)

// Yume is the flat dialect.
type Yume struct {
	encoder yume.Encoder
	host    *Host
}

var _ Dialect = (*Yume)(nil)

// NewYume returns the dialect for a permission mode, in the words of the dialect. The id is empty if it is not known
// yet.
func NewYume(id, mode string) *Yume { return &Yume{encoder: yume.Encoder{Session: id, Mode: mode}} }

func (y *Yume) bind(h *Host) { y.host = h }

// Begin implements Dialect.
func (y *Yume) Begin(id string, f event.Facts) [][]byte { return y.encoder.Begin(id, f) }

// Event implements Dialect.
func (y *Yume) Event(e event.Event) [][]byte { return y.encoder.Event(e) }

// Refuse implements Dialect.
func (y *Yume) Refuse(f *fault.Fault) [][]byte { return y.encoder.Refuse(f) }

// InputEnded implements Dialect.
func (y *Yume) InputEnded() {}

// Read implements Dialect.
func (y *Yume) Read(line []byte) (Frame, error) {
	f, err := yume.Parse(line)
	if err != nil {
		return Frame{}, err
	}
	h := y.host
	switch {
	case f.Steer:
		return Frame{User: f.User, Steer: true, Taken: y.taken}, nil
	case f.User != nil:
		return Frame{User: f.User}, nil
	case f.Interrupt:
		return Frame{Do: func(context.Context) { h.Conversation.Interrupt(true) }}, nil
	case f.Mode != "":
		return Frame{Do: func(ctx context.Context) {
			wait := h.Conversation.StartSet(ctx, agent.Change{Mode: f.Mode})
			h.later(func() func() {
				err := wait()
				return func() {
					if err != nil {
						h.Log("the permission mode stays as it is: %s", fault.Of(err).Sentence())
					}
				}
			})
		}}, nil
	case f.Approval != nil:
		return Frame{Do: func(ctx context.Context) {
			a := f.Approval
			if err := h.answer(ctx, event.Reply{
				Question: a.ID, Option: a.Option, Text: a.Reason,
			}); err != nil {
				h.Log("an approval was ignored: %v", err)
			}
		}}, nil
	}
	return Frame{}, nil
}

// taken returns the lines about a message for the running turn that became a message of its own. If it reached the
// turn, an event reports that.
func (y *Yume) taken(turn int64, steered bool) [][]byte {
	if steered {
		return nil
	}
	return y.encoder.Queued(turn)
}

// Unreadable implements Dialect.
func (y *Yume) Unreadable(why error) [][]byte { return y.encoder.Wrong(why) }

// Code implements Dialect. It reports failure, denial or success of the last turn. An interruption by a host that stays
// is a success.
func (y *Yume) Code(h *Host, last *event.End) int {
	switch {
	case last == nil && h.UntilEOF && !h.refused:
		return done
	case last == nil && h.UntilEOF:
		return misused
	case last == nil:
		return failed
	case !last.OK && h.UntilEOF && last.Reason == event.Cancelled:
		return done
	case !last.OK && h.failCode == fault.Blocked: // ended by a denial, or by the agent's own policy
		return blocked
	case !last.OK:
		return failed
	case h.denied && !h.Quiet:
		return blocked
	}
	return done
}
