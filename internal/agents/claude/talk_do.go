package claude

import (
	"cmp"
	"encoding/json"
	"slices"

	"omniagent/internal/agents/cli"
	"omniagent/internal/agents/live"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	wire "omniagent/internal/wire/claude"
)

// Do translates a command for the CLI.
func (t *talk) Do(c live.Command) (live.Step, error) {
	var err error
	switch {
	case c.Message != nil:
		err = t.sendMessage(c.Message)
	case c.Steer != nil:
		err = t.steer(c.Steer, c.Token)
	case c.Answer != nil:
		err = t.reply(*c.Answer)
	case c.Change != nil:
		err = t.change(*c.Change, c.Token)
	case c.Interrupt:
		t.stops = true
		t.cancelSteers()
		t.interrupt()
	case c.HostAnswer != nil:
		t.hostAnswered(*c.HostAnswer)
	}
	return t.step.Take(), err
}

func (t *talk) sendMessage(blocks []event.Block) error {
	if t.failed != nil {
		return t.failed
	}
	id := t.o.id()
	line, err := wire.UserLine(id, t.session, blocks)
	if err != nil {
		return err
	}
	t.current, t.started, t.stops = id, false, false
	if t.ready {
		t.say(line)
	} else {
		t.message = line
	}
	return nil
}

// modeWord returns the CLI's word for a mode, or "" for a mode that we do not know either, as in a journal of a newer
// version. Our hook enforces the modes that ask about or deny every call.
func modeWord(m setting.Approval) string {
	switch {
	case hookKeeps(m):
		return "default"
	case slices.Contains(setting.Approvals(), m):
		return wire.Word(m, false)
	}
	return ""
}

func (t *talk) change(c agent.Change, token int) error {
	mode := modeWord(c.Mode)
	switch {
	case c.Mode != "" && mode == "":
		return fault.New(fault.Unsupported, "Claude Code has no mode %s", c.Mode)
	case hookKeeps(c.Mode) && !t.hooking:
		return agent.ErrRestart
	case c.Mode == setting.Yolo && t.o.sandbox:
		return fault.New(fault.Unsupported,
			"in a sandbox Claude Code has no mode %s: it would free the file tools from it", c.Mode)
	}
	var model, first []byte
	if c.Model != "" {
		model = t.control(ownRequest{change: &c, token: token}, wire.Control{Subtype: "set_model", Model: c.Model})
		first = model
	}
	if c.Mode != "" {
		r := ownRequest{change: &agent.Change{Mode: c.Mode}, token: token, next: model}
		first = t.control(r, wire.Control{Subtype: "set_permission_mode", Mode: mode})
	}
	if first == nil {
		t.step.AddResult(token, nil)
		return nil
	}
	t.say(first)
	return nil
}

// answered handles a response to one of our requests.
func (t *talk) answered(raw []byte) []event.Event {
	f, err := wire.Parse(raw)
	if err != nil {
		return cli.Unreadable(raw)
	}
	r := f.Reply
	ours, known := t.requests[r.ID]
	delete(t.requests, r.ID)
	good := r.Error == ""
	t.greeted = t.greeted || ours.greeting
	switch {
	case !known:
	case ours.greeting && good:
		t.ready = true
		if t.message != nil {
			t.say(t.message)
			t.message = nil
			if t.stops {
				t.interrupt()
			}
		}
	case ours.greeting:
		return t.refused(cli.FirstLine(r.Error))
	case ours.change != nil && !good:
		err := fault.New(fault.Unsupported, "Claude Code did not take the change: %s", cli.FirstLine(r.Error))
		t.step.AddResult(ours.token, err)
	case ours.change != nil:
		t.mode = cmp.Or(ours.change.Mode, t.mode)
		if ours.next != nil {
			t.say(ours.next)
		} else {
			t.step.AddResult(ours.token, nil)
		}
	}
	return nil
}

// refused ends the message, because the CLI refused the terms of the conversation. Later messages fail too.
func (t *talk) refused(why string) []event.Event {
	t.failed = fault.New(fault.AgentFailed, "Claude Code cannot begin the conversation: %s", why)
	events := live.Rejected(t.failed, "", why, t.current != "")
	t.message, t.current = nil, ""
	return events
}

// requested handles a request of the CLI.
func (t *talk) requested(l *wire.Line) []event.Event {
	c := l.Control()
	switch c.Subtype {
	case "can_use_tool":
		return t.ask(l, c)
	case "hook_callback":
		t.hook(l.RequestID, c.Input)
		return nil
	case "mcp_message":
		t.serve(l.RequestID, c)
		return nil
	case "elicitation":
		return t.elicit(l, c)
	}
	t.reject(l.RequestID, "not supported: "+c.Subtype)
	return []event.Event{{Kind: event.Notice, Session: l.Session, Text: cmp.Or(c.Subtype, l.Type)}}
}

