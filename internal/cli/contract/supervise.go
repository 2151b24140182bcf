package contract

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/process"
)

// supervise runs the command under its time limit. Whether the handler returns, panics, hangs, or ignores the request
// to stop, there is an answer, at the latest shortly after the time limit.
//
//	running ─┬─ returned, panicked ────────────────────▶ answer
//	         └─ time limit, signal ─▶ stopping ─┬─ returned ─▶ answer with the fault
//	                                            └─ grace over, second signal ─▶ abandoned: answer without data
func (c *Call) supervise(ctx context.Context, signals <-chan os.Signal) answer {
	limit := c.limit()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var clock <-chan time.Time
	if limit > 0 && c.Command.Clock == nil {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		clock = timer.C
	}
	stopBeats := c.heartbeat()
	defer stopBeats()
	defer c.liveLine()()
	done := make(chan answer, 1)
	go func() {
		a, returned := answer{}, false
		defer func() {
			if r := recover(); r != nil {
				a = answer{fault: c.panicked(r, debug.Stack())}
			} else if !returned { // runtime.Goexit: there would never be an answer
				a = answer{fault: c.panicked("the handler ended without returning", nil)}
			}
			done <- a
		}()
		a = c.handle(ctx)
		returned = true
	}()
	select {
	case a := <-done:
		return a
	case s := <-signals:
		return c.end(cancel, cancelled(c, s), done, signals)
	case <-clock:
		return c.end(cancel, c.expired(limit), done, signals)
	case <-ctx.Done():
		return c.end(cancel, batchEnded(ctx), done, signals)
	}
}

// batchEnded returns the fault of a line that was not done when its batch ended.
func batchEnded(ctx context.Context) *fault.Fault {
	const message = "the batch that this call belongs to ended"
	if fault.Of(context.Cause(ctx)).Code == fault.TimedOut {
		return fault.New(fault.TimedOut, message+": its time limit passed").Hint("give it a longer --timeout, or none")
	}
	return fault.New(fault.Interrupted, message).With("signal", "SIGTERM")
}

// interruptible returns a context for a wait before the run: the time limit and signals end it as they end the run.
// stop returns the fault if one did.
func (c *Call) interruptible(ctx context.Context, signals <-chan os.Signal) (interruptible context.Context,
	stop func() *fault.Fault,
) {
	interruptible, cancel := context.WithCancelCause(ctx)
	limit := c.limit()
	var clock <-chan time.Time
	if limit > 0 {
		clock = time.After(limit)
	}
	quit, why := make(chan struct{}), make(chan *fault.Fault, 1)
	go func() {
		var f *fault.Fault
		select {
		case s := <-signals:
			f = cancelled(c, s)
		case <-clock:
			f = c.expired(limit)
		case <-quit:
		}
		why <- f
		if f == nil {
			cancel(nil)
			return
		}
		cancel(f)
	}()
	return interruptible, func() *fault.Fault { close(quit); return <-why }
}

