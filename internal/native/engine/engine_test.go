package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/llm/model"
	"omniagent/internal/native/engine"
	"omniagent/internal/native/tool"
	"omniagent/internal/sys/redact"
	"omniagent/internal/testkit/hermetic"
)

// TestTogether: calls that only read run in parallel, each reported with its result directly after it; a call that
// changes something runs alone, in its place.
func TestTogether(t *testing.T) {
	client, _ := scripted(t, script(together(
		call("Look", `{"n":1}`), call("Look", `{"n":2}`), call("Change", `{}`), call("Look", `{"n":3}`),
	), ok()))
	var mu sync.Mutex
	running, most, changed := 0, 0, false
	both := make(chan struct{})
	look := tool.Action{Kind: event.Read, Run: func(ctx context.Context) tool.Result {
		mu.Lock()
		running++
		most = max(most, running)
		if running == 2 {
			close(both)
		}
		wait := !changed
		mu.Unlock()
		if wait {
			select {
			case <-both: // both run
			case <-ctx.Done():
			case <-time.After(hermetic.Patience):
			}
		}
		mu.Lock()
		running--
		mu.Unlock()
		return tool.Result{Text: "seen"}
	}}
	change := tool.Action{Kind: event.Shell, Changes: true, Run: func(context.Context) tool.Result {
		mu.Lock()
		defer mu.Unlock()
		if running > 0 {
			t.Error("it did not run alone")
		}
		changed = true
		return tool.Result{Text: "done"}
	}}
	s := begin(t, engine.Options{Client: client, Mode: setting.Yolo}, kit("Look", look), kit("Change", change))
	want := "call Look; result false; call Look; result false; call Change; result false; call Look; result false; " +
		`ended success "ok"`
	if got := told(turn(t, s, "go", nil)); got != want || most != 2 {
		t.Errorf("%d at once: %s", most, got)
	}
}

// TestQuestions: yes, no with a reason, nobody there, and a mode that changes meanwhile.
func TestQuestions(t *testing.T) {
	runs := 0
	act := tool.Action{
		Kind: event.Shell, Changes: true, Title: "touch the world",
		Run: func(context.Context) tool.Result {
			runs++
			return tool.Result{Text: "touched"}
		},
	}
	nobody := "denied Act needs approval, and nobody can be asked (touch the world: the tool is not known here)"
	for _, tt := range []struct {
		name   string
		mode   setting.Approval
		answer *event.Reply // nil: nobody is there
		byUser bool
		want   string // between the call and its result
		runs   int
	}{
		{"yes", "", &event.Reply{Option: event.Allow}, false, "", 1},
		{"no", "", &event.Reply{Option: event.Deny, Text: "not today"}, true, "denied the user refused: not today", 0},
		{"nobody", "", nil, false, nobody, 0},
		{"late", "", &event.Reply{Option: event.Deny, Automatic: true, Text: "too late"}, false, "denied too late", 0},
		{"gone", "", &event.Reply{Option: event.Allow, Automatic: true, Text: "gone"}, false, "denied gone", 0},
		{"no reason", "", &event.Reply{Automatic: true}, false, "denied nobody answered whether it may run", 0},
		{
			"deny", setting.DenyAll, &event.Reply{Option: event.Allow}, false,
			"denied the permission mode deny lets no tool run; say what you would do instead", 0,
		},
		{"yolo", setting.Yolo, nil, false, "", 1},
		{"auto-edit", setting.AutoEdit, nil, false, nobody, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client, _ := scripted(t, `[{"call":{"name":"Act","input":{}}},{"say":"ok"}]`)
			o := engine.Options{Client: client, Mode: tt.mode, Services: agent.Services{CanAsk: tt.answer != nil}}
			s := begin(t, o, kit("Act", act))
			runs = 0
			all := turn(t, s, "go", func(e event.Event) {
				switch {
				case e.Kind == event.Question:
					answer(t, s, e, *tt.answer)
					if err := s.Answer(event.Reply{Question: e.Ask.ID}); !errors.Is(err, fault.NotFoundCode) {
						t.Errorf("a second answer: %v", err)
					}
				case e.Kind == event.Denied && e.Denial.ByUser != tt.byUser:
					t.Errorf("%+v", e.Denial)
				}
			})
			want := "call Act; result false; "
			if tt.want != "" {
				want = "call Act; " + tt.want + "; result true; "
			}
			if got := told(all); got != want+`ended success "ok"` || runs != tt.runs {
				t.Errorf("%d runs: %s", runs, got)
			}
			outcome, err := s.Close(t.Context())
			if err != nil || (len(outcome.Evidence.Denials) > 0) != (tt.want != "") {
				t.Errorf("%v, %+v", err, outcome)
			}
		})
	}
	client, _ := scripted(t,
		`[{"call":{"name":"Act","input":{"n":1}}},{"call":{"name":"Act","input":{"n":2}}},{"say":"ok"}]`)
	s := begin(t, engine.Options{Client: client, Services: asking()}, kit("Act", act))
	if err := s.Answer(event.Reply{Question: "nothing"}); !errors.Is(err, fault.NotFoundCode) {
		t.Errorf("%v", err)
	}
	runs = 0
	asked := 0
	turn(t, s, "go", func(e event.Event) {
		switch e.Kind {
		case event.ToolCall: // it is not asked yet
			if err := s.Answer(event.Reply{Question: e.Call.ID, Option: event.Deny}); !errors.Is(err,
				fault.NotFoundCode) {
				t.Errorf("an answer before its question: %v", err)
			}
		case event.Question:
			asked++
			_ = s.Set(t.Context(), agent.Change{Mode: setting.Yolo}) // from the next call on
			answer(t, s, e, event.Reply{Option: event.Allow})
		}
	})
	if asked != 1 || runs != 2 {
		t.Errorf("%d questions, %d runs", asked, runs)
	}
}

