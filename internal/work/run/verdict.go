package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/stuckprompt"
)

// Reason says why a run ended as it did.
type Reason string

// The reasons.
const (
	Done         Reason = "done"
	Unchanged    Reason = "done_unchanged" // it succeeded, but no file differs
	Denied       Reason = "denied"         // a tool was not allowed to run
	Asked        Reason = "question"
	Repeated     Reason = "question_repeated"
	Missing      Reason = "missing_input"     // an answer for --require is missing
	Refused      Reason = "model_refused"     // the model refused to answer
	NotInstalled Reason = "not_installed"     //
	NotAllowed   Reason = "not_allowed"       // programs may not start this agent
	NotLoggedIn  Reason = "not_logged_in"     //
	NotTrusted   Reason = "not_trusted"       // the agent asks whether the directory is trusted
	RateLimited  Reason = "rate_limited"      //
	OutOfQuota   Reason = "out_of_quota"      //
	ContextFull  Reason = "context_full"      //
	Limited      Reason = "limit_reached"     // of turns or cost
	Unreachable  Reason = "unreachable"       // the model's service is unreachable
	CutStream    Reason = "cut_stream"        // the agent's output ended in the middle of its turn
	Crashed      Reason = "crashed"           // its process failed
	Killed       Reason = "killed"            // somebody else ended its process
	NoOutput     Reason = "no_output"         // it was silent from its start
	Idle         Reason = "idle"              // it was silent for too long
	TooLong      Reason = "max_duration"      //
	CancelledBy  Reason = "cancelled"         //
	NeverBegan   Reason = "never_began"       // it was cancelled before an agent was started
	NoAnswer     Reason = "no_answer"         // it reports success without an answer
	Unsupported  Reason = "unsupported"       // the agent does not support the request
	OwnerDied    Reason = "owner_died"        //
	NotMade      Reason = "approved_not_made" // a person approved a call, and it was never made, or it failed
	TooMuch      Reason = "output_limit"      // it wrote more than a run may
	CheckFailed  Reason = "check_failed"      // the agent was done, but the task's check failed
	Other        Reason = "failed"            //
)

// Verdict is the judgement of an exchange.
type Verdict struct {
	State    State
	Reason   Reason
	Fault    *fault.Fault // nil: it succeeded
	Evidence []string     // the basis of the verdict
	Asks     []string     // the answer ends with these questions, although the work was done
	Question *Question    // the question for a person
	Tested   *Tested      // the outcome of the task's check
}

// Judge returns the verdict on a turn, from everything known about it. e.Fault may come from cli.ProcessFault, which
// only knows the process. changed reports whether files differ; nil if unknown. The first match decides:
//
//	a clock of ours ─▶ stalled, timed_out        somebody cancelled it ─▶ cancelled
//	it ended with a question ─▶ needs_input      nothing began ─▶ failed, for the fault's own reason
//	the turn failed ─▶ failed, for the reason that the protocol, the records or the process give
//	a tool was denied ─▶ blocked                 the answer is only a question ─▶ needs_input
//	otherwise ─▶ succeeded
func Judge(e Ending, changed *bool) Verdict {
	v := verdictOf(e, changed)
	v.Evidence = append(evidenceOf(e), v.Evidence...)
	if changed != nil {
		v.Evidence = append(v.Evidence, map[bool]string{true: "files differ", false: "no file differs"}[*changed])
	}
	return v
}

func verdictOf(e Ending, changed *bool) Verdict {
	f := e.Fault
	switch {
	case errors.Is(e.Err, errIdle):
		f = fault.New(fault.Stalled, "the agent showed no sign of life for too long")
		if e.Said != "" {
			f.Message += "; its last line: " + e.Said
		}
		return Verdict{State: Stalled, Reason: Idle, Fault: f}
	case isConnect(f) || isConnect(fault.Of(e.Err)):
		return Verdict{State: Stalled, Reason: NoOutput, Fault: cmp.Or(f, fault.Of(e.Err))}
	case errors.Is(e.Err, fault.TimedOut):
		return Verdict{State: TimedOut, Reason: TooLong, Fault: fault.Of(e.Err)}
	case errors.Is(e.Err, context.DeadlineExceeded):
		return Verdict{State: TimedOut, Reason: TooLong, Fault: fault.New(fault.TimedOut, "the run took too long")}
	case errors.Is(e.Err, context.Canceled), errors.Is(e.Err, fault.Interrupted):
		return Verdict{State: Cancelled, Reason: CancelledBy, Fault: fault.Of(e.Err)}
	case e.Question != nil, e.Prompt != nil:
		return asked(e)
	case errors.Is(e.Err, fault.OutputLimit):
		return failed(e, fault.Of(e.Err))
	case errors.Is(e.Err, fault.DiskFull) && (e.End == nil || !e.End.OK): // a full disk also ended its process
		return failed(e, fault.Of(e.Err))
	case e.End == nil:
		f = cmp.Or(f, e.Outcome.Evidence.Fault, fault.Of(e.Err),
			fault.New(fault.AgentFailed, "the agent ended in the middle of its turn"))
		return failed(e, f)
	case !e.End.OK:
		f = specific(f, e.Outcome.Evidence.Fault)
		if e.End.Reason == event.Cancelled && f == nil {
			return Verdict{
				State: Cancelled, Reason: CancelledBy,
				Fault: fault.New(fault.Interrupted, "the agent's turn was cancelled"),
			}
		}
		return failed(e, f)
	case len(e.Denials) > 0:
		return Verdict{State: Blocked, Reason: Denied, Fault: cli.DenialFault(e.Denials)}
	case e.Outcome.Evidence.Fault != nil && e.Outcome.Evidence.Answered == agent.No:
		return failed(e, e.Outcome.Evidence.Fault) // the agent reports success, but its records have an error
	}
	return answered(e, changed)
}

