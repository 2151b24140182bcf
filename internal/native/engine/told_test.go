package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/llm/model"
	"omniagent/internal/native/engine"
	"omniagent/internal/native/tool"
	"omniagent/internal/sys/redact"
	"omniagent/internal/talk/session"
)

// TestChangesAreTold before Set returns, with what became different and nothing else. What does not change anything, or
// fails, tells nothing.
func TestChangesAreTold(t *testing.T) {
	client, _ := models(t, `[]`)
	s := begin(t, engine.Options{
		Client: client("one", nil), Mode: setting.Prompt,
		Other: func(name string) (engine.Model, error) {
			if name == "bad" {
				return engine.Model{}, errors.New("no such model")
			}
			return engine.Model{Client: client(name, nil)}, nil
		},
	}, tool.ExitPlanMode())
	for _, tt := range []struct {
		change agent.Change
		want   string // empty: nothing is told
		fails  bool
	}{
		{agent.Change{Mode: setting.Prompt}, "", false},
		{agent.Change{Mode: setting.Yolo}, `{"mode":"yolo"}`, false},
		{agent.Change{Mode: setting.Plan}, `{"mode":"plan","tools":["ExitPlanMode","Task"]}`, false},
		{agent.Change{Mode: setting.Prompt}, `{"mode":"prompt","tools":["Task"]}`, false},
		{agent.Change{Model: "one"}, "", false},
		{agent.Change{Model: "second"}, `{"model":"second","window":100006}`, false},
		{agent.Change{Model: "third", Mode: setting.Yolo}, `{"model":"third","mode":"yolo","window":100005}`, false},
		{agent.Change{Model: "third", Mode: setting.AskAll}, `{"mode":"ask"}`, false},
		{agent.Change{Model: "bad", Mode: setting.Prompt}, "", true},
		{agent.Change{Model: "one", Mode: "wild"}, "", true},
		{agent.Change{}, "", false},
	} {
		s.events = nil
		err := s.Set(t.Context(), tt.change)
		got := ""
		for _, e := range s.events {
			if e.Kind != event.Changed {
				t.Errorf("%+v", e)
				continue
			}
			data, _ := json.Marshal(e.Facts)
			got += string(data)
		}
		if (err != nil) != tt.fails || got != tt.want {
			t.Errorf("%+v: %v, told %s", tt.change, err, got)
		}
	}
}

// TestArgumentsAreTold byte for byte as the model sent them. What the tool makes of them is what a question and a hook
// are about, and what runs.
func TestArgumentsAreTold(t *testing.T) {
	const sent, normal = `{ "path" : "a",  "n": 1.0, "n": 2e0, "u": "\u00e9<" }`, `{"file_path":"a"}`
	asked := model.Answer{Stop: model.Calls, Blocks: []model.Block{
		{Kind: model.Call, ID: "1", Name: "Put", Input: json.RawMessage(sent)},
		{Kind: model.Call, ID: "2", Name: "Put", Input: json.RawMessage(`{}`), Broken: `{"path": "a`},
		{Kind: model.Call, ID: "3", Name: "Put", Input: json.RawMessage(`{}`), Broken: model.CutOff},
		{Kind: model.Call, ID: "4", Name: "None", Input: json.RawMessage(sent)},
	}}
	last := model.Answer{Blocks: []model.Block{{Kind: model.Text, Text: "ok"}}}
	put := tool.Tool{
		ToolSpec: event.ToolSpec{Name: "Put", Input: json.RawMessage(`{"type":"object"}`)},
		Plan: func(json.RawMessage) (tool.Action, error) {
			return tool.Action{
				Kind: event.Write, Changes: true, Paths: []string{"a"}, Input: json.RawMessage(normal),
				Run: func(context.Context) tool.Result { return tool.Result{Text: "put"} },
			}, nil
		},
	}
	hook := func(_ context.Context, m agent.Moment) agent.HookAnswer {
		if m.Call != nil && string(m.Call.Input) != normal {
			t.Errorf("%s: the hook hears of %s", m.Name, m.Call.Input)
		}
		return agent.HookAnswer{}
	}
	client := &parrot{answers: []model.Answer{asked, last}}
	s := begin(t, engine.Options{Client: client, Services: agent.Services{CanAsk: true, Hook: hook}}, put)
	var got, canonical []string
	turn(t, s, "go", func(e event.Event) {
		switch e.Kind {
		case event.ToolCall:
			got, canonical = append(got, string(e.Call.Input)), append(canonical, string(e.Call.Canonical))
		case event.Question:
			if string(e.Ask.Tool.Input) != normal || e.Ask.Tool.Path != "a" {
				t.Errorf("the question is about %+v", e.Ask.Tool)
			}
			answer(t, s, e, event.Reply{Option: event.Allow, Input: json.RawMessage(normal)})
		case event.ToolResult:
			if e.Result.Input != nil {
				t.Errorf("the input was not changed: %s", e.Result.Input)
			}
		}
	})
	if want := []string{sent, `{"path": "a`, "", sent}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if want := []string{normal, "", "", ""}; !slices.Equal(canonical, want) {
		t.Errorf("%q", canonical)
	}
}

