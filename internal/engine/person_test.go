package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"omniagent/internal/agent"
	"omniagent/internal/engine"
	"omniagent/internal/event"
	"omniagent/internal/guard"
	"omniagent/internal/tool"
)

// TestPersonIsAsked: a form is asked in every mode, an answer in either way is told to the model in words, and nobody else fills it.
func TestPersonIsAsked(t *testing.T) {
	question := `{"questions":[{"question":"Which one?","header":"One","options":[{"label":"A","description":"a"},{"label":"B","description":"b"}],"multiSelect":false},{"question":"And?","header":"H","options":[],"multiSelect":true}],"answers":{"Which one?":"by the model"}}`
	script := `[{"call":{"name":"AskUserQuestion","input":` + question + `}},{"say":"${result}"}]`
	filled := json.RawMessage(`{"questions":[],"answers":{"Which one?":"B","And?":["x","y"]}}`)
	for name, tt := range map[string]struct {
		mode   engine.Mode
		rules  guard.Rules
		answer agent.Answer
		hook   agent.Hook
		want   string
		asked  int
	}{
		"form":      {engine.Yolo, nil, agent.Answer{Option: engine.Allow, Input: filled}, nil, "The user has answered.\nWhich one?\n-> B\nAnd?\n-> x, y", 1},
		"text":      {engine.Prompt, nil, agent.Answer{Option: engine.Allow, Text: "neither"}, nil, "The user says: neither", 1},
		"plan":      {engine.Plan, nil, agent.Answer{Option: engine.Allow, Text: "neither"}, nil, "The user says: neither", 1},
		"always":    {engine.Prompt, nil, agent.Answer{Option: engine.Always, Text: "neither"}, nil, "The user says: neither", 1},
		"nothing":   {engine.Prompt, nil, agent.Answer{Option: engine.Allow}, nil, "none of the answers", 1},
		"garbage":   {engine.Prompt, nil, agent.Answer{Option: engine.Allow, Input: json.RawMessage(`[{]`)}, nil, "none of the answers", 1},
		"no":        {engine.Prompt, nil, agent.Answer{Option: engine.Deny, Text: "go away"}, nil, "the user refused: go away", 1},
		"allowed":   {engine.Prompt, guard.Rules{rule(t, guard.Allow, "AskUserQuestion"), rule(t, guard.Allow, "*")}, agent.Answer{Option: engine.Allow, Text: "x"}, nil, "The user says: x", 1},
		"denied":    {engine.Prompt, guard.Rules{rule(t, guard.Deny, "AskUserQuestion")}, agent.Answer{}, nil, "the deny rule", 0},
		"deny mode": {engine.DenyAll, nil, agent.Answer{}, nil, "lets no tool run", 0},
		"hook fills": {engine.Prompt, nil, agent.Answer{}, func(context.Context, agent.Moment) agent.Word {
			return agent.Word{Decision: engine.Allow, Input: filled}
		}, "Which one?\n-> B", 0},
		"hook only allows": {engine.Prompt, nil, agent.Answer{Option: engine.Allow, Text: "me"}, func(context.Context, agent.Moment) agent.Word {
			return agent.Word{Decision: engine.Allow}
		}, "The user says: me", 1},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := scripted(t, script)
			hook := tt.hook
			if hook != nil {
				hook = func(ctx context.Context, m agent.Moment) agent.Word {
					if m.Name != agent.BeforeTool {
						return agent.Word{}
					}
					return tt.hook(ctx, m)
				}
			}
			s := begin(t, engine.Options{Client: client, CanAsk: true, Mode: tt.mode, Rules: guard.Judge{Rules: tt.rules}, Hook: hook}, tool.AskUserQuestion())
			send(t, s, "go")
			asked := 0
			all := turn(t, s, func(e event.Event) {
				if e.Kind == event.Question {
					asked++
					if !e.Ask.Form || e.Ask.Tool == nil || e.Ask.Tool.Name != "AskUserQuestion" || !strings.Contains(e.Ask.Text, "Which one?\n- A: a\n- B: b") {
						t.Errorf("%+v", e.Ask)
					}
					_ = s.Answer(t.Context(), e.Ask.ID, tt.answer)
				}
			})
			if end := all[len(all)-1].End; !strings.Contains(end.Text, tt.want) || strings.Contains(end.Text, "by the model") || asked != tt.asked {
				t.Errorf("asked %d times: %q", asked, end.Text)
			}
		})
	}
	client, _ := scripted(t, script)
	s := begin(t, engine.Options{Client: client, CanAsk: true}, tool.AskUserQuestion())
	s.NobodyAnswers()
	send(t, s, "go")
	if got := told(turn(t, s, nil)); !strings.Contains(got, "nobody can be asked") {
		t.Error(got)
	}
}

