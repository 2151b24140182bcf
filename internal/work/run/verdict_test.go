package run

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/sys/stuckprompt"
)

// TestJudge: what decides, in the order in which it does.
func TestJudge(t *testing.T) {
	ok := &event.End{OK: true, Text: "I did it.", Reason: event.Success}
	bad := &event.End{Reason: event.FailedTurn}
	ask := &event.Ask{ID: "q1", Text: "Which?"}
	yes, no := true, false
	denied := []event.Denial{{Tool: "Bash", Reason: "no"}}
	records := func(code fault.Code) agent.Outcome {
		return agent.Outcome{Evidence: agent.Evidence{Fault: fault.New(code, "x")}}
	}
	for name, c := range map[string]struct {
		ending  Ending
		changed *bool
		state   State
		reason  Reason
		code    fault.Code
	}{
		"done":                    {Ending{End: ok}, &yes, Succeeded, Done, ""},
		"nobody looked":           {Ending{End: ok}, nil, Succeeded, Done, ""},
		"unchanged":               {Ending{End: ok}, &no, Succeeded, Unchanged, ""},
		"denied beats an answer":  {Ending{End: ok, Denials: denied}, &yes, Blocked, Denied, fault.Blocked},
		"a clock beats an answer": {Ending{End: ok, Err: errIdle}, &yes, Stalled, Idle, fault.Stalled},
		"too long":                {Ending{Err: context.DeadlineExceeded}, nil, TimedOut, TooLong, fault.TimedOut},
		"cancelled":               {Ending{Err: errCancelled()}, nil, Cancelled, CancelledBy, fault.Interrupted},
		"a question beats an end": {Ending{End: bad, Question: ask}, nil, NeedsInput, Asked, fault.NeedsInput},
		"no answer": {
			Ending{End: &event.End{}, Fault: fault.New(fault.NoAnswer, "none")}, &no, Failed, NoAnswer, fault.NoAnswer,
		},
		"nothing but calls": {
			Ending{End: &event.End{OK: true}, Tools: map[string]*ToolCall{"1": {}}}, &yes, Succeeded, Done, "",
		},
		"only a question": {
			Ending{End: &event.End{OK: true, Text: "Which colour do you want?"}},
			&no, NeedsInput, Asked,
			fault.NeedsInput,
		},
		"a question after work": {
			Ending{End: &event.End{OK: true, Text: "Which colour do you want?"}}, &yes, Succeeded, Done, "",
		},
		"not installed": {
			Ending{Err: fault.New(fault.NotInstalled, "x")}, nil, Failed, NotInstalled, fault.NotInstalled,
		},
		"not allowed": {
			Ending{Err: fault.New(fault.NotAllowed, "x")}, nil, Blocked, NotAllowed, fault.NotAllowed,
		},
		"logged out, as the agent says": {
			Ending{End: bad, Fault: fault.New(fault.AuthRequired, "x")}, &no, Failed, NotLoggedIn, fault.AuthRequired,
		},
		"logged out, as its records say": {
			Ending{End: bad, Outcome: records(fault.CredentialsExpired)},
			&no, Failed, NotLoggedIn,
			fault.CredentialsExpired,
		},
		"rate limited": {
			Ending{End: bad, Fault: fault.New(fault.TooManyRequests, "x")},
			&no, Failed, RateLimited,
			fault.TooManyRequests,
		},
		"out of quota": {
			Ending{End: bad, Fault: fault.New(fault.QuotaExhausted, "x")},
			&no, Failed, OutOfQuota,
			fault.QuotaExhausted,
		},
		"unreachable": {
			Ending{End: bad, Fault: fault.New(fault.ServiceDown, "x")}, &no, Failed, Unreachable, fault.ServiceDown,
		},
		"context full": {
			Ending{End: bad, Fault: fault.New(fault.ContextFull, "x")},
			&no, Failed, ContextFull,
			fault.ContextFull,
		},
		"model refused": {Ending{End: &event.End{AgentReason: "refusal"}}, &no, Failed, Refused, fault.AgentFailed},
		"model refused, as the agent says": {
			Ending{End: bad, Fault: fault.New(fault.ModelRefused, "x")}, &no, Failed, Refused, fault.ModelRefused,
		},
		"the agent refused": {
			Ending{End: bad, Fault: fault.New(fault.AgentRefused, "x")}, &no, Failed, Other, fault.AgentRefused,
		},
		"done, and lost by its records": {
			Ending{End: ok, Outcome: agent.Outcome{Evidence: agent.Evidence{
				Fault: fault.New(fault.APIError, "x"), Answered: agent.No,
			}}}, &no, Failed, Other, fault.APIError,
		},
		"an earlier failure, and an answer": {
			Ending{End: ok, Outcome: agent.Outcome{Evidence: agent.Evidence{
				Fault: fault.New(fault.APIError, "x"), Answered: agent.Yes,
			}}}, &no, Succeeded, Unchanged, "",
		},
		"turns used up": {Ending{End: &event.End{Reason: event.MaxTurns}}, &no, Failed, Limited, fault.AgentFailed},
		"crashed": {
			Ending{
				End: bad, Fault: fault.New(fault.AgentFailed, "x"), Outcome: agent.Outcome{Exit: agent.Exit{Code: 7}},
			}, &no, Failed, Crashed, fault.AgentFailed,
		},
		"killed": {
			Ending{End: bad, Outcome: agent.Outcome{Exit: agent.Exit{Code: -1, Signal: "SIGKILL"}}},
			&no, Failed,
			Killed, fault.AgentFailed,
		},
		"crashed by a signal": {
			Ending{End: bad, Outcome: agent.Outcome{Exit: agent.Exit{Code: -1, Signal: "SIGSEGV"}}},
			&no, Failed,
			Crashed, fault.AgentFailed,
		},
		"killed by us is not killed": {
			Ending{End: bad, Outcome: agent.Outcome{Exit: agent.Exit{Code: -1, Signal: "SIGKILL", EndedBy: "x"}}},
			&no,
			Failed, Other, fault.AgentFailed,
		},
		"output that ends": {
			Ending{Session: "s", Text: "I will", End: bad, Fault: fault.New(fault.AgentFailed, "x")},
			&no, Failed,
			CutStream, fault.AgentFailed,
		},
		"our own arguments": {
			Ending{End: bad, Fault: fault.New(fault.AgentUsage, "x")}, &no, Failed, Other, fault.AgentFailed,
		},
		"a password": {
			Ending{End: ok, Prompt: &stuckprompt.Signal{Kind: stuckprompt.Password, Question: "Password:"}},
			&no, Failed,
			NotLoggedIn, fault.AuthRequired,
		},
		"trust": {
			Ending{End: ok, Prompt: &stuckprompt.Signal{Kind: stuckprompt.Trust, Question: "Trust?"}},
			&no, Failed, NotTrusted,
			fault.AgentRefused,
		},
		"a prompt": {
			Ending{End: ok, Prompt: &stuckprompt.Signal{Kind: stuckprompt.Confirm, Question: "Sure? [y/N]"}},
			&yes, NeedsInput,
			Asked, fault.NeedsInput,
		},
	} {
		v := Judge(c.ending, c.changed)
		var code fault.Code
		if v.Fault != nil {
			code = v.Fault.Code
		}
		if v.State != c.state || v.Reason != c.reason || code != c.code {
			t.Errorf("%s: %s %s %s", name, v.State, v.Reason, code)
		}
		if (v.Fault == nil) != (v.State == Succeeded) || v.Reason == Asked && v.Question == nil {
			t.Errorf("%s: %+v", name, v)
		}
		if v.State != Succeeded && v.State != NeedsInput {
			advised(t, v)
		}
	}
}

