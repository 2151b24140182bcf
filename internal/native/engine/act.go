package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/llm/model"
	"omniagent/internal/native/tool"
	"omniagent/internal/talk/session"
	"omniagent/internal/walls/guard"
)

// mostParallel is how many calls that only read run in parallel.
const mostParallel = 8

// step is one call of the model, from the plan to the result.
//
//	plan ─▶ permitted ─▶ start ─▶ await ─▶ result
//	  │          │
//	  └ wrong    └ denied ─▶ a result that gives the reason
type step struct {
	call         event.Call      // its input is the model's, byte for byte
	input        json.RawMessage // for the tool: with canonical names, or given by a host
	action       tool.Action
	wrong        string // why it cannot run, for the model
	begun        bool   // it runs in parallel with others
	waits        bool   // its result mentions something that still runs
	ran          bool
	changed      bool            // a host has changed its input
	seen         *tool.FileState // what a person saw of its file
	stops        bool            // the answer to its question ends the turn
	refusal      string          // what the walls will refuse, and the setting that allows it
	needsNetwork bool            // an approval opens the network for it
	context      []model.Block   // what a hook adds for the model before it runs
	done         chan tool.Result
}

// sent returns the call as the model sent it.
func (s *step) sent() *event.Call {
	call := s.call
	if s.wrong == "" && string(s.input) != string(call.Input) {
		call.Canonical = s.input
	}
	return &call
}

// actual returns the call with the input that the tool runs with.
func (s *step) actual() *event.Call {
	call := s.call
	call.Input = s.input
	return &call
}

// act runs the calls of an answer. Those that only read run in parallel. Events come in the order in which the model
// made the calls, each result directly after its call. Every call gets a result, even if an interruption kept it from
// running.
func (l *loop) act(ctx context.Context, calls []model.Block) ([]model.Block, error) {
	steps := make([]*step, len(calls))
	for i, c := range calls {
		steps[i] = l.plan(c)
	}
	var results []model.Block
	var failed error
	for i := 0; i < len(steps); {
		n := 1
		// decide this now, because the previous call may have changed the mode
		if l.free(steps[i]) {
			for i+n < len(steps) && n < mostParallel && l.free(steps[i+n]) {
				n++
			}
			for _, s := range steps[i : i+n] {
				s.begun = true
				s.start(ctx)
			}
		}
		for _, s := range steps[i : i+n] {
			block, err := l.carryOut(ctx, s)
			results, failed = append(results, block), cmp.Or(failed, err)
		}
		i += n
		if why := l.turn.failed.Load(); why != nil && failed == nil {
			failed = &stop{event.FailedTurn, why}
		}
		if failed != nil || ctx.Err() != nil {
			break
		}
	}
	for _, c := range calls[len(results):] {
		r := interruptedCall()
		results = append(results, model.Block{
			Kind: model.Result, ID: c.ID, Name: c.Name, Text: r.Text, Failed: r.Failed,
		})
	}
	if failed != nil {
		return results, failed
	}
	if ctx.Err() != nil {
		return results, context.Cause(ctx)
	}
	if slices.ContainsFunc(steps, func(s *step) bool { return s.waits }) { // an unchanged result is expected then
		return results, nil
	}
	return results, l.repeat.check(calls, results)
}

// plan finds the tool of a call and lets it read the input. Errors are in wrong.
func (l *loop) plan(c model.Block) *step {
	s := &step{
		call: event.Call{ID: c.ID, Name: c.Name, Kind: event.Other, Input: arguments(c)}, input: c.Input,
		done: make(chan tool.Result, 1),
	}
	tools := l.offered()
	i := slices.IndexFunc(tools, func(t tool.Tool) bool { return t.Name == c.Name })
	if i < 0 {
		s.wrong = noTool(tools, c.Name)
		return s
	}
	if c.Broken != "" {
		s.wrong = "The arguments are no JSON object: " + clipped(c.Broken, 200) +
			"\nCall " + c.Name + " again with one complete JSON object."
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
		s.input = action.Input
	}
	if len(action.Paths) > 0 {
		s.call.Path = action.Paths[0]
	}
	return s
}

// arguments returns the input of a call as the model sent it.
func arguments(c model.Block) json.RawMessage {
	switch c.Broken {
	case "":
		return c.Input
	case model.CutOff:
		return nil
	}
	return json.RawMessage(c.Broken)
}

// free reports whether a call may run in parallel and without a question, because it only reads.
func (l *loop) free(s *step) bool {
	kind := s.action.Kind
	if s.wrong != "" || l.mind.o.Services.Hook != nil || s.action.Changes || kind == event.Agent ||
		kind == event.Other {
		return false
	}
	described := Described(s.call.Name, s.action)
	l.mind.mu.Lock()
	defer l.mind.mu.Unlock()
	return l.mind.policy.judge(described, s.action, "").decision == guard.Allow
}

func noTool(tools []tool.Tool, name string) string {
	var names []string
	for _, t := range tools {
		names = append(names, t.Name)
	}
	if len(names) == 0 {
		return fmt.Sprintf("There is no tool %q; this conversation has no tools.", name)
	}
	near := ""
	if n := text.Nearest(name, names); n != "" {
		near = " Did you mean " + n + "?"
	}
	return fmt.Sprintf("There is no tool %q.%s There are %s.", name, near, strings.Join(names, ", "))
}