func (t *talk) ask(l *wire.Line, c wire.Control) []event.Event {
	events := ask(l)
	a := events[0].Ask
	q := question{request: l.RequestID, kind: c.Subtype, call: a.Tool, input: c.Input}
	if c.Tool == event.FormTool && json.Unmarshal(c.Input, &q.form) == nil && len(q.form.Questions) > 0 {
		return t.questions.AskForm(l.RequestID, l.Session, q.form.Questions, q)
	}
	if t.mode == setting.Yolo && !t.o.asks { // in that mode it still asks about some calls, such as rm -rf .git
		t.respond(q.request, wire.Permission{
			Behavior: "allow", Input: firstRaw(q.input, json.RawMessage("{}")), Call: a.Tool.ID,
		})
		return nil
	}
	if t.mode == setting.Plan && changes(a.Tool.Kind) {
		t.refuse(&q, event.Reply{
			Automatic: true, Text: "the permission mode plan only reads; say what you would do instead",
		})
		return nil
	}
	if t.always[exactly(a.Tool, c.Input)] {
		t.respond(q.request, wire.Permission{
			Behavior: "allow", Input: firstRaw(q.input, json.RawMessage("{}")), Call: a.Tool.ID,
		})
		return nil
	}
	a.Options = []string{event.Allow, event.Deny}
	for _, s := range c.Suggestions {
		if s.Type == "addRules" && s.Behavior == "allow" {
			q.suggestions = append(q.suggestions, wire.Allow(s.Rules...))
		}
	}
	if len(q.suggestions) > 0 {
		a.Options = []string{event.Allow, event.Always, event.Deny}
	}
	a.Text = cmp.Or(a.Text, "Claude wants to use "+q.call.Name)
	t.questions.Ask(l.RequestID, q)
	return events
}

// exactly returns a key for a call, from its input without its description. The CLI asks again about a call that its
// own rules allow if a hook has asked about it.
func exactly(call *event.Call, input json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(input, &fields) == nil {
		delete(fields, "description")
		input, _ = json.Marshal(fields)
	}
	return call.Name + " " + string(input)
}

// changes reports whether a tool of this kind may change something. A person decides about the others, such as the end
// of a plan.
func changes(k event.ToolKind) bool {
	return k == event.Write || k == event.Shell || k == event.Web || k == event.MCP
}

func (t *talk) elicit(l *wire.Line, c wire.Control) []event.Event {
	t.questions.Ask(l.RequestID, question{request: l.RequestID, kind: c.Subtype})
	return []event.Event{{Kind: event.Question, Session: l.Session, Ask: &event.Ask{
		ID: l.RequestID, Text: cmp.Or(word(c.Message), c.Elicits), Options: []string{event.Allow, event.Deny},
	}}}
}

// withdrawn drops a request that the CLI has cancelled.
func (t *talk) withdrawn(id string) []event.Event {
	delete(t.needs, id)
	return t.questions.Withdraw(id)
}

// reply answers a question.
func (t *talk) reply(r event.Reply) error {
	open, err := t.questions.Find(r.Question)
	if err != nil {
		return err
	}
	q := &open.Request
	denied := r.Automatic || r.Stop || r.Option == event.Deny && (!open.Form || r.Text == "")
	switch {
	case r.Mode != "" && modeWord(r.Mode) == "", hookKeeps(r.Mode) && !t.hooking, r.Mode == setting.Yolo &&
		t.o.sandbox, len(r.Input) > 0 && !json.Valid(r.Input):
		denied = true // we cannot keep the terms of the answer
	case open.Form && !denied && len(r.Input) == 0:
		return t.fill(q, r)
	case !denied && r.Option != event.Allow && r.Option != event.Always:
		return fault.New(fault.ArgError, "invalid answer %q", r.Option).Hint("allow, always or deny")
	}
	t.questions.Close(open)
	if q.kind == "elicitation" {
		action := map[string]any{"action": "decline"}
		if !denied {
			action["action"] = "accept"
			if len(r.Input) > 0 {
				action["content"] = r.Input
			}
		}
		t.respond(q.request, action)
		return nil
	}
	if denied {
		t.refuse(q, r)
		return nil
	}
	t.respond(q.request, wire.Permission{
		Behavior: "allow", Input: firstRaw(r.Input, q.input, json.RawMessage("{}")), Updates: t.updates(q, r),
		Call: q.call.ID,
	})
	return nil
}

func firstRaw(list ...json.RawMessage) json.RawMessage {
	i := slices.IndexFunc(list, func(r json.RawMessage) bool { return len(r) > 0 })
	return list[i]
}

// fill records the answer to one question of a form. After the last one, it sends all answers.
func (t *talk) fill(q *question, r event.Reply) error {
	all, err := t.questions.Fill(r.Question, cmp.Or(r.Text, r.Option))
	if all == nil {
		return err
	}
	answers := map[string]string{}
	for i, one := range q.form.Questions {
		answers[one.Question] = all[i]
	}
	input := event.Filled(q.input, answers)
	t.respond(q.request, wire.Permission{Behavior: "allow", Input: input, Call: q.call.ID})
	return nil
}

// refuse denies a call. It reports the denial, because the CLI would attribute every denial to a person.
func (t *talk) refuse(q *question, r event.Reply) {
	reason := cmp.Or(r.Text, "The user does not want this to run.")
	t.step.Events = append(t.step.Events, t.deny(t.session, event.Denial{
		CallID: q.call.ID, Tool: q.call.Name, Reason: cli.FirstLine(reason), ByUser: !r.Automatic,
	})...)
	t.respond(q.request, wire.Permission{
		Behavior: "deny", Message: reason, Interrupt: r.Stop, Call: q.call.ID,
	})
}

// updates returns the rules and the mode that apply from now on. They last for this conversation; settings do not
// change.
func (t *talk) updates(q *question, r event.Reply) (out []wire.Update) {
	if r.Option == event.Always {
		out = q.suggestions
		if t.always == nil {
			t.always = map[string]bool{}
		}
		t.always[exactly(q.call, q.input)] = true
	}
	if len(r.Rules) > 0 {
		allow := wire.Allow()
		for _, rule := range r.Rules {
			allow.Rules = append(allow.Rules, wire.RuleOf(rule))
		}
		out = append(out, allow)
	}
	if r.Mode != "" {
		t.mode = r.Mode
		out = append(out, wire.Update{Type: "setMode", Mode: modeWord(r.Mode), Destination: "session"})
	}
	return out
}