// isConnect reports whether the time limit for the first output ended it.
func isConnect(f *fault.Fault) bool {
	return f != nil && f.Code == fault.TimedOut && f.Detail["connect_timeout"] != nil
}

// asked judges a turn that ended with a question. A prompt for a password, a login or trust fails the run instead of
// asking a person.
func asked(e Ending) Verdict {
	if p := e.Prompt; p != nil && p.Kind.Sensitive() {
		words := cmp.Or(p.Question, p.Text)
		v := Verdict{
			State: Failed, Reason: NotLoggedIn, Evidence: []string{"prompt " + p.Signature + " on " + string(p.Source)},
		}
		v.Fault = fault.New(fault.AuthRequired, "the agent needs a login: %s", words)
		if p.Kind == stuckprompt.Trust {
			v.Reason = NotTrusted
			v.Fault = fault.New(fault.AgentRefused, "the agent asks whether this directory is trusted: %s",
				words)
		}
		v.Fault.Suggestion = "start the agent yourself in this directory once, and answer it there"
		return v
	}
	q := e.question()
	v := Verdict{
		State: NeedsInput, Reason: Asked, Fault: fault.New(fault.NeedsInput, "the agent asks: %s", q.Text), Question: q,
	}
	if p := e.Prompt; p != nil {
		v.Evidence = []string{"prompt " + p.Signature + " on " + string(p.Source)}
	}
	return v
}

// answered judges a successful turn. If its answer is only a question and no file differs, the run waits for a person.
func answered(e Ending, changed *bool) Verdict {
	answer := e.Answer()
	open, only := stuckprompt.Questions(answer)
	if only && changed != nil && !*changed {
		return asked(e)
	}
	v := Verdict{State: Succeeded, Reason: Done, Asks: open}
	if changed != nil && !*changed {
		v.Reason = Unchanged
	}
	return v
}

// specific returns the agent's fault, unless only its records have the reason.
func specific(told, recorded *fault.Fault) *fault.Fault {
	if recorded != nil && (told == nil || told.Code == fault.AgentFailed || told.Code == fault.APIError) {
		return recorded
	}
	return told
}

// failed finds the reason of a turn that failed.
func failed(e Ending, f *fault.Fault) Verdict {
	x := e.Outcome.Exit
	v := Verdict{State: Failed, Reason: Other, Fault: f}
	switch {
	case x.Signal != "" && x.EndedBy == "" && (f == nil || f.Code == fault.AgentFailed):
		v.Reason, v.Fault = Killed, fault.New(fault.AgentFailed, "somebody ended the agent's process with %s", x.Signal)
		if slices.Contains([]string{"SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE", "SIGTRAP"}, x.Signal) {
			v.Reason, v.Fault = Crashed, fault.New(fault.AgentFailed, "the agent's process crashed with %s", x.Signal)
		}
		v.Fault.With("agent_signal", x.Signal)
	case f == nil && e.End != nil && (e.End.Reason == event.MaxTurns || e.End.Reason == event.MaxBudget):
		v.Reason = Limited
	case f == nil && e.End != nil && strings.Contains(cmp.Or(e.End.AgentReason, e.End.Reason), "refus"):
		v.Reason = Refused
	case f == nil:
	case f.Code == fault.Blocked:
		v.State, v.Reason = Blocked, Denied
	case f.Code == fault.NotAllowed:
		v.State, v.Reason = Blocked, NotAllowed
	case f.Code == fault.AgentUsage: // the arguments are ours, not the caller's
		v.Fault = fault.New(fault.AgentFailed, "%s", f.Message).Because(f)
	default:
		v.Reason = cmp.Or(reasonOf(f), v.Reason)
		if f.Code == fault.AgentFailed && x.Code > 0 {
			v.Reason = Crashed
		}
		if f.Code == fault.AgentFailed && x.Code == 0 && x.Signal == "" {
			v.Reason = CutStream
			if e.Answer() == "" && len(e.Tools) == 0 {
				v.Reason = NoAnswer
			}
		}
	}
	if v.Fault == nil {
		said := "the agent ended without success"
		if e.End != nil {
			said = fmt.Sprintf("the agent ended without success: %s", cmp.Or(e.End.AgentReason, e.End.Reason))
		}
		v.Fault = fault.New(fault.AgentFailed, "%s", said)
	}
	return v
}

