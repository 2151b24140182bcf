// Package scripted is an agent for the tests of conversations and of hosts: the engine, with a model that says what a
// script of package modelserver says, and with the tools of a test. All of it lies in this process, and nothing is
// imitated but the model.
package scripted

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/llm/model"
	"omniagent/internal/llm/model/anthropic"
	"omniagent/internal/llm/modelserver"
	"omniagent/internal/native/engine"
	"omniagent/internal/native/tool"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/talk/session"
)

// Agent is the engine.
type Agent struct {
	client model.Client
	tools  []tool.Tool
}

// Model starts a model, which speaks every API that package modelserver does.
func Model(t testing.TB, script string) *modelserver.Server {
	t.Helper()
	parsed, err := modelserver.ParseScript([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	server, err := modelserver.Start(parsed, modelserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server
}

// New starts the model of an agent.
func New(t testing.TB, script string, tools ...tool.Tool) *Agent {
	t.Helper()
	return &Agent{tools: tools, client: anthropic.New(anthropic.Options{
		Base: Model(t, script).URL(), Key: "k", Model: "m", Profile: model.Profile{Window: 200_000},
	})}
}

// Open opens a conversation with the agent. Its mode is prompt unless the Spec names one.
func (a *Agent) Open(ctx context.Context, o conversation.Options) (*conversation.Conversation, error) {
	o.Recorded = true
	o.Mind = func(_ context.Context, s agent.Spec, sv agent.Services) (agent.Mind, error) {
		return engine.New(engine.Options{
			ID: o.Journal.ID(), Client: a.client, Services: sv, Journal: o.Journal,
			Mode:  cmp.Or(s.Terms.Mode, setting.Prompt),
			Tools: func(tool.Task) []tool.Tool { return a.tools },
		}), nil
	}
	return conversation.Open(ctx, o)
}

// Opener opens conversations for a host, whose sessions are kept in a store.
func (a *Agent) Opener(store session.Store) conversation.Opener {
	return func(ctx context.Context, _ string, s agent.Spec, sv agent.Services) (*conversation.Conversation, error) {
		var journal *session.Session
		var err error
		if s.Resume != "" {
			journal, err = store.Resume(ctx, s.Resume)
		} else {
			journal, err = store.Create(ctx, session.Begin{ID: s.Fresh, Cwd: s.Dir, Provider: "p", Model: "m"})
		}
		if err != nil {
			return nil, err
		}
		return a.Open(ctx, conversation.Options{Journal: journal, Spec: s, Services: sv})
	}
}

// Tool is a tool that does what run does. One that changes something needs permission.
func Tool(name string, changes bool, run func(context.Context) tool.Result) tool.Tool {
	return tool.Tool{
		ToolSpec: event.ToolSpec{Name: name, Description: name, Input: json.RawMessage(`{"type":"object"}`)},
		Plan: func(input json.RawMessage) (tool.Action, error) {
			return tool.Action{Kind: event.Other, Changes: changes, Input: input, Title: name, Run: run}, nil
		},
	}
}

// Stay is a tool that lasts until the turn is interrupted, or until let is closed.
func Stay(name string, let <-chan struct{}) tool.Tool {
	return Tool(name, false, func(ctx context.Context) tool.Result {
		select {
		case <-let:
			return tool.Result{Text: "done"}
		case <-ctx.Done():
			return tool.Result{Text: "interrupted", Failed: true}
		}
	})
}

// Done is a tool that only counts as done, and needs permission.
func Done(name string) tool.Tool {
	return Tool(name, true, func(context.Context) tool.Result { return tool.Result{Text: "done"} })
}

// Question is our own tool that asks a person. Call it by the name tool.QuestionName.
func Question() tool.Tool {
	all := tool.Ours().In(&tool.Env{Person: true, Todos: &tool.Todos{}})
	return all[slices.IndexFunc(all, func(t tool.Tool) bool { return t.Name == tool.QuestionName })]
}

// Call is the step of a script that calls a tool.
func Call(name string) string { return `{"call":{"name":"` + name + `","input":{}}}` }