// TestInterruptions at every place: while the model answers, while a tool runs, while a question is open. Each call has
// a result, and the conversation continues.
func TestInterruptions(t *testing.T) {
	stuck := tool.Action{Kind: event.Read, Run: func(ctx context.Context) tool.Result {
		<-ctx.Done()
		return tool.Result{Text: "stopped", Failed: true}
	}}
	act := tool.Action{Kind: event.Shell, Changes: true, Run: func(context.Context) tool.Result {
		return tool.Result{}
	}}
	for name, tt := range map[string]struct {
		script string
		at     event.Kind
	}{
		"answer":   {`[{"say":"a long answer that is cut in the middle","stall":"middle"}]`, event.Text},
		"headers":  {`[{"say":"x","stall":"headers"}]`, event.TurnBegan},
		"tool":     {script(together(call("Stuck", `{}`), call("Act", `{}`)), ok()), event.ToolCall},
		"question": {script(together(call("Act", `{}`), call("Stuck", `{}`)), ok()), event.Question},
	} {
		t.Run(name, func(t *testing.T) {
			client, server := scripted(t, tt.script)
			s := begin(t, engine.Options{Client: client, Services: asking()}, kit("Stuck", stuck), kit("Act", act))
			asked, withdrawn := "", ""
			all := turn(t, s, "go", func(e event.Event) {
				switch e.Kind {
				case event.Question:
					asked = e.Ask.ID
				case event.Withdrawn:
					withdrawn = e.Ask.ID
				}
				if e.Kind == tt.at {
					s.interrupt()
				}
			})
			if asked != withdrawn || (asked != "") != (name == "question") {
				t.Errorf("asked %q, withdrawn %q", asked, withdrawn)
			}
			if end := all[len(all)-1].End; end.OK || end.Reason != event.Cancelled {
				t.Errorf("%s", told(all))
			}
			before := len(server.Requests())
			turn(t, s, "next", func(event.Event) { s.interrupt() })
			if len(server.Requests()) <= before {
				return // interrupted before it asked
			}
			raw := string(server.Requests()[before].Raw)
			if strings.Count(raw, `"tool_use_id"`) != strings.Count(raw, `"type":"tool_use"`) ||
				!strings.Contains(raw, "next") {
				t.Errorf("%s", raw)
			}
		})
	}
}

// TestLimits of tokens, money and time.
func TestLimits(t *testing.T) {
	look := reads("x")
	stuck := tool.Action{Kind: event.Read, Run: func(ctx context.Context) tool.Result {
		<-ctx.Done()
		return tool.Result{Text: "stopped", Failed: true}
	}}
	const usage = `,"usage":{"input":1000,"output":1000}}`
	looks := script(
		`{"call":{"name":"Look","input":{"n":1}}`+usage, `{"call":{"name":"Look","input":{"n":2}}`+
			usage, `{"say":"never"}`,
	)
	for name, tt := range map[string]struct {
		limits engine.Limits
		script string
		want   string
	}{
		"money": {engine.Limits{CostUSD: 0.003}, looks, "ended error_max_budget_usd"},
		"turns": {engine.Limits{Turns: 1}, looks, "ended error_max_turns"},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := scripted(t, tt.script)
			s := begin(t, engine.Options{Client: priced{client}, Limits: tt.limits}, kit("Look", look),
				kit("Stuck", stuck))
			if got := told(turn(t, s, "go", nil)); !strings.Contains(got, tt.want) {
				t.Errorf("%s", got)
			}
		})
	}
}

