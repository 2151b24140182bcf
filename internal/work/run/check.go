package run

import (
	"context"
	"fmt"
	"strings"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/walls/shell"
)

// checkTail limits the bytes kept of a check's output.
const checkTail = 4000

// check runs the task's check in the agent's directory. If it fails, the run fails.
func (o *Owner) check(ctx context.Context, v Verdict) Verdict {
	r := o.Run
	began := time.Now()
	test := &Tested{Command: r.Check}
	out, err := o.Check(ctx, r.Task, o.Grace)
	test.Output, test.DurationMS = tail(out.Stdout+out.Stderr), time.Since(began).Milliseconds()
	if ctx.Err() != nil { // the run was cancelled, or timed out
		v = verdictOf(Ending{Err: context.Cause(ctx)}, nil)
		v.Tested = test
		return v
	}
	why := ""
	switch {
	case err != nil:
		why = fault.Of(err).Message
	case out.Reason == shell.OutOfTime:
		why = fmt.Sprintf("it did not end within %s", out.Limit)
	case out.Signal != "":
		why = "it was ended by " + out.Signal
	default:
		test.ExitCode = &out.Exit
		if out.Exit == 0 {
			v.Tested, v.Evidence = test, append(v.Evidence, "the check succeeded")
			return v
		}
		why = fmt.Sprintf("it ended with %d", out.Exit)
	}
	behind := ", which ran behind walls: --check-outside runs it without"
	if r.CheckOutside {
		behind = ""
	}
	return Verdict{
		State: Failed, Reason: CheckFailed, Tested: test, Evidence: append(v.Evidence, "the check: "+why),
		Fault: fault.New(fault.CheckFailed, "the agent finished, but the check failed: %s", why).
			Hint("omniagent runs show %s prints the output of the check%s", r.ID, behind),
	}
}

// tail returns the end of a program's output.
func tail(output string) string {
	if len(output) > checkTail {
		output = output[len(output)-checkTail:]
		if _, whole, found := strings.Cut(output, "\n"); found && whole != "" {
			output = whole
		}
	}
	return strings.ToValidUTF8(output, "\uFFFD")
}
