package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/llm/model"
	"omniagent/internal/llm/model/anthropic"
	"omniagent/internal/llm/modelserver"
	"omniagent/internal/native/engine"
	"omniagent/internal/native/tool"
	"omniagent/internal/sys/redact"
	"omniagent/internal/talk/session"
	"omniagent/internal/walls/guard"
)

// Long because its tables have a row for each outcome.

// line is a tool that runs nothing, and notes the command that it would have run.
func line(ran *[]string) tool.Tool {
	return tool.Tool{
		ToolSpec: event.ToolSpec{Name: "Bash", Description: "runs", Input: json.RawMessage(`{"type":"object"}`)},
		Plan: func(input json.RawMessage) (tool.Action, error) {
			var in struct{ Command string }
			if json.Unmarshal(input, &in) != nil || in.Command == "" {
				return tool.Action{}, errors.New("there is no command")
			}
			return tool.Action{
				Kind: event.Shell, Changes: true, Command: in.Command, Title: in.Command, Input: input,
				Run: func(context.Context) tool.Result {
					*ran = append(*ran, in.Command)
					return tool.Result{Text: "ran " + in.Command}
				},
			}, nil
		},
	}
}

func bash(lines ...string) string {
	var steps []string
	for _, l := range lines {
		steps = append(steps, `{"call":{"name":"Bash","input":{"command":"`+l+`"}}}`)
	}
	return "[" + strings.Join(steps, ",") + `,{"say":"ok"}]`
}

func rule(t *testing.T, w guard.Decision, written string) guard.Rule {
	t.Helper()
	r, err := guard.Known(tool.Ours().Specs()).Rule(w, written, "test")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestAnswers: what a host says beside yes and no is done or the answer is a no, never half of it.
func TestAnswers(t *testing.T) {
	deny := guard.Rules{rule(t, guard.Deny, "Bash(git push:*)")}
	for name, tt := range map[string]struct {
		lines  []string
		answer event.Reply
		ran    string // all that ran
		told   string // what is told contains it
		asked  int
		mode   setting.Approval
	}{
		"input": {[]string{"make a"}, event.Reply{
			Option: event.Allow,
			Input:  json.RawMessage(`{"command":"make b"}`),
		}, "make b", "result false", 1, ""},
		"same input": {[]string{"make a"}, event.Reply{
			Option: event.Allow,
			Input:  json.RawMessage(`{"command":"make a"}`),
		}, "make a", "result false", 1, ""},
		"denied input": {
			[]string{"make a"},
			event.Reply{
				Option: event.Allow,
				Input:  json.RawMessage(`{"command":"git push"}`), Mode: setting.Yolo,
			},
			"",
			"denied the deny rule Bash(git push:*)", 1, setting.Prompt,
		},
		"firm input": {[]string{"make a"}, event.Reply{
			Option: event.Allow,
			Input:  json.RawMessage(`{"command":"cat /etc/shadow"}`),
		}, "", "denied ", 1, ""},
		"wrong input": {
			[]string{"make a"},
			event.Reply{Option: event.Allow, Input: json.RawMessage(`{}`)},
			"",
			"call Bash; result true", 1, "",
		},
		"no JSON": {
			[]string{"make a"},
			event.Reply{Option: event.Allow, Input: json.RawMessage(`{`)},
			"",
			"call Bash; result true", 1, "",
		},
		"rules": {[]string{"make a", "make b", "touch c"}, event.Reply{
			Option: event.Allow,
			Rules:  []string{"Bash(make:*)"},
		}, "make a, make b, touch c", "", 2, ""},
		"wrong rule": {
			[]string{"make a", "make b"},
			event.Reply{
				Option: event.Allow,
				Rules:  []string{"Bash(make:*)", "Bash(make:*"}, Mode: setting.Yolo,
			},
			"",
			"denied the user's consent cannot be obeyed: ", 2, setting.Prompt,
		},
		"no and rules": {
			[]string{"make a", "make b"},
			event.Reply{Option: event.Deny, Rules: []string{"Bash(make:*)"}},
			"", "denied the user refused", 2, "",
		},
		"mode": {
			[]string{"make a", "touch b"},
			event.Reply{Option: event.Allow, Mode: setting.Yolo},
			"make a, touch b", "", 1, setting.Yolo,
		},
		"wrong mode": {
			[]string{"make a"},
			event.Reply{Option: event.Allow, Mode: "wild"},
			"",
			`there is no permission mode "wild"`, 1, setting.Prompt,
		},
		"always input": {[]string{"make a", "make b", "make c"}, event.Reply{
			Option: event.Always,
			Input:  json.RawMessage(`{"command":"make b"}`),
		}, "make b, make b, make b", "", 2, ""},
		"nonsense": {[]string{"make a"}, event.Reply{
			Option: "perhaps",
			Input:  json.RawMessage(`{"command":"make b"}`),
		}, "", "denied the user refused", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var ran []string
			client, server := scripted(t, bash(tt.lines...))
			s := begin(t, engine.Options{
				Client: client, Services: asking(), Mode: setting.Prompt,
				Rules: guard.Judge{Rules: deny, Place: guard.Place{Root: "/w", Dir: "/w"}},
			}, line(&ran))
			asked := 0
			all := turn(t, s, "go", func(e event.Event) {
				if e.Kind == event.Question {
					asked++
					answer(t, s, e, tt.answer)
				}
				if e.Kind == event.ToolResult && name == "input" {
					if string(e.Result.Input) != `{"command":"make b"}` || e.Result.Output != "ran make b" {
						t.Errorf("%+v", e.Result)
					}
				}
				if e.Kind == event.ToolResult && name == "same input" && e.Result.Input != nil {
					t.Errorf("%+v", e.Result)
				}
			})
			if got := strings.Join(ran, ", "); got != tt.ran || asked != tt.asked ||
				!strings.Contains(told(all), tt.told) || !strings.Contains(told(all), `ended success "ok"`) {
				t.Errorf("ran %s, asked %d times: %s", got, asked, told(all))
			}
			if tt.mode != "" && s.Facts().Mode != tt.mode {
				t.Errorf("mode %s", s.Facts().Mode)
			}
			if raw := string(server.Requests()[1].Raw); strings.Contains(raw, "It ran with") != (name == "input" ||
				name == "always input") {
				t.Errorf("%s", raw)
			}
		})
	}
}