// carryOut reports a call and its result. Unless it has begun, it runs the call if that is permitted. An
// error means that the journal cannot be written.
func (l *loop) carryOut(ctx context.Context, s *step) (model.Block, error) {
	l.tell(event.Event{Kind: event.ToolCall, Call: s.sent()})
	var result tool.Result
	switch {
	case s.begun:
		result, s.ran = l.await(s), true
	case s.wrong == "":
		result = l.runAlone(ctx, s)
	}
	if s.wrong != "" {
		result = tool.Result{Text: s.wrong, Failed: true}
	}
	if result.Text == "" && len(result.Images) == 0 {
		result.Text = "(no output)"
	}
	result.Text = strings.ToValidUTF8(result.Text, "\uFFFD")
	l.mind.redactResult(&result)
	s.waits = result.Waits
	r := &event.Result{
		ID: s.call.ID, Name: s.call.Name, Failed: result.Failed, Output: result.Text, ExitCode: result.Exit,
		Change: result.Change,
	}
	if s.changed {
		r.Input = l.mind.o.Secrets.Bytes(s.input)
	}
	l.tell(event.Event{Kind: event.ToolResult, Result: r})
	unkept := l.noteTodos(result)
	block := model.Block{Kind: model.Result, ID: s.call.ID, Name: s.call.Name, Failed: result.Failed}
	block.Text = result.Text + l.remarks(ctx, s, *r)
	for _, image := range result.Images {
		block.Parts = append(block.Parts, model.Block{Kind: model.Image, Media: image.Media, Data: image.Data})
	}
	return block, unkept
}

// remarks returns what the model gets in addition to the result.
func (l *loop) remarks(ctx context.Context, s *step, r event.Result) string {
	remarks := ""
	if s.ran && s.changed && s.action.Form == nil {
		remarks = ranWith(r.Input)
	}
	for _, b := range s.context {
		remarks += "\n\n" + b.Text
	}
	switch {
	case s.call.Name == formName && l.forms():
		if r.Failed {
			l.formErrors++
		} else {
			l.given = s.input
		}
	case s.ran:
		remarks += l.after(ctx, s, &r)
	}
	return remarks
}

func (l *loop) runAlone(ctx context.Context, s *step) tool.Result {
	denial := l.permitted(ctx, s)
	if denial != nil {
		if ctx.Err() == nil {
			l.tell(event.Event{Kind: event.Denied, Denial: denial})
		}
		if s.stops {
			l.mind.interrupt(l.turn)
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
		if s.action.Delegate != nil {
			s.action.Run = l.delegate(s)
		}
	}
	s.ran = true
	s.start(ctx)
	result := l.await(s)
	failed := result.Failed || result.Exit != nil && *result.Exit != 0
	missing := result.Exit != nil && *result.Exit == 127 // the program was not found, so the walls refused nothing
	if failed && !missing && s.refusal != "" {
		result.Text += "\n\n(" + strings.ReplaceAll(s.refusal, "; ", ";\n") + ")"
	}
	return result
}

// start runs the call in its own goroutine.
func (s *step) start(ctx context.Context) {
	go func() { s.done <- run(ctx, s.action) }()
}

// await returns the result of a call that was started. A killed turn waits only for a sub-agent, which has been killed
// with it.
func (l *loop) await(s *step) tool.Result {
	killed := l.turn.killed
	if s.action.Kind == event.Agent {
		killed = nil
	}
	select {
	case r := <-s.done:
		return r
	case <-killed:
		return tool.Result{Text: "It was interrupted: what it did may or may not be done.", Failed: true}
	}
}

// run runs a tool. A panic becomes a failed call and does not end the conversation.
func run(ctx context.Context, a tool.Action) (result tool.Result) {
	defer func() {
		if r := recover(); r != nil {
			stack := firstLines(debug.Stack(), 12)
			result = tool.Result{Text: fmt.Sprintf("The tool failed inside: %v\n%s", r, stack), Failed: true}
		}
	}()
	if ctx.Err() != nil {
		return interruptedCall()
	}
	return a.Run(ctx)
}

func firstLines(b []byte, n int) string {
	lines := strings.SplitN(string(b), "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], "\n")
}

// repetition detects a model that makes the same calls again and again.
type repetition struct {
	last  string
	times int
}

const (
	warnAfter = 3 // the same calls with the same results get a warning from this time on
	stopAfter = 6
)

// check compares the calls and their results with the previous ones. It adds a warning to the last result, and at last
// returns an error that ends the turn.
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
	if r.times >= stopAfter {
		return &stop{event.FailedTurn, fault.New(
			fault.AgentFailed, "the model made the same call %d times in a row, with the same result", r.times)}
	}
	if r.times >= warnAfter {
		last := &results[len(results)-1]
		last.Text += fmt.Sprintf("\n\n(You have made the same call %d times, with the same result. "+
			"Do something else, or say what keeps you from it.)", r.times)
	}
	return nil
}

// noteTodos records the list of tasks after it changed.
func (l *loop) noteTodos(result tool.Result) error {
	todos, journal := l.mind.o.Todos, l.mind.o.Journal
	if !result.Listed || todos == nil || journal == nil {
		return nil
	}
	var items []session.Todo
	for _, t := range todos.Get() {
		items = append(items, session.Todo{Content: t.Content, Status: t.Status, Active: t.ActiveForm})
	}
	if _, err := journal.Append(session.Todos{Items: items}); err != nil {
		return &stop{event.FailedTurn, fault.Of(err)}
	}
	return nil
}