// priced is a model with a price.
type priced struct{ model.Client }

func (p priced) Profile() model.Profile {
	profile := p.Client.Profile()
	profile.Prices = &model.Prices{Input: 1, Output: 1}
	return profile
}

// TestPanic: a tool that fails inside is a failed call.
func TestPanic(t *testing.T) {
	client, _ := scripted(t, `[{"call":{"name":"Bad","input":{}}},{"say":"ok"}]`)
	bad := tool.Action{Kind: event.Read, Run: func(context.Context) tool.Result { panic("oh") }}
	s := begin(t, engine.Options{Client: client}, kit("Bad", bad))
	if got := told(turn(t, s, "go", nil)); got != `call Bad; result true; ended success "ok"` {
		t.Error(got)
	}
}

// TestTask: a sub-agent's events name the call, its tokens count, and it is interrupted with the turn.
func TestTask(t *testing.T) {
	client, _ := scripted(t, `[{"call":{"name":"Task","input":{"description":"d","prompt":"p"}}},{"say":"end"}]`)
	s := begin(t, engine.Options{Client: client})
	inner := 0
	all := turn(t, s, "go", func(e event.Event) {
		if e.Parent != "" {
			inner++
		}
	})
	end := all[len(all)-1].End
	if inner == 0 || !end.OK || *end.Turns != 2 || end.Usage == nil {
		t.Errorf("%d of a sub-agent, %+v: %s", inner, end, told(all))
	}
}

// TestClosed: closing interrupts the turn that runs, with its end, and a closed Mind takes no message.
func TestClosed(t *testing.T) {
	client, _ := scripted(t, `[{"say":"x","stall":"start"}]`)
	s := begin(t, engine.Options{Client: client})
	closed := make(chan error, 1)
	all := turn(t, s, "go", func(e event.Event) {
		if e.Kind == event.TurnBegan {
			go func() {
				_, err := s.Close(context.Background())
				closed <- err
			}()
		}
	})
	if err := <-closed; err != nil || all[len(all)-1].End.Reason != event.Cancelled {
		t.Errorf("%v: %s", err, told(all))
	}
	if err := s.Turn(t.Context(), []event.Block{{Text: "x"}}); err == nil {
		t.Error("a closed Mind takes a message")
	}
	if err := s.Steer(t.Context(), []event.Block{{Text: "x"}}); err == nil {
		t.Error("a closed Mind hears")
	}
	s = begin(t, engine.Options{Client: client})
	if err := s.Turn(t.Context(), []event.Block{{Text: " "}}); !errors.Is(err, fault.ArgError) || len(s.events) > 0 {
		t.Errorf("%v, %s", err, told(s.events))
	}
}

// TestOneTurn: a second turn at the same time is refused, and reports nothing.
func TestOneTurn(t *testing.T) {
	client, _ := scripted(t, `[{"say":"x"}]`)
	s := begin(t, engine.Options{Client: client})
	turn(t, s, "go", func(e event.Event) {
		if e.Kind != event.TurnBegan {
			return
		}
		if err := s.Turn(t.Context(), []event.Block{{Text: "too"}}); !errors.Is(err, fault.LockHeld) {
			t.Error(err)
		}
	})
}

// TestEveryTurnEnds, even if it is interrupted before it begins or at any moment after.
func TestEveryTurnEnds(t *testing.T) {
	client, _ := scripted(t, `[{"say":"x","stall":"start"}]`)
	for i := range 50 {
		s := begin(t, engine.Options{Client: client})
		ctx, cancel := context.WithCancel(t.Context())
		if i%2 == 0 {
			cancel()
		} else {
			go cancel()
		}
		for range 2 {
			s.events = nil
			if err := s.Turn(ctx, []event.Block{{Text: "go"}}); err != nil {
				t.Fatal(err)
			}
			if got := told(s.events); got != `ended cancelled ""` {
				t.Fatal(got)
			}
		}
	}
}

