package run

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"omniagent/internal/kit/fault"
)

// startAfresh makes the next attempt begin a new session, with all answers, if the last attempt was to resume one. It
// reports whether it did.
func (r *Run) startAfresh() bool {
	last := r.Attempts[len(r.Attempts)-1]
	if !last.Resumed {
		return false
	}
	for i := range r.Attempts {
		if r.Attempts[i].Agent == last.Agent {
			r.Attempts[i].Resumes = false
		}
	}
	return true
}

// Temporary reports whether a reason is temporary, so that a program may repeat a run that ended for it and changed
// nothing. It does not hold for a cancellation, a limit of the run, or a verdict of the model or the check.
func Temporary(r Reason) bool {
	return slices.Contains([]Reason{RateLimited, Unreachable, Crashed, CutStream, NoOutput, NoAnswer}, r)
}

// NeedsNextAgent reports whether to try the next agent, because this one could not begin, and a retry would not help.
func NeedsNextAgent(r Reason) bool {
	return slices.Contains([]Reason{NotInstalled, NotLoggedIn, OutOfQuota, NotAllowed}, r)
}

// limited reports whether the service said how long its limit lasts.
func limited(v Verdict) bool {
	return (v.Reason == OutOfQuota || v.Reason == RateLimited) && v.Fault != nil && v.Fault.RetryAfter > 0
}

// tellEvery is the interval at which a wait for a limit of the service is reported again.
const tellEvery = 15 * time.Minute

// waitFor waits until a limit of the service ends, after d or at Until if that is set. Another process may continue the
// wait.
func (o *Owner) waitFor(ctx context.Context, d time.Duration) error {
	r := o.Run
	if r.Until.IsZero() {
		r.Until = time.Now().Add(d).UTC()
	}
	if err := o.enter(Queued); err != nil {
		return err
	}
	// Measure by the machine's uptime, which does not change with the clock, and in steps, because a timer stops while
	// the machine sleeps.
	now, whole := time.Now(), time.Until(r.Until)
	for began, told := uptime(now), uptime(now); ; {
		left := whole - (uptime(now) - began)
		if left <= 0 {
			r.Until = time.Time{}
			return nil
		}
		if uptime(now)-told >= tellEvery {
			told = uptime(now)
			o.tell(Progress{State: Queued})
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(min(left, time.Second)):
		}
	}
}

// retryable reports whether the same agent may be tried again: the reason is temporary, and nothing was done. An agent
// without any output has not begun. An agent that fell silent has, and a second silence would double the wait, so that
// is left to the person.
func retryable(v Verdict, e Ending) bool {
	touched := e.Touched()
	if touched == nil || *touched {
		return false
	}
	return Temporary(v.Reason)
}

const (
	firstWait   = time.Second
	longestWait = time.Minute
)

// wait waits before an attempt: as long as the service asks for, or else longer each time, with jitter. It fails at
// once if that is longer than longestWait.
func wait(ctx context.Context, f *fault.Fault, n int) error {
	d := min(firstWait<<n, longestWait)
	d += rand.N(d / 4)
	if f != nil && f.RetryAfter > 0 {
		d = f.RetryAfter
	}
	if d > longestWait {
		return errors.New("too long")
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
