package engine

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/guard"
	"omniagent/internal/model"
	"omniagent/internal/session"
	"omniagent/internal/text"
	"omniagent/internal/tool"
)

// abreast is how many calls that only read run at once.
const abreast = 8

// step is one call on its way.
type step struct {
	call    event.Call
	action  tool.Action
	wrong   string // why it cannot run: for the model
	begun   bool   // it runs beside others
	waits   bool   // its result tells of something that still runs
	ran     bool
	changed bool          // its input is not the one that the model gave
	stops   bool          // the answer about it ends the turn
	beside  []model.Block // what a hook tells the model before it ran
	done    chan tool.Result
}

// act runs the calls of an answer. Those that only read run at once; each is told with its result right behind it, in the order in which the
// model called. Every call gets a result, also those that an interruption kept from running.
func (l *loop) act(ctx context.Context, calls []model.Block) ([]model.Block, error) {
	steps := make([]*step, len(calls))
	for i, c := range calls {
		steps[i] = l.plan(c)
	}
	var results []model.Block
	for i := 0; i < len(steps); {
		n := 1
		if l.free(steps[i]) { // asked here and not before: the mode may have changed since the call in front of it began
			for i+n < len(steps) && n < abreast && l.free(steps[i+n]) {
				n++
			}
			for _, s := range steps[i : i+n] {
				s.begun = true
				go func() { s.done <- run(ctx, s.action, nil) }()
			}
		}
		for _, s := range steps[i : i+n] {
			results = append(results, l.carryOut(ctx, s))
		}
		i += n
		if ctx.Err() != nil {
			break
		}
	}
	for _, c := range calls[len(results):] {
		r := interruptedCall()
		results = append(results, model.Block{Kind: model.Result, ID: c.ID, Name: c.Name, Text: r.Text, Failed: r.Failed})
	}
	if ctx.Err() != nil {
		return results, context.Cause(ctx)
	}
	if slices.ContainsFunc(steps, func(s *step) bool { return s.waits }) { // who waits asks the same, and gets the same
		return results, nil
	}
	return results, l.repeat.check(calls, results)
}

// plan finds the tool and has it read its input.
func (l *loop) plan(c model.Block) *step {
	s := &step{call: event.Call{ID: c.ID, Name: c.Name, Kind: event.Other, Input: c.Input}, done: make(chan tool.Result, 1)}
	tools := l.offered()
	i := slices.IndexFunc(tools, func(t tool.Tool) bool { return t.Name == c.Name })
	if i < 0 {
		s.wrong = noTool(tools, c.Name)
		return s
	}
	if c.Broken != "" {
		s.wrong = "The arguments are no JSON object: " + clipped(c.Broken, 200) + "\nCall " + c.Name + " again with one complete JSON object."
		return s
	}
	action, err := tools[i].Plan(c.Input)
	if err != nil {
		s.wrong = err.Error()
		return s
	}
	if l.overwrites(action) {
		s.wrong = maskWritten
		return s
	}
	s.action = action
	s.call.Kind, s.call.Command = action.Kind, action.Command
	if action.Input != nil {
		s.call.Input = action.Input
	}
	if len(action.Paths) > 0 {
		s.call.Path = action.Paths[0]
	}
	return s
}

// free says whether a call may run beside others, and unasked: it only reads. One that keeps a list for the conversation has its turn.
func (l *loop) free(s *step) bool {
	if s.wrong != "" || l.session.o.Hook != nil || s.action.Changes || s.action.Kind == event.Agent || s.action.Kind == event.Other {
		return false
	}
	described := Described(s.call.Name, s.action)
	l.session.mu.Lock()
	defer l.session.mu.Unlock()
	return l.session.policy.judge(described, s.action, "").word == guard.Allow
}

func noTool(tools []tool.Tool, name string) string {
	var names []string
	for _, t := range tools {
		names = append(names, t.Name)
	}
	if len(names) == 0 {
		return fmt.Sprintf("There is no tool %q; there are none in this conversation.", name)
	}
	near := ""
	if n := text.Nearest(name, names); n != "" {
		near = " Did you mean " + n + "?"
	}
	return fmt.Sprintf("There is no tool %q.%s There are %s.", name, near, strings.Join(names, ", "))
}

