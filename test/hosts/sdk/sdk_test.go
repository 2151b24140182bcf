package sdk

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/llm/modelserver"
)

// scenario is one in scenarios.mjs, the model's part in it, and what is true of every program that can be taken for
// Claude Code.
type scenario struct {
	name, script string
	check        func(t *testing.T, s *stage, o observed)
}

// one is what was heard of the only conversation, which nothing ended early.
func one(t *testing.T, o observed, results int) seen {
	t.Helper()
	v := take[seen](t, o, "seen")
	v.whole(t, results)
	return v
}

// whole holds a conversation against what hosts rely on whatever happens in it.
func (v seen) whole(t *testing.T, results int) {
	t.Helper()
	if len(v.Results) != results || len(v.Inits) != results || len(v.NoUUID) != 0 || v.Wide || len(v.Sessions) != 1 {
		t.Fatalf("%d results, %d inits, without a uuid %v, several blocks %v, sessions %v, thrown %v\n%v",
			len(v.Results), len(v.Inits), v.NoUUID, v.Wide, v.Sessions, v.Thrown, v.Kinds)
	}
	var cost float64
	for _, r := range v.Results {
		if r.Duration == nil || r.Cost == nil || r.Usage["input_tokens"] == nil || r.Models == nil ||
			r.Denials == nil || *r.Cost < cost {
			t.Errorf("%+v", r)
		}
		cost = *r.Cost
		if (r.Subtype == "success") != (r.Result != nil) || (r.Subtype != "success") != (len(r.Errors) > 0) ||
			r.Subtype != "success" && !r.IsError {
			t.Errorf("%+v", r)
		}
	}
	for i := range v.Inits {
		if v.Inits[i].Model == "" || len(v.Inits[i].Tools) == 0 {
			t.Errorf("%+v", v.Inits[i])
		}
	}
	// Each turn begins with init, and nothing of it comes behind its result.
	inside := false
	for _, k := range v.Kinds {
		switch {
		case k == "system/init":
			inside = true
		case strings.HasPrefix(k, "result/"):
			inside = false
		case !inside && (k == "assistant" || k == "stream_event"):
			t.Errorf("%s outside of a turn: %v", k, v.Kinds)
		}
	}
}

func (v seen) ended(t *testing.T, subtypes ...string) {
	t.Helper()
	for i, want := range subtypes {
		if v.Results[i].Subtype != want {
			t.Errorf("result %d: %+v, not %s", i, v.Results[i], want)
		}
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, not %v", what, got, want)
	}
}

const (
	touch = `[{"shell":"touch made"},{"say":"done"}]`
	write = `[{"write":{"path":"made","content":"x"}},{"say":"done"}]`
	hello = `[{"say":"hello"}]`
)

func scenarios() []scenario {
	return slices.Concat(plain(), permissions(), limits(), extensions(), sessions())
}

