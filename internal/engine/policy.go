package engine

import (
	"context"
	"fmt"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/guard"
	"omniagent/internal/text"
	"omniagent/internal/tool"
)

// Mode says what may run without asking; see agent.Mode.
type Mode = agent.Mode

// The modes, from the strictest.
const (
	DenyAll  = agent.DenyAll
	AskAll   = agent.AskAll
	Plan     = agent.Plan
	Prompt   = agent.Prompt
	Default  = agent.Default
	AutoEdit = agent.AutoEdit
	Yolo     = agent.Yolo
)

// policy puts together what the rules say about a call, and the mode. A denial outweighs a question, and that an allowance, wherever they come
// from.
type policy struct {
	mode  Mode
	rules guard.Judge
	walls Walls
}

// Walls say what keeps commands from changing anything outside of the workspace.
type Walls uint8

// The walls.
const (
	Unwanted Walls = iota // nothing does, by the user's own word
	Missing               // nothing does, although it was asked for
	Partial               // the kernel does, but for what the record names
	Whole                 // the kernel does
)

// verdict is the word on one call.
type verdict struct {
	word   guard.Word
	reason string // for the model and for people
	run    bool   // it was asked about, but may run where nobody can be: the walls hold it
}

// judge looks at what a call would do. The walls are stricter than this, never laxer.
func (p policy) judge(call guard.Call, a tool.Action) verdict {
	said := p.rules.Call(call)
	v := verdict{word: said.Word, reason: because(said)}
	changes := a.Changes || a.Kind == event.Web || a.Kind == event.MCP
	switch {
	case v.word == guard.Deny:
		return v
	case p.mode == DenyAll:
		return verdict{word: guard.Deny, reason: "the permission mode deny lets no tool run; say what you would do instead"}
	case p.mode == Plan && (changes || v.word == guard.Ask):
		return verdict{word: guard.Deny, reason: "the permission mode plan only reads; say what you would do instead"}
	case p.mode == AskAll || said.Explicit && v.word == guard.Ask:
		v.word = guard.Ask
		return v
	case said.Explicit: // a rule of the user, or what they said before, allows it
		return v
	case p.mode == Yolo:
		if a.Kind == event.Shell && p.walls == Missing && v.word > guard.Allow {
			return verdict{word: max(v.word, guard.Ask), reason: "there are no walls around commands here, although they were asked for"}
		}
		if !said.Firm {
			v.word = guard.Allow
		}
		return v
	case v.word == guard.Allow && (!changes || a.Kind == event.Shell):
		return v
	case !changes && a.Kind == event.Other: // a tool of ours that no rule is about, and that says it changes nothing
		v.word = guard.Allow
		return v
	case p.mode == AutoEdit && p.inside(a, v):
		v.word = guard.Allow
		return v
	}
	v.run = p.mode == Default && p.inside(a, v)
	v.word = guard.Ask
	return v
}

// inside says whether what a call changes is held in the workspace: files by the door that all tools go through, commands by the kernel.
func (p policy) inside(a tool.Action, v verdict) bool {
	return a.Kind == event.Write && v.word == guard.Allow || a.Kind == event.Shell && p.walls == Whole
}

// Described is a call as the rules know it now. What it was decided about is what runs: it is described once.
func Described(name string, a tool.Action) guard.Call {
	kinds := map[event.ToolKind]string{
		event.Shell: "command", event.Read: "read", event.Search: "read", event.Write: "write", event.Web: "web", event.MCP: "mcp",
	}
	kind, known := kinds[a.Kind]
	if !known || a.Kind == event.Shell && a.Command == "" {
		kind = "other"
	}
	dir := ""
	if a.At != nil {
		dir = a.At()
	}
	return guard.Call{Tool: name, Kind: kind, Command: a.Command, Dir: dir, Paths: a.Paths, URL: a.URL, Input: a.Input}
}