// end tells the handler to stop and gives it a moment to return its result. A second signal cuts that short.
func (c *Call) end(cancel context.CancelCauseFunc, f *fault.Fault, done <-chan answer,
	signals <-chan os.Signal,
) answer {
	cancel(f)
	grace := handlerGrace
	if len(c.Command.Children) > 0 {
		grace += c.Config.Duration("grace") // its children have this long to end
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	for {
		select {
		case a := <-done:
			a.fault = f // whatever it returned, it was stopped
			return a.partial()
		case s := <-signals:
			if s == syscall.SIGHUP { // a terminal that closes sends several
				continue
			}
		case <-timer.C:
		}
		return answer{fault: f, dead: true}.partial()
	}
}

const handlerGrace = 500 * time.Millisecond

// handle runs the handler and turns its result into a tree. Making the tree may run code of the command, too.
func (c *Call) handle(ctx context.Context) answer {
	work := c.Command.Run
	if c.earlier != "" {
		work = func(ctx context.Context, c *Call) (Result, error) { return c.Command.Again(ctx, c, c.earlier) }
	}
	result, err := work(ctx, c)
	a := answer{
		exit: result.Exit, effect: result.Effect, target: result.Target, fault: c.halfDone(systemFault(fault.Of(err))),
	}
	for _, name := range slices.Sorted(maps.Keys(result.Meta)) {
		a.meta = a.meta.set(name, (&walker{unmask: true}).tree(result.Meta[name]))
	}
	a.bare = result.Lines
	if a.fault == nil && result.Failed > 0 {
		a.fault = fault.New(fault.PartialFailure, "%d of the items failed", result.Failed).
			Hint("read data.results: each item has its own error")
		a.fault.Phase = fault.Execution
	}
	if result.Data != nil {
		if p, ok := result.Data.(PlainTexter); ok && c.format() == "plain" && !c.Given("fields") {
			a.human = p.PlainText()
			if v, ok := result.Data.(Verbatim); ok && !c.Host.StdoutTerminal {
				a.verbatim = v.Verbatim()
			}
			if _, flows := result.Data.(Flowing); flows {
				a.human = c.screenOf().flowing(a.human)
			}
		}
		a.shape(c, result.Data)
	}
	a.done = a.fault == nil && a.exit == ""
	if c.Command.Danger != Safe && a.fault == nil && a.effect == "" {
		a.fault = fault.New(fault.Internal, "%s did not say what it changed", c.Command.Path)
	}
	return a
}

func (c *Call) expired(limit time.Duration) *fault.Fault {
	f := fault.New(fault.TimedOut, "%s did not end within %s", c.Command.Path, limit)
	f.Phase = fault.Execution
	longer := max(2*limit, cmp.Or(c.Command.Timeout, defaultTimeout))
	n, _ := c.Command.number(TimedOut)
	f.Retry = new(c.Command.exits()[itoa(n)].Retryable)
	return f.Hint("%s", c.lineWith("--timeout", longer.String())).With("timeout_ms", limit.Milliseconds())
}

func cancelled(c *Call, s os.Signal) *fault.Fault {
	name := process.SignalName(s)
	return fault.New(fault.Interrupted, "%s was ended by %s", c.Command.Path, name).With("signal", name)
}

// panicked keeps the stack out of the answer: it goes to standard error, and only with --debug.
func (c *Call) panicked(reason any, stack []byte) *fault.Fault {
	c.Debug("panic: %v\n%s", reason, stack)
	return fault.New(fault.Internal, "%s failed inside: %s", c.Command.Path, fmt.Sprint(reason)).Hint("%s",
		c.line("--debug"))
}

// liveLine shows a person at a terminal that a command which takes longer than a second is at work, until stop is
// called.
func (c *Call) liveLine() (stop func()) {
	out, ok := c.Host.Stderr.(*stderrWriter)
	if !ok || !c.Host.StderrTerminal || c.Host.ci() || c.Bool("quiet") || c.Command.Interactive || c.Host.line != nil {
		return func() {}
	}
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for begun := time.Now(); ; {
			select {
			case <-quit:
				out.show("")
				return
			case <-tick.C:
				out.show(strings.TrimSpace(fmt.Sprintf("%s: %ds %s", c.title(), int(time.Since(begun).Seconds()),
					c.currentStep())))
			}
		}
	}()
	return func() { close(quit); <-gone }
}

// heartbeat shows that a long-running command is alive, on standard output for programs and on standard error for
// people.
func (c *Call) heartbeat() (stop func()) {
	if !c.Command.LongRunning || c.Host.line != nil {
		return func() {}
	}
	type beat struct {
		every time.Duration
		say   func(elapsed time.Duration)
	}
	var beats []beat
	if ms := c.Int("heartbeat-ms"); ms > 0 && !c.Emits() && (c.format() == "json" || c.format() == "jsonl") {
		beats = append(beats, beat{time.Duration(ms) * time.Millisecond, func(elapsed time.Duration) {
			o := object{
				{"status", "running"},
				{"heartbeat", true},
				{"elapsed_ms", number(elapsed.Milliseconds())},
			}
			if step := c.currentStep(); step != "" {
				o = append(o, member{"step", step})
			}
			c.out.beat(append(appendJSON(nil, o), '\n'))
		}})
	}
	if s := c.Int("heartbeat-interval"); s > 0 && !c.Bool("quiet") {
		beats = append(beats, beat{time.Duration(s) * time.Second, func(elapsed time.Duration) {
			c.Log("[%ds] running %s", int(elapsed.Seconds()), c.currentStep())
		}})
	}
	quit := make(chan struct{})
	for _, b := range beats {
		go func() {
			tick := time.NewTicker(b.every)
			defer tick.Stop()
			for {
				select {
				case <-quit:
					return
				case <-tick.C:
					b.say(time.Since(c.started))
				}
			}
		}()
	}
	return func() { close(quit) }
}
