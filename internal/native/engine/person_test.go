package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/native/engine"
	"omniagent/internal/native/tool"
	"omniagent/internal/walls/guard"
)

// TestPersonIsAsked: a form is asked in every mode, an answer in either way is told to the model in words, and nobody
// else fills it.
func TestPersonIsAsked(t *testing.T) {
	question := `{"questions":[
		{"question":"Which one?","header":"One","multiSelect":false,"options":[
			{"label":"A","description":"a"},{"label":"B","description":"b"}
		]},
		{"question":"And?","header":"H","options":[],"multiSelect":true}
	],"answers":{"Which one?":"by the model"}}`
	script := script(call("AskUserQuestion", question), `{"say":"${result}"}`)
	filled := json.RawMessage(`{"questions":[],"answers":{"Which one?":"B","And?":["x","y"]}}`)
	for name, tt := range map[string]struct {
		mode   setting.Approval
		rules  guard.Rules
		answer event.Reply
		hook   agent.Hook
		want   string
		asked  int
	}{
		"form": {
			setting.Yolo, nil,
			event.Reply{Option: event.Allow, Input: filled},
			nil,
			"The user has answered.\nWhich one?\n-> B\nAnd?\n-> x, y", 1,
		},
		"text": {
			setting.Prompt, nil,
			event.Reply{Option: event.Allow, Text: "neither"},
			nil,
			"The user says: neither", 1,
		},
		"plan": {
			setting.Plan, nil,
			event.Reply{Option: event.Allow, Text: "neither"},
			nil,
			"The user says: neither", 1,
		},
		"always": {
			setting.Prompt, nil,
			event.Reply{Option: event.Always, Text: "neither"},
			nil,
			"The user says: neither", 1,
		},
		"nothing": {setting.Prompt, nil, event.Reply{Option: event.Allow}, nil, "none of the answers", 1},
		"garbage": {
			setting.Prompt, nil,
			event.Reply{Option: event.Allow, Input: json.RawMessage(`[{]`)},
			nil,
			"none of the answers", 1,
		},
		"no": {
			setting.Prompt, nil,
			event.Reply{Option: event.Deny, Text: "go away"},
			nil,
			"the user refused: go away", 1,
		},
		"allowed": {
			setting.Prompt,
			guard.Rules{rule(t, guard.Allow, "AskUserQuestion"), rule(t, guard.Allow, "*")},
			event.Reply{Option: event.Allow, Text: "x"},
			nil, "The user says: x", 1,
		},
		"denied": {
			setting.Prompt,
			guard.Rules{rule(t, guard.Deny, "AskUserQuestion")},
			event.Reply{},
			nil,
			"the deny rule", 0,
		},
		"deny mode": {setting.DenyAll, nil, event.Reply{}, nil, "lets no tool run", 0},
		"hook fills": {setting.Prompt, nil, event.Reply{}, func(context.Context, agent.Moment) agent.HookAnswer {
			return agent.HookAnswer{Decision: event.Allow, Input: filled}
		}, "Which one?\n-> B", 0},
		"hook only allows": {
			setting.Prompt, nil,
			event.Reply{Option: event.Allow, Text: "me"},
			func(context.Context, agent.Moment) agent.HookAnswer {
				return agent.HookAnswer{Decision: event.Allow}
			}, "The user says: me", 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := scripted(t, script)
			hook := tt.hook
			if hook != nil {
				hook = func(ctx context.Context, m agent.Moment) agent.HookAnswer {
					if m.Name != agent.BeforeTool {
						return agent.HookAnswer{}
					}
					return tt.hook(ctx, m)
				}
			}
			s := begin(t, engine.Options{
				Client: client, Services: agent.Services{CanAsk: true, Hook: hook},
				Mode: tt.mode, Rules: guard.Judge{Rules: tt.rules},
			}, tool.AskUserQuestion())
			asked := 0
			all := turn(t, s, "go", func(e event.Event) {
				if e.Kind == event.Question {
					asked++
					if !e.Ask.Form || e.Ask.Tool == nil || e.Ask.Tool.Name != "AskUserQuestion" ||
						!strings.Contains(e.Ask.Text, "Which one?\n- A: a\n- B: b") {
						t.Errorf("%+v", e.Ask)
					}
					answer(t, s, e, tt.answer)
				}
			})
			if end := all[len(all)-1].End; !strings.Contains(end.Text, tt.want) ||
				strings.Contains(end.Text, "by the model") || asked != tt.asked {
				t.Errorf("asked %d times: %q", asked, end.Text)
			}
		})
	}
	client, _ := scripted(t, script)
	s := begin(t, engine.Options{Client: client}, tool.AskUserQuestion())
	if got := told(turn(t, s, "go", nil)); !strings.Contains(got, "nobody can be asked") {
		t.Error(got)
	}
}