// TestKill: neither a turn that is killed nor Close waits for a tool that ignores its context.
func TestKill(t *testing.T) {
	for _, kind := range []event.ToolKind{event.Read, event.Shell} { // side by side with others, and alone
		for _, closes := range []bool{false, true} {
			client, _ := scripted(t, `[{"call":{"name":"Stuck","input":{}}},{"say":"never"}]`)
			started, release := make(chan struct{}), make(chan struct{})
			stuck := tool.Action{Kind: kind, Run: func(context.Context) tool.Result {
				close(started)
				<-release
				return tool.Result{Text: "late"}
			}}
			s := begin(t, engine.Options{Client: client, Mode: setting.Yolo}, kit("Stuck", stuck))
			s.Kill() // nothing runs
			go func() {
				<-started
				if !closes {
					s.Kill()
					s.Kill()
					return
				}
				over, cancel := context.WithCancel(context.Background())
				cancel() // there is no time to end by itself
				_, _ = s.Close(over)
			}()
			got := told(turn(t, s, "go", nil))
			close(release)
			if got != `call Stuck; result true; ended cancelled ""` {
				t.Errorf("%s, closes %v: %s", kind, closes, got)
			}
		}
	}
}

// TestKillOfASubAgent ends it with the turn.
func TestKillOfASubAgent(t *testing.T) {
	client, _ := scripted(t, `[{"call":{"name":"Task","input":{"description":"d","prompt":"p"}}},`+
		`{"call":{"name":"Stuck","input":{}}},{"say":"never"}]`)
	release := make(chan struct{})
	defer close(release)
	var s *mind
	s = begin(t, engine.Options{Client: client}, kit("Stuck", tool.Action{
		Kind: event.Read, Run: func(context.Context) tool.Result {
			s.Kill()
			<-release
			return tool.Result{Text: "late"}
		},
	}))
	got := told(turn(t, s, "go", nil)) // the sub-agent begins with the script again, and has no Task
	if got != `call Task; call Task; result true; call Stuck; result true; result true; ended cancelled ""` {
		t.Error(got)
	}
}

// TestStricterMode reaches the calls of the same answer that have not begun.
func TestStricterMode(t *testing.T) {
	client, _ := scripted(t,
		`[{"calls":[{"call":{"name":"Act","input":{}}},{"call":{"name":"Look","input":{}}}]},{"say":"ok"}]`)
	var s *mind
	act := tool.Action{Kind: event.Shell, Changes: true, Run: func(context.Context) tool.Result {
		_ = s.Set(context.Background(), agent.Change{Mode: setting.DenyAll})
		if s.facts.Mode != setting.DenyAll {
			t.Error("Set has returned, and the change was not told")
		}
		return tool.Result{Text: "done"}
	}}
	look := tool.Action{Kind: event.Web, Run: func(context.Context) tool.Result {
		t.Error("it ran")
		return tool.Result{}
	}}
	s = begin(t, engine.Options{Client: client, Mode: setting.Yolo}, kit("Act", act), kit("Look", look))
	if got := told(turn(t, s, "again", nil)); !strings.HasPrefix(got, "call Act; result false; call Look; denied ") {
		t.Error(got)
	}
}

// canned is a model that always answers the same.
type canned struct {
	model.Client
	answer model.Answer
	asked  chan model.Request
}

// searching is a model whose API searches before it answers.
type searching struct{ canned }

func (s searching) Ask(ctx context.Context, q model.Request, hear func(model.Piece)) (*model.Answer, error) {
	hear(model.Piece{Kind: model.Text, Text: "I look. "})
	hear(model.Piece{Kind: model.Searched, Search: &model.Search{
		ID: "s1", Query: "go key-of-mine", Found: []string{"Go https://go.dev"},
	}})
	hear(model.Piece{Kind: model.Searched, Search: &model.Search{Query: "more", Failed: "max_uses_exceeded"}})
	hear(model.Piece{Kind: model.Text, Text: "found"})
	return s.canned.Ask(ctx, q, hear)
}

// Profile is that of an API which searches.
func (s searching) Profile() model.Profile { return model.Profile{Search: true} }

