package conversation

import (
	"context"

	"omniagent/internal/agent"
	"omniagent/internal/event"
)

// Legacy is a Conversation as hosts know it that still want an agent.Session.
type Legacy struct {
	*Conversation
	events *Events
}

var _ agent.Session = (*Legacy)(nil)

// NewLegacy wraps a conversation.
func NewLegacy(c *Conversation, from int64) *Legacy { return &Legacy{c, c.Events(from)} }

// Next is the next event that such a host knows.
func (l *Legacy) Next(ctx context.Context) (event.Event, error) {
	for {
		e, err := l.events.Next(ctx)
		if err == nil && (e.Kind == event.Prompted || e.Kind == event.Replied || e.Kind == event.Steered) {
			continue
		}
		return e, err
	}
}

// Send hands over a message.
func (l *Legacy) Send(ctx context.Context, blocks []event.Block) error {
	_, err := l.Conversation.Send(ctx, blocks)
	return err
}

// Answer answers a question.
func (l *Legacy) Answer(ctx context.Context, question string, r event.Reply) error {
	r.Question = question
	return l.Conversation.Answer(ctx, r)
}

// Interrupt ends the turn that runs, and those that wait.
func (l *Legacy) Interrupt(context.Context) error {
	l.Conversation.Interrupt(true)
	return nil
}
