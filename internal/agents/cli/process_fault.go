package cli

import (
	"cmp"
	"slices"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
)

// ProcessFault returns why the process of an agent failed, from its exit and its records, or nil if it succeeded. usage
// lists the exit codes with which this agent rejects its arguments. The first match decides:
//
//  1. we ended it, or it could not be started;
//  2. it says that policy blocked it (exit code 3);
//  3. its records have an error that ended the turn;
//  4. it rejected its arguments, or failed in another way;
//  5. a tool was denied, or there was no answer.
//
// It judges a process, not a conversation: the shim and a rehearsal have none. run.Judge decides the outcome of a turn,
// with its questions, clocks and changed files. It gets this fault through Classify as one piece of evidence.
func ProcessFault(x agent.Exit, e agent.Evidence, usage ...int) *fault.Fault {
	switch {
	case x.EndedBy == "timeout":
		return fault.New(fault.TimedOut, "the agent did not end in time")
	case x.EndedBy != "":
		return fault.New(fault.Interrupted, "the agent was ended by %s", x.EndedBy).With("signal", x.EndedBy)
	case x.Failed != nil:
		return fault.Of(x.Failed)
	case x.Code == 3:
		return blocked(e)
	case e.Fault != nil:
		return e.Fault
	case slices.Contains(usage, x.Code):
		return fault.New(fault.AgentUsage, "the agent rejected its arguments (exit code %d)", x.Code).
			With("agent_exit_code", x.Code)
	case x.Signal != "":
		return fault.New(fault.AgentFailed, "the agent was ended by %s", x.Signal).With("agent_signal", x.Signal)
	case x.Code != 0:
		return fault.New(fault.AgentFailed, "the agent ended with exit code %d", x.Code).With("agent_exit_code", x.Code)
	case len(e.Denials) > 0:
		return blocked(e)
	case e.Answered == agent.No:
		return fault.New(fault.NoAnswer, "the agent ended with exit code 0 without an answer of the model")
	}
	return nil
}

func blocked(e agent.Evidence) *fault.Fault {
	if len(e.Denials) == 0 {
		return fault.New(fault.Blocked, "the agent says that policy blocked it")
	}
	return DenialFault(e.Denials)
}

// DenialFault returns the fault for denied calls.
func DenialFault(denials []event.Denial) *fault.Fault {
	tools := make([]string, len(denials))
	for i, d := range denials {
		tools[i] = text.OneLine(d.Tool, longestTool)
	}
	f := fault.New(fault.Blocked, "the agent was not allowed to use %s", tools[0])
	if len(tools) > 1 {
		f = fault.New(fault.Blocked, "the agent was not allowed to use %s, nor %d more", tools[0], len(tools)-1)
	}
	if !slices.ContainsFunc(denials, func(d event.Denial) bool { return !d.Firm && !d.ByUser }) {
		f.Suggestion = "Read the reason for each denial; no --approval lifts what a rule or a person has refused."
	}
	return f.With("denied", tools)
}

// longestTool limits the name of a tool in a fault, in bytes.
const longestTool = 200

// EvidenceOf collects the evidence from events.
func EvidenceOf(events []event.Event) agent.Evidence {
	e := agent.Evidence{Answered: agent.No, DenialsKnown: true}
	for _, ev := range events {
		e.Session = cmp.Or(ev.Session, e.Session)
		e.Model = cmp.Or(ev.Model, e.Model)
		switch ev.Kind {
		case event.Denied:
			e.Denials = append(e.Denials, *ev.Denial)
		case event.Text, event.ToolCall:
			e.Answered = agent.Yes
		case event.Failed:
			if ev.Terminal {
				e.Fault = ev.Fault
			}
		case event.Ended:
			if ev.End.Usage != nil {
				e.Usage = ev.End.Usage
			}
			if ev.End.OK {
				e.Fault = nil // an error that the agent overcame
			}
		}
	}
	return e
}