// TestPlan: what is planned is only done once somebody has agreed, and the model knows where it stands.
func TestPlan(t *testing.T) {
	var ran []string
	script := `[{"call":{"name":"Bash","input":{"command":"make a"}}},{"call":{"name":"ExitPlanMode","input":{"plan":"make a"}}},{"call":{"name":"Bash","input":{"command":"make a"}}},{"say":"ok"}]`
	for name, tt := range map[string]struct {
		answer agent.Answer
		mode   engine.Mode
		ran    int
	}{
		"yes":  {agent.Answer{Option: engine.Allow}, engine.Default, 1},
		"yolo": {agent.Answer{Option: engine.Allow, Mode: engine.Yolo}, engine.Yolo, 1},
		"no":   {agent.Answer{Option: engine.Deny, Text: "think again"}, engine.Plan, 0},
	} {
		t.Run(name, func(t *testing.T) {
			ran = nil
			client, server := scripted(t, script)
			s := begin(t, engine.Options{Client: client, CanAsk: true, Mode: engine.Plan, Walls: engine.Whole}, line(&ran), tool.ExitPlanMode())
			if !strings.Contains(strings.Join(s.Facts().Tools, " "), "ExitPlanMode") {
				t.Error("it is not offered")
			}
			send(t, s, "go")
			changed, results := "", 0
			turn(t, s, func(e event.Event) {
				switch {
				case e.Kind == event.Changed:
					changed += e.Mode + fmt.Sprint(" ", results)
				case e.Kind == event.ToolResult:
					results++
				}
				if e.Kind == event.Question {
					a := tt.answer
					if e.Ask.Tool.Name == "Bash" {
						a = agent.Answer{Option: engine.Allow}
					}
					_ = s.Answer(t.Context(), e.Ask.ID, a)
				}
			})
			if s.Facts().Mode != tt.mode || len(ran) != tt.ran {
				t.Errorf("%s, %v", s.Facts().Mode, ran)
			}
			want := string(tt.mode) + " 1" // behind the call that was denied, in front of the result of the plan
			if tt.mode == engine.Plan {
				want = ""
			}
			if changed != want {
				t.Errorf("told of %q, want %q", changed, want)
			}
			for i, q := range server.Requests() {
				if offered := strings.Contains(string(q.Raw), `"name":"ExitPlanMode","description"`); offered != (i < 2 || tt.mode == engine.Plan) {
					t.Errorf("request %d: offered %v", i, offered)
				}
			}
		})
	}
	client, server := scripted(t, `[{"call":{"name":"ExitPlanMode","input":{"plan":"x"}}},{"say":"ok"}]`)
	s := begin(t, engine.Options{Client: client, CanAsk: true, Mode: engine.Default}, tool.ExitPlanMode())
	send(t, s, "go")
	if got := told(turn(t, s, nil)); got != `call ExitPlanMode; result true; ended success "ok"` {
		t.Errorf("out of no plan: %s", got)
	}
	for _, mode := range []engine.Mode{engine.Plan, engine.Default, engine.Yolo} {
		if err := s.Set(t.Context(), agent.Change{Mode: mode}); err != nil {
			t.Fatal(err)
		}
		send(t, s, "next")
		before := len(server.Requests())
		turn(t, s, func(e event.Event) {
			if e.Kind == event.Question {
				_ = s.Answer(t.Context(), e.Ask.ID, agent.Answer{Option: engine.Deny})
			}
		})
		raw := string(server.Requests()[before].Raw)
		said := raw[strings.LastIndex(raw, "next"):]
		if told := strings.Contains(said, "(The permission mode is"); told != (mode != engine.Yolo) {
			t.Errorf("%s: %s", mode, said)
		}
	}
}