// TestAnswerThatStops: the call does not run, nor those behind it; the turn ends as if it had been interrupted, and the
// next message has its own.
func TestAnswerThatStops(t *testing.T) {
	var ran []string
	makes := together(call("Bash", `{"command":"make a"}`), call("Bash", `{"command":"make b"}`))
	client, _ := scripted(t, script(makes, ok()))
	s := begin(t, engine.Options{Client: client, Services: asking()}, line(&ran))
	stop := true
	see := func(e event.Event) {
		if e.Kind == event.Question {
			a := event.Reply{Option: event.Allow}
			if stop {
				a = event.Reply{Option: event.Deny, Text: "enough", Stop: true}
			}
			stop = false
			answer(t, s, e, a)
		}
	}
	got := told(turn(t, s, "go", see))
	if got != `call Bash; denied the user refused: enough; result true; ended cancelled ""` || len(ran) != 0 {
		t.Errorf("%v: %s", ran, got)
	}
	if got := told(turn(t, s, "next", see)); !strings.HasSuffix(got, `ended success "ok"`) || len(ran) != 2 {
		t.Errorf("%v: %s", ran, got)
	}
}

// TestStopIsNoConsent, whatever else the answer says.
func TestStopIsNoConsent(t *testing.T) {
	var ran []string
	client, _ := scripted(t, bash("make a"))
	s := begin(t, engine.Options{Client: client, Services: asking(), Mode: setting.Prompt}, line(&ran))
	got := told(turn(t, s, "go", func(e event.Event) {
		if e.Kind == event.Question {
			answer(t, s, e, event.Reply{Option: event.Always, Stop: true, Mode: setting.Yolo, Rules: []string{"*"}})
		}
	}))
	if len(ran) > 0 || s.Facts().Mode != setting.Prompt || !strings.Contains(got, "ended cancelled") {
		t.Errorf("%v: %s", ran, got)
	}
}

// TestStopInASubAgent ends the whole turn.
func TestStopInASubAgent(t *testing.T) {
	var ran []string
	client, _ := scripted(t, script(task(), call("Bash", `{"command":"make a"}`), ok()))
	s := begin(t, engine.Options{Client: client, Services: asking()}, line(&ran))
	all := turn(t, s, "go", func(e event.Event) {
		if e.Kind == event.Question {
			answer(t, s, e, event.Reply{Option: event.Deny, Stop: true})
		}
	})
	if end := all[len(all)-1].End; end.Reason != event.Cancelled || len(ran) > 0 ||
		strings.Count(told(all), "call") != strings.Count(told(all), "result") {
		t.Errorf("%s", told(all))
	}
}