// carryOut tells the call, sees whether it may run, runs it unless it runs already, and tells the result.
func (l *loop) carryOut(ctx context.Context, s *step) model.Block {
	answer, forget := l.session.expect(s.call.ID)
	defer forget()
	told := s.call
	l.tell(event.Event{Kind: event.ToolCall, Call: &told})
	var result tool.Result
	switch {
	case s.begun:
		result, s.ran = <-s.done, true // run heeds ctx
	case s.wrong == "":
		result = l.runAlone(ctx, s, answer)
	}
	if s.wrong != "" {
		result = tool.Result{Text: s.wrong, Failed: true}
	}
	if result.Text == "" && len(result.Images) == 0 {
		result.Text = "(no output)"
	}
	result.Text = strings.ToValidUTF8(result.Text, "\uFFFD")
	l.session.veil(&result)
	s.waits = result.Waits
	r := &event.Result{ID: s.call.ID, Name: s.call.Name, Failed: result.Failed, Output: result.Text, ExitCode: result.Exit, Change: result.Change}
	if s.changed {
		r.Input = l.session.o.Secrets.Bytes(s.call.Input)
	}
	l.tell(event.Event{Kind: event.ToolResult, Result: r})
	l.noteTodos(s, result)
	block := model.Block{Kind: model.Result, ID: s.call.ID, Name: s.call.Name, Text: result.Text + l.remarks(ctx, s, *r), Failed: result.Failed}
	for _, image := range result.Images {
		block.Parts = append(block.Parts, model.Block{Kind: model.Image, Media: image.Media, Data: image.Data})
	}
	return block
}

// remarks are what the model hears beside the result itself.
func (l *loop) remarks(ctx context.Context, s *step, r event.Result) string {
	said := ""
	if s.ran && s.changed && s.action.Form == nil {
		said = ranWith(r.Input)
	}
	for _, b := range s.beside {
		said += "\n\n" + b.Text
	}
	switch {
	case s.call.Name == formName && l.forms():
		if r.Failed {
			l.missed++
		} else {
			l.given = s.call.Input
		}
	case s.ran:
		said += l.after(ctx, s, &r)
	}
	return said
}

func (l *loop) runAlone(ctx context.Context, s *step, answer <-chan event.Reply) tool.Result {
	denial := l.permitted(ctx, s, answer)
	if denial != nil {
		if ctx.Err() == nil {
			l.tell(event.Event{Kind: event.Denied, Denial: denial})
		}
		if s.stops {
			l.session.endTurn(interrupted)
		}
		return tool.Result{Text: "It did not run: " + denial.Reason + ".", Failed: true}
	}
	switch {
	case s.wrong != "":
		return tool.Result{}
	case ctx.Err() != nil:
		return interruptedCall()
	case s.action.Kind == event.Agent:
		ctx = context.WithValue(ctx, callKey{}, calling{l, s.call.ID})
	}
	s.ran = true
	return run(ctx, s.action, nil)
}

// run does it. A tool that fails inside is a failed call, not the end of the conversation.
func run(ctx context.Context, a tool.Action, progress func(string)) (result tool.Result) {
	defer func() {
		if r := recover(); r != nil {
			result = tool.Result{Text: fmt.Sprintf("The tool failed inside: %v\n%s", r, firstLines(debug.Stack(), 12)), Failed: true}
		}
	}()
	if ctx.Err() != nil {
		return interruptedCall()
	}
	return a.Run(ctx, progress)
}

func firstLines(b []byte, n int) string {
	lines := strings.SplitN(string(b), "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], "\n")
}

// repetition notices a model that does the same again and again.
type repetition struct {
	last  string
	times int
}

const (
	saidAgain = 3 // how often the same calls with the same results are taken without a word
	givenUp   = 6
)

// check compares the calls and their results with those before.
func (r *repetition) check(calls, results []model.Block) error {
	var b strings.Builder
	for i, c := range calls {
		fmt.Fprintf(&b, "%s %s %s\n", c.Name, c.Input, results[i].Text)
	}
	if b.String() != r.last {
		r.last, r.times = b.String(), 1
		return nil
	}
	r.times++
	if r.times >= givenUp {
		return &stop{FailedTurn, fault.New(fault.AgentFailed, "the model made the same call %d times in a row, with the same result", r.times)}
	}
	if r.times >= saidAgain {
		last := &results[len(results)-1]
		last.Text += fmt.Sprintf("\n\n(You have made the same call %d times, with the same result. Do something else, or say what keeps you from it.)", r.times)
	}
	return nil
}

// noteTodos keeps the list of what is to be done, after it changed.
func (l *loop) noteTodos(s *step, result tool.Result) {
	todos, journal := l.session.o.Todos, l.session.o.Journal
	if s.call.Name != "TodoWrite" || result.Failed || todos == nil || journal == nil {
		return
	}
	var items []session.Todo
	for _, t := range todos.Get() {
		items = append(items, session.Todo{Content: t.Content, Status: t.Status, Active: t.ActiveForm})
	}
	_, _ = journal.Append(session.Todos{Items: items}) // the turn's end tells that nothing can be written
}
