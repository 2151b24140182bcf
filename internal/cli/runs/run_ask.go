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
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/launch"
	"omniagent/internal/term/terminal"
	"omniagent/internal/work/run"
)

// longestThought is how long a person at the terminal may think about a question. After that it waits for omniagent
// answer, as if nobody were there.
const longestThought = 10 * time.Minute

// hangUpTakes is how long the signal of a closed terminal may come after the end of what can be read there.
const hangUpTakes = 300 * time.Millisecond

// inPlace makes an owner ask its questions at this terminal.
func inPlace(c *contract.Call, r *run.Run, o *run.Owner) func(context.Context) error {
	one := asker{c: c}
	o.Patience = longestThought
	if r.Timeout > 0 {
		o.Patience = min(o.Patience, r.Timeout/2)
	}
	o.Person = run.PersonOf(one.ask)
	tell := o.Tell
	o.Tell = func(now run.Progress) {
		one.hears(now.Event)
		if now.Event == nil && now.State == run.Running && one.left.Load() {
			return // the turn only ends, without the answer
		}
		tell(now)
	}
	return func(ctx context.Context) error {
		for {
			if err := o.Work(ctx); err != nil || r.State != run.NeedsInput || !one.goesOn(ctx, r) {
				return err
			}
		}
	}
}

// asker asks the person at the terminal, one question at a time.
type asker struct {
	c    *contract.Call
	mu   sync.Mutex
	left atomic.Bool // the person left a question open: no further one is asked

	words sync.Mutex
	said  []string // by the agent, since the last question
	piece []byte   // of what it says now
}

// What is shown before a question, at most. The answer at the end has all of it.
const (
	mostSaid    = 20
	longestSaid = 64 << 10
)

// hears keeps what the agent says, which a person has to read before a question.
func (a *asker) hears(e *event.Event) {
	if e == nil || e.Kind != event.Text || e.Parent != "" {
		return
	}
	a.words.Lock()
	defer a.words.Unlock()
	if e.Delta {
		if a.piece = append(a.piece, e.Text...); len(a.piece) > 2*longestSaid {
			a.piece = slices.Delete(a.piece, 0, len(a.piece)-longestSaid)
		}
		return
	}
	if len(a.said) == mostSaid {
		a.said = slices.Delete(a.said, 0, 1)
	}
	a.said, a.piece = append(a.said, text.Cut(e.Text, longestSaid)), a.piece[:0]
}

// repeats shows what the agent has said since the last question, but for the next question itself.
func (a *asker) repeats(q run.Question) {
	a.words.Lock()
	said := append(a.said, strings.ToValidUTF8(string(a.piece), ""))
	a.said, a.piece = nil, nil
	a.words.Unlock()
	for _, words := range said {
		if words = strings.TrimSpace(words); words != "" && !strings.HasPrefix(words, strings.TrimSpace(q.Text)) {
			a.c.Say(text.Visible(words))
		}
	}
}

// goesOn asks the questions at which a run stopped, and reports whether the run can go on.
func (a *asker) goesOn(ctx context.Context, r *run.Run) bool {
	for _, q := range r.Open() {
		answer, ok := a.ask(ctx, q)
		if !ok || r.Answer(q.ID, answer) != nil {
			return false
		}
	}
	return ctx.Err() == nil
}

