package claude_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/wire/claude"
)

func question() claude.Question {
	return claude.NewQuestion(event.Ask{
		ID: "c1", Text: "why", Options: []string{"allow", "always", "deny"},
		Tool: &event.Call{
			ID: "c1", Name: "Bash", Kind: event.Shell, Command: "ls -l", Input: json.RawMessage(`{"command":"ls -l"}`),
		},
	})
}

// TestAnswers: what a host says beside yes and no is in the answer, and what cannot be kept makes a no of it.
func TestAnswers(t *testing.T) {
	for body, want := range map[string]string{
		`{"behavior":"allow"}`: "allow [] []  false",
		`{"behavior":"allow","updatedInput":{"command":"ls -l"}}`:   "allow [] []  false",
		`{"behavior":"allow","updatedInput":{ "command" : "pwd" }}`: `allow [] []  false { "command" : "pwd" }`,
		`{"behavior":"allow","updatedInput":null}`:                  "allow [] []  false",
		`{"behavior":"allow","updatedInput":"x"}`: "deny [] [the host's updatedInput is not an object] " +
			" false the host's updatedInput is not an object",
		`{"behavior":"deny","message":"no"}`:                  "deny [] []  false no",
		`{"behavior":"deny","message":"no","interrupt":true}`: "deny [] []  true no",
		`{}`: "deny [] [the host's answer is neither allow nor deny]  false the host's answer is neither allow " +
			"nor deny",
		`7`: "deny [] [the host's answer could not be read]  false the host's answer could not be read",
		`{"behavior":"allow","updatedPermissions":[{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"ls:*"},{"toolName":"Read"}],"behavior":"allow","destination":"session"}]}`: "allow [Bash(ls:*) Read] []  false",
		`{"behavior":"allow","updatedPermissions":[{"type":"addRules","rules":[{"toolName":"Bash"}],"behavior":"allow","destination":"userSettings"}]}`:                                     "allow [Bash] [what the host wants remembered in userSettings is remembered to the end of this conversation]  false",
		`{"behavior":"allow","updatedPermissions":[{"type":"setMode","mode":"acceptEdits","destination":"session"}]}`:                                                                       "allow [] [] auto-edit false",
		`{"behavior":"allow","updatedPermissions":[{"type":"setMode","mode":"dontAsk"}]}`:                                                                                                   "allow [] [] prompt unasked false",
		`{"behavior":"allow","updatedPermissions":[{"type":"addDirectories","directories":["/"],"destination":"session"}]}`:                                                                 "allow [] [the host's answer adds directories, which stay closed in this conversation: --add-dir opens them]  false",
	} {
		if got := verdict(question(), claude.Reply{ID: "r", Body: json.RawMessage(body)}); got != want {
			t.Errorf("%s:\n%s\nnot\n%s", body, got, want)
		}
	}
	for body, why := range map[string]string{
		`{"behavior":"allow","updatedPermissions":[{"type":"setMode","mode":"auto"}]}`:                                        "a model of its vendor",
		`{"behavior":"allow","updatedPermissions":[{"type":"addRules","rules":[{"toolName":"Bash"}],"behavior":"deny"}]}`:     "addRules deny, which cannot be kept",
		`{"behavior":"allow","updatedPermissions":[{"type":"removeRules","rules":[{"toolName":"Bash"}],"behavior":"allow"}]}`: "removeRules allow, which cannot be kept",
		`{"behavior":"allow","updatedPermissions":[{"type":"removeDirectories","directories":["/"]}]}`:                        "cannot be kept",
		`{"behavior":"allow","updatedPermissions":[{"type":"replaceRules","rules":[],"behavior":"allow"}]}`:                   "cannot be kept",
	} {
		a, _, notes := question().Verdict(claude.Reply{Body: json.RawMessage(body)})
		if a.Option != "deny" || !strings.Contains(a.Text, why) || len(notes) == 0 {
			t.Errorf("%s: %+v %q", body, a, notes)
		}
	}
	if got := verdict(question(), claude.Reply{Error: "it threw"}); !strings.HasPrefix(got, "deny") {
		t.Error(got)
	}
	other := claude.NewQuestion(event.Ask{
		ID: "q", Options: []string{"accept", "reject"}, Tool: &event.Call{ID: "c", Name: "x"},
	})
	if a, _, _ := other.Verdict(claude.Reply{Body: json.RawMessage(`{"behavior":"allow"}`)}); a.Option != "accept" {
		t.Errorf("%+v", a)
	}
}

func verdict(q claude.Question, r claude.Reply) string {
	a, mode, notes := q.Verdict(r)
	m := string(a.Mode)
	if mode != nil && mode.Unasked {
		m += " unasked"
	}
	return strings.TrimSpace(fmt.Sprintf("%s %v %v %s %v %s%s", a.Option, a.Rules, notes, m, a.Stop, a.Input, a.Text))
}