func plain() []scenario {
	return []scenario{
		{"turns", hello, func(t *testing.T, _ *stage, o observed) {
			v := one(t, o, 2)
			v.ended(t, "success", "success")
			equal(t, "texts", fmt.Sprint(v.Texts), "[hello hello]")
			equal(t, "result", *v.Results[1].Result, "hello")
			equal(t, "turns", v.Results[0].Turns, 1)
			for _, m := range v.Results[1].Models { // over the process, of which a turn is a part
				if m.Output <= v.Results[1].outputs(t) || m.Cost == nil {
					t.Errorf("%+v", v.Results[1])
				}
			}
		}},
		{"single", hello, func(t *testing.T, _ *stage, o observed) { one(t, o, 1).ended(t, "success") }},
		{
			"steer", `[{"shell":"while ! test -e go; do sleep 0.02; done"},{"say":"done"}]`,
			func(t *testing.T, s *stage, o observed) {
				one(t, o, 1).ended(t, "success")
				for _, m := range s.conversation()[1].Messages { // the model hears of it while the turn goes on
					for _, b := range m.Blocks {
						if strings.Contains(b.Text, "mind the cat") {
							return
						}
					}
				}
				t.Error("the message did not reach the turn")
			},
		},
		{"images", `[{"say":"a dot"}]`, func(t *testing.T, s *stage, o observed) {
			one(t, o, 1).ended(t, "success")
			for _, m := range s.conversation()[0].Messages {
				for _, b := range m.Blocks {
					if b.Kind == modelserver.Image {
						return
					}
				}
			}
			t.Error("the model did not get the image")
		}},
		{
			"partial", `[{"think":"hm"},{"say":"I will"},{"shell":"touch made"},{"say":"done"}]`,
			func(t *testing.T, s *stage, o observed) {
				v := one(t, o, 1)
				equal(t, "made", s.made("made"), "")
				var sequence, text, input string
				for _, p := range v.Partial {
					if p.Type != "content_block_delta" {
						sequence += p.Type + " " + p.Block.Type + p.Delta.Stop + "\n"
					}
					text += p.Delta.Text
					input += p.Delta.Partial
				}
				equal(t, "text", text, "I willdone")
				equal(t, "input", strings.ReplaceAll(input, " ", ""), `{"command":"touchmade"}`)
				equal(t, "sequence", sequence,
					"message_start \ncontent_block_start thinking\ncontent_block_stop \ncontent_block_start "+
						"text\ncontent_block_stop \ncontent_block_start tool_use\n"+
						"content_block_stop \nmessage_delta tool_use\nmessage_stop \nmessage_start "+
						"\ncontent_block_start text\ncontent_block_stop \nmessage_delta end_turn\nmessage_stop \n")
			},
		},
		{
			"interrupt", `[{"say":"this is a long answer that never comes to its end","stall":"middle"}]`,
			func(t *testing.T, _ *stage, o observed) {
				v := one(t, o, 2) // and the conversation goes on
				v.ended(t, "error_during_execution", "error_during_execution")
				if take[struct {
					Queued []string `json:"still_queued"`
				}](t, o, "answer").Queued == nil {
					t.Errorf("%s", o["answer"])
				}
				var starts, stops int
				for _, p := range v.Partial {
					starts += strings.Count(p.Type, "message_start")
					stops += strings.Count(p.Type, "message_stop")
				}
				if starts != 2 || stops != 2 {
					t.Errorf("%d messages begin, %d end", starts, stops)
				}
			},
		},
		{"prompts", hello, func(t *testing.T, s *stage, o observed) {
			replaced, appended := take[seen](t, o, "replaced"), take[seen](t, o, "appended")
			replaced.whole(t, 1)
			appended.whole(t, 1)
			var first, second bool
			for _, r := range s.conversation() {
				first = first || strings.Contains(r.System, "You are a lighthouse.")
				second = second || strings.Contains(r.System, "Never mention whales.") &&
					!strings.Contains(r.System, "lighthouse")
			}
			if !first || !second {
				t.Errorf("the model was told: in place %v, behind %v", first, second)
			}
		}},
		{"info", hello, func(t *testing.T, _ *stage, o observed) {
			one(t, o, 1)
			for _, name := range []string{"commands", "models", "mcp"} {
				if v := take[[]any](t, o, name); v == nil {
					t.Errorf("%s: %s", name, o[name])
				}
			}
			if rewind := take[string](t, o, "rewind"); rewind == "taken" {
				t.Error("what was never done is said to be done")
			}
		}},
	}
}