// TestEditedSecrets: what a host edits in is without secrets in what is told and sent.
func TestEditedSecrets(t *testing.T) {
	var ran []string
	client, server := scripted(t, bash("make a"))
	s := begin(t, engine.Options{Client: client, Services: asking(), Secrets: redact.Known(hiddenKey)}, line(&ran))
	turn(t, s, "go", func(e event.Event) {
		if e.Kind == event.Question {
			answer(t, s, e, event.Reply{Option: event.Allow, Input: json.RawMessage(`{"command":"echo ` + hiddenKey +
				`"}`)})
		}
		if e.Kind == event.ToolResult && (strings.Contains(string(e.Result.Input), hiddenKey) ||
			!strings.Contains(string(e.Result.Input), redact.Mask)) {
			t.Errorf("%s", e.Result.Input)
		}
	})
	if strings.Contains(string(server.Requests()[1].Raw), hiddenKey) {
		t.Error("it was sent")
	}
}

// models are clients of one server, by the name of the model.
func models(t *testing.T, script string) (func(name string, prices *model.Prices) model.Client, *modelserver.Server) {
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
	return func(name string, prices *model.Prices) model.Client {
		return anthropic.New(anthropic.Options{
			Base: server.URL(), Key: "k", Model: name,
			Profile: model.Profile{Model: name, Window: int64(100_000 + len(name)), Prices: prices},
		})
	}, server
}

func asked(server *modelserver.Server) string {
	var names []string
	for _, q := range server.Requests() {
		var body struct{ Model string }
		_ = json.Unmarshal(q.Raw, &body)
		names = append(names, body.Model)
	}
	return strings.Join(names, ", ")
}

// TestAnotherModel: the next request goes to it, in the middle of a turn too; the record says so, prices and window
// follow. What cannot be changed changes nothing.
func TestAnotherModel(t *testing.T) {
	const usage = `"usage":{"input":1000,"output":0}}`
	client, server := models(t, script(`{"call":{"name":"Look","input":{}},`+usage, `{"say":"ok",`+usage))
	kept, err := session.Open(t.TempDir()).Create(t.Context(), session.Begin{Provider: "p", Model: "one"})
	if err != nil {
		t.Fatal(err)
	}
	var s *mind
	look := tool.Action{Kind: event.Read, Run: func(context.Context) tool.Result {
		if err := s.Set(context.Background(), agent.Change{Model: "second"}); err != nil {
			t.Error(err)
		}
		return tool.Result{Text: "x"}
	}}
	s = begin(t, engine.Options{
		Client: client("one", &model.Prices{Input: 1}), Journal: kept, Mode: setting.Prompt,
		Other: func(name string) (engine.Model, error) {
			switch name {
			case "bad":
				return engine.Model{}, errors.New("no such model")
			case "free":
				return engine.Model{Client: client(name, nil)}, nil
			}
			return engine.Model{Client: client(name, &model.Prices{Input: 100})}, nil
		},
	}, kit("Look", look))
	for _, c := range []agent.Change{{Model: "bad", Mode: setting.Yolo}, {Model: "second", Mode: "wild"}} {
		if err := s.Set(t.Context(), c); err == nil || s.Facts().Mode != setting.Prompt || s.Facts().Model != "one" {
			t.Errorf("%+v: %v, %+v", c, err, s.Facts())
		}
	}
	all := turn(t, s, "go", nil)
	if got := asked(server); got != "one, second" {
		t.Error(got)
	}
	end := all[len(all)-1].End
	if end.Usage.CostUSD == nil || fmt.Sprintf("%.4f", *end.Usage.CostUSD) != "0.1010" {
		t.Errorf("%+v", end.Usage)
	}
	if f := s.Facts(); f.Model != "second" || f.Window != 100_006 || kept.State().Model != "second" {
		t.Errorf("%+v, on record %s", f, kept.State().Model)
	}
	_ = s.Set(t.Context(), agent.Change{Model: "free"})
	all = turn(t, s, "again", nil)
	if u := all[len(all)-1].End.Usage; u.CostUSD != nil && *u.CostUSD != 0 {
		t.Errorf("a price out of nothing: %v", *u.CostUSD)
	}
	_ = kept.Close() // nothing can be kept from here on
	if err := s.Set(t.Context(), agent.Change{Model: "one", Mode: setting.Yolo}); err == nil ||
		s.Facts().Model != "second" || s.Facts().Mode != setting.Prompt {
		t.Errorf("%v, %+v", err, s.Facts())
	}
	if err := begin(t, engine.Options{Client: client("one", nil)}).Set(t.Context(),
		agent.Change{Model: "x"}); !errors.Is(err, fault.Unsupported) {
		t.Error(err)
	}
}

