package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/text"
	"omniagent/internal/launch"
	"omniagent/internal/term/terminal"
	"omniagent/internal/work/run"
)

// maxAnswerTime limits how long a question waits at the terminal. After that it waits for omniagent answer, as if
// nobody were at the terminal.
const maxAnswerTime = 10 * time.Minute

// hangUpDelay is how much later than the end of input the signal of a closed terminal may arrive.
const hangUpDelay = 300 * time.Millisecond

// workAttended returns the work of an owner that asks its questions at this terminal.
func workAttended(c *contract.Call, r *run.Run, o *run.Owner) func(context.Context) error {
	one := asker{c: c}
	o.Patience = maxAnswerTime
	if r.Timeout > 0 {
		o.Patience = min(o.Patience, r.Timeout/2)
	}
	o.Person = run.PersonOf(one.ask)
	tell := o.Tell
	o.Tell = func(now run.Progress) {
		one.collect(now.Event)
		if now.Event == nil && now.State == run.Running && one.postponed.Load() {
			return // the turn only ends because its question stays open
		}
		tell(now)
	}
	return func(ctx context.Context) error {
		for {
			if err := o.Work(ctx); err != nil || r.State != run.NeedsInput || !one.askOpen(ctx, r) {
				return err
			}
		}
	}
}

// asker asks the person at the terminal, one question at a time.
type asker struct {
	c         *contract.Call
	mu        sync.Mutex  // held while a question is asked
	postponed atomic.Bool // the person left a question open, so no further one is asked

	textMu  sync.Mutex
	texts   []string // complete texts of the agent since the last question
	partial []byte   // the beginning of its next text
}

// Limits of what is shown before a question. The result has the whole answer.
const (
	maxTexts   = 20
	maxTextLen = 64 << 10
)

// collect keeps the agent's texts, because a question may refer to them.
func (a *asker) collect(e *event.Event) {
	if e == nil || e.Kind != event.Text || e.Parent != "" {
		return
	}
	a.textMu.Lock()
	defer a.textMu.Unlock()
	if e.Delta {
		if a.partial = append(a.partial, e.Text...); len(a.partial) > 2*maxTextLen {
			a.partial = slices.Delete(a.partial, 0, len(a.partial)-maxTextLen)
		}
		return
	}
	if len(a.texts) == maxTexts {
		a.texts = slices.Delete(a.texts, 0, 1)
	}
	a.texts, a.partial = append(a.texts, text.Cut(e.Text, maxTextLen)), a.partial[:0]
}

// showTexts shows the agent's texts since the last question. It leaves out one that begins with the question itself.
func (a *asker) showTexts(q run.Question) {
	a.textMu.Lock()
	texts := append(a.texts, strings.ToValidUTF8(string(a.partial), ""))
	a.texts, a.partial = nil, nil
	a.textMu.Unlock()
	for _, words := range texts {
		if words = strings.TrimSpace(words); words != "" && !strings.HasPrefix(words, strings.TrimSpace(q.Text)) {
			a.c.Say(text.Visible(words))
		}
	}
}

// askOpen asks the open questions of a run, and reports whether all are answered.
func (a *asker) askOpen(ctx context.Context, r *run.Run) bool {
	for _, q := range r.Open() {
		answer, ok := a.ask(ctx, q)
		if !ok || r.Answer(q.ID, answer) != nil {
			return false
		}
	}
	return ctx.Err() == nil
}