func (r result) outputs(t *testing.T) (n int64) {
	t.Helper()
	if err := json.Unmarshal(r.Usage["output_tokens"], &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func permissions() []scenario {
	return []scenario{
		{
			"allow", `[{"think":"hm"},{"say":"I will"},{"shell":"touch made"},{"say":"done"}]`,
			func(t *testing.T, s *stage, o observed) {
				v, q := one(t, o, 1), take[[]asked](t, o, "asked")
				v.ended(t, "success")
				equal(t, "made", s.made("made"), "")
				if len(q) != 1 || q[0].Name != "Bash" || q[0].Input["command"] != "touch made" || q[0].ID == "" ||
					len(q[0].Suggestions) == 0 || len(v.Results[0].Denials) != 0 || len(v.Tools) != 1 {
					t.Errorf("%+v %+v", q, v)
				}
			},
		},
		{"deny", touch, func(t *testing.T, s *stage, o observed) {
			v := one(t, o, 1)
			v.ended(t, "success")
			equal(t, "made", s.made("made"), "-")
			d := v.Results[0].Denials
			if len(d) != 1 || d[0].Tool != "Bash" || d[0].Input["command"] != "touch made" || !v.Tools[0].Failed ||
				!strings.Contains(v.Tools[0].Text, "not on a Sunday") {
				t.Errorf("%+v %+v", d, v.Tools)
			}
		}},
		{"denystop", touch, func(t *testing.T, s *stage, o observed) {
			v := one(t, o, 1)
			v.ended(t, "error_during_execution")
			equal(t, "made", s.made("made"), "-")
			equal(t, "answers of the model", len(s.conversation()), 1)
		}},
		{"edited", touch, func(t *testing.T, s *stage, o observed) {
			one(t, o, 1).ended(t, "success")
			equal(t, "made", s.made("made"), "edited")
		}},
		{"remembered", touch, func(t *testing.T, _ *stage, o observed) {
			one(t, o, 2).ended(t, "success", "success")
			equal(t, "questions", len(take[[]asked](t, o, "asked")), 1)
		}},
		{"setmode", write, func(t *testing.T, s *stage, o observed) {
			v := one(t, o, 2)
			equal(t, "questions", len(take[[]asked](t, o, "asked")), 1)
			equal(t, "mode", v.Inits[1].Mode, "acceptEdits")
			equal(t, "made", s.made("made"), "x")
		}},
		{"mode", write, func(t *testing.T, _ *stage, o observed) {
			v := one(t, o, 2)
			equal(t, "questions", len(take[[]asked](t, o, "asked")), 1)
			equal(t, "modes", v.Inits[0].Mode+v.Inits[1].Mode, "defaultacceptEdits")
		}},
		{"withdrawn", touch, func(t *testing.T, s *stage, o observed) {
			one(t, o, 1).ended(t, "error_during_execution")
			equal(t, "made", s.made("made"), "-")
			equal(t, "withdrawn", take[bool](t, o, "aborted"), true)
		}},
		{"bypass", touch, func(t *testing.T, s *stage, o observed) {
			v := one(t, o, 1)
			equal(t, "mode", v.Inits[0].Mode, "bypassPermissions")
			equal(t, "made", s.made("made"), "")
		}},
		{"dontask", touch, func(t *testing.T, s *stage, o observed) {
			v := one(t, o, 1)
			v.ended(t, "success")
			equal(t, "mode", v.Inits[0].Mode, "dontAsk")
			equal(t, "made", s.made("made"), "-")
			equal(t, "denials", len(v.Results[0].Denials), 1)
			equal(t, "told at once", slices.Contains(v.Kinds, "system/permission_denied"), true)
		}},
		{"plan", touch, func(t *testing.T, s *stage, o observed) {
			one(t, o, 1).ended(t, "success")
			equal(t, "made", s.made("made"), "-")
		}},
		{
			"allowed",
			`[{"shell":"touch made"},{"shell":"mkdir other"},{"write":{"path":"w","content":"x"}},{"say":"done"}]`,
			func(t *testing.T, s *stage, o observed) {
				v, q := one(t, o, 1), take[[]asked](t, o, "asked")
				if len(q) != 1 || q[0].Input["command"] != "mkdir other" {
					t.Errorf("%+v", q)
				}
				equal(t, "made", s.made("made"), "")
				equal(t, "written", s.made("w"), "-")
				equal(t, "the tool that is disallowed is offered", slices.Contains(v.Inits[0].Tools, "Write"), false)
			},
		},
		{
			"settings", `[{"shell":"touch made"},{"shell":"mkdir other"},{"say":"done"}]`,
			func(t *testing.T, s *stage, o observed) {
				v := one(t, o, 1)
				equal(t, "questions", len(take[[]asked](t, o, "asked")), 0)
				equal(t, "made", s.made("made"), "-")
				equal(t, "denials", len(v.Results[0].Denials), 1)
				if info, err := os.Stat(s.work + "/other"); err != nil || !info.IsDir() {
					t.Error("what is allowed did not run")
				}
			},
		},
	}
}

func limits() []scenario {
	return []scenario{
		{"schema", `[{"json":{"n":7}}]`, func(t *testing.T, _ *stage, o observed) {
			v := one(t, o, 1)
			v.ended(t, "success")
			equal(t, "structured", strings.ReplaceAll(string(v.Results[0].Structured), " ", ""), `{"n":7}`)
		}},
		{"schemanever", `[{"say":"no"}]`, func(t *testing.T, s *stage, o observed) {
			v := one(t, o, 1)
			if len(v.Results[0].Structured) > 0 {
				t.Errorf("%+v", v.Results[0])
			}
			if s.ours && !s.through { // Claude Code lets a model that never tries succeed
				v.ended(t, "error_max_structured_output_retries")
			}
		}},
		{"budget", touch, func(t *testing.T, s *stage, o observed) {
			v := one(t, o, 1)
			v.ended(t, "error_max_budget_usd")
			equal(t, "reason", v.Results[0].Errors[0], "Reached maximum budget ($0.0001)")
			equal(t, "answers of the model", len(s.conversation()), 1)
		}},
		{"maxturns", touch, func(t *testing.T, s *stage, o observed) {
			v := one(t, o, 1)
			v.ended(t, "error_max_turns")
			equal(t, "reason", v.Results[0].Errors[0], "Reached maximum number of turns (1)")
			equal(t, "answers of the model", len(s.conversation()), 1)
		}},
	}
}

func extensions() []scenario {
	return []scenario{
		{
			"hooks", `[{"shell":"touch made"},{"shell":"touch forbidden"},{"say":"done"}]`,
			func(t *testing.T, s *stage, o observed) {
				one(t, o, 1).ended(t, "success")
				equal(t, "made", s.made("made"), "")
				equal(t, "forbidden", s.made("forbidden"), "-")
				var events []string
				for _, c := range take[[]struct {
					Event, Tool, Session string
				}](t, o, "called") {
					events = append(events, c.Event)
					if c.Session == "" {
						t.Errorf("%+v", c)
					}
				}
				equal(t, "hooks", strings.Join(events, " "), "UserPromptSubmit PreToolUse PostToolUse PreToolUse Stop")
				equal(t, "questions", len(take[[]asked](t, o, "asked")), 0)
				var all string
				for _, r := range s.conversation() {
					all += string(r.Raw)
				}
				for _, want := range []string{"context of the hook", "the hook adds this", "the hook forbids it"} {
					equal(t, "the model was told "+want, strings.Contains(all, want), true)
				}
			},
		},
		{
			"server", `[{"call":{"name":"mcp__weather__forecast","input":{"city":"Ulm"}}},{"say":"${result}"}]`,
			func(t *testing.T, _ *stage, o observed) {
				v := one(t, o, 2)
				equal(t, "calls", fmt.Sprint(take[[]string](t, o, "got")), "[Ulm Ulm]")
				equal(t, "result", *v.Results[0].Result, "rain in Ulm")
				equal(t, "offered", slices.Contains(v.Inits[0].Tools, "mcp__weather__forecast"), true)
				status := take[[]struct{ Name, Status string }](t, o, "status")
				if len(status) != 1 || status[0].Name != "weather" || status[0].Status != "connected" {
					t.Errorf("%+v", status)
				}
			},
		},
		{
			"mcpfile", `[{"call":{"name":"mcp__tide__level","input":{}}},{"say":"${result}"}]`,
			func(t *testing.T, _ *stage, o observed) {
				equal(t, "result", *one(t, o, 1).Results[0].Result, "low tide")
			},
		},
		{
			"agents",
			`[{"call":{"name":"Task","input":{"subagent_type":"scout","prompt":"look","description":"look"}}},{"say":"done"}]`, func(t *testing.T, s *stage, o observed) {
				v := take[seen](t, o, "seen") // Claude Code may add a turn when a sub-agent ends behind the first
				equal(t, "known", slices.Contains(v.Inits[0].Agents, "scout"), true)
				for _, r := range s.conversation() {
					if strings.Contains(r.System, "scout of the mountains") {
						for _, tool := range r.Tools {
							if tool.Name == "Bash" || tool.Name == "Write" {
								t.Errorf("the scout may use %s", tool.Name)
							}
						}
						return
					}
				}
				t.Error("no sub-agent of that kind worked")
			},
		},
		{"dirs", `[{"say":"hello"}]`, func(t *testing.T, _ *stage, o observed) { one(t, o, 1).ended(t, "success") }},
	}
}

func sessions() []scenario {
	return []scenario{
		{"model", hello, func(t *testing.T, s *stage, o observed) {
			v := one(t, o, 2)
			equal(t, "models", v.Inits[0].Model+" "+v.Inits[1].Model, "claude-opus-4-5 claude-sonnet-4-5")
			c := s.conversation()
			equal(t, "models asked", c[0].Model+" "+c[len(c)-1].Model, "claude-opus-4-5 claude-sonnet-4-5")
		}},
		{"resume", hello, func(t *testing.T, s *stage, o observed) {
			first, second, fork, continued := take[seen](t, o, "first"), take[seen](t, o, "second"), take[seen](t, o,
				"fork"), take[seen](t, o, "continued")
			for _, v := range []seen{first, second, fork, continued} {
				v.whole(t, 1)
			}
			equal(t, "resumed", second.Sessions[0], first.Sessions[0])
			equal(t, "a fork has an id of its own", fork.Sessions[0] != first.Sessions[0], true)
			equal(t, "the newest is continued", continued.Sessions[0], fork.Sessions[0])
			c := s.conversation()
			for i, words := range []string{"first words", "second words", "third words", "fourth words"} {
				said := ""
				for _, m := range c[i].Messages {
					for _, b := range m.Blocks {
						said += b.Text
					}
				}
				if !strings.Contains(said, words) || !strings.Contains(said, "first words") || i == 3 &&
					!strings.Contains(said, "third words") {
					t.Errorf("conversation %d: %q", i, said)
				}
			}
		}},
		{"unknown", hello, func(t *testing.T, _ *stage, o observed) {
			v := take[seen](t, o, "seen")
			if len(v.Results) > 0 && v.Results[0].Subtype != "error_during_execution" || v.Thrown == nil ||
				!strings.Contains(*v.Thrown,
					"No conversation found with session ID: 0b0b0b0b-1111-4222-8333-444444444444") {
				t.Errorf("%+v", v)
			}
		}},
		{"session", hello, func(t *testing.T, _ *stage, o observed) {
			equal(t, "id", one(t, o, 1).Sessions[0], "0a0a0a0a-1111-4222-8333-444444444444")
		}},
	}
}

// TestSDK runs the scenarios on our program.
func TestSDK(t *testing.T) {
	if modules == "" {
		t.Skip("set " + hosts + " to what scripts/hosts prints")
	}
	for _, c := range scenarios() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, true)
			c.check(t, s, s.play(t, c.name, c.script))
		})
	}
}

// TestClaude runs them on Claude Code: what is asserted of us is true of it.
func TestClaude(t *testing.T) {
	if modules == "" || os.Getenv(agents) == "" {
		t.Skip("set " + hosts + " to what scripts/hosts prints, and " + agents + " to what scripts/agents prints")
	}
	for _, c := range scenarios() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, false)
			c.check(t, s, s.play(t, c.name, c.script))
		})
	}
}

// TestThrough runs them on Claude Code through our program: the lines pass, and what is asserted of both is still true.
func TestThrough(t *testing.T) {
	if modules == "" || os.Getenv(agents) == "" {
		t.Skip("set " + hosts + " to what scripts/hosts prints, and " + agents + " to what scripts/agents prints")
	}
	for _, c := range scenarios() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, false)
			s.ours, s.through = true, true
			c.check(t, s, s.play(t, c.name, c.script))
		})
	}
}