// reasonOf translates the code of a fault.
func reasonOf(f *fault.Fault) Reason {
	return map[fault.Code]Reason{
		fault.NotInstalled:       NotInstalled,
		fault.AuthRequired:       NotLoggedIn,
		fault.CredentialsExpired: NotLoggedIn,
		fault.MissingScopes:      NotLoggedIn,
		fault.TooManyRequests:    RateLimited,
		fault.QuotaExhausted:     OutOfQuota,
		fault.ContextFull:        ContextFull,
		fault.ModelRefused:       Refused,
		fault.ServiceDown:        Unreachable,
		fault.NoAnswer:           NoAnswer,
		fault.OutputLimit:        TooMuch,
		fault.Unsupported:        Unsupported,
	}[f.Code]
}

// evidenceOf lists the facts for a verdict, each with its source.
func evidenceOf(e Ending) []string {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if e.Err != nil {
		add("ended for: %s", text.OneLine(e.Err.Error(), 200))
	}
	if e.End != nil {
		by := "the agent"
		if e.Concluded {
			by = "us"
		}
		said := cmp.Or(e.End.AgentReason, e.End.Reason)
		add("end of the turn, told by %s: %s", by, text.OneLine(said, 200))
	}
	if e.Fault != nil {
		add("failure told by the agent: %s", e.Fault.Code)
	}
	if f := e.Outcome.Evidence.Fault; f != nil {
		add("failure in the agent's records: %s", f.Code)
	}
	if x := e.Outcome.Exit; e.Session != "" && x.Failed == nil {
		switch {
		case x.Signal != "":
			add("the process ended by %s", x.Signal)
		case x.Code != 0:
			add("the process ended with %d", x.Code)
		}
	}
	if len(e.Denials) > 0 {
		add("%d denied calls", len(e.Denials))
	}
	if e.Question != nil {
		add("question %s", e.Question.ID)
	}
	for _, command := range e.unfinished() {
		add("still ran when the turn ended, and was ended: %s", text.OneLine(command, 200))
	}
	return all
}

// unfinished returns the commands that had no result when a turn succeeded. They end with the agent.
func (e Ending) unfinished() (commands []string) {
	if e.End == nil || !e.End.OK {
		return nil
	}
	calls := slices.SortedFunc(maps.Values(e.Tools), func(a, b *ToolCall) int { return a.Number - b.Number })
	for _, t := range calls {
		if t.Kind == event.Shell && !t.Ended {
			commands = append(commands, cmp.Or(t.Command, t.Name))
		}
	}
	return commands
}

// conclude records the result of the run, and enters its final state.
func (r *Run) conclude(v Verdict, e Ending, changed *Changes) error {
	if len(r.Attempts) == 0 {
		v = unbegun(v)
	}
	r.Result, r.Socket = plain(&r.secrets, r.result(v, e, changed)), ""
	return r.enter(v.State)
}

// unbegun returns the verdict on a run that was ended before its first attempt. There is nothing to look at.
func unbegun(v Verdict) Verdict {
	if v.Fault == nil {
		return v
	}
	f := *v.Fault
	switch v.State {
	case Cancelled:
		v.Reason, f.Message = NeverBegan, "the run was cancelled before it began"
	case TimedOut:
		f.Message = "the run's time was over before it began"
	}
	v.Fault = &f
	return v
}

// result returns the result of a run.
func (r *Run) result(v Verdict, e Ending, changed *Changes) *Result {
	now := time.Now().UTC()
	worked, waited := r.Times(now)
	out := &Result{
		State: v.State, Reason: v.Reason, Text: e.Answer(), Changed: changed, Denials: []Denial{},
		Evidence: slices.Concat([]string{}, r.Skipped(), v.Evidence), Asks: v.Asks, Ended: now, Fault: v.Fault,
		DurationMS: worked.Milliseconds(), WaitedMS: waited.Milliseconds(), Tools: tools(e), Checks: checks(e),
		Tested: v.Tested,
	}
	if e.End != nil {
		out.DeletedPaths = e.End.NotKept
		out.Unfinished = e.unfinished()
	}
	for _, d := range e.Denials {
		out.Denials = append(out.Denials, Denial{d.Tool, d.Reason})
	}
	for _, a := range r.Attempts {
		out.Usage = out.Usage.plus(a.Usage)
	}
	return out
}