// TestBudget runs through all turns and models, and refuses a model whose price nobody knows.
func TestBudget(t *testing.T) {
	client, server := models(t, `[{"say":"ok","usage":{"input":1000,"output":0}}]`)
	s := begin(t, engine.Options{
		Client: client("one", &model.Prices{Input: 1}), Limits: engine.Limits{CostUSD: 0.0015}, Mode: setting.Prompt,
		Other: func(name string) (engine.Model, error) { return engine.Model{Client: client(name, nil)}, nil },
	})
	if err := s.Set(t.Context(), agent.Change{Model: "two", Mode: setting.Yolo}); !errors.Is(err, fault.Unsupported) ||
		s.Facts().Mode != setting.Prompt {
		t.Error(err)
	}
	for _, want := range []string{"success", "success", "error_max_budget_usd", "error_max_budget_usd"} {
		all := turn(t, s, "go", nil)
		if end := all[len(all)-1].End; end.Reason != want || end.OK != (want == "success") {
			t.Errorf("%+v, want %s", end, want)
		}
	}
	if n := len(server.Requests()); n != 2 {
		t.Errorf("%d requests", n)
	}
}

// estimated is a model that does not count.
type estimated struct{ model.Client }

func (e estimated) Ask(ctx context.Context, q model.Request, hear func(model.Piece)) (*model.Answer, error) {
	a, err := e.Client.Ask(ctx, q, hear)
	if a != nil {
		a.Usage.Estimated = true
	}
	return a, err
}

// TestBudgetOfAnEstimate: what is only estimated counts for the budget, and is told to nobody as a cost.
func TestBudgetOfAnEstimate(t *testing.T) {
	client, _ := models(t, `[{"say":"ok","usage":{"input":1000,"output":0}}]`)
	s := begin(t, engine.Options{
		Client: estimated{client("one", &model.Prices{Input: 1})},
		Limits: engine.Limits{CostUSD: 0.001},
	})
	for _, want := range []string{"success", "error_max_budget_usd"} {
		all := turn(t, s, "go", nil)
		if end := all[len(all)-1].End; end.Reason != want || end.Usage != nil && end.Usage.CostUSD != nil {
			t.Errorf("%+v, want %s", end, want)
		}
	}
}

// TestHelpers: one of the host's has its own instructions, tools and model, and neither asks a person nor begins
// others.
func TestHelpers(t *testing.T) {
	find := call("Task", `{"description":"d","prompt":"find it","subagent_type":"finder"}`)
	client, server := models(t, script(find, call("Change", `{}`), `{"say":"found"}`))
	ran := 0
	change := tool.Action{Kind: event.Read, Run: func(context.Context) tool.Result {
		ran++
		return tool.Result{Text: "changed"}
	}}
	look := reads("x")
	s := begin(t, engine.Options{
		Client: client("one", nil), Services: asking(), System: []string{"who you are", "where you are"},
		Other: func(name string) (engine.Model, error) { return engine.Model{Client: client(name, nil)}, nil },
		Helpers: []agent.Helper{{
			Name: "finder", Description: "finds", Prompt: "You find.",
			Tools: []string{"Look", "mcp__srv"}, Model: "small",
		}},
	}, kit("Look", look), kit("Change", change), kit("mcp__srv__x", look), tool.AskUserQuestion())
	if got := strings.Join(s.Facts().Helpers, ", "); got != "general-purpose, finder" {
		t.Error(got)
	}
	all := turn(t, s, "go", nil)
	if !all[len(all)-1].End.OK {
		t.Fatal(told(all))
	}
	var inner struct {
		System []struct{ Text string }
		Tools  []struct{ Name string }
		Model  string
	}
	if err := json.Unmarshal(server.Requests()[1].Raw, &inner); err != nil {
		t.Fatal(err)
	}
	names := ""
	for _, one := range inner.Tools {
		names += one.Name + " "
	}
	if inner.Model != "small" || names != "Look mcp__srv__x " || inner.System[0].Text != "You find." ||
		inner.System[1].Text != "where you are" || len(inner.System) != 3 {
		t.Errorf("%s, %s, %+v", inner.Model, names, inner.System)
	}
	// the conversation itself has the tool
	if got := asked(server); ran != 1 || !strings.HasPrefix(got, "one, small, ") {
		t.Errorf("%d, %s", ran, got)
	}
}

