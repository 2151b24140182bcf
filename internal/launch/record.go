package launch

import (
	"context"

	"omniagent/internal/core/agent"
	"omniagent/internal/sys/redact"
	"omniagent/internal/sys/touch"
	"omniagent/internal/talk/conversation"
)

// PassThrough is a conversation whose lines pass unchanged: the caller starts the agent, and Record keeps the journal.
type PassThrough struct {
	Spec    agent.Spec // for starting the agent; Resume is the agent's own id
	Record  *conversation.Recorder
	Touched *touch.Log // gets what the agent writes
}

// Installed returns the installed agent of the conversation and how to start it, or nil for the native agent.
func (p *Plan) Installed() (agent.Driver, agent.Spec) { return p.driver, p.request.Spec }

// PassThrough begins or continues the journal of a conversation with an installed agent whose lines pass unchanged. The
// caller closes the Record.
func (p *Plan) PassThrough(ctx context.Context) (*PassThrough, error) {
	kept, _, err := p.journal(ctx)
	if err != nil {
		return nil, err
	}
	if p.request.Services.Touched == nil {
		p.request.Services.Touched = touch.New()
	}
	kept.Mask(redact.Known(redact.Secrets(p.secrets)...).Bytes)
	if err := p.recordMode(kept); err != nil {
		return nil, err
	}
	record := conversation.Record(kept, p.env.Log)
	if w := p.witness(kept.ID()); w != nil {
		record.Watch(w, p.request.Services.Touched, p.request.Spec.Dir)
	}
	return &PassThrough{Spec: p.request.Spec, Record: record, Touched: p.request.Services.Touched}, nil
}
