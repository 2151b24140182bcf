package engine_test

import (
	"context"
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/llm/model"
	"omniagent/internal/native/engine"
	"omniagent/internal/walls/guard"
)

// Long because its tables have a row for each outcome.

// heard is a hook that notes what it is called with, and decides as a test wants.
type heard struct {
	mu   sync.Mutex
	all  []agent.Moment
	says map[agent.MomentName]func(agent.Moment) agent.HookAnswer
}

func (h *heard) hook(_ context.Context, m agent.Moment) agent.HookAnswer {
	h.mu.Lock()
	h.all = append(h.all, m)
	h.mu.Unlock()
	if say := h.says[m.Name]; say != nil {
		return say(m)
	}
	return agent.HookAnswer{}
}

func (h *heard) names() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var names []string
	for _, m := range h.all {
		name := string(m.Name)
		if m.Parent != "" {
			name = "(" + name + ")"
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

func always(w agent.HookAnswer) func(agent.Moment) agent.HookAnswer {
	return func(agent.Moment) agent.HookAnswer { return w }
}

// says is a hook that always decides the same at one moment.
func says(at agent.MomentName, w agent.HookAnswer) *heard {
	return &heard{says: map[agent.MomentName]func(agent.Moment) agent.HookAnswer{at: always(w)}}
}

// TestMoments: each moment is reported once, in its place, with its data; the beginning and the end of a conversation
// once for all turns.
func TestMoments(t *testing.T) {
	client, _ := scripted(t, script(call("Look", `{"n":1}`), call("Bad", `{}`), call("None", `{}`), ok()))
	look := reads("seen")
	bad := fails("oh")
	h := &heard{}
	s := begin(t, engine.Options{Client: client, Services: hooked(h.hook)}, kit("Look", look), kit("Bad", bad))
	if h.names() != "" {
		t.Error("it was asked before anything was sent")
	}
	turn(t, s, "go", nil)
	turn(t, s, "more", nil)
	for range 2 {
		if _, err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	one := "UserPromptSubmit PreToolUse PostToolUse PreToolUse PostToolUseFailure Stop"
	if got := h.names(); got != "SessionStart "+one+" "+one+" SessionEnd" {
		t.Error(got)
	}
	if m := h.all[0]; m.Text != "startup" {
		t.Errorf("%+v", m)
	}
	if m := h.all[1]; m.Text != "go" {
		t.Errorf("%+v", m)
	}
	if m := h.all[3]; m.Call.Name != "Look" || string(m.Call.Input) != `{"n":1}` || m.Result.Output != "seen" {
		t.Errorf("%+v", m)
	}
	if m := h.all[6]; m.Text != "ok" || m.Again {
		t.Errorf("%+v", m)
	}
	silent := &heard{}
	unused := begin(t, engine.Options{Client: client, Services: hooked(silent.hook)})
	if _, err := unused.Close(t.Context()); err != nil || silent.names() != "" {
		t.Errorf("%v: %s", err, silent.names())
	}
}

// TestMomentsOfASubAgent: they name the call that the sub-agent works for.
func TestMomentsOfASubAgent(t *testing.T) {
	client, server := scripted(t, script(task(), call("Look", `{}`), ok()))
	look := reads("seen")
	again := 0
	h := &heard{says: map[agent.MomentName]func(agent.Moment) agent.HookAnswer{
		agent.HelperBegins: always(agent.HookAnswer{Context: "mind the gap"}),
		agent.HelperEnds: func(m agent.Moment) agent.HookAnswer {
			if again++; again > 1 {
				return agent.HookAnswer{}
			}
			return agent.HookAnswer{Decision: event.Deny, Reason: "say more"}
		},
	}}
	s := begin(t, engine.Options{Client: client, Services: hooked(h.hook)}, kit("Look", look))
	turn(t, s, "go", nil)
	if got := h.names(); !strings.HasPrefix(got,
		"SessionStart UserPromptSubmit PreToolUse (SubagentStart) (PreToolUse) (PostToolUse)") ||
		!strings.Contains(got, "(SubagentStop) (SubagentStop) PostToolUse") &&
			!strings.Contains(got, "(SubagentStop) (PreToolUse)") || !strings.HasSuffix(got, " Stop") {
		t.Error(got)
	}
	if raw := string(server.Requests()[1].Raw); !strings.Contains(raw, "mind the gap") {
		t.Error(raw)
	}
	said := false
	for _, q := range server.Requests() {
		said = said || strings.Contains(string(q.Raw), "say more")
	}
	if !said || h.all[len(h.all)-1].Parent != "" {
		t.Error("it did not go on")
	}
	refusing := says(agent.HelperBegins, agent.HookAnswer{Decision: event.Deny, Reason: "no helpers today"})
	client, server = scripted(t, `[{"call":{"name":"Task","input":{"description":"d","prompt":"p"}}},{"say":"ok"}]`)
	s = begin(t, engine.Options{Client: client, Services: hooked(refusing.hook)})
	turn(t, s, "go", nil)
	if n := len(server.Requests()); n != 2 || !strings.Contains(string(server.Requests()[1].Raw), "no helpers today") {
		t.Errorf("%d requests", n)
	}
}

// TestHookBeforeATool: decisions count in the order hooks, denials, questions, mode, permissions, a person.
func TestHookBeforeATool(t *testing.T) {
	rules := guard.Rules{
		rule(t, guard.Deny, "Bash(git push:*)"), rule(t, guard.Ask, "Bash(npm:*)"),
		rule(t, guard.Allow, "Bash(free:*)"),
	}
	for name, tt := range map[string]struct {
		line string
		mode setting.Approval
		word agent.HookAnswer
		ran  string
		told string
		q    int
	}{
		"nothing":           {"make a", setting.Prompt, agent.HookAnswer{}, "make a", "", 1},
		"allow":             {"make a", setting.Prompt, agent.HookAnswer{Decision: "allow"}, "make a", "", 0},
		"allow in mode ask": {"make a", setting.AskAll, agent.HookAnswer{Decision: "allow"}, "make a", "", 0},
		"allow in mode deny": {
			"make a", setting.DenyAll,
			agent.HookAnswer{Decision: "allow"},
			"",
			"denied the permission mode deny", 0,
		},
		"allow in mode plan": {
			"make a", setting.Plan,
			agent.HookAnswer{Decision: "allow"},
			"",
			"denied the permission mode plan", 0,
		},
		"allow of a denial": {
			"git push", setting.Yolo,
			agent.HookAnswer{Decision: "allow"},
			"",
			"denied the deny rule", 0,
		},
		"allow of a firm one": {"sudo ls", setting.Yolo, agent.HookAnswer{Decision: "allow"}, "sudo ls", "", 1},
		"allow of a credential": {
			"cat /etc/shadow", setting.Yolo, agent.HookAnswer{Decision: "allow"}, "", "denied ", 0,
		},
		"allow of an ask rule": {"npm test", setting.Prompt, agent.HookAnswer{Decision: "allow"}, "npm test", "", 1},
		"deny": {
			"make a", setting.Yolo,
			agent.HookAnswer{Decision: "deny", Reason: "not on Sundays"},
			"",
			"denied not on Sundays; result true", 0,
		},
		"deny without a reason": {
			"make a", setting.Yolo,
			agent.HookAnswer{Decision: "deny"},
			"",
			"denied a hook refuses it", 0,
		},
		"deny of what is free": {"free x", setting.Prompt, agent.HookAnswer{
			Decision: "deny",
			Input:    json.RawMessage(`{"command":"free y"}`),
		}, "", "denied a hook refuses it", 0},
		"ask": {
			"free x", setting.Yolo,
			agent.HookAnswer{Decision: "ask", Reason: "really?"},
			"free x", "", 1,
		},
		"ask of a denial": {"git push", setting.Yolo, agent.HookAnswer{Decision: "ask"}, "", "denied the deny rule", 0},
		"input": {
			"make a", setting.Yolo,
			agent.HookAnswer{Input: json.RawMessage(`{"command":"make b"}`)},
			"make b", "", 0,
		},
		"input and allow": {"make a", setting.Prompt, agent.HookAnswer{
			Decision: "allow",
			Input:    json.RawMessage(`{"command":"make b"}`),
		}, "make b", "", 0},
		"input that is denied": {"make a", setting.Yolo, agent.HookAnswer{
			Decision: "allow",
			Input:    json.RawMessage(`{"command":"git push -f"}`),
		}, "", "denied ", 0},
		"input that is wrong": {
			"make a", setting.Yolo,
			agent.HookAnswer{Decision: "allow", Input: json.RawMessage(`{}`)},
			"", "call Bash; result true", 0,
		},
		"input that is not JSON": {"make a", setting.Yolo, agent.HookAnswer{
			Decision: "allow",
			Input:    json.RawMessage(`{"comm`),
		}, "", "denied the hook that decides about it gave an input", 0},
		"input null": {
			"make a", setting.Yolo,
			agent.HookAnswer{Decision: "allow", Input: json.RawMessage(`null`)},
			"", "denied the hook that decides about it gave an input", 0,
		},
		"nonsense": {
			"make a", setting.Yolo,
			agent.HookAnswer{Decision: "perhaps"},
			"",
			`denied the hook that decides about it decided "perhaps"`, 0,
		},
		"end": {
			"make a", setting.Yolo,
			agent.HookAnswer{End: "enough"},
			"",
			"ended error_during_execution", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var ran []string
			client, server := scripted(t, bash(tt.line))
			h := &heard{says: map[agent.MomentName]func(agent.Moment) agent.HookAnswer{
				agent.BeforeTool: always(tt.word),
			}}
			s := begin(t, engine.Options{
				Client: client, Services: agent.Services{CanAsk: true, Hook: h.hook}, Mode: tt.mode,
				Rules: guard.Judge{Rules: rules, Place: guard.Place{Root: "/w", Dir: "/w"}},
			}, line(&ran))
			asked := 0
			all := turn(t, s, "go", func(e event.Event) {
				if e.Kind == event.Question {
					asked++
					if name == "ask" && !strings.Contains(e.Ask.Text, "really?") {
						t.Errorf("%+v", e.Ask)
					}
					answer(t, s, e, event.Reply{Option: event.Allow})
				}
				if e.Kind == event.ToolResult && (e.Result.Input != nil) != (tt.ran == "make b") && tt.ran != "" {
					t.Errorf("%+v", e.Result)
				}
			})
			if got := strings.Join(ran, ", "); got != tt.ran || asked != tt.q || !strings.Contains(told(all), tt.told) {
				t.Errorf("ran %s, %d questions: %s", got, asked, told(all))
			}
			if n := len(server.Requests()); n != 2 && name != "end" || n != 1 && name == "end" {
				t.Errorf("%d requests", n)
			}
		})
	}
	var ran []string // if nobody can be asked, a question is a denial
	client, _ := scripted(t, bash("make a"))
	h := says(agent.BeforeTool, agent.HookAnswer{Decision: "ask"})
	s := begin(t, engine.Options{Client: client, Mode: setting.Default, Walls: engine.Whole, Services: hooked(h.hook)},
		line(&ran))
	if got := told(turn(t, s, "go", nil)); len(ran) > 0 || !strings.Contains(got, "nobody can be asked") {
		t.Error(got)
	}
}

// TestBadHooks: with a hook that panics or never returns, each call still has its result and each message its end.
func TestBadHooks(t *testing.T) {
	for _, name := range []agent.MomentName{
		agent.SessionBegins, agent.MessageComes, agent.BeforeTool, agent.AfterTool, agent.AfterFailure, agent.TurnEnds,
		agent.HelperBegins, agent.HelperEnds, agent.SessionEnds,
	} {
		for how, do := range map[string]func(context.Context) agent.HookAnswer{
			"falls": func(context.Context) agent.HookAnswer { panic("oh") },
			"nonsense": func(context.Context) agent.HookAnswer {
				return agent.HookAnswer{Decision: "perhaps", Context: "secret plan"}
			},
			"never": func(ctx context.Context) agent.HookAnswer {
				<-ctx.Done()
				return agent.HookAnswer{Decision: "allow"}
			},
			"for ever":  func(context.Context) agent.HookAnswer { select {} },
			"ends":      func(context.Context) agent.HookAnswer { return agent.HookAnswer{End: "enough"} },
			"goes away": func(context.Context) agent.HookAnswer { runtime.Goexit(); return agent.HookAnswer{} },
		} {
			t.Run(string(name)+"/"+how, func(t *testing.T) {
				t.Parallel()
				var ran []string
				client, _ := scripted(t, script(task(), call("Bash", `{"command":"make a"}`), call("Bad", `{}`), ok()))
				bad := fails("oh")
				var s *mind
				once := sync.Once{}
				hook := func(ctx context.Context, m agent.Moment) agent.HookAnswer {
					if m.Name != name {
						return agent.HookAnswer{}
					}
					if how == "never" || how == "for ever" { // the host goes away while it waits
						once.Do(func() { s.interrupt() })
					}
					return do(ctx)
				}
				s = begin(t, engine.Options{Client: client, Mode: setting.Yolo, Services: hooked(hook)},
					line(&ran), kit("Bad", bad))
				all := turn(t, s, "go", nil)
				if got := told(all); strings.Count(got, "call") != strings.Count(got, "result") {
					t.Errorf("%s", got)
				}
				end := all[len(all)-1].End
				gate := name == agent.MessageComes
				switch {
				case name == agent.SessionEnds || name == agent.HelperEnds && how == "ends" || name == agent.TurnEnds &&
					how == "ends":
					if !end.OK {
						t.Errorf("%s", told(all))
					}
				case how == "never" || how == "for ever":
					if end.Reason != event.Cancelled {
						t.Errorf("%s", told(all))
					}
				case how == "ends" || gate:
					if end.OK || end.Reason != event.FailedTurn {
						t.Errorf("%s", told(all))
					}
				default:
					if !end.OK || (len(ran) > 0) == (name == agent.BeforeTool) {
						t.Errorf("%v, %s", ran, told(all))
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				if _, err := s.Close(ctx); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestContext: the model gets what a hook adds, and does not get a message that the hook refuses.
func TestContext(t *testing.T) {
	client, server := scripted(t, `[{"call":{"name":"Look","input":{}}},{"say":"ok"}]`)
	look := reads("seen")
	h := &heard{says: map[agent.MomentName]func(agent.Moment) agent.HookAnswer{
		agent.SessionBegins: always(agent.HookAnswer{Context: "context one", Note: "for you alone"}),
		agent.MessageComes: func(m agent.Moment) agent.HookAnswer {
			if m.Text == "forbidden" {
				return agent.HookAnswer{Decision: event.Deny, Reason: "bad word"}
			}
			return agent.HookAnswer{Context: "context two"}
		},
		agent.BeforeTool: always(agent.HookAnswer{Context: "context three"}),
		agent.AfterTool: always(agent.HookAnswer{
			Context: "context four", Decision: event.Deny, Reason: "look closer",
		}),
	}}
	s := begin(t, engine.Options{Client: client, Services: hooked(h.hook)}, kit("Look", look))
	notes := ""
	see := func(e event.Event) {
		if e.Kind == event.Notice {
			notes += e.Text
		}
	}
	all := turn(t, s, "forbidden", see)
	if got := told(all); len(server.Requests()) > 0 || !strings.Contains(got,
		"failed BLOCKED_BY_POLICY; ended error_during_execution") {
		t.Error(got)
	}
	all = turn(t, s, "go", func(e event.Event) {
		see(e)
		if e.Kind == event.ToolResult && e.Result.Output != "seen" {
			t.Errorf("%+v", e.Result)
		}
	})
	if !all[len(all)-1].End.OK {
		t.Error(told(all))
	}
	first, second := string(server.Requests()[0].Raw), string(server.Requests()[1].Raw)
	if strings.Contains(second, "forbidden") || strings.Contains(second, "for you alone") ||
		strings.Count(second, "context one") != 1 || notes != "for you alone" {
		t.Errorf("%q: %s", notes, second)
	}
	if !strings.Contains(first, "context two") || !strings.Contains(second, "context three") ||
		!strings.Contains(second, "context four") || !strings.Contains(second, "look closer") {
		t.Errorf("%s\n%s", first, second)
	}
}

// TestTheHostKeepsATurnFromItsEnd with a reason, which becomes the next message. The next time, the host learns that it
// has done so before.
func TestTheHostKeepsATurnFromItsEnd(t *testing.T) {
	client, server := scripted(t, `[{"say":"you said ${input}"}]`)
	var again []bool
	h := &heard{says: map[agent.MomentName]func(agent.Moment) agent.HookAnswer{
		agent.TurnEnds: func(m agent.Moment) agent.HookAnswer {
			if again = append(again, m.Again); m.Again {
				return agent.HookAnswer{}
			}
			return agent.HookAnswer{Decision: event.Deny, Reason: "run the tests"}
		},
	}}
	s := begin(t, engine.Options{Client: client, Services: hooked(h.hook)})
	for range 2 {
		all := turn(t, s, "go", nil)
		if end := all[len(all)-1].End; end.Text != "you said run the tests" || *end.Turns != 2 {
			t.Errorf("%s", told(all))
		}
	}
	if !slices.Equal(again, []bool{false, true, false, true}) || len(server.Requests()) != 4 {
		t.Errorf("%v", again)
	}
	stubborn := says(agent.TurnEnds, agent.HookAnswer{Decision: event.Deny})
	s = begin(t, engine.Options{Client: client, Services: hooked(stubborn.hook), Limits: engine.Limits{Turns: 3}})
	if got := told(turn(t, s, "go", nil)); !strings.Contains(got, "ended error_max_turns") {
		t.Error(got)
	}
}

// TestHooksAtAShortening: the host may refuse it while there is room, and may add to the request for the summary.
func TestHooksAtAShortening(t *testing.T) {
	for _, refuses := range []bool{true, false} {
		asked := make(chan model.Request, 20)
		client, _ := scripted(t, `[]`)
		h := &heard{says: map[agent.MomentName]func(agent.Moment) agent.HookAnswer{
			agent.Shortening: func(agent.Moment) agent.HookAnswer {
				if refuses {
					return agent.HookAnswer{Decision: event.Deny, Reason: "not now"}
				}
				return agent.HookAnswer{Context: "keep the names"}
			},
		}}
		s := begin(t, engine.Options{
			Client: canned{client, model.Answer{
				Blocks: []model.Block{{Kind: model.Text, Text: "x"}}, Usage: model.Usage{Input: 150_000},
			}, asked}, Services: hooked(h.hook),
		})
		compacted := 0
		for range 3 {
			all := turn(t, s, "go", func(e event.Event) {
				if e.Kind == event.Compacted {
					compacted++
				}
			})
			if !all[len(all)-1].End.OK {
				t.Error(told(all))
			}
		}
		close(asked)
		told := false
		for q := range asked {
			for _, b := range q.Messages[0].Blocks {
				told = told || strings.Contains(b.Text, "keep the names")
			}
		}
		if (compacted == 0) != refuses || told == refuses {
			t.Errorf("refuses %v: %d times, told %v", refuses, compacted, told)
		}
	}
}

// TestAnswerInAForm: the answer is checked, requested again, and finally given up; the end of the turn tells these
// apart.
func TestAnswerInAForm(t *testing.T) {
	form, err := engine.NewForm([]byte(`{"properties":{"n":{"type":"integer"}},"required":["n"]}`), 4)
	if err != nil {
		t.Fatal(err)
	}
	give := func(input string) string { return `{"call":{"name":"StructuredOutput","input":` + input + `}}` }
	for name, tt := range map[string]struct {
		script   string
		mode     setting.Approval
		want     string
		form     string
		requests int
	}{
		"at once": {
			"[" + give(`{"n":1}`) + `,{"say":"never"}]`, setting.Prompt, `ended success "{\"n\":1}"`,
			`{"n":1}`, 1,
		},
		"mode deny": {"[" + give(`{"n":1}`) + `,{"say":"never"}]`, setting.DenyAll, `ended success`, `{"n":1}`, 1},
		"mode ask":  {"[" + give(`{"n":1}`) + `,{"say":"never"}]`, setting.AskAll, `ended success`, `{"n":1}`, 1},
		"mode plan": {"[" + give(`{"n":1}`) + `,{"say":"never"}]`, setting.Plan, `ended success`, `{"n":1}`, 1},
		"said before": {
			`[{"say":"here it is"},` + give(`{"n":1}`) + `]`, setting.Prompt,
			`ended success "here it is"`, `{"n":1}`, 1,
		},
		"second try": {
			"[" + give(`{"n":"x"}`) + "," + give(`{"n":2}`) + "]", setting.Prompt,
			"call StructuredOutput; result true; call StructuredOutput; result false; ended success", `{"n":2}`, 2,
		},
		"never fits": {
			"[" + strings.Repeat(give(`{"n":"x"}`)+",", 9) + `{"say":"x"}]`, setting.Prompt,
			"ended error_max_structured_output_retries", "", 5,
		},
		"only in words": {`[{"say":"it is one"}]`, setting.Prompt, "ended error_max_structured_output_retries", "", 5},
		"with others": {
			`[{"calls":[` + give(`{"n":1}`) + `,{"call":{"name":"Look","input":{}}}]},{"say":"never"}]`,
			setting.Prompt, "call Look; result false; ended success", `{"n":1}`, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, server := scripted(t, tt.script)
			look := reads("seen")
			s := begin(t, engine.Options{Client: client, Form: form, Mode: tt.mode, Services: asking()},
				kit("Look", look))
			all := turn(t, s, "go", nil)
			end := all[len(all)-1].End
			if got := told(all); !strings.Contains(got, tt.want) || string(end.Structured) != tt.form ||
				end.OK != (tt.form != "") || len(server.Requests()) != tt.requests {
				t.Errorf("%d requests, %s: %s", len(server.Requests()), end.Structured, got)
			}
		})
	}
	for text, want := range map[string]string{
		`{`: "wrong", `{"type":"nonsense"}`: "wrong", `{"type":"array"}`: "can only be an object", `true`: "not an object",
		`{"type":["object"]}`: "can only be an object", `{"$ref":"http://x/y"}`: "wrong",
	} {
		if _, err := engine.NewForm([]byte(text), 4); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
