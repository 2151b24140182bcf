package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"omniagent/internal/model"
	"omniagent/internal/tool"
)

// callKey finds, in the context of a call, whose call it is.
type callKey struct{}

type calling struct {
	loop *loop
	id   string
}

// deepest is how many sub-agents may stand behind each other.
const deepest = 1

// taskPrompt is told to a sub-agent beside everything else.
const taskPrompt = "You are a sub-agent: another agent has given you one task, and sees nothing of your work but your last message. Do the task with the " +
	"tools that you have; nobody can answer questions. Your last message is your report: complete, and as short as it can be."

// task runs a sub-agent in the context of the call that asked for it.
func (s *Session) task(ctx context.Context, _, _, prompt string) (string, error) {
	from, ok := ctx.Value(callKey{}).(calling)
	if !ok {
		return "", errors.New("a sub-agent belongs to a call")
	}
	l := &loop{session: s, talk: newConversation(nil, nil), system: append(slices.Clone(from.loop.system), taskPrompt), parent: from.id, outer: from.loop, began: time.Now()}
	l.client = l.patient(s.client)
	l.talk.ids = from.loop.talk.ids // ids are unique in the whole session
	depth := 0
	for at := l; at.outer != nil; at = at.outer {
		depth++
	}
	l.tools = slices.DeleteFunc(slices.Clone(from.loop.tools), func(t tool.Tool) bool { return depth >= deepest && t.Name == "Task" })
	l.talk.add(model.Message{Role: model.User, Blocks: []model.Block{{Kind: model.Text, Text: prompt}}}, 0)
	err := l.run(ctx)
	from.loop.asking += l.asking
	from.loop.notes = append(from.loop.notes, l.notes...)
	if err != nil {
		return l.last, err
	}
	return l.last, nil
}