// ask asks a question. ok is false where the person leaves it open.
func (a *asker) ask(ctx context.Context, q run.Question) (answer run.Answer, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.left.Load() {
		return answer, false
	}
	a.repeats(q)
	if q.Tool == "" {
		answers := map[string]string{}
		for _, part := range q.Parts() {
			if answers[part.Question], ok = a.answer(ctx, part); !ok {
				return answer, false
			}
		}
		return q.Filled(answers), true
	}
	terminal.Forget(a.c.Host.Stdin) // what was typed before answers nothing
	tellCall(a.c, q)
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

// answer asks for an answer in words. What the agent wrote can move nothing on the screen.
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

// line reads what the person types. ok is false where the question is left open.
func (a *asker) line(ctx context.Context) (line string, ok bool) {
	line, err := a.c.Line(ctx, "> ")
	if settled := run.Settled(""); errors.As(err, &settled) {
		a.c.Say(settled.Error())
		a.left.Store(settled == run.Unanswered)
		return "", false
	}
	if err != nil { // Ctrl-D, or the terminal is closed, which a signal says too
		select {
		case <-ctx.Done():
		case <-time.After(hangUpTakes):
		}
	}
	line = strings.TrimSpace(line)
	if err != nil || line == "" {
		a.left.Store(true)
		return "", false
	}
	return line, true
}

// tellCall asks whether a tool may run. The words of the question stand last above the keys, so that no long input can
// hide them, and what the agent wrote can move nothing on the screen.
func tellCall(c *contract.Call, q run.Question) {
	tellInput(c, q, q.Text)
	c.Say("? " + text.Visible(strings.TrimSpace(q.Text)))
	c.Say("y yes   n no   Enter alone: later, with omniagent answer")
}

// tellInput prints what a tool gets, unless that is in what is shown already.
func tellInput(c *contract.Call, q run.Question, shown string) {
	if q.Tool != "" && !strings.Contains(shown, q.Input) {
		c.Say("  " + q.Tool + " " + strings.ReplaceAll(text.Visible(q.Input), "\n", "\n  "))
	}
}

// offerVariables asks whether the variables that an agent lacked are passed on from now on.
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

// answered returns the run that omniagent answer names, or "", and the text of the answer. A word alone that cannot be
// an id of a run is the text.
func answered(c *contract.Call) (id, said string) {
	id, said = c.String("id"), c.String("text")
	if id != "" && said == "" && !run.IsID(id) {
		return "", id
	}
	return id, said
}

// runMeant returns the id of the run that a call is about. Only answer may leave it out, where one run waits.
func runMeant(ctx context.Context, c *contract.Call, store run.Store) (id string, err error) {
	if c.Command.Path != "answer" {
		return c.String("id"), nil
	}
	if id, _ = answered(c); id == "" {
		return onlyQuestion(ctx, c, store)
	}
	return id, nil
}

// onlyQuestion returns the run that waits for an answer, if it is the only one, or the only one in this directory.
func onlyQuestion(ctx context.Context, c *contract.Call, store run.Store) (id string, err error) {
	all, _, err := store.List(ctx)
	if err != nil {
		return "", err
	}
	waiting := slices.DeleteFunc(all, func(r run.Record) bool { return r.State != run.NeedsInput })
	here := func(r run.Record) bool { return r.Dir == c.Dir() }
	if i := slices.IndexFunc(waiting, here); i >= 0 && !slices.ContainsFunc(waiting[i+1:], here) {
		waiting = waiting[i : i+1]
	}
	switch len(waiting) {
	case 0:
		return "", fault.New(fault.NotFoundCode, "no run waits for an answer").Hint("omniagent runs list")
	case 1:
		return waiting[0].ID, nil
	}
	f := fault.New(fault.ArgError, "%d runs wait for an answer", len(waiting)).
		Hint("omniagent runs list --status needs_input")
	ids := make([]string, 0, len(waiting))
	for _, r := range waiting {
		ids = append(ids, r.ID)
		f.Ways = append(append(f.Ways, r.Answers()...),
			fmt.Sprintf("    %s: %s", text.Name(r.Dir), text.OneLine(asks(r), 100)))
	}
	return "", f.With("runs", ids)
}

// tellMeant tells which run an answer is for that names none. It asks a person before one of another directory goes on.
func tellMeant(ctx context.Context, c *contract.Call, r run.Record) error {
	if id, _ := answered(c); id != "" {
		return nil
	}
	where := ""
	if r.Dir != c.Dir() {
		where = " in " + text.Name(r.Dir)
	}
	said := text.OneLine(asks(r), 200)
	c.Log("%s%s asks: %s", r.ID, where, said)
	if where == "" || !c.Attended() || c.DryRun() {
		return nil
	}
	for _, q := range r.Open() {
		tellInput(c, q, said)
	}
	yes, err := c.Agree(ctx, "Answer it")
	if err == nil && !yes {
		err = fault.New(fault.ConfirmationRequired, "nothing was answered").
			Hint("omniagent answer %s", r.ID+" 'TEXT'")
	}
	return err
}

// asks returns the text of the open question of a run, or "".
func asks(r run.Record) string {
	if open := r.Open(); r.State == run.NeedsInput && len(open) > 0 {
		return open[0].Text
	}
	return ""
}