// ask asks a question. ok is false if the person leaves it open.
func (a *asker) ask(ctx context.Context, q run.Question) (answer run.Answer, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.postponed.Load() {
		return answer, false
	}
	a.showTexts(q)
	if q.Tool == "" {
		answers := map[string]string{}
		for _, part := range q.Parts() {
			if answers[part.Question], ok = a.answer(ctx, part); !ok {
				return answer, false
			}
		}
		return q.Filled(answers), true
	}
	terminal.Forget(a.c.Host.Stdin) // earlier key presses are not an answer
	showCall(a.c, q)
	for {
		line, ok := a.line(ctx)
		if !ok {
			return answer, false
		}
		word, rest, _ := strings.Cut(line, " ")
		answer = run.Answer{Text: strings.TrimSpace(rest), At: time.Now().UTC(), By: os.Getpid()}
		switch {
		case slices.Contains([]string{"y", "yes"}, strings.ToLower(word)) && answer.Text == "":
			answer.Option = run.Approve
			return answer, true
		case slices.Contains([]string{"n", "no"}, strings.ToLower(word)):
			answer.Option = run.Reject
			return answer, true
		}
		a.c.Say("Type y or n; n WHY tells the agent why.")
	}
}

// answer asks for an answer in words. It shows the agent's text without control characters.
func (a *asker) answer(ctx context.Context, q event.FormQuestion) (answer string, ok bool) {
	terminal.Forget(a.c.Host.Stdin)
	a.c.Say("? " + text.Visible(strings.TrimSpace(q.Question)))
	for i, o := range q.Options {
		a.c.Say(fmt.Sprintf("  %d  %s", i+1, o.Shown()))
	}
	how := "Type the answer."
	if q.Several {
		how = "Type numbers with commas, or the answer."
	}
	a.c.Say(how + " Enter alone: later, with omniagent answer")
	for {
		line, ok := a.line(ctx)
		if !ok {
			return "", false
		}
		n, err := strconv.Atoi(line)
		if err != nil || n > 0 && n <= len(q.Options) || len(q.Options) == 0 {
			return q.Chosen(line), true
		}
		a.c.Say(fmt.Sprintf("There is no %d: type 1 to %d, or the answer in words.", n, len(q.Options)))
	}
}

// line reads what the person types. ok is false if that leaves the question open.
func (a *asker) line(ctx context.Context) (line string, ok bool) {
	line, err := a.c.Line(ctx, "> ")
	if settled := run.QuestionClosed(""); errors.As(err, &settled) {
		a.c.Say(settled.Error())
		a.postponed.Store(settled == run.Unanswered)
		return "", false
	}
	if err != nil { // Ctrl-D, or the terminal was closed, for which a signal comes too
		select {
		case <-ctx.Done():
		case <-time.After(hangUpDelay):
		}
	}
	line = strings.TrimSpace(line)
	if err != nil || line == "" {
		a.postponed.Store(true)
		return "", false
	}
	return line, true
}

// showCall shows the question whether a tool may run. The question comes after the tool's input, so that a long input
// cannot push it off the screen. Control characters are not shown as such.
func showCall(c *contract.Call, q run.Question) {
	showInput(c, q, q.Text)
	c.Say("? " + text.Visible(strings.TrimSpace(q.Text)))
	c.Say("y yes   n no   Enter alone: later, with omniagent answer")
}

// showInput shows the input of a tool, unless shown contains it already.
func showInput(c *contract.Call, q run.Question, shown string) {
	if q.Tool != "" && !strings.Contains(shown, q.Input) {
		c.Say("  " + q.Tool + " " + strings.ReplaceAll(text.Visible(q.Input), "\n", "\n  "))
	}
}

// offerVariables asks whether to pass on the variables that an agent lacked, and if so, adds them to the configuration.
func offerVariables(ctx context.Context, c *contract.Call, r run.Record) {
	if r.Result == nil || r.Result.Fault == nil || r.Result.Fault.Detail[launch.WithheldDetail] == nil {
		return
	}
	f := r.Result.Fault
	c.Say(f.Message + " " + f.Fix)
	line, err := c.Line(ctx, "Pass it on from now on? [y/N] ")
	if word := strings.ToLower(strings.TrimSpace(line)); err != nil || word != "y" && word != "yes" {
		return
	}
	host := c.Host
	host.Args, host.Stdin, host.StdinTerminal, host.Stdout = strings.Fields(f.FixCommand)[1:], nil, false, io.Discard
	if c.Program.Run(ctx, host, nil) == 0 {
		c.Say("It is passed on now. Once more: omniagent runs retry " + r.ID)
	}
}