// because is the first reason of the verdict's own word.
func because(v guard.Verdict) string {
	for _, r := range v.Reasons {
		if r.Word == v.Word {
			return r.Text
		}
	}
	return ""
}

// The options of a question about a call.
const (
	Allow  = "allow"
	Always = "always" // this very call, to the end of the conversation
	Deny   = "deny"

	nobody = "nobody" // ours: who could have answered has gone
)

// expect makes room for the answer to a question about a call; forget takes it away.
func (s *Session) expect(id string) (answer chan agent.Answer, forget func()) {
	answer = make(chan agent.Answer, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.questions[id] = answer
	return answer, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.questions, id)
	}
}

// NobodyAnswers says that no answer will come any more: questions that are open, and those to come, are denials. Who was there to be asked and has
// gone has not agreed to what would run if nobody had been.
func (s *Session) NobodyAnswers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = s.left || s.o.CanAsk
	s.o.CanAsk = false
	for id, answer := range s.questions {
		delete(s.questions, id)
		answer <- agent.Answer{Option: nobody} // it has room for one
	}
}

// permitted asks where somebody has to be asked. nil: it may run; else a denial says why not.
// The answer may come before the question is asked: a host that sees the call knows what it will be asked.
func (l *loop) permitted(ctx context.Context, call *event.Call, a tool.Action, answer <-chan agent.Answer) *event.Denial {
	s := l.session
	no := func(byUser bool, format string, args ...any) *event.Denial {
		return &event.Denial{CallID: call.ID, Tool: call.Name, Reason: fmt.Sprintf(format, args...), ByUser: byUser}
	}
	described := Described(call.Name, a)
	s.mu.Lock()
	v, canAsk, alone := s.policy.judge(described, a), s.o.CanAsk, !s.o.CanAsk && !s.left
	s.mu.Unlock()
	title := a.Title
	if described.Dir != "" && described.Dir != "." {
		title += " (in " + text.Name(described.Dir) + ")"
	}
	switch {
	case v.word == guard.Allow || v.run && alone:
		return nil
	case v.word == guard.Deny:
		return no(false, "%s", v.reason)
	case !canAsk:
		return no(false, "%s needs approval, and nobody can be asked (%s)", call.Name, reasoned(title, v.reason))
	}
	l.tell(event.Event{Kind: event.Question, Ask: &event.Ask{ID: call.ID, Text: reasoned(title, v.reason), Options: []string{Allow, Always, Deny}, Tool: call}})
	patience := time.NewTimer(s.o.Limits.Patience)
	defer patience.Stop()
	select {
	case said := <-answer:
		switch {
		case said.Option == Allow:
			return nil
		case said.Option == Always:
			s.policy.rules.Memory.Remember(described, guard.Allow)
			return nil
		case said.Option == nobody:
			return no(false, "%s needs approval, and nobody can answer any more (%s)", call.Name, reasoned(title, v.reason))
		case said.Text != "":
			return no(true, "the user refused: %s", said.Text)
		}
		return no(true, "the user refused")
	case <-patience.C:
		return no(false, "nobody answered within %s whether it may run", s.o.Limits.Patience)
	case <-ctx.Done():
		return no(false, "the turn was interrupted before anybody answered")
	}
}

// reasoned is a title with why it is asked about.
func reasoned(title, reason string) string {
	switch "" {
	case reason:
		return title
	case title:
		return reason
	}
	return title + ": " + reason
}

// What happens with a call.
const (
	Runs   = "runs"   // without a question
	Asks   = "asks"   // and is denied where nobody can be asked
	Denied = "denied" //
)

// Outcome says what would happen with a call, and why.
func Outcome(mode Mode, rules guard.Judge, walls Walls, name string, a tool.Action, canAsk bool) (what, why string) {
	v := policy{mode, rules, walls}.judge(Described(name, a), a)
	switch {
	case v.word == guard.Allow || v.run && !canAsk:
		return Runs, v.reason
	case v.word == guard.Deny:
		return Denied, v.reason
	}
	return Asks, v.reason
}