// TestPlan: what is planned is only done once somebody has agreed, and the model knows where it stands.
func TestPlan(t *testing.T) {
	var ran []string
	makes := call("Bash", `{"command":"make a"}`)
	script := script(makes, call("ExitPlanMode", `{"plan":"make a"}`), makes, ok())
	for name, tt := range map[string]struct {
		answer event.Reply
		mode   setting.Approval
		ran    int
	}{
		"yes":  {event.Reply{Option: event.Allow}, setting.Default, 1},
		"yolo": {event.Reply{Option: event.Allow, Mode: setting.Yolo}, setting.Yolo, 1},
		"no":   {event.Reply{Option: event.Deny, Text: "think again"}, setting.Plan, 0},
	} {
		t.Run(name, func(t *testing.T) {
			ran = nil
			client, server := scripted(t, script)
			s := begin(t, engine.Options{Client: client, Services: asking(), Mode: setting.Plan, Walls: engine.Whole},
				line(&ran), tool.ExitPlanMode())
			if !strings.Contains(strings.Join(s.Facts().Tools, " "), "ExitPlanMode") {
				t.Error("it is not offered")
			}
			changed, results := "", 0
			turn(t, s, "go", func(e event.Event) {
				switch {
				case e.Kind == event.Changed:
					offered := strings.Contains(strings.Join(e.Facts.Tools, " "), "ExitPlanMode")
					changed += fmt.Sprint(e.Facts.Mode, " ", results, " ", len(e.Facts.Tools), " ", offered)
				case e.Kind == event.ToolResult:
					results++
				}
				if e.Kind == event.Question {
					a := tt.answer
					if e.Ask.Tool.Name == "Bash" {
						a = event.Reply{Option: event.Allow}
					}
					answer(t, s, e, a)
				}
			})
			if s.Facts().Mode != tt.mode || len(ran) != tt.ran {
				t.Errorf("%s, %v", s.Facts().Mode, ran)
			}
			// Behind the call that was denied, and in front of the result of the plan.
			want := string(tt.mode) + " 1 2 false"
			if tt.mode == setting.Plan {
				want = ""
			}
			if changed != want {
				t.Errorf("told of %q, want %q", changed, want)
			}
			for i, q := range server.Requests() {
				if offered := strings.Contains(string(q.Raw),
					`"name":"ExitPlanMode","description"`); offered != (i < 2 || tt.mode == setting.Plan) {
					t.Errorf("request %d: offered %v", i, offered)
				}
			}
		})
	}
	client, server := scripted(t, `[{"call":{"name":"ExitPlanMode","input":{"plan":"x"}}},{"say":"ok"}]`)
	s := begin(t, engine.Options{Client: client, Services: asking(), Mode: setting.Default}, tool.ExitPlanMode())
	if got := told(turn(t, s, "go", nil)); got != `call ExitPlanMode; result true; ended success "ok"` {
		t.Errorf("out of no plan: %s", got)
	}
	for _, mode := range []setting.Approval{setting.Plan, setting.Default, setting.Yolo} {
		if err := s.Set(t.Context(), agent.Change{Mode: mode}); err != nil {
			t.Fatal(err)
		}
		before := len(server.Requests())
		turn(t, s, "next", func(e event.Event) {
			if e.Kind == event.Question {
				answer(t, s, e, event.Reply{Option: event.Deny})
			}
		})
		raw := string(server.Requests()[before].Raw)
		said := raw[strings.LastIndex(raw, "next"):]
		if told := strings.Contains(said, "(The permission mode is"); told != (mode != setting.Yolo) {
			t.Errorf("%s: %s", mode, said)
		}
	}
}