// TestQuestions as the host gets them.
func TestQuestions(t *testing.T) {
	asked := string(claude.Ask("r1", question().Request))
	for _, want := range []string{
		`"type":"control_request","request_id":"r1"`, `"subtype":"can_use_tool"`, `"tool_name":"Bash"`,
		`"input":{"command":"ls -l"}`, `"tool_use_id":"c1"`,
		`"permission_suggestions":[{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"ls -l"}],"behavior":"allow","destination":"session"}]`,
	} {
		if !strings.Contains(asked, want) {
			t.Errorf("%s has no %s", asked, want)
		}
	}
	write := string(claude.Ask("r2",
		claude.NewQuestion(event.Ask{ID: "c", Tool: &event.Call{
			ID: "c", Name: "Write", Kind: event.Write, Path: "/w/f",
		}}).Request))
	if !strings.Contains(write,
		`"permission_suggestions":[{"type":"setMode","mode":"acceptEdits","destination":"session"}]`) ||
		!strings.Contains(write, `"blocked_path":"/w/f"`) || !strings.Contains(write, `"input":{"file_path":"/w/f"}`) {
		t.Error(write)
	}
	q := claude.NewQuestion(event.Ask{ID: "q1", Text: "Which?", Options: []string{"red", "blue"}})
	if s := string(claude.Ask("r3", q.Request)); !strings.Contains(s, `"tool_name":"AskUserQuestion"`) ||
		!strings.Contains(s, `{"question":"Which?","header":"Question","options":[{"label":"red","description":""},`) {
		t.Error(s)
	}
	a, _, _ := q.Verdict(
		claude.Reply{Body: json.RawMessage(`{"behavior":"allow","updatedInput":{"answers":{"Which?":"blue"}}}`)})
	b, _, _ := q.Verdict(
		claude.Reply{Body: json.RawMessage(`{"behavior":"allow","updatedInput":{"answers":{"Which?":"green"}}}`)})
	if a.Option != "blue" || b.Option != "" || b.Text != "green" {
		t.Errorf("%+v %+v", a, b)
	}
}

// TestModes: each word has one mode, which maps back to it, and auto is refused.
func TestModes(t *testing.T) {
	for _, m := range claude.Modes() {
		if m.Word == "manual" { // another word for default
			continue
		}
		got, why := claude.ModeOf(m.Word)
		if (m.Word == "auto") != (why != "") || (m.Mode == "") != (why != "") {
			t.Errorf("%+v %s", got, why)
		}
		if why == "" && claude.Word(got.Mode, got.Unasked) != m.Word {
			t.Errorf("%s is %s again", m.Word, claude.Word(got.Mode, got.Unasked))
		}
	}
	if _, why := claude.ModeOf("yolo"); !strings.Contains(why, "the modes are default") {
		t.Error(why)
	}
	for _, m := range []setting.Approval{
		setting.DenyAll, setting.AskAll, setting.Plan, setting.Prompt, setting.Default,
		setting.AutoEdit, setting.Yolo,
	} {
		if _, why := claude.ModeOf(claude.Word(m, false)); why != "" {
			t.Errorf("%s has the word %s", m, claude.Word(m, false))
		}
	}
}