// TestWhatASubAgentHasNot: nobody answers it, it makes no plan and its answer has no form; and it begins no others.
func TestWhatASubAgentHasNot(t *testing.T) {
	form, err := engine.NewForm([]byte(`{"type":"object"}`), 4)
	if err != nil {
		t.Fatal(err)
	}
	client, server := scripted(t, script(task(), call("StructuredOutput", `{}`), ok()))
	look := reads("x")
	var heard []string
	hook := func(_ context.Context, m agent.Moment) agent.HookAnswer {
		if m.Call != nil {
			heard = append(heard, m.Call.Name)
		}
		return agent.HookAnswer{}
	}
	services := agent.Services{CanAsk: true, Hook: hook}
	s := begin(t, engine.Options{Client: client, Services: services, Mode: setting.Plan, Form: form},
		kit("Look", look), tool.AskUserQuestion(), tool.ExitPlanMode())
	turn(t, s, "go", nil)
	var inner struct{ Tools []struct{ Name string } }
	_ = json.Unmarshal(server.Requests()[1].Raw, &inner)
	if len(inner.Tools) != 1 || inner.Tools[0].Name != "Look" {
		t.Errorf("%+v", inner.Tools)
	}
	if got := strings.Join(heard, " "); got != "Task Task" { // nobody decides about the answer in its form
		t.Error(got)
	}
}

// TestPictures go the whole way: of a message and of a tool, to the model and, kept, to the one that goes on.
func TestPictures(t *testing.T) {
	png := []byte("\x89PNG\r\n\x1a\npicture")
	store := session.Open(t.TempDir())
	kept, err := store.Create(t.Context(), session.Begin{ID: "p", Provider: "p", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	client, server := scripted(t, `[{"call":{"name":"Look","input":{}}},{"say":"seen"}]`)
	look := tool.Action{Kind: event.Read, Run: func(context.Context) tool.Result {
		return tool.Result{Images: []tool.Image{{Media: "image/png", Data: append(png, "of a tool"...)}}}
	}}
	s := begin(t, engine.Options{Client: client, Journal: kept}, kit("Look", look))
	say(t, s, []event.Block{
		{Text: "what is this?"},
		{Media: "image/png", Data: png},
		{Media: "application/pdf", Data: []byte("%PDF"), Name: "a.pdf"},
	}, nil)
	_ = kept.Close()
	encoded := func(data []byte) string { raw, _ := json.Marshal(data); return strings.Trim(string(raw), `"`) }
	raw := string(server.Requests()[1].Raw)
	for _, want := range []string{
		encoded(png) + `"`, encoded(append(png, "of a tool"...)), encoded([]byte("%PDF")),
		`"media_type":"image/png"`,
	} {
		if !strings.Contains(raw, want) {
			t.Errorf("%s is not in %s", want, raw)
		}
	}
	again, err := store.Resume(t.Context(), "p")
	if err != nil {
		t.Fatal(err)
	}
	client, server = scripted(t, `[{"say":"yes"}]`)
	s = begin(t, engine.Options{Client: client, Journal: again})
	turn(t, s, "still?", nil)
	if raw := string(server.Requests()[0].Raw); !strings.Contains(raw, encoded(png)+`"`) ||
		!strings.Contains(raw, encoded(append(png, "of a tool"...))) {
		t.Errorf("%s", raw)
	}
}

// TestAlwaysInEachMode: what was answered with "always" is not asked about again in this conversation, also in the mode
// that asks about every call.
func TestAlwaysInEachMode(t *testing.T) {
	for _, mode := range []setting.Approval{setting.AskAll, setting.Prompt} {
		var ran []string
		client, _ := scripted(t, bash("make a", "make a", "make b"))
		s := begin(t, engine.Options{
			Client: client, Services: asking(), Mode: mode,
			Rules: guard.Judge{Place: guard.Place{Root: "/w", Dir: "/w"}},
		}, line(&ran))
		asked := 0
		turn(t, s, "go", func(e event.Event) {
			if e.Kind == event.Question {
				asked++
				answer(t, s, e, event.Reply{Option: event.Always})
			}
		})
		if got := strings.Join(ran, ", "); got != "make a, make a, make b" || asked != 2 {
			t.Errorf("%s: ran %s, asked %d times", mode, got, asked)
		}
	}
}
