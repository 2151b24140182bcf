package stream

import (
	"context"
	"encoding/json"
	"slices"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/wire/claude"
)

// handle executes a request of the host and answers it.
func (d *Claude) handle(ctx context.Context, r claude.Request) {
	var body claude.Control
	if err := json.Unmarshal(r.Body, &body); err != nil {
		d.write(claude.No(r.ID, "the request is not what it should be"))
		return
	}
	switch r.Subtype {
	case "interrupt":
		d.host.Conversation.Interrupt(true)
		d.write(claude.OK(r.ID, map[string][]string{"still_queued": {}}))
	case "set_permission_mode":
		d.setMode(ctx, r, body.Mode)
	case "set_model":
		d.setModel(ctx, r, body.Model)
	case "mcp_status":
		d.write(claude.OK(r.ID, d.Encoder.Servers()))
	default:
		d.write(claude.No(r.ID, claude.Unsupported(r.Subtype)))
	}
}

func (d *Claude) setMode(ctx context.Context, r claude.Request, word string) {
	m, why := claude.ModeOf(word)
	if why == "" && m.Mode == setting.Yolo && !d.host.Conversation.MayBypass() {
		why = bypassRefused
	}
	if why != "" {
		d.write(claude.No(r.ID, "Cannot set permission mode: "+why))
		return
	}
	// The event of the change may come before the answer, or after the next request.
	d.wishes = append(d.wishes, m)
	d.set(ctx, r, agent.Change{Mode: m.Mode}, func() {
		d.write(claude.OK(r.ID, map[string]string{"mode": claude.Word(m.Mode, m.Unasked)}))
		// If an earlier request still waits for its event, so does this one, because the known mode is an old one.
		if next := len(d.wishes) == 0 || d.wishes[0] == m; next && d.Encoder.Facts().Mode == m.Mode {
			d.granted(m)
			d.applyMode(m)
		}
	}, func() { d.granted(m) })
}

// granted removes a requested mode from wishes, and all before it.
func (d *Claude) granted(m claude.Mode) {
	if i := slices.Index(d.wishes, m); i >= 0 {
		d.wishes = d.wishes[i+1:]
	}
}

// set changes a setting in the background. Then it calls then, or calls failed and reports the error to the host.
func (d *Claude) set(ctx context.Context, r claude.Request, c agent.Change, then, failed func()) {
	wait := d.host.Conversation.StartSet(ctx, c)
	d.host.later(func() func() {
		err := wait()
		return func() {
			if err != nil {
				failed()
				d.write(claude.No(r.ID, fault.Of(err).Sentence()))
				return
			}
			then()
		}
	})
}

// setModel changes the model. An empty name, or default, means the model that the conversation began with.
func (d *Claude) setModel(ctx context.Context, r claude.Request, name string) {
	if name == "" || name == "default" {
		if len(d.Models) == 0 {
			d.write(claude.No(r.ID, "there is no model of that name: say which"))
			return
		}
		name = d.Models[0]
	}
	d.set(ctx, r, agent.Change{Model: name}, func() { d.write(claude.OK(r.ID, map[string]string{"model": name})) },
		func() {})
}