func TestInitialize(t *testing.T) {
	init, err := claude.ReadInitialize([]byte(`{"subtype":"initialize","systemPrompt":[""],"appendSystemPrompt":"more","jsonSchema":{ "type":"object" },"sdkMcpServers":["w"],"disallowedTools":["Bash"],
		"agents":{"b":{"description":"d","prompt":"p","tools":[],"model":"inherit"},"a":{"description":"d","prompt":"p"}},"title":"x","promptSuggestions":false,"plugins":[],
		"hooks":{"PreToolUse":[{"matcher":"Edit|Write","hookCallbackIds":["h0","h1"],"timeout":2,"onFailure":"block"}],"Notification":[{"hookCallbackIds":["h2"]}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if init.System != "" || init.Append != "more" || string(init.Schema) != `{"type":"object"}` ||
		string(init.Servers[0]) != `{"w":{"name":"w","type":"sdk"}}` ||
		fmt.Sprint(init.Deny, init.Ignored) != "[Bash] [hooks.Notification title]" {
		t.Errorf("%+v", init)
	}
	if h := init.Helpers; len(h) != 2 || h[0].Name != "a" || h[0].Tools != nil || h[1].Tools == nil ||
		len(h[1].Tools) != 0 || h[1].Model != "" {
		t.Errorf("%+v", h)
	}
	if h := init.Hooks; len(h) != 1 || h[0].Moment != agent.BeforeTool || len(h[0].IDs) != 2 ||
		h[0].Timeout.Seconds() != 2 || !h[0].Block || !h[0].Matcher.Matches("Edit") ||
		h[0].Matcher.Matches("NotebookEdit") {
		t.Errorf("%+v", h)
	}
	for body, want := range map[string]string{
		`[]`:                          "must be an object",
		`{"restrictEverything":true}`: "restrictEverything is unknown here",
		`{"plugins":[{"path":"x"}]}`:  "plugins is unknown here",
		`{"toolAliases":{"a":"b"}}`:   "toolAliases is unknown here",
		`{"hooks":{"PermissionRequest":[{"hookCallbackIds":["a"]}]}}`: "PermissionRequest would never " +
			"be called",
		`{"hooks":{"PreToolUse":[{"matcher":"(?=x)","hookCallbackIds":["a"]}]}}`:     "is not a regular expression",
		`{"hooks":{"PreToolUse":[{"hookCallbackIds":["a"],"onFailure":"explode"}]}}`: "must be continue or block",
		`{"hooks":7}`: "invalid hooks",
		`{"agents":{"a":{"description":"d","prompt":"p","permissionMode":"plan"}}}`: "permissionMode of a is " +
			"unknown here",
		`{"agents":{"a":{"description":"d"}}}`: "needs a description and " +
			"a prompt",
		`{"sdkMcpServerConfigs":{"w":{"tools":[{"name":"x","policy":"always_deny"}]}}}`: "limits tools of w",
	} {
		if _, err := claude.ReadInitialize([]byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestMatchers(t *testing.T) {
	for _, c := range []struct {
		text, subject string
		want          bool
	}{
		{"", "Bash", true},
		{"*", "Bash", true},
		{"Bash", "Bash", true},
		{"Bash", "BashOutput", false},
		{"Edit|Write", "Write", true},
		{"Edit | Write", "Write", true},
		{"mcp__.*", "mcp__a__b", true},
		{"mcp__.*", "Bash", false},
		{"^(Edit|Wri.*)$", "Write", true},
		{"Agent", "Task", true},
		{"Task", "Task", true},
	} {
		m, err := claude.NewMatcher(c.text)
		if err != nil || m.Matches(c.subject) != c.want {
			t.Errorf("%q, %q: %v", c.text, c.subject, err)
		}
	}
}

// TestWords: what a host's hook may say, and that of what it cannot say there is no trace but an error.
func TestWords(t *testing.T) {
	for _, c := range []struct {
		moment agent.MomentName
		body   string
		want   agent.HookAnswer
		wrong  string
	}{
		{agent.BeforeTool, `{}`, agent.HookAnswer{}, ""},
		{agent.BeforeTool, `{"async":true,"decision":"block"}`, agent.HookAnswer{}, ""},
		{agent.BeforeTool, `{"decision":"block","reason":"r"}`, agent.HookAnswer{Decision: "deny", Reason: "r"}, ""},
		{agent.BeforeTool, `{"decision":"approve"}`, agent.HookAnswer{Decision: "allow"}, ""},
		{agent.TurnEnds, `{"decision":"approve"}`, agent.HookAnswer{}, ""},
		{agent.TurnEnds, `{"decision":"block","reason":"go on"}`, agent.HookAnswer{Decision: "deny", Reason: "go on"}, ""},
		{
			agent.BeforeTool,
			`{"hookSpecificOutput":{"permissionDecision":"ask","permissionDecisionReason":"r","updatedInput":{"a":1},"additionalContext":"c"}}`,
			agent.HookAnswer{Decision: "ask", Reason: "r", Input: json.RawMessage(`{"a":1}`), Context: "c"},
			"",
		},
		{
			agent.BeforeTool, `{"decision":"approve","hookSpecificOutput":{"permissionDecision":"deny"}}`,
			agent.HookAnswer{Decision: "deny"},
			"",
		},
		{
			agent.AfterTool,
			`{"systemMessage":"n","hookSpecificOutput":{"permissionDecision":"deny","additionalContext":"c"}}`,
			agent.HookAnswer{Note: "n", Context: "c"},
			"",
		},
		{agent.BeforeTool, `{"continue":false,"stopReason":"enough"}`, agent.HookAnswer{End: "enough"}, ""},
		{agent.BeforeTool, `{"continue":false}`, agent.HookAnswer{End: "the host ends the turn"}, ""},
		{agent.BeforeTool, `{"continue":true}`, agent.HookAnswer{}, ""},
		{
			agent.BeforeTool, `{"decision":"block","reason":"r","hookSpecificOutput":{"permissionDecision":"allow"}}`,
			agent.HookAnswer{Decision: "deny", Reason: "r"},
			"",
		},
		{agent.BeforeTool, `{"hookSpecificOutput":{"permissionDecision":"defer"}}`, agent.HookAnswer{}, "defers the call"},
		{
			agent.BeforeTool, `{"hookSpecificOutput":{"permissionDecision":"allow","updatedInput":[]}}`,
			agent.HookAnswer{},
			"is not an object",
		},
		{agent.BeforeTool, `{"hookSpecificOutput":{"updatedInput":{}}}`, agent.HookAnswer{Input: json.RawMessage(`{}`)}, ""},
		{agent.BeforeTool, `{"hookSpecificOutput":{"updatedInput":null}}`, agent.HookAnswer{}, ""},
		{agent.BeforeTool, `{"decision":"maybe"}`, agent.HookAnswer{}, "must be approve or block"},
		{
			agent.BeforeTool, `{"hookSpecificOutput":{"permissionDecision":"maybe"}}`,
			agent.HookAnswer{},
			"must be allow, ask or deny",
		},
		{
			agent.AfterTool, `{"hookSpecificOutput":{"updatedToolOutput":"x"}}`,
			agent.HookAnswer{},
			"replaces the result of a tool",
		},
		{agent.BeforeTool, `"x"`, agent.HookAnswer{}, "its answer is invalid"},
	} {
		w, err := claude.ReadWord(c.moment, []byte(c.body))
		if (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) ||
			fmt.Sprintf("%+v", w) != fmt.Sprintf("%+v", c.want) {
			t.Errorf("%s %s: %+v %v", c.moment, c.body, w, err)
		}
	}
	all := claude.Together([]agent.HookAnswer{
		{Decision: "allow", Reason: "a", Context: "1"},
		{Decision: "deny", Reason: "b"},
		{Decision: "ask", Context: "2", End: "e"},
	})
	if all.Decision != "deny" || all.Reason != "b" || all.Context != "1\n2" || all.End != "e" {
		t.Errorf("%+v", all)
	}
	if w := claude.Failed(claude.Hook{Moment: agent.BeforeTool}, "x"); w.Decision != "ask" {
		t.Errorf("%+v", w)
	}
	if w := claude.Failed(claude.Hook{Moment: agent.BeforeTool, Block: true}, "x"); w.Decision != "deny" {
		t.Errorf("%+v", w)
	}
	if w := claude.Failed(claude.Hook{Moment: agent.AfterTool, Block: true}, "x"); w.Decision != "" || w.Note == "" {
		t.Errorf("%+v", w)
	}
}

// TestHookRequests have what the host's functions are called with.
func TestHookRequests(t *testing.T) {
	call := &event.Call{ID: "c1", Name: "Bash", Input: json.RawMessage(`{"command":"ls"}`)}
	for _, c := range []struct {
		moment agent.Moment
		want   map[string]any
	}{
		{agent.Moment{Name: agent.BeforeTool, Call: call}, map[string]any{
			"tool_name": "Bash", "tool_use_id": "c1",
			"hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/w", "permission_mode": "plan",
		}},
		{
			agent.Moment{Name: agent.AfterTool, Call: call, Result: &event.Result{Output: "o"}},
			map[string]any{"tool_response": "o"},
		},
		{
			agent.Moment{Name: agent.AfterFailure, Call: call, Result: &event.Result{Output: "o"}, Parent: "p"},
			map[string]any{"error": "o", "agent_id": "p"},
		},
		{agent.Moment{Name: agent.MessageComes, Text: "hi"}, map[string]any{"prompt": "hi"}},
		{agent.Moment{Name: agent.SessionBegins, Text: "resume"}, map[string]any{"source": "resume"}},
		{agent.Moment{Name: agent.SessionEnds, Text: "other"}, map[string]any{"reason": "other"}},
		{
			agent.Moment{Name: agent.TurnEnds, Text: "done", Again: true},
			map[string]any{"stop_hook_active": true, "last_assistant_message": "done"},
		},
		{agent.Moment{Name: agent.Shortening, Text: "auto"}, map[string]any{"trigger": "auto"}},
		{agent.Moment{Name: agent.HelperBegins, Text: "scout"}, map[string]any{"agent_type": "scout"}},
		{agent.Moment{Name: agent.HelperEnds, Text: "done"}, map[string]any{"last_assistant_message": "done"}},
	} {
		var m struct {
			Request struct {
				Subtype  string         `json:"subtype"`
				Callback string         `json:"callback_id"`
				Input    map[string]any `json:"input"`
			} `json:"request"`
		}
		if err := json.Unmarshal(claude.Ask("r",
			claude.HookRequest("h0", claude.Scene{Session: "s", Dir: "/w", Mode: "plan"}, c.moment)), &m); err != nil {
			t.Fatal(err)
		}
		if m.Request.Subtype != "hook_callback" || m.Request.Callback != "h0" {
			t.Errorf("%+v", m)
		}
		for name, want := range c.want {
			if m.Request.Input[name] != want {
				t.Errorf("%s: %s is %v, not %v", c.moment.Name, name, m.Request.Input[name], want)
			}
		}
	}
}