// advised checks that the next step after a verdict has a command.
func advised(t *testing.T, v Verdict) {
	t.Helper()
	r := Record{ID: "run-1", State: v.State, Result: &Result{Reason: v.Reason, Fault: v.Fault}}
	r.Attempts = []Attempt{{Agent: "claude"}}
	f := r.Advised()
	if f == nil || !strings.Contains(f.Suggestion, "omniagent ") || strings.Contains(f.Suggestion, "RUN") ||
		strings.Contains(f.Suggestion, "NAME") {
		t.Errorf("%s %s: %+v", v.State, v.Reason, f)
	}
}

// TestEveryFailureHasACommand: whatever a run fails for, with advice of its own and without.
func TestEveryFailureHasACommand(t *testing.T) {
	for _, e := range fault.Catalogue() {
		for _, f := range []*fault.Fault{
			fault.New(e.Code, "x"), fault.New(e.Code, "x").Hint("Do it."),
			fault.New(e.Code, "x").FixBy("Do it.", "npm install it"),
		} {
			advised(t, failed(Ending{Fault: f}, f))
		}
	}
	yolo := Record{ID: "run-1", Task: Task{Approval: setting.Yolo}, State: Blocked}
	yolo.Result = &Result{Fault: cli.DenialFault([]event.Denial{{Tool: "A"}})}
	got := yolo.Advised().Suggestion
	if strings.Contains(got, "set --approval") || !strings.Contains(got, "runs logs") {
		t.Error(got)
	}
	mute := Record{ID: "run-1", Task: Task{First: time.Minute}, State: Failed}
	silent := fault.New(fault.TimedOut, "x").With("connect_timeout", "1m0s")
	mute.Result = &Result{Fault: silent.Hint("--connect-timeout")}
	if got := mute.Advised().Suggestion; !strings.Contains(got, "config set run.first_output 2m0s --global; then: ") {
		t.Error(got)
	}
	for want, f := range map[string]*fault.Fault{
		"Read what it printed: omniagent runs logs run-1":                  fault.New(fault.AgentFailed, "x"),
		"Call again, waiting longer each time: omniagent runs retry run-1": fault.New(fault.ServiceDown, "x"),

		"mkdir -p /h/project && omniagent run --cwd /h/project -p 'WHAT TO DO'": fault.New(fault.Unsafe, "x").
			With("path", "/w").With("project", "/h/project").Hint("mkdir -p /h/project && cd /h/project"),

		"Do it; then: omniagent runs retry run-1": fault.New(fault.DiskFull, "x").Hint("Do it."),
	} {
		r := Record{ID: "run-1", Task: Task{Dir: "/w"}, State: Failed, Result: &Result{Fault: f}}
		if got := r.Advised().Suggestion; got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// TestRetryable: only what passes by itself, and only where nothing was done.
func TestRetryable(t *testing.T) {
	idle := Ending{End: &event.End{}, Session: "s"}
	worked := Ending{
		End: &event.End{}, Session: "s", Tools: map[string]*ToolCall{"1": {Kind: event.Shell, Ended: true}},
	}
	for _, r := range []Reason{RateLimited, Unreachable, Crashed, NoOutput} {
		if v := (Verdict{Reason: r}); !retryable(v, idle) || retryable(v, worked) {
			t.Errorf("%s", r)
		}
	}
	for _, r := range []Reason{
		Denied, Asked, NotLoggedIn, TooLong, CancelledBy, OwnerDied, Refused, Killed, Idle,
	} {
		if retryable(Verdict{Reason: r}, idle) {
			t.Errorf("%s", r)
		}
	}
}

// TestUnfinished: commands without a result when the turn ended are named, and nothing else is.
func TestUnfinished(t *testing.T) {
	end := &event.End{OK: true, Text: "I did it.", Reason: event.Success}
	e := Ending{End: end, Tools: map[string]*ToolCall{
		"1": {Number: 1, Kind: event.Shell, Command: "make", Ended: true},
		"2": {Number: 2, Kind: event.Shell, Command: "sleep 25; echo b > late.txt"},
		"3": {Number: 3, Kind: event.Read, Name: "Read"},
	}}
	const want = "still ran when the turn ended, and was ended: sleep 25; echo b > late.txt"
	if v := Judge(e, nil); v.State != Succeeded || !slices.Contains(v.Evidence, want) || len(e.unfinished()) != 1 {
		t.Errorf("%+v", v)
	}
	if e.End = nil; len(e.unfinished()) > 0 {
		t.Errorf("a turn without an end: %q", e.unfinished())
	}
}
