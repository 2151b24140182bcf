package engine

import (
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/native/tool"
	"omniagent/internal/walls/guard"
)

// policy combines the verdict of the rules about a call with the mode. A denial outweighs a question, and a question an
// allowance, wherever they come from.
type policy struct {
	mode  setting.Approval
	rules guard.Judge
	walls Walls
}

// Walls says how well commands are kept from changing anything outside the workspace.
type Walls uint8

// The walls.
const (
	Unwanted Walls = iota // none, because the user did not want them
	Missing               // none, although the user wanted them
	Partial               // by the kernel, with the gaps that the record names
	Whole                 // by the kernel
)

// verdict is the decision about one call.
type verdict struct {
	decision     guard.Decision
	reason       string // for the model and for people
	run          bool   // it needs a question, but may run if nobody can be asked, because walls contain it
	refusal      string // what the walls will refuse, and the setting that allows it
	needsNetwork bool   // an approval has to open the network for it
	answered     bool   // an earlier answer allows it
	part         string // the part of a command that the reason is about
	firm         bool   // decided by a rule or a hook, so that no mode or answer changes it
}

// judge decides about a call. The sandbox may be stricter than this decision, but not less strict.
//
// host is the decision of a hook. Its approval answers the questions of the built-in tables and of the mode. It does
// not override a denial, a question of a user's rule, or a question that every mode asks.
func (p policy) judge(call guard.Call, a tool.Action, host string) (v verdict) {
	p.rules.Place.Containment.Walls = p.walls == Whole
	held := p.rules.Place.Holds()
	p.rules.Place.Containment = p.groundFor(p.rules.Place.Containment, a)
	said := p.rules.Call(call)
	v = p.withoutHook(said, a)
	if held && a.Lasts && p.mode == setting.Default && v.decision == guard.Ask && !said.Explicit {
		v.reason = "it goes on when the turn has ended, and undo does not cover what it does then"
	}
	defer func() { v.refusal, v.needsNetwork, v.answered = said.Refusal, said.NeedsNetwork, said.Answered }()
	switch {
	case v.decision == guard.Deny:
	case host == event.Deny:
		v = verdict{decision: guard.Deny, reason: "a hook refuses it", firm: true}
	case host == askPerson:
		v = verdict{decision: guard.Ask, reason: v.reason, part: v.part}
	case host == event.Allow && v.decision == guard.Ask && !said.Firm && !(said.Explicit && said.Decision == guard.Ask):
		v = verdict{decision: guard.Allow}
	}
	return v
}

// groundFor returns the ground as the mode uses it. The stricter modes also ask about what the snapshot covers;
// auto-edit does not ask about its gaps.
func (p policy) groundFor(g guard.Containment, a tool.Action) guard.Containment {
	switch {
	case p.mode == setting.Yolo, p.mode == setting.Default && !a.Lasts:
	case p.mode == setting.AutoEdit:
		g.Cover.Gaps = nil
	default:
		g.Cover = guard.Cover{}
	}
	return g
}

// withoutHook returns the decision before a hook is considered.
func (p policy) withoutHook(said guard.Verdict, a tool.Action) verdict {
	v := verdict{decision: said.Decision}
	v.reason, v.part = because(said)
	changes := a.Changes || a.Kind == event.Web || a.Kind == event.MCP
	switch {
	case v.decision == guard.Deny:
		v.firm = true
		return v
	case p.mode == setting.DenyAll:
		v.decision, v.reason = guard.Deny, "the permission mode deny lets no tool run; say what you would do instead"
		return v
	case a.Person:
		v.decision = guard.Ask
		return v
	case p.mode == setting.Plan && (changes || v.decision == guard.Ask):
		v.decision, v.reason = guard.Deny, "the permission mode plan only reads; say what you would do instead"
		return v
	case p.mode == setting.AskAll && !said.Answered || said.Explicit && v.decision == guard.Ask:
		v.decision = guard.Ask
		return v
	case said.Explicit: // a rule of the user, or an earlier answer, allows it
		return v
	case p.mode == setting.Yolo:
		if a.Kind == event.Shell && p.walls == Missing && v.decision > guard.Allow {
			v.decision = max(v.decision, guard.Ask)
			v.reason = "there are no walls around commands here, although they were asked for"
			return v
		}
		if !said.Firm {
			v.decision = guard.Allow
		}
		return v
	case v.decision == guard.Allow && (!changes || a.Kind == event.Shell):
		return v
	case !changes && a.Kind == event.Other: // a tool of ours that changes nothing, and that no rule is about
		v.decision = guard.Allow
		return v
	case p.mode == setting.AutoEdit && p.inside(a, said), p.mode == setting.Default && a.Kind == event.Write &&
		v.decision == guard.Allow && p.rules.Place.Holds():
		v.decision = guard.Allow
		return v
	}
	v.run = p.mode == setting.Default && !said.NeedsPerson && p.inside(a, said)
	v.decision = guard.Ask
	return v
}

// inside reports whether the changes of a call stay in the workspace: the tools ensure that for files, the kernel for
// commands. It returns false for what every mode asks about.
func (p policy) inside(a tool.Action, said guard.Verdict) bool {
	return !said.Firm && (a.Kind == event.Write && said.Decision == guard.Allow || a.Kind == event.Shell &&
		p.walls == Whole)
}

// Described returns a call in the form that the rules judge.
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

// because returns the first reason for the decision, and the part of the call that it is about.
func because(v guard.Verdict) (reason, part string) {
	for _, r := range v.Reasons {
		if r.Decision == v.Decision {
			return r.Text, r.Piece
		}
	}
	return "", ""
}

// reasoned returns the title of a question with the reason for it.
func reasoned(title, reason string) string {
	switch "" {
	case reason:
		return title
	case title:
		return reason
	}
	return title + ": " + reason
}

// What happens to a call.
const (
	Runs   = "runs"   // without a question
	Asks   = "asks"   // denied if nobody can be asked
	Denied = "denied" //
)

// Outcome returns what would happen to a call, and why.
func Outcome(
	mode setting.Approval, rules guard.Judge, walls Walls, name string, a tool.Action, canAsk bool,
) (what, why string) {
	v := policy{mode, rules, walls}.judge(Described(name, a), a, "")
	switch {
	case v.decision == guard.Allow || v.run && !canAsk:
		return Runs, v.reason
	case v.decision == guard.Deny:
		return Denied, v.reason
	}
	return Asks, v.reason
}
