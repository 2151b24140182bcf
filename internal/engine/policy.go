package engine

import (
	"omniagent/internal/event"
	"omniagent/internal/guard"
	"omniagent/internal/setting"
	"omniagent/internal/tool"
)

// policy puts together what the rules say about a call, and the mode. A denial outweighs a question, and a question an
// allowance, wherever they come from.
type policy struct {
	mode  setting.Approval
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
//
// host is what a hook has decided beforehand. Its consent answers what a person would be asked by the tables and by the
// mode. It lifts no denial, no rule of the user that wants the question, and no question that is asked in every mode.
func (p policy) judge(call guard.Call, a tool.Action, host string) verdict {
	said := p.rules.Call(call)
	v := p.unheard(said, a)
	switch {
	case v.word == guard.Deny:
	case host == event.Deny:
		v = verdict{word: guard.Deny, reason: "a hook refuses it"}
	case host == asks:
		v = verdict{word: guard.Ask, reason: v.reason}
	case host == event.Allow && v.word == guard.Ask && !said.Firm && !(said.Explicit && said.Word == guard.Ask):
		v = verdict{word: guard.Allow}
	}
	return v
}

// unheard is the word as it is before a host has one.
func (p policy) unheard(said guard.Verdict, a tool.Action) verdict {
	v := verdict{word: said.Word, reason: because(said)}
	changes := a.Changes || a.Kind == event.Web || a.Kind == event.MCP
	switch {
	case v.word == guard.Deny:
		return v
	case p.mode == setting.DenyAll:
		v.word, v.reason = guard.Deny, "the permission mode deny lets no tool run; say what you would do instead"
		return v
	case a.Person:
		v.word = guard.Ask
		return v
	case p.mode == setting.Plan && (changes || v.word == guard.Ask):
		return verdict{word: guard.Deny, reason: "the permission mode plan only reads; say what you would do instead"}
	case p.mode == setting.AskAll || said.Explicit && v.word == guard.Ask:
		v.word = guard.Ask
		return v
	case said.Explicit: // a rule of the user, or what they said before, allows it
		return v
	case p.mode == setting.Yolo:
		if a.Kind == event.Shell && p.walls == Missing && v.word > guard.Allow {
			v.word = max(v.word, guard.Ask)
			v.reason = "there are no walls around commands here, although they were asked for"
			return v
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
	case p.mode == setting.AutoEdit && p.inside(a, v):
		v.word = guard.Allow
		return v
	}
	v.run = p.mode == setting.Default && p.inside(a, v)
	v.word = guard.Ask
	return v
}

// inside says whether what a call changes is held in the workspace: files by the door that all tools go through,
// commands by the kernel.
func (p policy) inside(a tool.Action, v verdict) bool {
	return a.Kind == event.Write && v.word == guard.Allow || a.Kind == event.Shell && p.walls == Whole
}

// Described is a call as the rules know it now. What it was decided about is what runs: it is described once.
func Described(name string, a tool.Action) guard.Call {
	kinds := map[event.ToolKind]string{
		event.Shell: "command", event.Read: "read", event.Search: "read", event.Write: "write", event.Web: "web",
		event.MCP: "mcp",
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
func Outcome(
	mode setting.Approval, rules guard.Judge, walls Walls, name string, a tool.Action, canAsk bool,
) (what, why string) {
	v := policy{mode, rules, walls}.judge(Described(name, a), a, "")
	switch {
	case v.word == guard.Allow || v.run && !canAsk:
		return Runs, v.reason
	case v.word == guard.Deny:
		return Denied, v.reason
	}
	return Asks, v.reason
}