// TestSearchesAreTold: a search of the API has the lines of a call, without secrets, and stands among the tools.
func TestSearchesAreTold(t *testing.T) {
	client, _ := scripted(t, `[]`)
	answer := model.Answer{Blocks: []model.Block{{Kind: model.Text, Text: "I look. found"}}, Stop: model.Done}
	s := begin(t, engine.Options{
		Client: searching{canned{client, answer, nil}}, Search: true, Mode: setting.Prompt,
		Secrets: redact.Known("key-of-mine"),
	})
	if tools := s.Facts().Tools; !slices.Contains(tools, "WebSearch") {
		t.Errorf("the tools are %v", tools)
	}
	var lines []string
	for _, e := range turn(t, s, "go", nil) {
		switch {
		case e.Call != nil:
			lines = append(lines, e.Call.Name+" "+string(e.Call.Input))
		case e.Result != nil:
			lines = append(lines, fmt.Sprint(e.Result.Output, " ", e.Result.Failed))
		case e.Kind == event.Text && e.Delta:
			lines = append(lines, e.Text)
		case e.End != nil:
			lines = append(lines, "end: "+e.End.Text)
		}
	}
	want := []string{
		"I look. ", `WebSearch {"query":"go [REDACTED]"}`, "Go https://go.dev false", `WebSearch {"query":"more"}`,
		"max_uses_exceeded true", "found", "end: I look. found",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got %q", lines)
	}
}

func (c canned) Ask(_ context.Context, q model.Request, _ func(model.Piece)) (*model.Answer, error) {
	if c.asked != nil {
		c.asked <- q
	}
	a := c.answer
	return &a, nil
}

// TestPoorAnswers: thinking alone does not count as an answer, and the end mentions that an answer was cut off.
func TestPoorAnswers(t *testing.T) {
	client, _ := scripted(t, `[]`)
	s := begin(t, engine.Options{Client: canned{client, model.Answer{Blocks: []model.Block{{
		Kind: model.Thinking,
		Text: "hm",
	}}, Stop: model.Done}, nil}})
	if got := told(turn(t, s, "go", nil)); !strings.HasPrefix(got, "failed NO_ANSWER; ended error_during_execution") {
		t.Error(got)
	}
	s = begin(t, engine.Options{Client: canned{client, model.Answer{Blocks: []model.Block{{
		Kind: model.Text,
		Text: "half",
	}}, Stop: model.Length}, nil}})
	all := turn(t, s, "go", nil)
	if end := all[len(all)-1].End; !end.OK || len(end.Notes) != 1 || !strings.Contains(end.Notes[0], "cut off") {
		t.Errorf("%+v", end)
	}
}

// TestSearch: the API searches by itself only in modes that allow it.
func TestSearch(t *testing.T) {
	client, _ := scripted(t, `[]`)
	for mode, want := range map[setting.Approval]bool{
		setting.Prompt: true, setting.Yolo: true, setting.AskAll: false,
		setting.DenyAll: false,
	} {
		asked := make(chan model.Request, 1)
		s := begin(t, engine.Options{Client: canned{client, model.Answer{Blocks: []model.Block{{
			Kind: model.Text,
			Text: "x",
		}}}, asked}, Search: true, Mode: mode})
		turn(t, s, "go", nil)
		if q := <-asked; q.Search != want {
			t.Errorf("%s: %v", mode, q.Search)
		}
	}
}

// TestFailTurn: a call ends its own turn, also that of a sub-agent; after a killed turn it neither ends nor reports
// anything.
func TestFailTurn(t *testing.T) {
	client, _ := scripted(t, `[{"call":{"name":"Task","input":{"description":"d","prompt":"p"}}},`+
		`{"call":{"name":"Break","input":{}}},{"say":"ok"}]`) // a sub-agent begins with the script again
	const fails, late = 1, 2
	var s *mind
	runs, release, done := 0, make(chan struct{}), make(chan struct{})
	s = begin(t, engine.Options{Client: client}, kit("Break", tool.Action{
		Kind: event.Read, Run: func(ctx context.Context) tool.Result {
			runs++
			run := runs
			if run > late {
				return tool.Result{Text: "whole"}
			}
			if run == late {
				defer close(done)
				s.Kill()
				<-release
			}
			if s.TellIn(ctx, event.Event{Kind: event.Notice, Text: "heard"}) != (run == fails) {
				t.Errorf("run %d", run)
			}
			engine.FailTurn(ctx, fault.New(fault.ServiceDown, "it broke"))
			return tool.Result{Text: "broken", Failed: true}
		},
	}))
	all := turn(t, s, "go", nil)
	if end := all[len(all)-1].End; end.OK || end.Reason != event.FailedTurn || runs != 1 {
		t.Error(runs, told(all))
	}
	all = turn(t, s, "go", nil)
	close(release)
	if end := all[len(all)-1].End; end.Reason != event.Cancelled {
		t.Fatal(told(all))
	}
	<-done
	if all = turn(t, s, "go", nil); !all[len(all)-1].End.OK {
		t.Error(told(all))
	}
}
