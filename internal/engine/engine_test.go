package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/engine"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/model"
	"omniagent/internal/model/anthropic"
	"omniagent/internal/modelserver"
	"omniagent/internal/setting"
	"omniagent/internal/tool"
	"omniagent/internal/toolspec"
)

// scripted is a model that says what a script says.
func scripted(t *testing.T, script string) (model.Client, *modelserver.Server) {
	t.Helper()
	s, err := modelserver.ParseScript([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	server, err := modelserver.Start(s, modelserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return anthropic.New(anthropic.Options{Base: server.URL(), Key: "k", Model: "m", Profile: model.Profile{Window: 200_000}}), server
}

// kit is a tool of a test.
func kit(name string, a tool.Action) tool.Tool {
	return tool.Tool{
		Tool: toolspec.Tool{Name: name, Description: name, Input: json.RawMessage(`{"type":"object"}`)},
		Plan: func(input json.RawMessage) (tool.Action, error) {
			a.Input = input
			return a, nil
		},
	}
}

func begin(t *testing.T, o engine.Options, tools ...tool.Tool) *engine.Session {
	t.Helper()
	o.Tools = func(task tool.Task) []tool.Tool {
		return append(tools, tool.HandOver(&tool.Env{Task: task}))
	}
	s := engine.New(o)
	t.Cleanup(func() {
		if _, err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func send(t *testing.T, s *engine.Session, text string) {
	t.Helper()
	if err := s.Send(t.Context(), []event.Block{{Text: text}}); err != nil {
		t.Fatal(err)
	}
}

// turn is what happens until the turn ends; each event is shown to see.
func turn(t *testing.T, s *engine.Session, see func(event.Event)) []event.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var all []event.Event
	for {
		e, err := s.Next(ctx)
		if err != nil {
			t.Fatalf("%v after %s", err, told(all))
		}
		all = append(all, e)
		if see != nil {
			see(e)
		}
		if e.Kind == event.Ended {
			return all
		}
	}
}

func told(events []event.Event) string {
	var b strings.Builder
	for _, e := range events {
		switch e.Kind {
		case event.ToolCall:
			fmt.Fprintf(&b, "call %s; ", e.Call.Name)
		case event.ToolResult:
			fmt.Fprintf(&b, "result %v; ", e.Result.Failed)
		case event.Denied:
			fmt.Fprintf(&b, "denied %s; ", e.Denial.Reason)
		case event.Failed:
			fmt.Fprintf(&b, "failed %s; ", e.Fault.Code)
		case event.Ended:
			fmt.Fprintf(&b, "ended %s %q", e.End.Reason, e.End.Text)
		}
	}
	return b.String()
}

// TestTogether: calls that only read run at once, each told with its result behind it; what changes something runs alone, in its place.
func TestTogether(t *testing.T) {
	client, _ := scripted(t, `[{"calls":[{"call":{"name":"Look","input":{"n":1}}},{"call":{"name":"Look","input":{"n":2}}},{"call":{"name":"Change","input":{}}},{"call":{"name":"Look","input":{"n":3}}}]},{"say":"ok"}]`)
	var mu sync.Mutex
	running, most, changed := 0, 0, false
	both := make(chan struct{})
	look := tool.Action{Kind: event.Read, Run: func(ctx context.Context, _ func(string)) tool.Result {
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
			case <-both: // the other one runs as well
			case <-ctx.Done():
			case <-time.After(20 * time.Second):
			}
		}
		mu.Lock()
		running--
		mu.Unlock()
		return tool.Result{Text: "seen"}
	}}
	change := tool.Action{Kind: event.Shell, Changes: true, Run: func(context.Context, func(string)) tool.Result {
		mu.Lock()
		defer mu.Unlock()
		if running > 0 {
			t.Error("it did not run alone")
		}
		changed = true
		return tool.Result{Text: "done"}
	}}
	s := begin(t, engine.Options{Client: client, Mode: setting.Yolo}, kit("Look", look), kit("Change", change))
	send(t, s, "go")
	want := `call Look; result false; call Look; result false; call Change; result false; call Look; result false; ended success "ok"`
	if got := told(turn(t, s, nil)); got != want || most != 2 {
		t.Errorf("%d at once: %s", most, got)
	}
}

// TestSteering: what is said to a turn that works is heard with the next results.
func TestSteering(t *testing.T) {
	client, server := scripted(t, `[{"call":{"name":"Wait","input":{}}},{"say":"You said ${input}"}]`)
	release := make(chan struct{})
	var once sync.Once
	wait := tool.Action{Kind: event.Read, Run: func(context.Context, func(string)) tool.Result {
		<-release
		return tool.Result{Text: "waited"}
	}}
	s := begin(t, engine.Options{Client: client}, kit("Wait", wait))
	send(t, s, "go")
	turn(t, s, func(e event.Event) {
		if e.Kind == event.ToolCall {
			once.Do(func() {
				if err := s.Steer(t.Context(), []event.Block{{Text: "rather to the left"}}); err != nil {
					t.Error(err)
				}
				close(release)
			})
		}
	})
	second := server.Requests()[1]
	if raw := string(second.Raw); !strings.Contains(raw, "rather to the left") || strings.Index(raw, "waited") > strings.Index(raw, "rather to the left") {
		t.Errorf("%s", raw)
	}
}

// TestQuestions: yes, no with a reason, nobody, and a mode that changes meanwhile.
func TestQuestions(t *testing.T) {
	runs := 0
	act := tool.Action{Kind: event.Shell, Changes: true, Title: "touch the world", Run: func(context.Context, func(string)) tool.Result {
		runs++
		return tool.Result{Text: "touched"}
	}}
	for _, tt := range []struct {
		name   string
		o      engine.Options
		answer func(*engine.Session, event.Event) error
		want   string
		runs   int
	}{
		{"yes", engine.Options{CanAsk: true}, func(s *engine.Session, e event.Event) error {
			return s.Answer(context.Background(), e.Ask.ID, event.Reply{Option: event.Allow})
		}, `call Act; result false; ended success "ok"`, 1},
		{"no", engine.Options{CanAsk: true}, func(s *engine.Session, e event.Event) error {
			return s.Answer(context.Background(), e.Ask.ID, event.Reply{Option: event.Deny, Text: "not today"})
		}, `call Act; denied the user refused: not today; result true; ended success "ok"`, 0},
		{"nobody", engine.Options{}, nil, `call Act; denied Act needs approval, and nobody can be asked (touch the world: the tool is not known here); result true; ended success "ok"`, 0},
		{"late", engine.Options{CanAsk: true, Limits: engine.Limits{Patience: time.Millisecond}}, nil, `call Act; denied nobody answered within 1ms whether it may run; result true; ended success "ok"`, 0},
		{"deny", engine.Options{CanAsk: true, Mode: setting.DenyAll}, nil, `call Act; denied the permission mode deny lets no tool run; say what you would do instead; result true; ended success "ok"`, 0},
		{"yolo", engine.Options{Mode: setting.Yolo}, nil, `call Act; result false; ended success "ok"`, 1},
		{"auto-edit", engine.Options{Mode: setting.AutoEdit}, nil, `call Act; denied Act needs approval, and nobody can be asked (touch the world: the tool is not known here); result true; ended success "ok"`, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client, _ := scripted(t, `[{"call":{"name":"Act","input":{}}},{"say":"ok"}]`)
			o := tt.o
			o.Client, runs = client, 0
			s := begin(t, o, kit("Act", act))
			send(t, s, "go")
			got := told(turn(t, s, func(e event.Event) {
				if e.Kind == event.Question && tt.answer != nil {
					if err := tt.answer(s, e); err != nil {
						t.Error(err)
					}
				}
			}))
			if got != tt.want || runs != tt.runs {
				t.Errorf("%d runs: %s", runs, got)
			}
		})
	}
	client, _ := scripted(t, `[{"call":{"name":"Act","input":{"n":1}}},{"call":{"name":"Act","input":{"n":2}}},{"say":"ok"}]`)
	s := begin(t, engine.Options{Client: client, CanAsk: true}, kit("Act", act))
	if err := s.Answer(t.Context(), "nothing", event.Reply{}); !errors.Is(err, fault.NotFoundCode) {
		t.Errorf("%v", err)
	}
	runs = 0
	send(t, s, "go")
	asked := 0
	turn(t, s, func(e event.Event) {
		if e.Kind == event.Question {
			asked++
			_ = s.Set(context.Background(), agent.Change{Mode: setting.Yolo}) // from the next call on
			if err := s.Answer(t.Context(), e.Ask.ID, event.Reply{Option: event.Allow}); err != nil {
				t.Error(err)
			}
		}
	})
	if asked != 1 || runs != 2 {
		t.Errorf("%d questions, %d runs", asked, runs)
	}
}

// TestInterruptions at every place: while the model answers, while a tool runs, while a question is open. Each call has a result, and the
// conversation goes on.
func TestInterruptions(t *testing.T) {
	stuck := tool.Action{Kind: event.Read, Run: func(ctx context.Context, _ func(string)) tool.Result {
		<-ctx.Done()
		return tool.Result{Text: "stopped", Failed: true}
	}}
	act := tool.Action{Kind: event.Shell, Changes: true, Run: func(context.Context, func(string)) tool.Result { return tool.Result{} }}
	for name, tt := range map[string]struct {
		script string
		at     event.Kind
	}{
		"answer":   {`[{"say":"a long answer that is cut in the middle","stall":"middle"}]`, event.Text},
		"headers":  {`[{"say":"x","stall":"headers"}]`, event.TurnBegan},
		"tool":     {`[{"calls":[{"call":{"name":"Stuck","input":{}}},{"call":{"name":"Act","input":{}}}]},{"say":"ok"}]`, event.ToolCall},
		"question": {`[{"calls":[{"call":{"name":"Act","input":{}}},{"call":{"name":"Stuck","input":{}}}]},{"say":"ok"}]`, event.Question},
	} {
		t.Run(name, func(t *testing.T) {
			client, server := scripted(t, tt.script)
			s := begin(t, engine.Options{Client: client, CanAsk: true}, kit("Stuck", stuck), kit("Act", act))
			send(t, s, "go")
			once := sync.Once{}
			all := turn(t, s, func(e event.Event) {
				if e.Kind == tt.at {
					once.Do(func() { _ = s.Interrupt(t.Context()) })
				}
			})
			if end := all[len(all)-1].End; end.OK || end.Reason != engine.Interrupted {
				t.Errorf("%s", told(all))
			}
			if calls, results := strings.Count(told(all), "call"), strings.Count(told(all), "result"); calls != results {
				t.Errorf("%s", told(all))
			}
			before := len(server.Requests())
			send(t, s, "next")
			once = sync.Once{}
			turn(t, s, func(e event.Event) { _ = s.Interrupt(t.Context()) })
			if len(server.Requests()) <= before {
				return // interrupted before it asked
			}
			raw := string(server.Requests()[before].Raw)
			if strings.Count(raw, `"tool_use_id"`) != strings.Count(raw, `"type":"tool_use"`) || !strings.Contains(raw, "next") {
				t.Errorf("%s", raw)
			}
		})
	}
}

// TestLimits of tokens, money and time.
func TestLimits(t *testing.T) {
	look := tool.Action{Kind: event.Read, Run: func(ctx context.Context, _ func(string)) tool.Result { return tool.Result{Text: "x"} }}
	stuck := tool.Action{Kind: event.Read, Run: func(ctx context.Context, _ func(string)) tool.Result {
		<-ctx.Done()
		return tool.Result{Text: "stopped", Failed: true}
	}}
	script := `[{"call":{"name":"Look","input":{"n":1}},"usage":{"input":1000,"output":1000}},{"call":{"name":"Look","input":{"n":2}},"usage":{"input":1000,"output":1000}},{"say":"never"}]`
	for name, tt := range map[string]struct {
		limits engine.Limits
		script string
		want   string
	}{
		"tokens": {engine.Limits{Tokens: 3000}, script, "failed BLOCKED_BY_POLICY; ended error_during_execution"},
		"money":  {engine.Limits{CostUSD: 0.003}, script, "ended error_max_budget_usd"},
		"turns":  {engine.Limits{Turns: 1}, script, "ended error_max_turns"},
		"time":   {engine.Limits{Time: 50 * time.Millisecond}, `[{"call":{"name":"Stuck","input":{}}},{"say":"never"}]`, "failed TIMEOUT; ended error_during_execution"},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := scripted(t, tt.script)
			s := begin(t, engine.Options{Client: priced{client}, Limits: tt.limits}, kit("Look", look), kit("Stuck", stuck))
			send(t, s, "go")
			if got := told(turn(t, s, nil)); !strings.Contains(got, tt.want) {
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
	bad := tool.Action{Kind: event.Read, Run: func(context.Context, func(string)) tool.Result { panic("oh") }}
	s := begin(t, engine.Options{Client: client}, kit("Bad", bad))
	send(t, s, "go")
	if got := told(turn(t, s, nil)); got != `call Bad; result true; ended success "ok"` {
		t.Error(got)
	}
}

// TestTask: a sub-agent's events name the call, its tokens count, and it is interrupted with the turn.
func TestTask(t *testing.T) {
	client, _ := scripted(t, `[{"call":{"name":"Task","input":{"description":"d","prompt":"p"}}},{"say":"end"}]`)
	s := begin(t, engine.Options{Client: client})
	send(t, s, "go")
	inner := 0
	all := turn(t, s, func(e event.Event) {
		if e.Parent != "" {
			inner++
		}
	})
	end := all[len(all)-1].End
	if inner == 0 || !end.OK || *end.Turns != 2 || end.Usage == nil {
		t.Errorf("%d of a sub-agent, %+v: %s", inner, end, told(all))
	}
}

// TestClosed: a closed session says so, and everybody who waits is told.
func TestClosed(t *testing.T) {
	client, _ := scripted(t, `[{"say":"x","stall":"start"}]`)
	s := engine.New(engine.Options{Client: client})
	send(t, s, "go")
	done := make(chan error, 1)
	go func() {
		for {
			if _, err := s.Next(context.Background()); err != nil {
				done <- err
				return
			}
		}
	}()
	if _, err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if err := s.Send(t.Context(), []event.Block{{Text: "x"}}); err == nil {
		t.Error("a closed session takes a message")
	}
	if err := engine.New(engine.Options{Client: client}).Send(t.Context(), []event.Block{{Text: " "}}); !errors.Is(err, fault.ArgError) {
		t.Error(err)
	}
}

// TestEveryMessageEnds: also one that is interrupted before its turn begins.
func TestEveryMessageEnds(t *testing.T) {
	client, _ := scripted(t, `[{"say":"x","stall":"start"}]`)
	for range 50 {
		s := begin(t, engine.Options{Client: client})
		for range 3 {
			send(t, s, "go")
		}
		if err := s.Interrupt(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			turn(t, s, nil)
		}
		send(t, s, "again")
		if err := s.Interrupt(t.Context()); err != nil {
			t.Fatal(err)
		}
		turn(t, s, nil)
	}
}

// TestStricterMode reaches the calls of the same answer that have not begun.
func TestStricterMode(t *testing.T) {
	client, _ := scripted(t, `[{"calls":[{"call":{"name":"Act","input":{}}},{"call":{"name":"Look","input":{}}}]},{"say":"ok"}]`)
	var s *engine.Session
	act := tool.Action{Kind: event.Shell, Changes: true, Run: func(context.Context, func(string)) tool.Result {
		_ = s.Set(context.Background(), agent.Change{Mode: setting.DenyAll})
		return tool.Result{Text: "done"}
	}}
	look := tool.Action{Kind: event.Web, Run: func(context.Context, func(string)) tool.Result {
		t.Error("it ran")
		return tool.Result{}
	}}
	s = begin(t, engine.Options{Client: client, Mode: setting.Yolo}, kit("Act", act), kit("Look", look))
	send(t, s, "go")
	if got := told(turn(t, s, nil)); !strings.HasPrefix(got, "call Act; result false; call Look; denied ") {
		t.Error(got)
	}
}

// canned is a model that always answers the same.
type canned struct {
	model.Client
	answer model.Answer
	asked  chan model.Request
}

func (c canned) Ask(_ context.Context, q model.Request, _ func(model.Piece)) (*model.Answer, error) {
	if c.asked != nil {
		c.asked <- q
	}
	a := c.answer
	return &a, nil
}

// TestPoorAnswers: thinking alone is no answer, and one that was cut off says so.
func TestPoorAnswers(t *testing.T) {
	client, _ := scripted(t, `[]`)
	s := begin(t, engine.Options{Client: canned{client, model.Answer{Blocks: []model.Block{{Kind: model.Thinking, Text: "hm"}}, Stop: model.Done}, nil}})
	send(t, s, "go")
	if got := told(turn(t, s, nil)); !strings.HasPrefix(got, "failed NO_ANSWER; ended error_during_execution") {
		t.Error(got)
	}
	s = begin(t, engine.Options{Client: canned{client, model.Answer{Blocks: []model.Block{{Kind: model.Text, Text: "half"}}, Stop: model.Length}, nil}})
	send(t, s, "go")
	all := turn(t, s, nil)
	if end := all[len(all)-1].End; !end.OK || len(end.Notes) != 1 || !strings.Contains(end.Notes[0], "cut off") {
		t.Errorf("%+v", end)
	}
}

// TestSearch: the API searches by itself only where a mode leaves that to it.
func TestSearch(t *testing.T) {
	client, _ := scripted(t, `[]`)
	for mode, want := range map[setting.Approval]bool{setting.Prompt: true, setting.Yolo: true, setting.AskAll: false, setting.DenyAll: false} {
		asked := make(chan model.Request, 1)
		s := begin(t, engine.Options{Client: canned{client, model.Answer{Blocks: []model.Block{{Kind: model.Text, Text: "x"}}}, asked}, Search: true, Mode: mode})
		send(t, s, "go")
		turn(t, s, nil)
		if q := <-asked; q.Search != want {
			t.Errorf("%s: %v", mode, q.Search)
		}
	}
}