// TestSecretsInArguments are not told.
func TestSecretsInArguments(t *testing.T) {
	asked := model.Answer{Stop: model.Calls, Blocks: []model.Block{
		{Kind: model.Call, ID: "1", Name: "Look", Input: json.RawMessage(`{"q":"` + hiddenKey + `"}`)},
		{Kind: model.Call, ID: "2", Name: "Look", Input: json.RawMessage(`{}`), Broken: `{"q":"` + hiddenKey},
	}}
	last := model.Answer{Blocks: []model.Block{{Kind: model.Text, Text: "ok"}}}
	look := tool.Action{Kind: event.Read, Run: func(context.Context) tool.Result { return tool.Result{} }}
	s := begin(t, engine.Options{
		Client: &parrot{answers: []model.Answer{asked, last}}, Secrets: redact.Known(hiddenKey),
	}, kit("Look", look))
	turn(t, s, "go", func(e event.Event) {
		if e.Kind != event.ToolCall {
			return
		}
		if in := string(e.Call.Input); strings.Contains(in, hiddenKey) || !strings.Contains(in, redact.Mask) {
			t.Error(in)
		}
	})
}

// TestJournal has the messages. Ends and denials are the conversation's to keep.
func TestJournal(t *testing.T) {
	store := session.Open(t.TempDir())
	kept, err := store.Create(t.Context(), session.Begin{ID: "j", Provider: "p", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	client, _ := scripted(t, `[{"call":{"name":"Act","input":{}}},{"say":"ok"}]`)
	s := begin(t, engine.Options{Client: client, Journal: kept}, kit("Act",
		tool.Action{Kind: event.Shell, Changes: true}))
	if got := told(turn(t, s, "go", nil)); !strings.Contains(got, "denied ") {
		t.Error(got)
	}
	if err := kept.Close(); err != nil {
		t.Fatal(err)
	}
	view, err := store.Show("j")
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	messages := 0
	for entry, err := range view.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		switch r := entry.Record.(type) {
		case session.Message:
			messages++
		case session.Begin:
		default:
			t.Errorf("%+v", r)
		}
	}
	if messages != 4 {
		t.Errorf("%d messages", messages)
	}
	if got := told(turn(t, s, "go", nil)); !strings.Contains(got, "failed INTERNAL_ERROR; ended "+event.FailedTurn) {
		t.Errorf("nothing can be kept any more: %s", got)
	}
}

// TestTodosThatCannotBeKept: a list that the journal does not take fails the turn, and no further call of the answer
// runs.
func TestTodosThatCannotBeKept(t *testing.T) {
	kept, err := session.Open(t.TempDir()).Create(t.Context(), session.Begin{ID: "j", Provider: "p", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	client, _ := scripted(t, `[{"calls":[
		{"call":{"name":"List","input":{}}},{"call":{"name":"Act","input":{}}}
	]},{"say":"ok"}]`)
	ran := false
	s := begin(t, engine.Options{Client: client, Journal: kept, Mode: setting.Yolo, Todos: &tool.Todos{}},
		kit("List", tool.Action{Kind: event.Other, Run: func(context.Context) tool.Result {
			return tool.Result{Listed: kept.Close() == nil}
		}}),
		kit("Act", tool.Action{Kind: event.Shell, Changes: true, Run: func(context.Context) tool.Result {
			ran = true
			return tool.Result{}
		}}))
	got := told(turn(t, s, "go", nil))
	if ran || !strings.Contains(got, "failed INTERNAL_ERROR; ended "+event.FailedTurn) {
		t.Errorf("the next call ran: %t; %s", ran, got)
	}
}
