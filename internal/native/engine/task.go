package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/llm/model"
	"omniagent/internal/native/tool"
)

// callKey is the key of a call in its context.
type callKey struct{}

type calling struct {
	loop *loop
	id   string
}

// deepest is how deep sub-agents may nest.
const deepest = 1

// taskPrompt is added to the prompt of a sub-agent.
const taskPrompt = "You are a sub-agent: another agent has given you one task, and sees nothing of your work but " +
	"your last message. Do the task with the tools that you have; nobody can answer questions. Your last message is " +
	"your report: complete, and as short as it can be."

// task runs a sub-agent for the call in ctx.
func (m *Mind) task(ctx context.Context, _, kind, prompt string) (string, error) {
	from, ok := ctx.Value(callKey{}).(calling)
	if !ok {
		return "", errors.New("a sub-agent belongs to a call")
	}
	l := &loop{
		mind: m, turn: from.loop.turn, own: from.loop.own, talk: newConversation(nil, nil),
		system: append(slices.Clone(from.loop.system), taskPrompt), parent: from.id, outer: from.loop,
		began: time.Now(),
	}
	l.talk.ids = from.loop.talk.ids // ids are unique in the whole session
	depth := 0
	for at := l; at.outer != nil; at = at.outer {
		depth++
	}
	l.tools = slices.DeleteFunc(slices.Clone(from.loop.tools), func(t tool.Tool) bool {
		return depth >= deepest && (t.Name == tool.TaskName || t.Name == tool.DelegateName) ||
			slices.Contains([]string{formName, tool.QuestionName, tool.PlanName}, t.Name)
	})
	if err := l.asHelper(kind); err != nil {
		return "", err
	}
	w := l.callHook(ctx, agent.Moment{Name: agent.HelperBegins, Text: cmp.Or(kind, tool.GeneralHelper)})
	if w.Decision == event.Deny {
		return "", fmt.Errorf("it was not begun: %s", reasonOf(w))
	}
	blocks := append([]model.Block{{Kind: model.Text, Text: prompt}}, contextOf(agent.HelperBegins, w)...)
	l.talk.add(model.Message{Role: model.User, Blocks: blocks}, 0)
	err := l.run(ctx)
	from.loop.asking += l.asking
	from.loop.notes = append(from.loop.notes, l.notes...)
	return l.last, err
}

// asHelper gives a sub-agent the instructions, tools and model of a helper.
func (l *loop) asHelper(kind string) error {
	all := l.mind.o.Helpers
	i := slices.IndexFunc(all, func(h agent.Helper) bool { return h.Name == kind })
	if i < 0 {
		return nil
	}
	h := all[i]
	l.system = append([]string{h.Prompt}, l.system[min(1, len(l.system)-1):]...)
	if h.Tools != nil {
		l.tools = slices.DeleteFunc(l.tools, func(t tool.Tool) bool {
			return !slices.ContainsFunc(h.Tools, func(name string) bool { return tool.Named(name, t.Name) })
		})
	}
	if h.Model == "" {
		return nil
	}
	other, err := l.mind.other(h.Model)
	if err == nil {
		l.own = &other
	}
	return err
}
